"""What a TIR function must keep to beyond its ops' own verifiers: rules across loops, blocks and buffers.

Only what is provably wrong is reported: an axis whose domain the loops around cannot fill or leave, an access outside a
buffer or outside what its block declares, an init without a reduction, a vectorized loop without a constant extent, one
thread with two extents. Where an index is not affine, or a condition guards it, nothing can be proven and nothing is said.
The walk is linear in the ops of the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, VectorType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...support.diagnostics import Diagnostic, location_of
from .analysis import Analyzer, Atom, Expr, Kind
from .analysis import expr as x
from .analysis.bounds import INF, ConstIntBound
from .buffer import (
    AllocBufferOp,
    BufferOp,
    BufferRegionOp,
    LoadOp,
    MatchBufferOp,
    StoreOp,
    buffer_name,
)
from .expr import CallOp, IfThenElseOp, RampOp, SelectOp, VarOp
from .stmt import (
    AttrOp,
    BlockOp,
    ForOp,
    IfOp,
    InitOp,
    IterVarOp,
    LaunchThreadOp,
    PrimFuncOp,
    ReadsOp,
    RegionsOp,
    WhileOp,
    WritesOp,
)
from .types import BufferType, lanes_of

THREADS = tuple(f"{kind}Idx.{axis}" for kind in ("thread", "block") for axis in "xyz")
VIRTUAL_THREADS = ("vthread", "cthread")


def verify_prim_func(func: PrimFuncOp) -> list[Diagnostic]:
    """Every rule that the function breaks, in the order of the text. Those of severity "warning" do not stop a compilation."""
    return _Verifier(func).diagnostics


@dataclass
class _Region:
    """One declared box: (min, extent) in each dimension."""

    ranges: list[tuple[Expr, Expr]]


@dataclass
class _BlockScope:
    """The innermost block around an op, with what it declares (None: it declares nothing)."""

    op: BlockOp
    reads: dict[SSAValue, list[_Region]] | None
    writes: dict[SSAValue, list[_Region]] | None
    # Axes of the block that broke a rule: what follows from them is not reported again.
    broken: bool = False


@dataclass
class _Verifier:
    func: PrimFuncOp
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    analyzer: Analyzer = field(default_factory=Analyzer)
    blocks: list[_BlockScope] = field(default_factory=list[_BlockScope])
    # Loop variables with constant bounds: their loops run through every value.
    exact: set[Atom] = field(default_factory=set[Atom])
    # Threads in force, with the op that gave each its extent.
    threads: dict[str, tuple[int, Operation]] = field(default_factory=dict[str, tuple[int, Operation]])
    # How many conditions, or loops that may not run, are around.
    guards: int = 0

    def __post_init__(self) -> None:
        self.block(self.func.body.block)

    def report(self, where: Operation | SSAValue, message: str, *notes: str | tuple[str, Operation | SSAValue]) -> None:
        diagnostic = Diagnostic(message, location_of(where))
        for note in notes:
            if isinstance(note, str):
                diagnostic = diagnostic.with_note(note)
            else:
                diagnostic = diagnostic.with_note(note[0], location_of(note[1]))
        self.diagnostics.append(diagnostic)

    # Walking -----------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        threads = dict(self.threads)
        for op in block.ops:
            match op:
                case ForOp():
                    self.loop(op)
                case BlockOp():
                    self.tir_block(op)
                case IfOp() | IfThenElseOp():
                    self.branches(op)
                case WhileOp():
                    self.guarded(op)
                case InitOp():
                    self.init(op)
                case LoadOp() | StoreOp():
                    self.access(op)
                case LaunchThreadOp():
                    self.launch(op)
                case AttrOp():
                    self.attribute(op)
                case VarOp():
                    self.variable(op)
                case AllocBufferOp():
                    self.allocation(op)
                case _:
                    for region in op.regions:
                        self.region(region)
        self.threads = threads

    def region(self, region: Region) -> None:
        for block in region.blocks:
            self.block(block)

    def guarded(self, op: Operation) -> None:
        self.guards += 1
        for region in op.regions:
            self.region(region)
        self.guards -= 1

    def branches(self, op: IfOp | IfThenElseOp) -> None:
        """Each side with what the condition says."""
        self.guards += 1
        condition = self.analyzer.expr(op.condition) if not isinstance(op.condition.type, VectorType) else x.TRUE
        for region, known in ((op.then_region, condition), (op.else_region, x.logical_not(condition))):
            if condition == x.TRUE:
                self.region(region)
            else:
                with self.analyzer.constraint(known):
                    self.region(region)
        self.guards -= 1

    # Loops and threads ---------------------------------------------------------------------------------------------

    def loop(self, op: ForOp) -> None:
        extent = self.analyzer.simplify(op.extent)
        low = self.analyzer.simplify(op.min)
        name = op.var_name.data
        if op.kind.data == "vectorized" and extent.value is None and not _mentions_vscale(extent):
            self.report(
                op,
                f"vectorized loop '{name}' has the extent {extent!r}, which is no constant",
                "a vectorized loop becomes one vector: split it by a constant factor and vectorize the inner loop",
            )
        atom = self.analyzer.expr(op.loop_var).atom
        assert atom is not None
        may_not_run = extent.value is None or extent.value <= 0
        self.guards += may_not_run
        if extent.value is not None and low.value is not None and not may_not_run:
            self.exact.add(atom)
        threads = self.threads
        if op.thread is not None:
            self.threads = dict(threads)
            self.thread(op, op.thread.data, extent)
        with self.analyzer.bind(op.loop_var, low, extent):
            self.block(op.body.block)
        self.exact.discard(atom)
        self.threads = threads
        self.guards -= may_not_run

    def launch(self, op: LaunchThreadOp) -> None:
        extent = self.analyzer.simplify(op.extent)
        self.thread(op, op.thread.data, extent)
        self.analyzer.bind(op.result, 0, extent)
        if op.env is not None:
            self.analyzer.bind(op.env, 0, extent)

    def attribute(self, op: AttrOp) -> None:
        node = op.node.owner
        if op.key.data == "thread_extent" and isinstance(node, IterVarOp):
            extent = self.analyzer.simplify(op.value)
            self.thread(op, node.thread_tag.data, extent)
            if self.analyzer.expr(node.var).atom is not None:
                self.analyzer.bind(node.var, 0, extent)

    def thread(self, op: Operation, tag: str, extent: Expr) -> None:
        """One thread has one extent within a kernel."""
        if tag not in THREADS and not tag.startswith(VIRTUAL_THREADS):
            self.report(
                op, f"unknown thread '{tag}'", f"a thread is {', '.join(THREADS)} or a virtual thread 'vthread'"
            )
            return
        if extent.value is None or tag.startswith(VIRTUAL_THREADS):
            return
        known = self.threads.get(tag)
        if known is not None and known[0] != extent.value:
            self.report(
                op,
                f"thread '{tag}' has the extent {extent.value} here, but {known[0]} in the loop around",
                ("the same thread was given its extent here", known[1]),
            )
        self.threads[tag] = (extent.value, op)

    # Blocks --------------------------------------------------------------------------------------------------------

    def tir_block(self, op: BlockOp) -> None:
        reads, writes = op.find(ReadsOp), op.find(WritesOp)
        scope = _BlockScope(op, None, None)
        mark = self.analyzer.constraint(x.TRUE)
        with mark:
            if op.predicate is not None:
                self.guards += 1
                self.analyzer.constraint(op.predicate)
            for number in range(len(op.iter_vars)):
                scope.broken |= not self.axis(op, number)
            for var, binding in zip(op.iter_vars, op.bindings, strict=True):
                self.analyzer.bind(var, self.analyzer.simplify(binding))
            scope.reads = self.declared(reads)
            scope.writes = self.declared(writes)
            self.blocks.append(scope)
            self.block(op.body.block)
            self.blocks.pop()
            if op.predicate is not None:
                self.guards -= 1

    def axis(self, op: BlockOp, number: int) -> bool:
        """The domain of one axis against the values that its binding takes."""
        low, extent = self.analyzer.simplify(op.dom_mins[number]), self.analyzer.simplify(op.dom_extents[number])
        if low.value is None or extent.value is None or extent.value <= 0:
            return True
        binding = self.analyzer.simplify(op.bindings[number])
        last = low.value + extent.value - 1
        bound = self.analyzer.const_int_bound(binding)
        name, block = op.iter_names.data[number].data, op.block_name.data
        loops = self.loops_of(binding)
        domain = f"[{low.value}, {last + 1})"
        if self.is_attained(binding) and (bound.min_value < low.value or bound.max_value > last):
            worst = bound.min_value if bound.min_value < low.value else bound.max_value
            self.report(
                op,
                f"axis '{name}' of block '{block}' has the domain {domain}, but its binding {binding!r} takes the value {worst}",
                *self.loop_notes(loops),
                f"where a loop runs past the domain, guard the block: T.where({_bounded(binding, low.value, last, bound)})",
            )
            return False
        if op.iter_types.data[number].data == "opaque":
            return True
        count = min(bound.max_value - bound.min_value + 1, self.count(binding))
        if count < extent.value:
            covers = f"{'loop' if len(loops) == 1 else 'its binding'} {_names(loops, binding)} covers"
            self.report(
                op,
                f"axis '{name}' of block '{block}' has {extent.value} values, but {covers} only {max(count, 0)} of them",
                *self.loop_notes(loops),
                f"the loops around a block must run through the whole domain of its axes: here {domain}",
            )
            return False
        return True

    def count(self, e: Expr) -> int:
        """At most how many values `e` takes: the product of its variables' numbers of values."""
        total = 1
        for atom in x.free_vars(e):
            bound = self.analyzer.const_int_bound(Expr(((atom, 1),), 0))
            if bound.min_value <= -INF or bound.max_value >= INF:
                return INF
            total *= max(0, bound.max_value - bound.min_value + 1)
        return total

    def is_attained(self, e: Expr) -> bool:
        """Whether the ends of the constant bound of `e` are values that it takes: it is affine in loops that run through
        their constant ranges, and no condition guards it."""
        return self.guards == 0 and all(atom in self.exact for atom, _ in e.terms)

    def loops_of(self, e: Expr) -> list[BlockArgument]:
        """The loop variables in an expression."""
        return [
            a.payload
            for a in x.free_vars(e)
            if isinstance(a.payload, BlockArgument) and isinstance(a.payload.block.parent_op(), ForOp)
        ]

    def loop_notes(self, loops: list[BlockArgument]) -> Iterator[tuple[str, Operation]]:
        for var in loops:
            op = var.block.parent_op()
            if isinstance(op, ForOp):
                bound = self.analyzer.const_int_bound(var)
                yield f"loop '{op.var_name.data}' runs from {bound.min_value} to {bound.max_value}", op

    def init(self, op: InitOp) -> None:
        block = op.parent_op()
        if not isinstance(block, BlockOp):
            self.report(op, "T.init stands outside of a block", "it is the start of a reduction block")
        elif not any(kind.data == "R" for kind in block.iter_types.data):
            self.report(
                op,
                f"block '{block.block_name.data}' has a T.init, but no reduction axis",
                "an init runs where all reduction axes begin: declare one with T.axis.reduce, or move the store out of the init",
            )
        self.region(op.body)

    def declared(self, op: Operation | None) -> dict[SSAValue, list[_Region]] | None:
        """The boxes by buffer."""
        if not isinstance(op, RegionsOp):
            return None
        boxes: dict[SSAValue, list[_Region]] = {}
        for value in op.regions_:
            region = value.owner
            if isinstance(region, BufferRegionOp):
                ranges = [
                    (self.analyzer.simplify(low), self.analyzer.simplify(extent))
                    for low, extent in zip(region.mins, region.extents, strict=True)
                ]
                boxes.setdefault(region.buffer, []).append(_Region(ranges))
        return boxes

    # Variables and buffers -----------------------------------------------------------------------------------------

    def variable(self, op: VarOp) -> None:
        if any(isinstance(use.operation, MatchBufferOp | IterVarOp | AttrOp) for use in op.result.uses):
            return
        if not op.result.uses.get_length():
            return
        diagnostic = Diagnostic(
            f"variable '{op.var_name.data}' is used, but nothing gives it a value", op.location, severity="warning"
        )
        self.diagnostics.append(
            diagnostic.with_note("a symbolic variable is bound by a T.match_buffer that names it, or by a thread")
        )

    def allocation(self, op: AllocBufferOp) -> None:
        """A buffer that is read must be written."""
        read: Operation | None = None
        for use in op.result.uses:
            user = use.operation
            if isinstance(user, LoadOp):
                read = read or user
            elif not isinstance(user, BufferRegionOp) or _is_matched(user):
                return
        if read is not None:
            name = op.var_name.data
            diagnostic = Diagnostic(
                f"buffer '{name}' is read here, but nothing writes it", read.location, severity="warning"
            )
            self.diagnostics.append(diagnostic.with_note(f"'{name}' is allocated here", op.location))

    def access(self, op: LoadOp | StoreOp) -> None:
        type = op.buffer.type
        assert isinstance(type, BufferType)
        if self.blocks and self.blocks[-1].broken:
            return
        indices = [self.index(i) for i in op.indices]
        stands = isinstance(op, StoreOp) or not _may_be_discarded(op)
        if op.predicate is None and stands and not self.in_bounds(op, type, indices):
            return
        self.in_declared(op, indices)

    def index(self, value: SSAValue) -> Expr:
        """An index; of a vector, its first lane (`last_lane` is the last)."""
        owner = value.owner
        if isinstance(value.type, VectorType) and isinstance(owner, RampOp):
            return self.analyzer.simplify(owner.base)
        return self.analyzer.simplify(value)

    def last_lane(self, value: SSAValue) -> Expr:
        owner = value.owner
        if isinstance(value.type, VectorType) and isinstance(owner, RampOp):
            steps = lanes_of(value.type) - 1
            return self.analyzer.simplify(self.analyzer.expr(owner.base) + self.analyzer.expr(owner.stride) * steps)
        return self.analyzer.simplify(value)

    def in_bounds(self, op: LoadOp | StoreOp, type: BufferType, indices: list[Expr]) -> bool:
        for number, (dim, index) in enumerate(zip(type.shape.data, indices, strict=True)):
            if not isinstance(dim, IntegerAttr):
                continue
            extent = dim.value.data
            for e in (index, self.last_lane(op.indices[number])):
                bound = self.analyzer.const_int_bound(e)
                if not self.is_attained(e) or (bound.min_value >= 0 and bound.max_value < extent):
                    continue
                worst = bound.min_value if bound.min_value < 0 else bound.max_value
                name = buffer_name(op.buffer)
                verb = "writes" if isinstance(op, StoreOp) else "reads"
                where = "" if len(indices) == 1 else f" of dimension {number}"
                self.report(
                    op,
                    f"this {verb} '{name}' out of bounds: index {e!r}{where} takes the value {worst}, outside [0, {extent})",
                    *self.loop_notes(self.loops_of(e)),
                    f"guard the access with T.if_then_else or a condition, or make '{name}' large enough",
                )
                return False
        return True

    def in_declared(self, op: LoadOp | StoreOp, indices: list[Expr]) -> None:
        """The access against what the innermost block declares."""
        if not self.blocks:
            return
        scope = self.blocks[-1]
        writes = isinstance(op, StoreOp)
        declared = scope.writes if writes else scope.reads
        if declared is None or not declared:
            return
        if _is_made_in(op.buffer, scope.op):
            return
        boxes = declared.get(op.buffer)
        if not writes and boxes is None:
            return
        name, block = buffer_name(op.buffer), scope.op.block_name.data
        if boxes is None:
            self.report(
                op,
                f"block '{block}' stores to '{name}', which its T.writes does not name",
                f"T.writes lists all that a block writes: add '{name}' to it, or leave T.writes out to have it found",
            )
            return
        outside = [d for d in (self.outside(box, op, indices) for box in boxes) if d is not None]
        if len(outside) == len(boxes):
            dimension, shown = outside[0]
            kind = "T.writes" if writes else "T.reads"
            self.report(
                op,
                f"block '{block}' {'writes' if writes else 'reads'} '{name}' outside of its {kind}: index {indices[dimension]!r} of dimension {dimension} leaves {shown}",
                f"declare in {kind} all that the block accesses, or leave it out to have it found",
            )

    def outside(self, box: _Region, op: LoadOp | StoreOp, indices: list[Expr]) -> tuple[int, str] | None:
        """(dimension, the declared range) that the access provably leaves; None when it may stay within the box."""
        for number, ((low, extent), index) in enumerate(zip(box.ranges, indices, strict=True)):
            distance = self.analyzer.simplify(index - low)
            size = extent.value
            if size is None:
                continue
            bound: ConstIntBound = self.analyzer.const_int_bound(distance)
            always = bound.max_value < 0 or bound.min_value >= size
            sometimes = self.is_attained(distance) and (bound.min_value < 0 or bound.max_value >= size)
            if always or sometimes:
                end = self.analyzer.simplify(low + extent)
                return number, f"[{low!r}, {end!r})"
        return None


def _mentions_vscale(e: Expr) -> bool:
    pending = [e]
    while pending:
        for atom, _ in pending.pop().terms:
            payload = atom.payload
            if atom.kind is Kind.CALL and isinstance(payload, tuple) and payload[0] == "T.vscale":
                return True
            if isinstance(payload, SSAValue) and isinstance(payload.owner, CallOp):
                return True
            pending += atom.operands
    return False


def _bounded(binding: Expr, low: int, last: int, bound: ConstIntBound) -> str:
    """The condition that keeps a binding in its domain."""
    if bound.min_value >= low:
        return f"{binding!r} < {last + 1}"
    return f"{low} <= {binding!r}" + ("" if bound.max_value <= last else f" and {binding!r} <= {last}")


def _names(loops: list[BlockArgument], binding: Expr) -> str:
    if len(loops) == 1:
        op = loops[0].block.parent_op()
        if isinstance(op, ForOp):
            return f"'{op.var_name.data}'"
    return repr(binding)


def _is_matched(region: BufferRegionOp) -> bool:
    return any(not isinstance(use.operation, ReadsOp | WritesOp) for use in region.result.uses)


def _may_be_discarded(load: LoadOp) -> bool:
    """Whether the value of a load may not be used: it goes into a select."""
    pending: list[tuple[SSAValue, int]] = [(load.result, 0)]
    while pending:
        value, depth = pending.pop()
        for use in value.uses:
            user = use.operation
            if isinstance(user, SelectOp) or depth > 6:
                return True
            if isinstance(user, CallOp) and user.intrinsic.data in ("address_of", "likely"):
                return True
            if not user.regions and not isinstance(user, StoreOp):
                pending += [(r, depth + 1) for r in user.results]
    return False


def _is_made_in(buffer: SSAValue, block: BlockOp) -> bool:
    """Whether the buffer is made by an op directly in the block, or matched in it: it is the block's own."""
    maker = buffer.owner
    return isinstance(maker, BufferOp) and maker.parent is block.body.block
