"""A block's declared regions as boxes of expressions, and their inference from its loads and stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr
from ....dialects.arith.expr import free_vars, substitute
from ....dialects.arith.int_set import Ends, join, relax
from ....dialects.arith.regions import BlockReadWriteDetector, Head
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.stmt import RegionsOp
from ....support.edit import builder_at_end, detach, erase_op, insert_op_before
from ....support.walk import ops_in
from ...tir.rewriting import erase_if_dead
from ..engine.errors import refuse
from ..primitives.common.clone_expression import clone_value
from .block_kind import axis_kinds, why_not_started
from .structure import is_inside, read_regions, write_regions


@dataclass(frozen=True)
class Box:
    """A region of a buffer: the ends (both inclusive) in each dimension."""

    buffer: SSAValue
    dims: tuple[Ends, ...]


def boxes_of(regions: Iterable[tir.BufferRegionOp], analyzer: Analyzer) -> list[Box]:
    """Returns declared regions as boxes, in terms of the block's axes."""
    found: list[Box] = []
    for region in regions:
        dims: list[Ends] = []
        for low, extent in zip(region.mins, region.extents, strict=True):
            start = analyzer.expr(low)
            dims.append((start, analyzer.simplify(start + (analyzer.expr(extent) - 1))))
        found.append(Box(region.buffer, tuple(dims)))
    return found


def reads_of(block: tir.BlockOp, analyzer: Analyzer) -> list[Box]:
    """Returns the regions that a block reads, in terms of its axes."""
    return boxes_of(read_regions(block), analyzer)


def writes_of(block: tir.BlockOp, analyzer: Analyzer) -> list[Box]:
    """Returns the regions that a block writes, in terms of its axes."""
    return boxes_of(write_regions(block), analyzer)


def bindings_of(block: tir.BlockOp, analyzer: Analyzer) -> dict[Atom, Expr]:
    """Returns the value that each axis of a block is bound to."""
    values: dict[Atom, Expr] = {}
    for variable, binding in zip(block.iter_vars, block.bindings, strict=True):
        values[analyzer.variable(variable)] = analyzer.expr(binding)
    return values


def relaxed(box: Box, block: tir.BlockOp, inner: Sequence[tir.ForOp], analyzer: Analyzer) -> Box | None:
    """Returns the part of a box that a block touches while the loops `inner` run; None if unknown.

    The ends are in terms of the loops that are not in `inner`.
    """
    bound = bindings_of(block, analyzer)
    variables = {atom for loop in inner if (atom := analyzer.expr(loop.loop_var).atom) is not None}
    dims: list[Ends] = []
    for low, high in box.dims:
        starts = relax(analyzer.simplify(substitute(low, bound)), variables, analyzer)
        stops = relax(analyzer.simplify(substitute(high, bound)), variables, analyzer)
        if starts is None or stops is None or made_in(block, starts[0], stops[1]):
            return None
        dims.append((analyzer.simplify(starts[0]), analyzer.simplify(stops[1])))
    return Box(box.buffer, tuple(dims))


def made_in(root: Operation, *exprs: Expr) -> list[OpResult]:
    """Returns the values in expressions that ops inside `root` define: they are not visible outside of it."""
    values = (atom.payload for atom in free_vars(*exprs))
    return [v for v in values if type(v) is OpResult and type(v.op) is not tir.VarOp and is_inside(v.op, root)]


def whole(buffer: SSAValue, analyzer: Analyzer) -> Box:
    """Returns all of a buffer."""
    return Box(buffer, tuple((Expr((), 0), analyzer.simplify(e - 1)) for e in extents_of(buffer, analyzer)))


def extents_of(buffer: SSAValue, analyzer: Analyzer) -> list[Expr]:
    """Returns the extents of a buffer."""
    owner = buffer.owner
    if isinstance(owner, tir.BufferOp):
        return [analyzer.expr(e) for e in owner.extents()]
    assert isinstance(buffer.type, tir.BufferType)
    return [Expr((), e) for e in buffer.type.static_shape or ()]


def accesses_of(buffer: SSAValue, primitive: str, *notes: str) -> list[AccessOp]:
    """Returns every load and store of a buffer; raises where it is used other than by its elements."""
    found: list[AccessOp] = []
    for use in list(buffer.uses):
        op = use.operation
        if isinstance(op, AccessOp):
            found.append(op)
        elif not isinstance(op, tir.BufferRegionOp) or any(
            not isinstance(u.operation, tir.ReadsOp | tir.WritesOp) for u in op.result.uses
        ):
            raise refuse(op, f"{primitive}: '{tir.buffer_name(buffer)}' is used otherwise than by its elements", *notes)
    return found


def united(a: Box, b: Box, analyzer: Analyzer) -> Box:
    """Returns the least box that holds both."""
    return Box(a.buffer, tuple(join(x, y, analyzer) for x, y in zip(a.dims, b.dims, strict=True)))


def same_box(a: Box, b: Box, analyzer: Analyzer) -> bool:
    """Returns whether two boxes of a buffer are known to be equal."""
    return all(
        analyzer.can_prove_equal(x, y) for ends in zip(a.dims, b.dims, strict=True) for x, y in zip(*ends, strict=True)
    )


# Declarations inferred again


def declare_access(block: tir.BlockOp) -> None:
    """Replaces `T.reads` and `T.writes` by what the block's loads and stores access, where that differs.

    What a reduction reads of its own output is left out, as TVM does, where it is what the block itself began with `T.init()`.
    """
    detector = BlockReadWriteDetector(block.body.block.ops)
    reads, writes = list(detector.reads.values()), list(detector.writes.values())
    if _begins_sums(block):
        reads = detector.reads_beside_init()
    analyzer = Analyzer()
    for kind, accesses, old in (
        (tir.WritesOp, writes, write_regions(block)),
        (tir.ReadsOp, reads, read_regions(block)),
    ):
        boxes = [Box(access.buffer, tuple(detector.ends(access))) for access in accesses]
        declared = boxes_of(old, analyzer)
        # Only the declaration says which elements a call touches through an address.
        kept = {
            r.result: b for r, b in zip(old, declared, strict=True) if b.buffer in detector.opaque and b not in boxes
        }
        if declared != [*kept.values(), *boxes] or block.find(kind) is None:
            head = Head(detector)
            _install(block, kind(*kept, *[head.region(access) for access in accesses]), head.block)


def _install(block: tir.BlockOp, regions: RegionsOp, head: Block) -> None:
    """Replaces a block's `T.reads` or `T.writes`, with the ops of `head` before it; writes precede reads."""
    old = block.find(type(regions))
    body = block.body.block
    anchor = old or next((op for op in body.ops if not isinstance(op, tir.BufferRegionOp)), body.first_op)
    assert anchor is not None
    for op in [*ops_in(head), regions]:
        if op.parent is not None:
            detach(op)
        op.location = block.location
        insert_op_before(op, anchor)
    if isinstance(old, RegionsOp):
        before = list(old.operands)
        erase_op(old)
        for region in before:
            erase_if_dead(region)


def _begins_sums(block: tir.BlockOp) -> bool:
    """Returns whether a block sets with `T.init()` what its reduction then reads."""
    return "R" in axis_kinds(block) and block.find(tir.InitOp) is not None and why_not_started(block) is None


def replace_regions(
    block: tir.BlockOp, kind: type[tir.ReadsOp] | type[tir.WritesOp], boxes: list[Box], analyzer: Analyzer
) -> None:
    """Declares these boxes as the reads or writes of a block, in place of the old declaration."""
    head = Block()
    builder = builder_at_end(head, block.location)
    regions: list[SSAValue] = []
    for box in boxes:
        type_ = index_type(box.buffer)
        # A load in an index is made again: the block's own may come later.
        made = {analyzer.expr(v).atom: v for ends in box.dims for v in made_in(block, *ends)}
        values = {atom: clone_value(v, {}, builder, block) for atom, v in made.items() if atom is not None}
        mins = [analyzer.to_ssa(low, builder, type_, values) for low, _ in box.dims]
        extents = [analyzer.to_ssa(analyzer.simplify(high - low + 1), builder, type_, values) for low, high in box.dims]
        regions.append(builder.insert(tir.BufferRegionOp(box.buffer, mins, extents)).result)
    _install(block, kind(*regions), head)


def order_reads(block: tir.BlockOp, buffers: Sequence[SSAValue]) -> None:
    """Sorts the declared reads of a block by the order of their buffers in `buffers`, others last."""
    analyzer = Analyzer()
    reads = reads_of(block, analyzer)
    place = {buffer: k for k, buffer in reversed(list(enumerate(buffers)))}
    ordered = sorted(reads, key=lambda box: place.get(box.buffer, len(place)))
    if ordered != reads:
        replace_regions(block, tir.ReadsOp, ordered, analyzer)


def index_type(buffer: SSAValue) -> tir.types.IntegerType:
    """Returns the dtype in which a buffer is indexed: that of its extents."""
    assert isinstance(buffer.type, tir.BufferType)
    for dim in buffer.type.shape.data:
        type_ = getattr(dim, "type", None)
        if isinstance(type_, tir.types.IntegerType):
            return type_
    owner = buffer.owner
    if isinstance(owner, tir.BufferOp) and owner.shape and isinstance(owner.shape[0].type, tir.types.IntegerType):
        return owner.shape[0].type
    return tir.types.I32
