"""Simplifies scalar expressions in place under what an analyzer knows.

Integer arithmetic is brought into the analyzer's canonical form and back, whole trees at a time: the root of a tree is the value
that something other than arithmetic uses. This is not a rule: what cancels in a sum may be anywhere in its tree. Comparisons keep the
side that they are written on; what is known true or false becomes a constant. All else is rewritten by the rules of `simplify.mir`. Operands must have been simplified before the ops that use them, as they are in program order.

The analyzer treats integers as unlimited. What indices, bounds of loops and conditions of statements are computed from must not
overflow; all else wraps around, and is simplified only where it does not, or where sums and products alone are left
(docs/semantics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any

from xdsl.builder import Builder
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr, Kind
from ....dialects.arith import expr as x
from ....dialects.arith.expr import eq, ge, gt, le, logical_not, lt, ne
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.arith.to_ssa import to_ssa
from ....dialects.tir.arithmetic import LogicalOp
from ....dialects.tir.operators import Const, as_const, fold
from ....dialects.tir.scalar_ops import ARITHMETIC, COMPARISONS
from ....dialects.tir.types import I1
from ....support.edit import builder_before, erase_op, move_before
from ..rewriting import is_same_tree

if TYPE_CHECKING:
    from .scalar_rules import ScalarRules

_SEEN_THROUGH = (*ARITHMETIC, tir.LetOp, tir.CastOp)
_COUNTED = (*_SEEN_THROUGH, tir.SelectOp, tir.CompareOp)
_CALCULATED = (*_COUNTED, tir.AndOp, tir.OrOp, tir.NotOp)

MAX_SIZE = 400
"""Trees of more ops than this stay as they are (shared parts count each time that they are used)."""

Prover = Callable[[Analyzer, Expr], bool]

_CONDITIONS: dict[str, Callable[[Expr, Expr], Expr]] = {"lt": lt, "le": le, "gt": gt, "ge": ge, "eq": eq, "ne": ne}


def _can_prove(analyzer: Analyzer, condition: Expr) -> bool:
    return analyzer.can_prove(condition)


class ExpressionSimplifier:
    """Simplifies values one op at a time; `prove` decides what is known of a condition."""

    def __init__(self, analyzer: Analyzer, prove: Prover = _can_prove):
        self.analyzer = analyzer
        self.prove = prove
        self._steps: dict[type[Operation], Callable[[Any], None]] = {
            **dict.fromkeys(ARITHMETIC, self._arithmetic),
            **dict.fromkeys(COMPARISONS, self._comparison),
            **dict.fromkeys((tir.AndOp, tir.OrOp, tir.NotOp), self._logic),
            **dict.fromkeys((tir.CastOp, tir.CallOp), self._by_rules),
            tir.SelectOp: self._select,
        }

    @cached_property
    def rules(self) -> ScalarRules:
        """Returns the rules for what is not index arithmetic."""
        from .scalar_rules import ScalarRules

        return ScalarRules("tir/scalars/simplify.mir", self)

    def visit(self, op: Operation) -> None:
        """Replaces the results of an expression op by something simpler, if possible; the op itself stays."""
        step = self._steps.get(type(op))
        if step is not None:
            step(op)

    def _by_rules(self, op: Operation) -> None:
        if op.results and op.results[0].first_use is not None:
            self.rules.settle(op)

    def _arithmetic(self, op: tir.BinaryOp) -> None:
        if not is_index_type(op.result.type):
            self._fold(op)
            self._by_rules(op)
        elif _is_root(op.result):
            self.simplify_root(op.result)

    def _select(self, op: tir.SelectOp) -> None:
        self._by_rules(op)
        if is_index_type(op.result.type) and _is_root(op.result) and self.is_exact(op.result):
            self._replace(op.result)  # pyright: ignore[reportArgumentType]

    def holds(self, question: str, arguments: Sequence[Any]) -> bool:
        """Returns whether the condition of a rule is known to be true of integers; implements `Knowledge`."""
        values = [each for each in arguments if isinstance(each, SSAValue)]
        if not all(isinstance(each.type, IntegerType) and self.is_exact(each) for each in values):
            return False
        a, b = (self.analyzer.expr(each) if isinstance(each, SSAValue) else x.as_expr(int(each)) for each in arguments)
        condition = eq(x.floormod(b, a), x.ZERO) if question == "divides" else _CONDITIONS[question](a, b)
        return self.prove(self.analyzer, condition)

    # Integers ----------------------------------------------------------------------------------------------------

    def simplify_root(self, value: OpResult) -> None:
        """Simplifies a tree, or the parts of it that compute the same where arithmetic wraps around."""
        pending = [value]
        while pending:
            root = pending.pop()
            if self.is_exact(root) or _is_ring(root):
                self._replace(root)
            else:
                pending += [o for o in root.op.operands if isinstance(o, OpResult) and isinstance(o.op, ARITHMETIC)]

    def is_exact(self, root: SSAValue) -> bool:
        """Returns whether no arithmetic in a tree may overflow, by what uses it or by the bounds of its parts."""
        if not _is_stored(root):
            return True
        pending, seen = [root], set[SSAValue]()
        while pending:
            value = pending.pop()
            op = value.owner
            if value in seen or not isinstance(op, _CALCULATED):
                continue
            seen.add(value)
            if len(seen) > MAX_SIZE or (isinstance(op, ARITHMETIC) and not self._fits(value)):
                return False
            pending += op.operands
        return True

    def _fits(self, value: SSAValue) -> bool:
        """Returns whether a number is known to be one of its type."""
        if not is_index_type(value.type):
            return True
        assert isinstance(value.type, IntegerType)
        width, bound = value.type.width.data, self.analyzer.const_int_bound(value)
        return -(1 << width - 1) <= bound.min_value and bound.max_value < 1 << width - 1

    def _replace(self, value: OpResult) -> None:
        """Replaces a tree of integer arithmetic by its canonical form, where that is not longer."""
        pending = [value]
        while pending:
            root = pending.pop()
            size = _size(root)
            if size > MAX_SIZE:
                continue
            scratch = Block()
            new = self._emit(self.analyzer.simplify(root), root, scratch)
            if _size(new) > size or (_size(new) == size and _has_product(root)):
                # Longer than before, or only multiplied out (a product of sums): only its parts.
                _discard(scratch)
                pending += [o for o in root.op.operands if isinstance(o, OpResult) and isinstance(o.op, ARITHMETIC)]
            elif is_same_tree(root, new):
                _discard(scratch)
            else:
                _place(scratch, root.op)
                root.replace_all_uses_with(new)

    def _emit(self, e: Expr, root: SSAValue, scratch: Block) -> SSAValue:
        """Ops in `scratch` that compute `e`, a form of `root`."""
        builder = Builder(InsertPoint.at_end(scratch))
        order, products = appearance(self.analyzer, [root]), self._products(root)
        return to_ssa(e, builder, root.type, order=order, shared=False, products=products)

    def _products(self, root: SSAValue) -> dict[Atom, list[Expr]]:
        """Returns the factors of the products in the tree of `root`, in the order of the text."""
        found: dict[Atom, list[Expr]] = {}
        pending = [root]
        for _ in range(MAX_SIZE):
            if not pending:
                break
            value = pending.pop()
            op = value.owner
            if isinstance(op, _SEEN_THROUGH):
                pending += op.operands
            if not isinstance(op, tir.MulOp) or not is_index_type(op.result.type):
                continue
            atom = self.analyzer.expr(value).atom
            if atom is not None and atom.kind is Kind.PRODUCT:
                factors = [Expr(((a, 1),), 0) for side in op.operands for a in self._factors_of(side)]
                if len(factors) == len(atom.operands):
                    found[atom] = factors
        return found

    def _factors_of(self, value: SSAValue) -> list[Atom]:
        """Returns the factors of a product of products, from left to right."""
        found: list[Atom] = []
        pending = [value]
        while pending and len(found) < MAX_SIZE:
            current = pending.pop()
            op = current.owner
            if isinstance(op, tir.MulOp):
                pending += (op.rhs, op.lhs)
            elif (atom := self.analyzer.expr(current).atom) is not None:
                found += x.factors_of(atom)
        return found

    # Conditions --------------------------------------------------------------------------------------------------

    def _decide(self, value: SSAValue) -> bool | None:
        """Returns the value of a condition; None where it is not known."""
        if not self.is_exact(value):
            return None
        condition = self.analyzer.expr(value)
        if self.prove(self.analyzer, condition):
            return True
        return False if self.prove(self.analyzer, logical_not(condition)) else None

    def _comparison(self, op: tir.CompareOp) -> None:
        self.compare(op)
        if not is_index_type(op.lhs.type) or isinstance(op.lhs.owner, tir.CastOp):
            # Of other indices the canonical form has said it all.
            self._by_rules(op)

    def compare(self, op: tir.CompareOp) -> None:
        """Decides a comparison, or brings its sides into canonical form."""
        if op.lhs.type != op.rhs.type or not isinstance(op.lhs.type, IntegerType):
            self._fold(op)
            return
        decided = self._decide(op.result)
        if decided is not None:
            self._become(op, decided)
            return
        if not is_index_type(op.lhs.type) or not self.is_exact(op.result):
            return
        kind, lhs, rhs = type(op), op.lhs, op.rhs
        if isinstance(op, tir.GtOp | tir.GeOp):
            kind, lhs, rhs = (tir.LtOp if isinstance(op, tir.GtOp) else tir.LeOp), rhs, lhs
        left, right = _balance(kind, self.analyzer.expr(lhs), self.analyzer.expr(rhs))
        same = (left, right) == (self.analyzer.expr(lhs), self.analyzer.expr(rhs))
        if same and kind is type(op):
            return
        if not same:
            scratch = Block()
            new_lhs, new_rhs = self._emit(left, lhs, scratch), self._emit(right, rhs, scratch)
            if _size(new_lhs) + _size(new_rhs) >= _size(lhs) + _size(rhs):
                _discard(scratch)
            else:
                _place(scratch, op)
                lhs, rhs = new_lhs, new_rhs
        if (kind, lhs, rhs) != (type(op), op.lhs, op.rhs):
            op.result.replace_all_uses_with(builder_before(op).insert(kind(lhs, rhs)).result)

    def _logic(self, op: tir.AndOp | tir.OrOp | tir.NotOp) -> None:
        if op.result.type == I1:
            self._decide_logic(op)
        self._by_rules(op)

    def _decide_logic(self, op: tir.AndOp | tir.OrOp | tir.NotOp) -> None:
        decided = self._decide(op.result)
        if decided is not None:
            self._become(op, decided)
        elif isinstance(op, LogicalOp):
            # What the analyzer knows of one side alone was used when that was visited.
            self._fold(op)

    # Others ------------------------------------------------------------------------------------------------------

    def _fold(self, op: tir.BinaryOp) -> None:
        """Folds an op on constants as TVM's operators do."""
        try:
            folded = fold(type(op), op.lhs, op.rhs)
        except ZeroDivisionError:
            return
        if folded is None or folded.type != op.result.type:
            return
        if isinstance(folded, Const):
            value = constant(folded, builder_before(op))
            if value is None:
                return
            op.result.replace_all_uses_with(value)
        else:
            op.result.replace_all_uses_with(folded)

    def _become(self, op: Operation, value: bool) -> None:
        made = builder_before(op).insert(tir.ConstOp.int(int(value), I1)).result
        op.results[0].replace_all_uses_with(made)


def appearance(analyzer: Analyzer, roots: Sequence[SSAValue]) -> Callable[[Atom], int]:
    """Returns a key that orders atoms as they first appear in the trees of some values."""
    places: dict[Atom, int] = {}
    pending = list(reversed(roots))
    while pending and len(places) < MAX_SIZE:
        value = pending.pop()
        op = value.owner
        if isinstance(op, _SEEN_THROUGH):
            pending += reversed(op.operands)
        elif (atom := analyzer.expr(value).atom) is not None:
            places.setdefault(atom, len(places))
    known: dict[Atom, int] = dict(places)

    def place(atom: Atom) -> int:
        found = known.get(atom)
        if found is None:
            inner = [places[a] for a in x.free_vars(Expr(((atom, 1),), 0)) if a in places]
            found = known[atom] = min(inner, default=len(places))
        return found

    return place


def constant(value: Const, builder: Builder) -> SSAValue | None:
    """Builds a constant; None for what is neither an integer nor a float."""
    if isinstance(value.type, IntegerType):
        return builder.insert(tir.ConstOp.int(int(value.value), value.type)).result
    try:
        return builder.insert(tir.ConstOp.float(float(value.value), value.type)).result
    except (OverflowError, AssertionError):
        return None


def _is_stored(value: SSAValue) -> bool:
    """Returns whether a value that is stored, returned or passed to a function depends on this one."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if len(seen) > MAX_SIZE:
            return True
        for use in current.uses:
            op = use.operation
            match op:
                case tir.StoreOp() | tir.LoadOp() if use.index > len(op.indices):
                    return True
                case tir.StoreOp() | tir.LoadOp() | tir.BufferRegionOp() | tir.BufferOp():
                    pass
                case tir.ForOp() | tir.BlockOp() | tir.IfOp() | tir.WhileOp() | tir.AssertOp():
                    pass
                case tir.CallOp(intrinsic=name) if name.data != "likely":
                    return True
                case _ if op.regions or not op.results:
                    return True
                case _:
                    pending += op.results
    return False


def _is_ring(root: SSAValue) -> bool:
    """Returns whether a tree has only sums, differences and products, which wrap around consistently."""
    pending = list(root.owner.operands) if isinstance(root.owner, tir.AddOp | tir.SubOp | tir.MulOp) else [root]
    for _ in range(MAX_SIZE):
        if not pending:
            return True
        op = pending.pop().owner
        if isinstance(op, tir.AddOp | tir.SubOp | tir.MulOp | tir.LetOp):
            pending += op.operands
        elif isinstance(op, _CALCULATED):
            return False
    return False


def _is_root(value: SSAValue) -> bool:
    """Returns whether an op that is not arithmetic of the same dtype uses the value."""
    return any(
        not isinstance(use.operation, ARITHMETIC) or use.operation.result.type != value.type for use in value.uses
    )


def _size(value: SSAValue) -> int:
    """Returns the number of arithmetic ops that compute a value, at most a little above `MAX_SIZE`."""
    count, pending = 0, [value]
    while pending and count <= MAX_SIZE:
        op = pending.pop().owner
        if isinstance(op, _COUNTED):
            count += 0 if isinstance(op, tir.LetOp) else 1
            pending += op.operands
    return count


def _has_product(value: SSAValue) -> bool:
    """Returns whether a product in the tree has two factors that are not constants, one of them a sum."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, tir.MulOp) and as_const(op.lhs) is None and as_const(op.rhs) is None:
            found = any(isinstance(side.owner, tir.AddOp | tir.SubOp) for side in op.operands)
            if found:
                return True
        if isinstance(op, ARITHMETIC):
            pending += op.operands
    return False


def _discard(scratch: Block) -> None:
    """Gives up ops that were made for nothing."""
    for op in reversed(list(scratch.ops)):
        erase_op(op)


def _place(scratch: Block, op: Operation) -> None:
    """Moves what was made to just before `op`, whose location it gets."""
    for new in scratch.ops:
        new.location = op.location
    move_before(scratch.ops, op)


def _balance(kind: type[Operation], left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Cancels common terms of a comparison, collects constants on one side and takes out common factors."""
    for atom, coefficient in left.terms:
        other = right.coefficient(atom)
        if coefficient * other > 0:
            shared = min(coefficient, other, key=abs)
            part = Expr(((atom, shared),), 0)
            left, right = left - part, right - part
    if left.terms and right.terms:
        offset = right.const - left.const
        left = Expr(left.terms, max(-offset, 0))
        right = Expr(right.terms, max(offset, 0))
    elif left.terms:
        left, right = Expr(left.terms, 0), right - left.const
    else:
        left, right = left - right.const, Expr(right.terms, 0)
    return _divide(kind, left, right)


def _divide(kind: type[Operation], left: Expr, right: Expr) -> tuple[Expr, Expr]:
    common = gcd(*(c for _, c in (*left.terms, *right.terms)))
    if common <= 1:
        return left, right
    if not right.terms and kind in (tir.LtOp, tir.LeOp):  # g*x < c is x < ceil(c/g); g*x <= c is x <= floor(c/g)
        bound = -(-right.const // common) if kind is tir.LtOp else right.const // common
        return _over(left, common), Expr((), bound)
    if not left.terms and kind in (tir.LtOp, tir.LeOp):  # c < g*x is floor(c/g) < x; c <= g*x is ceil(c/g) <= x
        bound = left.const // common if kind is tir.LtOp else -(-left.const // common)
        return Expr((), bound), _over(right, common)
    if left.const % common == 0 and right.const % common == 0:
        return _over(left, common), _over(right, common)
    return left, right


def _over(e: Expr, divisor: int) -> Expr:
    return Expr(tuple((a, c // divisor) for a, c in e.terms), e.const // divisor)
