"""Names expressions that adjacent statements repeat, as TVM's common-subexpression elimination does.

    A[i * 4 + j] = B[i * 4 + j]    →    cse_var_1: T.int32 = i * 4 + j; A[cse_var_1] = B[cse_var_1]

Unlike `common-subexpr-elim-tir`, which looks at a whole function, it shares only expressions that adjacent stores and calls repeat
and that depend on loop variables and parameters only: the text of a lowered schedule then reads as TVM prints it (TVM,
"tir/transforms/common_subexpr_elim"). Larger expressions come first; each name precedes the smaller ones that it uses, and names
are numbered in order of introduction through the whole function.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.tir.arithmetic import BinaryOp
from ....support.edit import erase_op
from ....support.walk import walk_ops
from .place_declarations import DECLARATIONS

_ELIGIBLE = (BinaryOp, tir.NotOp, tir.SelectOp, tir.CastOp)
_STATEMENTS = (tir.StoreOp, tir.EvaluateOp)
_OUTER = (tir.AttrOp, *DECLARATIONS)
"""Ops that act on all that follows: a list of statements begins after them."""


@dataclass
class _Computation:
    size: int
    uses: list[OpResult] = field(default_factory=list[OpResult])


class _Sharing:
    def __init__(self, function: tir.PrimFuncOp):
        self.count = 0
        self.numbers: dict[Hashable, int] = {}
        self.of: dict[SSAValue, int] = {}
        self.size: dict[SSAValue, int] = {}
        # Whether a value is made of loop variables and parameters only, which are defined before any statement inside.
        self.known: dict[SSAValue, bool] = {}
        self.params = set(function.params)

    def number(self, value: SSAValue) -> int:
        """Returns a number for the value, equal for equal expressions."""
        found = self.of.get(value)
        if found is not None:
            return found
        pending = [value]
        while pending:
            current = pending[-1]
            op = current.owner
            if current in self.of:
                pending.pop()
                continue
            parts = list(op.operands) if isinstance(op, (*_ELIGIBLE, tir.ConstOp)) else []
            missing = [p for p in parts if p not in self.of]
            if missing:
                pending += missing
                continue
            pending.pop()
            if isinstance(op, (*_ELIGIBLE, tir.ConstOp)):
                key: Hashable = (type(op), current.type, tuple(self.of[p] for p in parts), op.properties.get("value"))
                self.size[current] = 1 + sum(self.size[p] for p in parts)
                self.known[current] = all(self.known[p] for p in parts)
            else:
                key = current
                self.size[current] = 1
                self.known[current] = _is_loop_variable(current) or current in self.params
            self.of[current] = self.numbers.setdefault(key, len(self.numbers))
        return self.of[value]

    def block(self, block: Block) -> None:
        """Shares what the statements of a block repeat."""
        statements = [op for op in block.ops if isinstance(op, _STATEMENTS)]
        if not statements:
            return
        table: dict[int, _Computation] = {}
        for statement in statements:
            for value in _operands(statement):
                self._collect(value, block, table)
        # Of those of one size that were written last comes first; parts that are found later follow.
        order = sorted(reversed(list(table)), key=lambda n: -table[n].size)
        # Lets are inserted after this mark, later ones before earlier ones.
        mark = tir.ConstOp.int(0)
        block.insert_op_before(mark, _start(statements[0]))
        place = 0
        while place < len(order):
            computation = table[order[place]]
            place += 1
            uses = computation.uses
            if len(uses) > 1 and self.known[uses[0]]:
                self._share(uses, mark, block)
                uses = uses[:1]
            for value in uses:
                for part in value.op.operands:
                    self._found(part, block, table, order)
        erase_op(mark)

    def _collect(self, root: SSAValue, block: Block, table: dict[int, _Computation]) -> None:
        pending = [root]
        while pending:
            value = pending.pop()
            op = value.owner
            if not isinstance(op, Operation) or not _is_within(op, block):
                continue
            if isinstance(value, OpResult) and isinstance(op, _ELIGIBLE) and _is_pure(value):
                entry = table.setdefault(self.number(value), _Computation(self.size[value]))
                entry.uses.append(value)
            elif not isinstance(op, (tir.LetOp, *_OUTER)):
                pending += reversed(list(op.operands))
                for region in op.regions:
                    last = region.block.last_op
                    pending += [] if last is None else list(last.operands)

    def _found(self, value: SSAValue, block: Block, table: dict[int, _Computation], order: list[int]) -> None:
        if not isinstance(value, OpResult) or not isinstance(value.op, _ELIGIBLE) or not _is_within(value.op, block):
            return
        key = self.number(value)
        entry = table.get(key)
        if entry is None:
            entry = table[key] = _Computation(self.size[value])
            place = len(order)
            while place and table[order[place - 1]].size < entry.size:
                place -= 1
            order.insert(place, key)
        entry.uses.append(value)

    def _share(self, uses: list[OpResult], mark: Operation, block: Block) -> None:
        """Inserts a let of the first use after the mark, and replaces all uses by it."""
        self.count += 1
        let = tir.LetOp(f"cse_var_{self.count}", uses[0])
        let.location = uses[0].op.location
        let.result.name_hint = "cse_var"
        for use in uses:
            use.replace_uses_with_if(let.result, lambda u: u.operation is not let)
        kept: list[Operation] = []
        _tree(uses[0], block, kept)
        for op in (let, *reversed(kept)):
            if op.parent is not None:
                op.detach()
            block.insert_op_after(op, mark)


def _is_within(op: Operation, block: Block) -> bool:
    """Returns whether an op is in a block or in a region nested in it.

    A value from outside, such as the mask of a branch, may have
    other users there.
    """
    parent = op.parent
    while parent is not None and parent is not block:
        owner = parent.parent_op()
        parent = None if owner is None else owner.parent
    return parent is block


def _is_loop_variable(value: SSAValue) -> bool:
    return (
        not isinstance(value, OpResult)
        and isinstance(value.owner, Block)
        and isinstance(value.owner.parent_op(), tir.ForOp)
    )


def _operands(statement: Operation) -> list[SSAValue]:
    """Returns the values of a statement in order: a store's value before its indices."""
    if isinstance(statement, tir.StoreOp):
        return [statement.value, *statement.indices]
    return list(statement.operands)


def _is_pure(value: SSAValue) -> bool:
    """Returns whether the computation holds no load, call or vector."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, tir.LoadOp | tir.CallOp | tir.RampOp | tir.BroadcastOp | tir.ShuffleOp | tir.IfThenElseOp):
            return False
        if isinstance(op, _ELIGIBLE):
            pending += op.operands
    return True


def _tree(root: OpResult, block: Block, kept: list[Operation]) -> None:
    """Appends the ops of a block that compute a value to `kept`, operands first.

    The constant of an unrolled variable is outside of the block: other
    statements of the iteration read it.
    """
    pending: list[tuple[SSAValue, bool]] = [(root, False)]
    seen: set[Operation] = set()
    while pending:
        value, is_ready = pending.pop()
        op = value.owner
        if not isinstance(op, (*_ELIGIBLE, tir.ConstOp)) or op in seen or not _is_within(op, block):
            continue
        if is_ready:
            seen.add(op)
            kept.append(op)
            continue
        pending.append((value, True))
        pending += [(p, False) for p in reversed(op.operands)]


def _start(first: Operation) -> Operation:
    """Returns the first op of the list of statements, after the ops that act on all of it."""
    while (before := first.prev_op) is not None and not isinstance(before, _OUTER):
        first = before
    return first


def share_indices(function: tir.PrimFuncOp) -> None:
    """Shares what statements repeat, in place."""
    sharing = _Sharing(function)
    for op in list(walk_ops(function)):
        for region in op.regions if not isinstance(op, tir.IfThenElseOp | tir.CommReducerOp) else ():
            for block in region.blocks:
                sharing.block(block)
