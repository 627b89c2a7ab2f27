"""The pass `check-open-bounds`: in functions of symbolic sizes no access leaves its buffer.

An index that is not provably inside (by the ranges of loops and blocks, the conditions around it, and what is known of the
sizes: `mirstack.sizes`) is compared at run time, right before the access; `assert` ends the function where it is outside.
What is proven costs nothing. Loops around a check are not vectorized.

Indices are taken as block axes see them, so the pass stands before blocks are made opaque, and behind scheduling.
Accesses of whole vectors (ramps) are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.tir.analysis import Analyzer, Expr, Kind, Scope
from ...dialects.tir.analysis.conditions import eq, ge, gt, le, logical_not, lt, ne
from ...dialects.tir.analysis.expr import ZERO, as_expr
from ...dialects.tir.buffer import AccessOp, buffer_name
from ...dialects.tir.size_relations import SIZES, relations
from ...support.walk import walk_ops
from .rewriting import builder_before, enclosing, prim_funcs

ONE = as_expr(1)
DIVISIONS = (Kind.FLOORDIV, Kind.FLOORMOD)


def is_open(function: tir.PrimFuncOp) -> bool:
    """Whether the function has a symbolic variable."""
    return any(isinstance(op, tir.VarOp) for op in walk_ops(function))


def check_function(function: tir.PrimFuncOp) -> int:
    """Adds the checks that the function needs; how many there are."""
    analyzer = Analyzer()
    variables: dict[str, Expr] = {}
    for op in walk_ops(function):
        if isinstance(op, tir.VarOp) and isinstance(op.result.type, IntegerType):
            variables.setdefault(op.var_name.data, analyzer.expr(op.result))
            if op.size_var is not None:
                analyzer.mark_global_non_neg_value(op.result)
    expanding: list[tuple[Expr, Expr]] = []
    for rule, left, right in relations(function.attrs.data.get(SIZES), variables):
        if rule == "expand":
            expanding.append((left, right))
        else:
            analyzer.constraint(eq(left, right) if rule == "equal" else le(left, right))
    checks = _Checks(analyzer, _shown(function), expanding)
    checks.block(function.body.block)
    return checks.count


def _shown(function: tir.PrimFuncOp) -> str:
    """What messages call the function: the operator that it computes, where it is one."""
    shape = function.attrs.data.get("mirstack.shape")
    operator = getattr(shape, "data", {}).get("operator")
    return operator.data if isinstance(operator, StringAttr) else f"@{function.sym_name.data}"


class _Checks:
    """One function on its way. Regions nest only as deep as loops and conditions do."""

    def __init__(self, analyzer: Analyzer, shown: str, expanding: Sequence[tuple[Expr, Expr]]):
        self.analyzer = analyzer
        self.shown = shown
        self.expanding = expanding
        """Sizes that are 1 or equal to another."""
        self.extents: list[Expr] = []
        """How often the loops and block axes around an op run where they depend on sizes: at least once."""
        self.count = 0

    @contextmanager
    def bind(self, variable: SSAValue, low: SSAValue, extent: SSAValue) -> Generator[None]:
        """Inside, a loop's or axis' variable has its range, which is not empty."""
        size = self.analyzer.expr(extent)
        known = len(self.extents)
        if size.terms:
            self.extents.append(size)
        with self.analyzer.bind(variable, low, extent):
            yield
        del self.extents[known:]

    def block(self, block: Block) -> None:
        """What a check has found is known behind it, to the end of the region."""
        with ExitStack() as scopes:
            for op in list(block.ops):
                self.visit(op, scopes)

    def visit(self, op: Operation, scopes: ExitStack) -> None:
        """Checks an op and what is inside of it."""
        match op:
            case tir.LoadOp() | tir.StoreOp():
                self.access(op, scopes)
            case tir.ForOp():
                with self.bind(op.loop_var, op.min, op.extent):
                    self.block(op.body.block)
            case tir.BlockOp():
                with ExitStack() as axes:
                    for axis, low, extent in zip(op.iter_vars, op.dom_mins, op.dom_extents, strict=True):
                        axes.enter_context(self.bind(axis, low, extent))
                    if op.predicate is not None:
                        axes.enter_context(self.analyzer.constraint(op.predicate))
                    self.block(op.body.block)
            case tir.IfOp() | tir.IfThenElseOp():
                condition = self.analyzer.expr(op.condition)
                for region, holds in ((op.then_region, condition), (op.else_region, logical_not(condition))):
                    if region.blocks:
                        with ExitStack() as inner:
                            self.suppose(holds, inner)
                            self.block(region.block)
            case tir.ReadsOp() | tir.WritesOp():
                pass
            case _:
                for region in op.regions:
                    for each in region.blocks:
                        self.block(each)

    def access(self, op: AccessOp, scopes: ExitStack) -> None:
        """Checks the dimensions of one access that are not proven."""
        for number, (index, extent) in enumerate(zip(op.indices, _extents(op.buffer), strict=True)):
            if not isinstance(index.type, IntegerType):
                continue
            at, size = self.analyzer.expr(index), self.analyzer.expr(extent)
            if self.is_inside(at, size):
                continue
            with self.analyzer.constraint(gt(size, ZERO)):
                only_empty = bool(size.terms) and self.is_inside(at, size)
            self.add(op, number, None if only_empty else index, extent)
            for condition in (gt(size, ZERO),) if only_empty else (ge(at, ZERO), lt(at, size)):
                scopes.enter_context(self.analyzer.constraint(condition))

    def is_inside(self, at: Expr, size: Expr) -> bool:
        """Whether 0 <= at < size for sure."""
        if self.is_not_negative(at) and self.is_below(at, size):
            return True
        for known, target in self.expanding:
            if known == size:
                cases = (self.analyzer.constraint(eq(size, other)) for other in (ONE, target))
                return all(self._is_inside_where(case, at, size) for case in cases)
        return False

    def _is_inside_where(self, case: Scope, at: Expr, size: Expr) -> bool:
        with case:
            return self.is_not_negative(at) and self.is_below(at, size)

    def is_not_negative(self, at: Expr) -> bool:
        """Whether 0 <= at."""
        return self.holds(at, self.is_not_negative, Kind.MAX, Kind.MIN) or self.is_proven(at, None)

    def is_below(self, at: Expr, size: Expr) -> bool:
        """Whether at < size."""

        def below(each: Expr) -> bool:
            return self.is_below(each, size)

        return self.holds(at, below, Kind.MIN, Kind.MAX) or self.is_proven(at, size)

    def holds(self, at: Expr, claim: Callable[[Expr], bool], one: Kind, both: Kind) -> bool:
        """Whether a claim holds of a choice: of one operand, of each, of each side where it is chosen."""
        atom = at.atom
        if atom is None:
            return False
        if atom.kind in (one, both):
            return (any if atom.kind is one else all)(map(claim, atom.operands))
        if atom.kind is not Kind.SELECT:
            return False
        condition, *sides = atom.operands
        for side, chosen in zip(sides, (condition, logical_not(condition)), strict=True):
            with ExitStack() as scopes:
                self.suppose(chosen, scopes)
                if not claim(side):
                    return False
        return True

    def suppose(self, condition: Expr, scopes: ExitStack) -> None:
        """Within the scopes a condition holds, and so what it says of sizes that broadcast."""
        scopes.enter_context(self.analyzer.constraint(condition))
        for size, target in self.expanding:
            if condition == ne(size, ONE):
                scopes.enter_context(self.analyzer.constraint(eq(size, target)))

    def is_proven(self, at: Expr, size: Expr | None) -> bool:
        """Whether 0 <= at, or at < size: a // d is where 0 <= a < size * d, a % d where d <= size. Divided by
        0 both are 0, which is not below a size of 0."""
        atom = at.atom
        if atom is not None and atom.kind in DIVISIONS and self.analyzer.can_prove(ge(atom.operands[1], ZERO)):
            dividend, divisor = atom.operands
            if atom.kind is Kind.FLOORMOD:
                if size is None:
                    return True
                if self.analyzer.can_prove(le(divisor, size)) and (
                    self.analyzer.can_prove(gt(size, ZERO)) or self.is_positive(divisor)
                ):
                    return True
            elif self.is_not_negative(dividend) and (size is None or self.is_below(dividend, size * divisor)):
                return True
        return self.analyzer.can_prove(ge(at, ZERO) if size is None else lt(at, size))

    def is_positive(self, divisor: Expr) -> bool:
        """Whether 0 < divisor, given that it is not negative: were it 0, a loop around would have no iterations."""
        if self.analyzer.can_prove(gt(divisor, ZERO)):
            return True
        with self.analyzer.constraint(eq(divisor, ZERO)):
            return any(self.analyzer.can_prove(le(extent, ZERO)) for extent in self.extents)

    def add(self, op: AccessOp, number: int, index: SSAValue | None, extent: SSAValue | int) -> None:
        """A check before the access: 0 <= index < extent, or, without an index, 0 < extent."""
        builder = builder_before(op)
        type = op.indices[number].type
        zero = builder.insert(tir.ConstOp.int(0, type)).result
        if isinstance(extent, int):
            extent = builder.insert(tir.ConstOp.int(extent, type)).result
        elif extent.type != type:
            extent = builder.insert(tir.CastOp(extent, type)).result
        does = "reads" if isinstance(op, tir.LoadOp) else "writes"
        place = f"dimension {number} of '{buffer_name(op.buffer)}'"
        if index is None:
            inside = builder.insert(tir.LtOp(zero, extent)).result
            message = f"{self.shown} {does} along {place}, which has no elements"
        else:
            low = builder.insert(tir.GeOp(index, zero)).result
            high = builder.insert(tir.LtOp(index, extent)).result
            inside = builder.insert(tir.AndOp(low, high)).result
            limits = f"{self.analyzer.simplify(index)} is not below {self.analyzer.simplify(extent)}, or is negative"
            message = f"{self.shown} {does} outside of {place}: {limits}"
        builder.insert(tir.AssertOp(inside, message))
        self.count += 1
        for outer in enclosing(op):
            if isinstance(outer, tir.ForOp) and outer.kind.data == "vectorized":
                outer.kind = StringAttr("serial")


def _extents(buffer: SSAValue) -> Iterable[SSAValue | int]:
    owner = buffer.owner
    if isinstance(owner, tir.BufferOp):
        return owner.extents()
    assert isinstance(buffer.type, tir.BufferType)
    return buffer.type.static_shape or ()


@dataclass(frozen=True)
class CheckOpenBounds(ModulePass):
    """Asserts that accesses in functions of symbolic sizes stay inside, where that is not proven."""

    name = "check-open-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Adds checks to every function of the module that has a symbolic variable."""
        for function in prim_funcs(op):
            if is_open(function):
                check_function(function)
