"""Plans, before the interpreter runs, the loops that run as array axes.

A loop becomes an axis (`AXIS`) when no two of its iterations touch the same element of a buffer that it writes; then
statements run one after the other, each for all iterations at once. It becomes a reduction axis (`FOLD`) when the only
such element is that of an update `B[i] = B[i] + e`; the update then folds along the axis, in the loop's order. Every
other loop runs one iteration at a time (`SERIAL`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr, VectorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...arith import Analyzer, Atom, Expr
from ...arith import expr as x
from ...arith.iter_map import IterMapLevel, IterRange, detect_iter_map
from ..arithmetic import AddOp, BinaryOp, MaxOp, MinOp, MulOp
from ..buffer import (
    AllocateConstOp,
    AllocateOp,
    AllocBufferOp,
    BufferGetOp,
    BufferOp,
    BufferRegionOp,
    DeclBufferOp,
    LoadOp,
    MatchBufferOp,
    StoreOp,
)
from ..expr import CallOp, ConstOp, LetOp, RampOp
from ..intrinsics import Effect, intrinsic_effect
from ..stmt import BlockOp, ForOp, InitOp, LaunchThreadOp, PrimFuncOp
from ..types import BufferType, lanes_of

MAX_AXES = 24


class Mode(Enum):
    """The execution mode of a loop."""

    SERIAL = auto()
    AXIS = auto()
    FOLD = auto()


@dataclass(frozen=True)
class Update:
    """`buffer[i] = combine(buffer[i], operand)` in one store."""

    load: LoadOp
    combine: BinaryOp
    operand: SSAValue
    load_is_lhs: bool


@dataclass
class Plan:
    """The result of `make_plan` for a function."""

    modes: dict[ForOp, Mode] = field(default_factory=dict[ForOp, Mode])
    axes: dict[ForOp, int] = field(default_factory=dict[ForOp, int])
    rank: int = 0
    updates: dict[StoreOp, Update] = field(default_factory=dict[StoreOp, Update])
    # The loops that fold each update, innermost first; how many updates of an element one run of such a loop makes.
    folds: dict[StoreOp, list[ForOp]] = field(default_factory=dict[StoreOp, list[ForOp]])
    fold_size: dict[ForOp, int | None] = field(default_factory=dict[ForOp, int | None])
    # Loops with no folding loop for the same update inside: they may fold part by part.
    fold_leaves: set[ForOp] = field(default_factory=set[ForOp])
    # Elements that one iteration of a loop allocates for itself.
    private: dict[ForOp, int] = field(default_factory=dict[ForOp, int])


@dataclass(frozen=True)
class PlannedAccess:
    """One load or store: of which memory, which element, and through which buffer."""

    op: Operation
    root: SSAValue
    buffer: SSAValue
    indices: tuple[Expr, ...]
    flat: Expr | None
    writes: bool


_Place: TypeAlias = "tuple[SSAValue, SSAValue, tuple[Expr, ...], Expr | None]"


@dataclass
class Summary:
    """The effects of a part of a program on memory."""

    accesses: list[PlannedAccess] = field(default_factory=list[PlannedAccess])
    opaque: bool = False
    allocated: int = 0
    depth: int = 0  # axes within each other
    sizes: list[Expr] = field(default_factory=list[Expr])  # of buffers: one number for all iterations of an axis

    def add(self, other: Summary) -> None:
        """Adds the effects of a part of the program that follows."""
        self.accesses += other.accesses
        self.opaque |= other.opaque
        self.allocated += other.allocated
        self.depth = max(self.depth, other.depth)
        self.sizes += other.sizes


# Calls that touch no memory, besides those of the intrinsics' table.
HARMLESS_CALLS = frozenset(
    ["call_extern", "start_profile_intrinsic", "end_profile_intrinsic", "assume", "undef", "tvm_storage_sync"]
)
_FOLDABLE = (AddOp, MulOp, MinOp, MaxOp)


def make_plan(func: PrimFuncOp, harmless_externs: frozenset[str]) -> Plan:
    """Plans one function; `harmless_externs` are external functions that are pure mathematics."""
    return _Planner(func, harmless_externs).plan


class _Planner:
    def __init__(self, func: PrimFuncOp, harmless_externs: frozenset[str]):
        self.harmless_externs = harmless_externs
        self.analyzer = Analyzer()
        self.plan = Plan()
        # Ops by their place in the text: the ops inside one are those numbered between it and its end.
        self.start: dict[Operation, int] = {}
        self.end: dict[Operation, int] = {}
        self.clock = 0
        # Updates within a serial loop that repeats them: to fold them along a loop outside would change their order.
        self.unfoldable: set[Operation] = set()
        summary = self.block(func.body.block, 0)
        self.plan.rank = summary.depth
        self.assign_axes(func.body.block, 0)

    # Walking -----------------------------------------------------------------------------------------------------

    def block(self, block: Block, loops: int) -> Summary:
        total = Summary()
        for op in block.ops:
            self.start[op] = self.clock
            self.clock += 1
            part = self.op(op, loops)
            self.end[op] = self.clock
            if part is not None:
                total.add(part)
        return total

    def op(self, op: Operation, loops: int) -> Summary | None:
        match op:
            case ForOp():
                return self.loop(op, loops)
            case BlockOp():
                for var, binding in zip(op.iter_vars, op.bindings, strict=True):
                    self.analyzer.bind(var, self.analyzer.simplify(binding))
                return self.regions(op, loops)
            case LoadOp() | StoreOp():
                if isinstance(op, StoreOp):
                    self.find_update(op)
                return self.access(op)
            case AllocateOp() | AllocBufferOp() | DeclBufferOp():
                return Summary(allocated=self.allocated(op), sizes=self.sizes(op))
            case MatchBufferOp() | BufferRegionOp():
                return Summary(sizes=self.sizes(op))
            case CallOp():
                return Summary(opaque=not self.is_harmless(op))
            case LaunchThreadOp():
                return Summary(opaque=True)
            case _ if op.regions:
                return self.regions(op, loops)
            case _:
                return None

    def regions(self, op: Operation, loops: int) -> Summary:
        total = Summary()
        for region in op.regions:
            for block in region.blocks:
                total.add(self.block(block, loops))
        return total

    def is_harmless(self, op: CallOp) -> bool:
        name = op.intrinsic.data
        if op.callee is not None:
            return False
        if name == "call_extern":
            first = op.arguments[0].owner if op.arguments else None
            return isinstance(first, ConstOp) and getattr(first.value, "data", "") in self.harmless_externs
        return name in HARMLESS_CALLS or intrinsic_effect(name) is Effect.PURE

    def allocated(self, op: AllocateOp | AllocBufferOp | DeclBufferOp) -> int:
        if isinstance(op, BufferOp):
            if op.source is not None:
                return 0
            extents = [e if isinstance(e, int) else self.analyzer.expr(e).value for e in op.extents()]
        else:
            extents = [self.analyzer.expr(e).value for e in op.extents]
        total = 1
        for extent in extents:
            total *= extent if extent is not None else 1 << 12
        return total

    def sizes(self, op: AllocateOp | BufferOp | BufferRegionOp) -> list[Expr]:
        """Returns the extents and strides that are computed."""
        values = [*op.extents()] if isinstance(op, BufferOp) else [*op.extents]
        if isinstance(op, BufferOp):
            values += op.stride_values() or ()
        return [self.analyzer.simplify(value) for value in values if not isinstance(value, int)]

    # Loops -------------------------------------------------------------------------------------------------------

    def loop(self, op: ForOp, loops: int) -> Summary:
        self.analyzer.bind(op.loop_var, op.min, op.extent)
        body = self.block(op.body.block, loops + 1)
        variable = self.analyzer.expr(op.loop_var).atom
        assert variable is not None
        mode = Mode.SERIAL
        if self.analyzer.expr(op.extent) == x.ONE:
            # Runs once: neither an axis nor a repetition of updates.
            self.plan.modes[op] = mode
            return body
        uneven = any(self.differs(size, variable, op) for size in body.sizes)
        if not body.opaque and not uneven and body.depth < MAX_AXES:
            mode = self.mode_of(op, body, variable)
        if mode is Mode.SERIAL:
            for access in body.accesses:
                if access.op in self.plan.updates and not any(variable in x.free_vars(e) for e in access.indices):
                    self.unfoldable.add(access.op)
        self.plan.modes[op] = mode
        self.plan.private[op] = body.allocated
        body.depth += mode is not Mode.SERIAL
        return body

    def assign_axes(self, block: Block, axis: int) -> None:
        """Axis numbers from the outermost loop on, so that inner loops are the faster running axes."""
        for op in block.ops:
            inner = axis
            if isinstance(op, ForOp) and self.plan.modes[op] is not Mode.SERIAL:
                self.plan.axes[op] = axis
                inner = axis + 1
            for region in op.regions:
                for each in region.blocks:
                    self.assign_axes(each, inner)

    def mode_of(self, op: ForOp, body: Summary, variable: Atom) -> Mode:
        by_root: dict[SSAValue, list[PlannedAccess]] = {}
        for access in body.accesses:
            by_root.setdefault(access.root, []).append(access)
        folded: list[StoreOp] = []
        for root, accesses in by_root.items():
            if not any(a.writes for a in accesses) or self.is_inside(root, op):
                continue
            if self.are_apart(accesses, variable, op):
                continue
            update = self.folded_update(accesses, variable, op)
            if update is None:
                return Mode.SERIAL
            folded.append(update)
        if not folded:
            return Mode.AXIS
        extent: int | None = self.analyzer.expr(op.extent).value
        if not any(self.plan.folds.get(store) for store in folded):
            self.plan.fold_leaves.add(op)
        for store in folded:
            for inner in self.plan.folds.get(store, ())[-1:]:
                size = self.plan.fold_size[inner]
                extent = None if size is None or extent is None else extent * size
            self.plan.folds.setdefault(store, []).append(op)
        self.plan.fold_size[op] = extent
        return Mode.FOLD

    def is_inside(self, value: SSAValue, op: Operation) -> bool:
        """Returns True if the value is defined within `op`."""
        maker = value.block.parent_op() if isinstance(value, BlockArgument) else value.owner
        place = self.start.get(maker) if isinstance(maker, Operation) else None
        return place is not None and place > self.start[op] and place < self.end.get(op, self.clock)

    def varies(self, atom: Atom, variable: Atom, op: ForOp) -> bool:
        """Returns True if the atom's value may differ within one execution of the loop."""
        for each in x.free_vars(Expr(((atom, 1),), 0)):
            if each is variable or not isinstance(each.payload, SSAValue) or self.is_inside(each.payload, op):
                return True
        return False

    def differs(self, size: Expr, variable: Atom, op: ForOp) -> bool:
        """Returns True if a size may differ between iterations that execute as many of the inner loops."""
        for atom in x.free_vars(size):
            if atom is variable:
                return True
            value: SSAValue | None = atom.payload if isinstance(atom.payload, SSAValue) else None
            if value is None:
                return True
            loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
            if isinstance(loop, ForOp) and self.is_inside(value, op):
                if self.differs(self.analyzer.expr(loop.min), variable, op):
                    return True
            elif self.is_inside(value, op):
                return True
        return False

    def are_apart(self, accesses: Sequence[PlannedAccess], variable: Atom, op: ForOp) -> bool:
        """Returns True if iterations touch different elements, in one dimension or in the flat offset.

        Every access must be at c * variable + a common part + a part that varies by less than c.
        """
        if all(a.buffer is accesses[0].buffer for a in accesses):
            for dimension in zip(*(a.indices for a in accesses), strict=True):
                if self.separates(dimension, variable, op):
                    return True
        flats = [a.flat for a in accesses]
        return self.separates([f for f in flats if f is not None], variable, op) if None not in flats else False

    def separates(self, indices: Iterable[Expr], variable: Atom, op: ForOp) -> bool:
        common: tuple[int, Expr] | None = None
        low = high = 0
        for count, e in enumerate(dict.fromkeys(indices)):
            step, fixed, moving = 0, x.ZERO, x.as_expr(e.const)
            for atom, coefficient in e.terms:
                term = Expr(((atom, coefficient),), 0)
                if atom is variable:
                    step = coefficient
                elif self.varies(atom, variable, op):
                    moving += term
                else:
                    fixed += term
            if common is None:
                common = step, fixed
            if common != (step, fixed):
                return False
            bound = self.analyzer.const_int_bound(moving)
            low = bound.min_value if count == 0 else min(low, bound.min_value)
            high = bound.max_value if count == 0 else max(high, bound.max_value)
        return common is not None and high - low < abs(common[0])

    # Updates -----------------------------------------------------------------------------------------------------

    def find_update(self, store: StoreOp) -> None:
        """Records an update `B[i] = B[i] + e` if nothing is between the load and the store."""
        combine = store.value.owner
        if not isinstance(combine, _FOLDABLE) or store.predicate is not None:
            return
        if lanes_of(store.value.type) != 1 or combine.parent is not store.parent or not _used_once(combine.result):
            return
        for side, other in ((combine.lhs, combine.rhs), (combine.rhs, combine.lhs)):
            load = side.owner
            if (
                isinstance(load, LoadOp)
                and load.buffer is store.buffer
                and load.parent is store.parent
                and load.predicate is None
                and _used_once(load.result)
                and all(
                    a is b or self.analyzer.expr(a) == self.analyzer.expr(b)
                    for a, b in zip(load.indices, store.indices, strict=True)
                )
                and _nothing_between(load, store)
            ):
                self.plan.updates[store] = Update(load, combine, other, side is combine.lhs)
                return

    def folded_update(self, accesses: Sequence[PlannedAccess], variable: Atom, op: ForOp) -> StoreOp | None:
        """Returns the one update that all accesses belong to, when its element is the same in every iteration."""
        stores = [a for a in accesses if isinstance(a.op, StoreOp) and a.op in self.plan.updates]
        if len(stores) != 1 or stores[0].op in self.unfoldable:
            return None
        store = stores[0].op
        assert isinstance(store, StoreOp)
        update = self.plan.updates[store]
        for access in accesses:
            if access.op is not store and access.op is not update.load and not self.is_init_of(access, store):
                return None
            if any(variable in x.free_vars(e) for e in access.indices):
                return None
        block = store.parent_op()
        if len(accesses) > 2:
            if not isinstance(block, BlockOp) or not self.starts_first(block, variable):
                return None
            return store if self.starts_once(block, accesses, op) else None
        return store

    def starts_once(self, block: BlockOp, accesses: Sequence[PlannedAccess], op: ForOp) -> bool:
        """Returns True if the init runs once for each element during the loop.

        The inner loops must reach other elements, or drive reduce axes. Otherwise an init would undo the sums of other iterations of the
        loop, folded into one.
        """
        reduced = [
            self.analyzer.simplify(binding)
            for kind, binding in zip(block.iter_types.data, block.bindings, strict=True)
            if kind.data == "R"
        ]
        driving = {atom for e in reduced for atom in x.free_vars(e)}
        parent = block.parent_op()
        while parent is not None and parent is not op:
            if isinstance(parent, ForOp) and self.analyzer.expr(parent.extent) != x.ONE:
                variable = self.analyzer.expr(parent.loop_var).atom
                assert variable is not None
                if variable not in driving and not self.are_apart(accesses, variable, parent):
                    return False
            parent = parent.parent_op()
        return True

    def is_init_of(self, access: PlannedAccess, store: StoreOp) -> bool:
        init = access.op.parent_op()
        return isinstance(access.op, StoreOp) and isinstance(init, InitOp) and init.parent_op() is store.parent_op()

    def starts_first(self, block: BlockOp, variable: Atom) -> bool:
        """Returns True if the block's init, run at its reduce axes' least values, runs in the first iteration."""
        bindings = [
            self.analyzer.simplify(binding)
            for kind, binding in zip(block.iter_types.data, block.bindings, strict=True)
            if kind.data == "R"
        ]
        bindings = [e for e in bindings if variable in x.free_vars(e)]
        if not bindings:
            # The loop drives no reduce axis: the init runs again in each of its iterations, as for B[0] over a spatial axis.
            return False
        if all(self.rises_with(e, variable) for e in bindings):
            return True
        # A fused loop: its digits are all least only in its first iteration, when together they are the loop.
        bound = self.analyzer.known(variable).ends
        if bound is None or any(list(x.free_vars(e)) != [variable] for e in bindings):
            return False
        loop = {variable: IterRange(bound[0], bound[1] - bound[0] + 1)}
        digits = detect_iter_map(self.analyzer, bindings, loop, level=IterMapLevel.BIJECTIVE)
        return bool(digits) and all(self.analyzer.can_prove_greater_equal(s.args[0].scale, 1) for s in digits.indices)

    def rises_with(self, e: Expr, variable: Atom) -> bool:
        """Returns True if the expression is affine in the variable, with a positive factor."""
        factor = e.coefficient(variable)
        return factor > 0 and variable not in x.free_vars(e - Expr(((variable, factor),), 0))

    # Accesses ----------------------------------------------------------------------------------------------------

    def access(self, op: LoadOp | StoreOp) -> Summary:
        place = self.locate(op.buffer, [self.index(i) for i in op.indices])
        if place is None:
            return Summary(opaque=True)
        return Summary([PlannedAccess(op, *place, isinstance(op, StoreOp))])

    def index(self, value: SSAValue) -> Expr:
        """Returns an index; of a vector, with a variable that runs over the lanes."""
        owner = value.owner
        if isinstance(value.type, VectorType) and isinstance(owner, RampOp):
            lane = x.symbol("lane")
            self.analyzer.bind(lane, 0, lanes_of(value.type))
            return self.analyzer.simplify(self.analyzer.expr(owner.base) + self.analyzer.expr(owner.stride) * lane)
        return self.analyzer.simplify(value)

    def locate(self, buffer: SSAValue, indices: Sequence[Expr]) -> _Place | None:
        """Returns (owner of the memory, whole buffer, indices in it, offset in the memory if known), or None.

        The whole buffer is the one that is not a view of another; None if the owner is unknown.
        """
        assert isinstance(buffer.type, BufferType)
        maker = buffer.owner
        if isinstance(maker, MatchBufferOp):
            region = None if maker.source is None else maker.source.owner
            if isinstance(region, BufferRegionOp):
                skipped = len(region.mins) - len(indices)
                if skipped < 0:
                    return None
                outer = [self.analyzer.expr(m) for m in region.mins]
                for position, index in enumerate(indices):
                    outer[skipped + position] += index
                return self.locate(region.buffer, [self.analyzer.simplify(e) for e in outer])
        root: SSAValue = buffer
        flat: Expr | None = self.flat(buffer, indices)
        if isinstance(maker, DeclBufferOp) and maker.source is not None:
            owner = self.owner_of(maker.source, maker.result.type)
            if owner is None:
                return None
            root = owner[0]
            flat = flat if owner[1] else None
        return root, buffer, tuple(indices), flat

    def owner_of(self, pointer: SSAValue, type: BufferType) -> tuple[SSAValue, bool] | None:
        """Returns (owner of a handle's memory, whether offsets count elements of `type` from its start)."""
        while isinstance(pointer, OpResult) and isinstance(pointer.op, LetOp):
            pointer = pointer.op.value
        if not isinstance(pointer, OpResult):
            return pointer, False
        if isinstance(pointer.op, AllocateOp | AllocateConstOp):
            return pointer, getattr(pointer.type, "pointee", None) == type.dtype
        if isinstance(pointer.op, BufferGetOp) and pointer.op.field.data == "data":
            source = pointer.op.buffer
            assert isinstance(source.type, BufferType)
            place = self.locate(source, [x.ZERO] * source.type.rank)
            if place is None:
                return None
            return place[0], source.type.dtype == type.dtype and place[3] == x.ZERO
        return None

    def flat(self, buffer: SSAValue, indices: Sequence[Expr]) -> Expr | None:
        """Returns the offset of an element in a buffer's memory."""
        maker, type = buffer.owner, buffer.type
        assert isinstance(type, BufferType)
        offset = x.ZERO
        if isinstance(maker, BufferOp):
            if maker.elem_offset is not None and maker.source is not None and not isinstance(maker, MatchBufferOp):
                offset = self.analyzer.expr(maker.elem_offset)
            strides = maker.stride_values()
            if strides is not None:
                for index, stride in zip(indices, strides, strict=True):
                    offset += index * self.analyzer.expr(stride)
                return self.analyzer.simplify(offset)
            extents = [self.analyzer.expr(e) for e in maker.extents()]
        else:
            extents = [x.as_expr(d.value.data) for d in type.shape.data if isinstance(d, IntegerAttr)]
        scale = x.ONE
        for index, extent in zip(reversed(indices), reversed(extents), strict=True):
            offset += index * scale
            scale = scale * extent
        return self.analyzer.simplify(offset)


def _used_once(value: SSAValue) -> bool:
    return len(list(value.uses)) == 1


def _nothing_between(load: LoadOp, store: StoreOp) -> bool:
    """Returns True if only scalar ops and loads are between the two."""
    op = load.next_op
    for _ in range(200):
        if op is store:
            return True
        if op is None or op.regions or (isinstance(op, StoreOp | CallOp) and not _is_pure(op)):
            return False
        op = op.next_op
    return False


def _is_pure(op: Operation) -> bool:
    return isinstance(op, CallOp) and op.callee is None and intrinsic_effect(op.intrinsic.data) is Effect.PURE
