"""What a block touches: its declared regions as expressions, and the declaration written afresh from its loads and stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr
from ....dialects.arith.expr import free_vars
from ....dialects.arith.substitution import substitute
from ....dialects.tir.stmt import RegionsOp
from ....support.edit import builder_before, erase_op
from ....support.walk import all_ops
from ...tir.regions import Ends, join, relax
from ...tir.rewriting import erase_if_dead, ops_of
from ..primitives.common.clone_expression import clone_value
from .structure import is_inside, read_regions, scope_of, write_regions


@dataclass(frozen=True)
class Box:
    """A region of a buffer: the ends (both inclusive) in each dimension."""

    buffer: SSAValue
    dims: tuple[Ends, ...]


def boxes_of(regions: Iterable[tir.BufferRegionOp], analyzer: Analyzer) -> list[Box]:
    """Declared regions as boxes, in terms of the block's axes."""
    found: list[Box] = []
    for region in regions:
        dims: list[Ends] = []
        for low, extent in zip(region.mins, region.extents, strict=True):
            start = analyzer.expr(low)
            dims.append((start, analyzer.simplify(start + (analyzer.expr(extent) - 1))))
        found.append(Box(region.buffer, tuple(dims)))
    return found


def reads_of(block: tir.BlockOp, analyzer: Analyzer) -> list[Box]:
    """What a block reads, in terms of its axes."""
    return boxes_of(read_regions(block), analyzer)


def writes_of(block: tir.BlockOp, analyzer: Analyzer) -> list[Box]:
    """What a block writes, in terms of its axes."""
    return boxes_of(write_regions(block), analyzer)


def bindings_of(block: tir.BlockOp, analyzer: Analyzer) -> dict[Atom, Expr]:
    """What each axis of a block is bound to."""
    values: dict[Atom, Expr] = {}
    for variable, binding in zip(block.iter_vars, block.bindings, strict=True):
        atom = analyzer.expr(variable).atom
        assert atom is not None
        values[atom] = analyzer.expr(binding)
    return values


def relaxed(box: Box, block: tir.BlockOp, inner: Sequence[tir.ForOp], analyzer: Analyzer) -> Box | None:
    """A box of a block as what it covers while the loops `inner` run, in terms of the other loops; None: not known."""
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
    """The values of expressions that ops inside of `root` make: loads and the like, which are not to be seen outside of it."""
    values = (atom.payload for atom in free_vars(*exprs))
    return [v for v in values if type(v) is OpResult and type(v.op) is not tir.VarOp and is_inside(v.op, root)]


def whole(buffer: SSAValue, analyzer: Analyzer) -> Box:
    """All of a buffer."""
    return Box(buffer, tuple((Expr((), 0), analyzer.simplify(e - 1)) for e in extents_of(buffer, analyzer)))


def extents_of(buffer: SSAValue, analyzer: Analyzer) -> list[Expr]:
    """The extents of a buffer."""
    owner = buffer.owner
    if isinstance(owner, tir.BufferOp):
        return [analyzer.expr(e) for e in owner.extents()]
    assert isinstance(buffer.type, tir.BufferType)
    return [Expr((), e) for e in buffer.type.static_shape or ()]


def united(a: Box, b: Box, analyzer: Analyzer) -> Box:
    """The least box that holds both."""
    return Box(a.buffer, tuple(join(x, y, analyzer) for x, y in zip(a.dims, b.dims, strict=True)))


def same_box(a: Box, b: Box, analyzer: Analyzer) -> bool:
    """Whether two boxes of a buffer are known to be the same."""
    return all(
        analyzer.can_prove_equal(x, y) for ends in zip(a.dims, b.dims, strict=True) for x, y in zip(*ends, strict=True)
    )


# Declarations written afresh


def declare_access(block: tir.BlockOp) -> None:
    """Replaces `T.reads` and `T.writes` by what the block's loads and stores touch.

    What a reduction reads of its own output is left out, as TVM does, where it is what the block itself began with `T.init()`.
    """
    # Nothing is told of the axes' ranges: an axis of extent 1 is to stand as itself, not as its value.
    analyzer = Analyzer()
    own: set[SSAValue] = {op.result for op in ops_of(block, tir.BufferOp)}
    reads, writes = _touched(block, analyzer, own)
    if _begins_sums(block):
        written = {box.buffer for box in writes}
        reads = [box for box in reads if box.buffer not in written]
    opaque = _used_opaquely(block)
    for kind, boxes, old in ((tir.WritesOp, writes, write_regions(block)), (tir.ReadsOp, reads, read_regions(block))):
        # What a call does behind an address only the declaration tells.
        declared = boxes_of(old, analyzer)
        kept = [box for box in declared if box.buffer in opaque and box not in boxes]
        if declared != [*kept, *boxes] or block.find(kind) is None:
            replace_regions(block, kind, [*kept, *boxes], analyzer)


def _begins_sums(block: tir.BlockOp) -> bool:
    """Whether a block sets with `T.init()` what its reduction then reads."""
    from .block_kind import why_not_started

    is_reduction = any(kind.data == "R" for kind in block.iter_types.data)
    return is_reduction and block.find(tir.InitOp) is not None and why_not_started(block) is None


def _used_opaquely(block: tir.BlockOp) -> set[SSAValue]:
    """The buffers whose address something inside a block takes, or that it hands on whole."""
    found: set[SSAValue] = set()
    for op in all_ops(block):
        if type(op) is tir.BufferGetOp and op.field.data == "data":
            found.add(op.buffer)
        elif type(op) is tir.CallOp:
            found |= {a for a in op.arguments if isinstance(a.type, tir.BufferType)}
            found |= {
                a.owner.buffer
                for a in op.arguments
                if op.intrinsic.data == "address_of" and isinstance(a.owner, tir.LoadOp)
            }
    return found


def _can_be_made_anew(value: SSAValue, block: tir.BlockOp) -> bool:
    """Whether what ops in a block compute is of loads and arithmetic only: what it calls, or names, is done once."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and is_inside(op, block) and not isinstance(op, tir.BufferOp | tir.VarOp):
            if op.regions or isinstance(op, tir.LetOp | tir.CallOp):
                return False
            pending += op.operands
    return True


def _touched(block: tir.BlockOp, analyzer: Analyzer, own: set[SSAValue]) -> tuple[list[Box], list[Box]]:
    """(reads, writes) of the ops inside a block, one box per distinct access."""
    reads: dict[tuple[SSAValue, tuple[Ends, ...]], None] = {}
    writes: dict[tuple[SSAValue, tuple[Ends, ...]], None] = {}
    loops = ops_of(block, tir.ForOp)
    for loop in loops:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    inner = {atom for loop in loops if (atom := analyzer.expr(loop.loop_var).atom) is not None}
    for op in all_ops(block):
        if (type(op) is tir.LoadOp or type(op) is tir.StoreOp) and op.buffer not in own and scope_of(op) is block:
            dims: list[Ends] = []
            for number, index in enumerate(op.indices):
                e = analyzer.expr(index)
                ends = relax(e, inner, analyzer) if inner else (e, e)
                if ends is None or not all(_can_be_made_anew(v, block) for v in made_in(block, *ends)):
                    ends = whole(op.buffer, analyzer).dims[number]
                dims.append(ends)
            (writes if type(op) is tir.StoreOp else reads)[(op.buffer, tuple(dims))] = None
        elif type(op) is tir.BlockOp and op is not block and scope_of(op) is block:
            bound = bindings_of(op, analyzer)
            for boxes, target in ((reads_of(op, analyzer), reads), (writes_of(op, analyzer), writes)):
                for box in boxes:
                    if box.buffer in own:
                        continue
                    dims = []
                    for number, (low, high) in enumerate(box.dims):
                        starts = relax(substitute(low, bound), inner, analyzer)
                        stops = relax(substitute(high, bound), inner, analyzer)
                        known = starts is not None and stops is not None and not made_in(op, starts[0], stops[1])
                        dims.append(
                            (starts[0], stops[1])
                            if known and starts and stops
                            else whole(box.buffer, analyzer).dims[number]
                        )
                    target[(box.buffer, tuple(dims))] = None
    return [Box(*key) for key in reads], [Box(*key) for key in writes]


def replace_regions(
    block: tir.BlockOp, kind: type[tir.ReadsOp] | type[tir.WritesOp], boxes: list[Box], analyzer: Analyzer
) -> None:
    """Has a block declare these boxes as its reads or writes, in place of what it declared."""
    old = block.find(kind)
    body = block.body.block
    anchor: Operation | None = old
    if anchor is None:
        # Writes are put in place first, so that reads come to stand before them.
        anchor = next((op for op in body.ops if not isinstance(op, tir.BufferRegionOp)), body.first_op)
    assert anchor is not None
    builder = builder_before(anchor, block.location)
    regions: list[SSAValue] = []
    for box in boxes:
        type_ = index_type(box.buffer)
        # A load in an index is made anew: the block's own may come later.
        made = {analyzer.expr(v).atom: v for ends in box.dims for v in made_in(block, *ends)}
        values = {atom: clone_value(v, {}, builder, block) for atom, v in made.items() if atom is not None}
        mins = [analyzer.to_ssa(low, builder, type_, values) for low, _ in box.dims]
        extents = [analyzer.to_ssa(analyzer.simplify(high - low + 1), builder, type_, values) for low, high in box.dims]
        regions.append(builder.insert(tir.BufferRegionOp(box.buffer, mins, extents)).result)
    builder.insert(kind(*regions))
    if isinstance(old, RegionsOp):
        before = list(old.operands)
        erase_op(old)
        for region in before:
            erase_if_dead(region)


def order_reads(block: tir.BlockOp, buffers: Sequence[SSAValue]) -> None:
    """Has a block declare its reads in the order of their buffers in `buffers`, others last."""
    analyzer = Analyzer()
    reads = reads_of(block, analyzer)
    place = {buffer: k for k, buffer in reversed(list(enumerate(buffers)))}
    ordered = sorted(reads, key=lambda box: place.get(box.buffer, len(place)))
    if ordered != reads:
        replace_regions(block, tir.ReadsOp, ordered, analyzer)


def index_type(buffer: SSAValue) -> tir.types.IntegerType:
    """The dtype in which a buffer is indexed: that of its extents."""
    assert isinstance(buffer.type, tir.BufferType)
    for dim in buffer.type.shape.data:
        type_ = getattr(dim, "type", None)
        if isinstance(type_, tir.types.IntegerType):
            return type_
    owner = buffer.owner
    if isinstance(owner, tir.BufferOp) and owner.shape and isinstance(owner.shape[0].type, tir.types.IntegerType):
        return owner.shape[0].type
    return tir.types.I32
