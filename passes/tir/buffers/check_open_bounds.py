"""The pass `check-open-bounds`: asserts that accesses are inside, in functions of symbolic sizes.

    for i in range(n):                        for i in range(n):
        B[i] = A[I[i]]                →           assert I[i] >= 0 and I[i] < m, "…"
                                                  B[i] = A[I[i]]

A function of known sizes is marked by its attribute `mirstack.check_bounds` (`mark-open-bounds` marks those whose accesses
depend on data, or on a condition that is not enough); False there says that its author vouches for it, a text is its name in messages.

An index that is not provably inside (by the ranges of loops and blocks, the conditions around it, and what is known of the sizes:
`mirstack.sizes`) is compared at run time, right before the access; `assert` ends the function where it is outside. Of a vector the first
and the last lane are compared, or each; of a view its place in the memory; of a buffer that is matched to a region, that region.
What is proven costs nothing. Loops around a check are not vectorized.

Indices are taken as block axes see them, so the pass runs after scheduling and before blocks are made opaque.
Accesses of scalable vectors are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind, Scope
from ....dialects.arith import expr as x
from ....dialects.arith.expr import ZERO, as_expr, eq, ge, gt, le, logical_not, lt, ne
from ....dialects.tir.buffer import AccessOp, BufferOp, buffer_name, tells_region
from ....dialects.tir.size_relations import SIZES, relations
from ....dialects.tir.types import I64, element_of, is_scalable, lanes_of
from ....support.edit import builder_before
from ....support.walk import enclosing, walk_ops
from ..blocks.lower_match_buffer import dropped_dimensions
from ..rewriting import PrimFuncPass
from .storage_liveness import bits_of
from .strides import extents_of, strides_of

# Proofs

ONE = as_expr(1)
DIVISIONS = (Kind.FLOORDIV, Kind.FLOORMOD)


class BoundsProof:
    """Proves facts about indices from what is known at a place of a function.

    `expanding` are pairs of sizes, the first of which is 1 or equal to the second (it broadcasts).
    """

    def __init__(self, analyzer: Analyzer, expanding: Sequence[tuple[Expr, Expr]]):
        self.analyzer = analyzer
        self.expanding = expanding
        self.extents: list[Expr] = []
        """How often the loops and block axes around an op run where they depend on sizes: at least once."""
        self.axes: list[tuple[SSAValue, SSAValue]] = []
        """The axes of the blocks around an op, and what each is bound to, outer ones first."""

    @contextmanager
    def bind(self, variable: SSAValue, low: SSAValue, extent: SSAValue) -> Generator[None]:
        """Binds a loop's or axis' variable to its range, which is not empty."""
        size = self.analyzer.expr(extent)
        known = len(self.extents)
        if size.terms:
            self.extents.append(size)
        with self.analyzer.bind(variable, low, extent):
            yield
        del self.extents[known:]

    @contextmanager
    def inside_block(self, op: tir.BlockOp) -> Generator[None]:
        """Binds the axes of a block to their ranges, and adds its predicate."""
        known = len(self.axes)
        with ExitStack() as scopes:
            for axis, low, extent in zip(op.iter_vars, op.dom_mins, op.dom_extents, strict=True):
                scopes.enter_context(self.bind(axis, low, extent))
            if op.predicate is not None:
                scopes.enter_context(self.analyzer.constraint(op.predicate))
            self.axes += zip(op.iter_vars, op.bindings, strict=True)
            yield
        del self.axes[known:]

    def is_inside(self, at: Expr, size: Expr) -> bool:
        """Returns whether 0 <= at < size is proven."""
        return self.is_within(at, at, size)

    def is_within(self, low: Expr, high: Expr, size: Expr) -> bool:
        """Returns whether 0 <= low and high < size are proven.

        The proof may need the bindings of axes: of an axis of extent 16 bound to 8 + i the loops may reach only a part.
        """
        if self._is_within(low, high, size):
            return True
        with ExitStack() as scopes:
            for axis, value in self.axes:
                scopes.enter_context(self.analyzer.bind(axis, value))
            return bool(self.axes) and self._is_within(low, high, size)

    def _is_within(self, low: Expr, high: Expr, size: Expr) -> bool:
        if self.is_not_negative(low) and self.is_below(high, size):
            return True
        for known, target in self.expanding:
            if known == size:
                cases = (self.analyzer.constraint(eq(size, other)) for other in (ONE, target))
                return all(self._is_within_where(case, low, high, size) for case in cases)
        return False

    def _is_within_where(self, case: Scope, low: Expr, high: Expr, size: Expr) -> bool:
        with case:
            return self.is_not_negative(low) and self.is_below(high, size)

    def is_not_negative(self, at: Expr) -> bool:
        """Returns whether 0 <= at is proven."""
        return self.holds(at, self.is_not_negative, Kind.MAX, Kind.MIN) or self.is_proven(at, None)

    def is_below(self, at: Expr, size: Expr) -> bool:
        """Returns whether at < size is proven."""

        def below(each: Expr) -> bool:
            return self.is_below(each, size)

        return self.holds(at, below, Kind.MIN, Kind.MAX) or self.is_proven(at, size)

    def holds(self, at: Expr, claim: Callable[[Expr], bool], one: Kind, both: Kind) -> bool:
        """Returns whether a claim holds of a minimum, maximum or select.

        It must hold of one operand (`one`), of each (`both`), or of each side of a select under its condition.
        """
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
        """Adds a condition, and what it implies for sizes that broadcast, until the scopes end."""
        scopes.enter_context(self.analyzer.constraint(condition))
        for size, target in self.expanding:
            if condition == ne(size, ONE):
                scopes.enter_context(self.analyzer.constraint(eq(size, target)))

    def is_proven(self, at: Expr, size: Expr | None) -> bool:
        """Returns whether 0 <= at (`size` is None) or at < size is proven.

        a // d is below size where 0 <= a < size * d, and a % d where d <= size. Divided by 0 both are 0, which is not below a size of 0.
        """
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
        """Returns whether 0 < divisor, known 0 <= divisor: were it 0, a loop around would have no iterations."""
        if self.analyzer.can_prove(gt(divisor, ZERO)):
            return True
        with self.analyzer.constraint(eq(divisor, ZERO)):
            return any(self.analyzer.can_prove(le(extent, ZERO)) for extent in self.extents)


CHECK_BOUNDS = "mirstack.check_bounds"
"""Attribute of a function: whether its accesses are checked, or what messages call it if they are. Without it, whether it has symbolic
sizes says so."""


def is_checked(function: tir.PrimFuncOp) -> bool:
    """Returns whether a function's accesses are checked: it is marked, or has a symbolic variable."""
    marked = is_marked(function.attrs)
    return any(isinstance(op, tir.VarOp) for op in walk_ops(function)) if marked is None else marked


def is_marked(attributes: DictionaryAttr) -> bool | None:
    """Returns whether a function's attribute marks it as checked; None for one without the attribute."""
    marked = attributes.data.get(CHECK_BOUNDS)
    if isinstance(marked, IntegerAttr):
        return bool(marked.value.data)
    return True if isinstance(marked, StringAttr) else None


def is_proven(function: tir.PrimFuncOp) -> bool:
    """Returns whether every access of a function is proven to be inside its buffer; changes nothing."""
    search = _Checks(*_knowledge(function), search=True)
    search.block(function.body.block)
    return not search.count


def check_function(function: tir.PrimFuncOp) -> int:
    """Adds the checks that the function needs; how many there are."""
    checks = _Checks(*_knowledge(function))
    checks.block(function.body.block)
    return checks.count


def _knowledge(function: tir.PrimFuncOp) -> tuple[BoundsProof, str]:
    """Returns what is known of a function's sizes, and the function's name in messages."""
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
    return BoundsProof(analyzer, expanding), _shown(function)


def _shown(function: tir.PrimFuncOp) -> str:
    """Returns a function's name in messages: the operator that it computes, otherwise the function's name.

    A function that replaced another is called by the other's name where that is known (`mark-open-bounds`).
    """
    named = function.attrs.data.get(CHECK_BOUNDS)
    if isinstance(named, StringAttr):
        return named.data
    shape = function.attrs.data.get("mirstack.shape")
    operator = getattr(shape, "data", {}).get("operator")
    return operator.data if isinstance(operator, StringAttr) else f"@{function.sym_name.data}"


@dataclass(frozen=True)
class View:
    """A view of another buffer's memory: how many of its elements fit there, and whether all of them do.

    The memory's size decides: TVM's own passes make views whose extents are smaller than what is accessed.
    """

    size: Expr
    fits: bool


class _Checks:
    """Checks one function. Recursion is as deep as loops and conditions nest.

    A `search` counts the checks that would be made, up to the first, and changes nothing.
    """

    def __init__(self, proof: BoundsProof, shown: str, *, search: bool = False):
        self.proof = proof
        self.analyzer = proof.analyzer
        self.shown = shown
        self.search = search
        self.count = 0
        self.views: dict[SSAValue, View] = {}
        """Buffers that are declared over memory whose size is known."""

    def block(self, block: Block) -> None:
        """Visits a block; what a check asserts is known after it, to the end of the block."""
        with ExitStack() as scopes:
            for op in list(block.ops):
                if self.search and self.count:
                    return
                self.visit(op, scopes)

    def visit(self, op: Operation, scopes: ExitStack) -> None:
        """Checks an op and what is inside of it."""
        match op:
            case tir.LoadOp() | tir.StoreOp():
                if not (isinstance(op, tir.LoadOp) and tells_region(op)):
                    self.access(op, scopes)
            case tir.DeclBufferOp() if op.source is not None:
                self.declare(op, op.source)
            case tir.MatchBufferOp() if op.source is not None and isinstance(op.source.owner, tir.BufferRegionOp):
                self.match_region(op, op.source.owner)
            case tir.ForOp():
                with self.proof.bind(op.loop_var, op.min, op.extent):
                    self.block(op.body.block)
            case tir.BlockOp():
                with self.proof.inside_block(op):
                    self.block(op.body.block)
            case tir.IfOp() | tir.IfThenElseOp():
                condition = self.analyzer.expr(op.condition)
                for region, holds in ((op.then_region, condition), (op.else_region, logical_not(condition))):
                    if region.blocks:
                        with ExitStack() as inner:
                            self.proof.suppose(holds, inner)
                            self.block(region.block)
            case tir.ReadsOp() | tir.WritesOp():
                pass
            case _:
                for region in op.regions:
                    for each in region.blocks:
                        self.block(each)

    def access(self, op: tir.LoadOp | tir.StoreOp, scopes: ExitStack) -> None:
        """Checks one access: of a vector the first and the last lane, or each."""
        at = [self.analyzer.expr(index) for index in op.indices if isinstance(index.type, IntegerType)]
        if len(at) == len(op.indices):
            self.point(op, at, scopes)
            return
        lanes = op.indices[-1]
        if is_scalable(lanes.type):
            return
        ends = self.ends(lanes)
        if ends and all(self.is_proven(op, [*at, end]) for end in ends):
            return
        if self.search:
            self.count += 1
        elif ends and op.predicate is None:
            for end in ends:
                self.point(op, [*at, end], scopes)
        else:
            self.each_lane(op, at, lanes)

    def ends(self, lanes: SSAValue) -> list[Expr]:
        """Returns the first and the last lane of a ramp."""
        if not isinstance(lanes.owner, tir.RampOp):
            return []
        base, stride = self.analyzer.expr(lanes.owner.base), self.analyzer.expr(lanes.owner.stride)
        return [base, base + stride.scaled(lanes_of(lanes.type) - 1)]

    def each_lane(self, op: tir.LoadOp | tir.StoreOp, at: Sequence[Expr], lanes: SSAValue) -> None:
        """Checks every lane that the predicate does not leave out."""
        builder = builder_before(op)
        for lane in range(lanes_of(lanes.type)):
            index = builder.insert(tir.ShuffleOp([lanes], [lane])).result
            runs = None if op.predicate is None else builder.insert(tir.ShuffleOp([op.predicate], [lane])).result
            with ExitStack() as scopes:
                self.point(op, [*at, self.analyzer.expr(index)], scopes, index, runs)

    def is_proven(self, op: AccessOp, at: Sequence[Expr]) -> bool:
        """Returns whether an element is proven to be inside its buffer, or inside the memory of a view."""
        view = self.views.get(op.buffer)
        if (view is None or view.fits) and all(map(self.proof.is_inside, at, extents_of(self.analyzer, op.buffer))):
            return True
        return view is not None and self.proof.is_inside(self.place(op.buffer, at), view.size)

    def point(
        self,
        op: AccessOp,
        at: Sequence[Expr],
        scopes: ExitStack,
        lane: SSAValue | None = None,
        runs: SSAValue | None = None,
    ) -> None:
        """Checks what is not proven of one element: its indices, or, of a view, its place in the memory.

        `lane` is the last index where that is one of a vector, `runs` says whether the element is accessed, if not always.
        """
        does = "reads" if isinstance(op, tir.LoadOp) else "writes"
        name = buffer_name(op.buffer)
        view = self.views.get(op.buffer)
        if view is not None:
            if not self.is_proven(op, at):
                place = self.place(op.buffer, at)
                message = (
                    f"{self.shown} {does} outside of the memory that '{name}' lies in: {self.limits(place, view.size)}"
                )
                self.require(op, place, place, view.size, I64, message, runs)
            return
        for number, (index, size) in enumerate(zip(at, extents_of(self.analyzer, op.buffer), strict=True)):
            if self.proof.is_inside(index, size):
                continue
            with self.analyzer.constraint(gt(size, ZERO)):
                only_empty = bool(size.terms) and self.proof.is_inside(index, size)
            value, type = op.indices[number], element_of(op.indices[number].type)
            if not isinstance(value.type, IntegerType):
                value = index if lane is None else lane
            place = f"dimension {number} of '{name}'"
            if only_empty:
                self.require(
                    op, None, ZERO, size, type, f"{self.shown} {does} along {place}, which has no elements", runs
                )
            else:
                shown = None if lane is None or value is not lane else "a lane of its index"
                message = f"{self.shown} {does} outside of {place}: {self.limits(index, size, shown)}"
                self.require(op, value, value, size, type, message, runs)
            if runs is None:
                for condition in (gt(size, ZERO),) if only_empty else (ge(index, ZERO), lt(index, size)):
                    scopes.enter_context(self.analyzer.constraint(condition))

    def limits(self, at: Expr, size: Expr, shown: str | None = None) -> str:
        """Returns the part of a message that says that an index, shown as `shown`, is outside."""
        return f"{shown or self.analyzer.simplify(at)} is not below {self.analyzer.simplify(size)}, or is negative"

    def declare(self, view: tir.DeclBufferOp, pointer: SSAValue) -> None:
        """Notes a view of memory whose size is known."""
        memory, bits = self.memory(pointer), bits_of(view.result.type.dtype)
        if memory is None or not bits:
            return
        count, of_memory = memory
        size = (
            x.floordiv(count.scaled(of_memory), as_expr(bits)) if of_memory % bits else count.scaled(of_memory // bits)
        )
        offset, strides = self.offset(view), strides_of(self.analyzer, view.result)
        last = self.last(view.result)
        forward = all(map(self.proof.is_not_negative, (offset, *strides)))
        self.views[view.result] = View(size, forward and self.proof.is_inside(last, size))

    def memory(self, pointer: SSAValue) -> tuple[Expr, int] | None:
        """Returns the number of elements of a pointer's memory and the bits of one; None where unknown."""
        owner = pointer.owner
        match owner:
            case tir.BufferGetOp():
                buffer = owner.buffer
                source = buffer.owner
                if isinstance(source, tir.DeclBufferOp) and source.source is not None:
                    return self.memory(source.source)
                if isinstance(source, tir.MatchBufferOp) and source.source is not None:
                    region = source.source.owner
                    if isinstance(region, tir.BufferRegionOp):
                        buffer = region.buffer
                assert isinstance(buffer.type, tir.BufferType)
                count, dtype = self.last(buffer) + 1, buffer.type.dtype
            case tir.AllocateOp():
                count, dtype = ONE, owner.dtype
                for extent in owner.extents:
                    count = count * self.analyzer.expr(extent)
            case tir.LetOp():
                return self.memory(owner.value)
            case _:
                return None
        bits = bits_of(dtype)
        return (count, bits) if bits else None

    def offset(self, buffer: BufferOp) -> Expr:
        """Returns the element offset of a buffer in its memory."""
        return ZERO if buffer.elem_offset is None else self.analyzer.expr(buffer.elem_offset)

    def last(self, buffer: SSAValue) -> Expr:
        """Returns the place of a buffer's last element in its memory."""
        sizes = extents_of(self.analyzer, buffer)
        return self.place(buffer, [size - 1 for size in sizes])

    def place(self, buffer: SSAValue, at: Sequence[Expr]) -> Expr:
        """Returns the place of an element in a buffer's memory."""
        place = self.offset(buffer.owner) if isinstance(buffer.owner, BufferOp) else ZERO
        for index, stride in zip(at, strides_of(self.analyzer, buffer), strict=True):
            place = place + index * stride
        return place

    def match_region(self, op: tir.MatchBufferOp, region: tir.BufferRegionOp) -> None:
        """Checks that the region that a buffer is matched to is inside the source."""
        sizes = extents_of(self.analyzer, region.buffer)
        matched = extents_of(self.analyzer, op.result)
        counts = [ONE] * dropped_dimensions(op, region) + matched
        for number, (low, count, size) in enumerate(zip(region.mins, counts, sizes, strict=True)):
            first = self.analyzer.expr(low)
            if self.proof.is_within(first, first + count - 1, size):
                continue
            place = f"dimension {number} of '{buffer_name(region.buffer)}'"
            message = (
                f"{self.shown} matches '{op.var_name.data}' with what is outside of {place}: "
                f"{self.analyzer.simplify(first + count)} is more than {self.analyzer.simplify(size)}, or {self.analyzer.simplify(first)} is negative"
            )
            self.require(op, first, first + count - 1, size, low.type, message)

    def require(
        self,
        op: Operation,
        low: SSAValue | Expr | None,
        high: SSAValue | Expr,
        size: Expr,
        type: Attribute,
        message: str,
        runs: SSAValue | None = None,
    ) -> None:
        """Asserts before an op that 0 <= low (unless it is None) and high < size, compared as `type`.

        Where `runs` is not None, the assertion holds where `runs` is false, too.
        """
        self.count += 1
        if self.search:
            return
        builder = builder_before(op)

        def value(of: SSAValue | Expr) -> SSAValue:
            return of if isinstance(of, SSAValue) else self.analyzer.to_ssa(of, builder, type)

        holds = builder.insert(tir.LtOp(value(high), value(size))).result
        if low is not None:
            is_not_negative = builder.insert(tir.GeOp(value(low), value(ZERO))).result
            holds = builder.insert(tir.AndOp(is_not_negative, holds)).result
        if runs is not None:
            holds = builder.insert(tir.OrOp(builder.insert(tir.NotOp(runs)).result, holds)).result
        builder.insert(tir.AssertOp(holds, message))
        for outer in enclosing(op):
            if isinstance(outer, tir.ForOp) and outer.kind.data == "vectorized":
                outer.kind = StringAttr("serial")


@dataclass(frozen=True)
class CheckOpenBounds(PrimFuncPass):
    """Asserts that accesses are inside where that is not proven.

    Only in functions of symbolic sizes, and in those marked for it.
    """

    name = "check-open-bounds"

    def apply_to(self, function: tir.PrimFuncOp) -> None:
        """Adds checks to every function of the module that `is_checked`."""
        if is_checked(function):
            check_function(function)
