"""Contractions of bytes, of 16 bits and of bfloat16, by dot-product instructions.

The products of a group along k are added to each lane by one instruction. C[m, n] += A[m, k] * B[n, k] with B packed in panels
[n / width, k / group, n in the panel, k in the group], so that one load has a lane for each n with its group of k, and A such that a group
is in one word, which is broadcast to all lanes. The rest is as in `contraction`. Weights that are constants are packed once, at the root of
the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....support.target import Target
from ...schedule import BlockRV, Schedule
from ...schedule.analysis.structure import buffers_read, buffers_written, producers
from ...schedule.engine.dot_intrinsics import dot_name, interleave_name
from ..block_shape import Load, element_bytes, is_copy, static_extents
from ..loop_nests import block_of, cached, extent_of, loop_of_axis, parallelize, vectorize_loop
from . import (
    MIN_ROWS,
    MIN_WORK,
    Contraction,
    Tile,
    choose_tile,
    lanes_innermost,
    own_loops,
    share_out,
    split_rows,
    store_tile,
    take_out,
)
from .tile import STREAMED, best_tile

BYTES = ("int8", "uint8")
BFLOATS, SHORTS = ("bfloat16", "bfloat16", "float32"), ("int16", "int16", "int32")
BROADCAST = 0.6
"""The cost of broadcasting a group of A, in products of vectors that are added by an instruction of their own: its rows are far apart,
and are fetched later than B. (Measured on Zen 4.)
"""


FAR_ROWS, BESIDE_FAR_ROWS = 4, 4.5
"""How many times the second-level cache A is larger than for vectors of a panel to be fetched from it more slowly, and what they take
then at least. (Measured likewise.)"""


@dataclass(frozen=True)
class DotProduct:
    """The dtypes, lanes and group of a contraction by dot products."""

    axis: SSAValue
    """The reduced axis whose elements are taken in groups."""
    group: int
    lanes: int
    """Sums of a vector."""
    intrinsic: str
    """The tensor intrinsic that does one vector."""
    adds: bool
    """Whether the processor's instruction adds to the sums; else products are in a register of their own before they are added."""


def choose_dot(match: Contraction, target: Target) -> DotProduct | None:
    """Returns the dot product that does a contraction on a target; None where there is none that pays."""
    types = _dtypes(match)
    if types is None or match.shape.points < MIN_WORK:
        return None
    a, b, c, swapped = types
    if c == "int32" and a in BYTES and b in BYTES:
        group, adds = (4, True) if target.has_int8_dot else (2, False)
        if not target.has_int8_dot and target.arch != "x86_64":
            # Arm's widening multiply-add takes elements one by one.
            return None
    elif (a, b, c) == BFLOATS or ((a, b, c) == SHORTS and target.arch == "x86_64"):
        group, adds = 2, c == "float32"
    else:
        return None
    axis = _grouped_axis(match, group)
    rows = 1 if match.rows is None else match.shape.extent(match.rows) or 1
    if axis is None or (rows < MIN_ROWS and not match.is_constant(match.panel)):
        # A panel that is packed at every call must be used often.
        return None
    lanes = target.lanes(4)
    return DotProduct(axis, group, lanes, dot_name(lanes, group, a, b, c, swapped), adds)


def _dtypes(match: Contraction) -> tuple[str, str, str, bool] | None:
    """Returns the dtypes of A, B and C, and whether the product is B * A.

    None for a sum that is not C + A * B with plain casts.
    """
    store = match.shape.stores[0]
    total = store.value.owner
    if not isinstance(total, tir.AddOp) or not isinstance(total.lhs.owner, tir.LoadOp):
        return None
    product = total.rhs.owner
    if not isinstance(product, tir.MulOp):
        return None
    factors: list[tir.LoadOp] = []
    for side in (product.lhs.owner, product.rhs.owner):
        load = side.value.owner if isinstance(side, tir.CastOp) else side
        if not isinstance(load, tir.LoadOp):
            return None
        factors.append(load)
    swapped = factors[0] is match.panel.op
    if [match.panel.op, match.broadcast.op] != factors and [match.broadcast.op, match.panel.op] != factors:
        return None
    a, b = (tir.type_to_dtype(load.op.result.type) for load in (match.broadcast, match.panel))
    return a, b, tir.type_to_dtype(store.value.type), swapped


def _grouped_axis(match: Contraction, group: int) -> SSAValue | None:
    """Returns the longest reduced axis that is an index by itself of both inputs.

    Of A it may be one of whole groups that starts anywhere in its last dimension, as in convolutions in groups.
    """
    analyzer = Analyzer()
    found: list[tuple[int, SSAValue]] = []
    for axis in match.shape.reduction:
        extent = match.shape.extent(axis) or 0
        lies = _place(match.broadcast, axis, analyzer) is not None or (
            extent % group == 0 and _runs_along(match.broadcast, axis, analyzer)
        )
        if lies and _place(match.panel, axis, analyzer) is not None:
            found.append((extent, axis))
    return max(found, key=lambda each: each[0], default=(0, None))[1]


def _runs_along(load: Load, axis: SSAValue, analyzer: Analyzer) -> bool:
    """Returns whether neighbours along the axis are neighbours in memory."""
    atom = analyzer.expr(axis).terms[0][0]
    return [index.coefficient(atom) for index in load.indices] == [0] * (len(load.indices) - 1) + [1]


def _place(load: Load, axis: SSAValue, analyzer: Analyzer) -> int | None:
    """Returns the only index of a load that is the axis; None if there is none, or others use it, too."""
    places = [k for k, index in enumerate(load.indices) if index == analyzer.expr(axis)]
    users = [index for index in load.indices if index.coefficient(analyzer.expr(axis).terms[0][0]) != 0]
    return places[0] if len(places) == 1 and len(users) == 1 else None


def schedule_dot_product(sch: Schedule, block: BlockRV, match: Contraction, dot: DotProduct, target: Target) -> None:
    """Packs, tiles and tensorizes a contraction; its consumers are applied to each tile."""
    shape = match.shape
    work = shape.points // dot.group * 2
    names = list(shape.axes)
    tile = _tile(match, dot, target)
    op = block_of(sch, block)
    constant = match.is_constant(match.panel)
    padding = [1] * len(names)
    padding[names.index(match.columns)] = tile.columns
    padding[names.index(dot.axis)] = dot.group
    if match.rows is not None:
        padding[names.index(match.rows)] = tile.rows if match.m % tile.rows else 1
    panel, broadcast = buffers_read(op).index(match.panel.buffer), buffers_read(op).index(match.broadcast.buffer)
    sch.pad_einsum(block, padding)
    packing = _copied(sch, block, panel, match.panel.buffer)
    zipped = _is_zipped(sch, packing, match, dot, tile)
    if constant or zipped:
        _pack(sch, packing, match, dot, tile, target, zipped=zipped)
    _group_rows(sch, block, broadcast, match, dot, target)
    epilogue = take_out(sch, block)
    lanes_innermost(sch, block, match)

    by_axis = dict(zip(names, sch.get_loops(block), strict=True))
    column_outer, column_vectors, column_lanes = sch.split(by_axis[match.columns], [None, tile.vectors, tile.lanes])
    depth, group = sch.split(by_axis[dot.axis], [None, dot.group])
    row_outer, row_inner = split_rows(sch, by_axis, match, tile)
    shared = [by_axis[v] for v in shape.spatial if v in match.panel.axes and v is not match.columns]
    alone = [by_axis[v] for v in shape.spatial if v not in match.panel.axes and v is not match.rows]
    reducing = [depth if v is dot.axis else by_axis[v] for v in _as_packed(match)]
    panels, tiles = [*shared, column_outer], [*alone, *row_outer]
    sch.reorder(*panels, *tiles, *reducing, *row_inner, column_vectors, column_lanes, group)
    if not constant and not zipped:
        sch.compute_at(packing, column_outer)
        _pack(sch, packing, match, dot, tile, target, zipped=False)
    sch.reverse_compute_at(epilogue, [*panels, *tiles][-1])
    store_tile(sch, epilogue, target)
    for loop in (*row_inner, column_vectors):
        sch.unroll(loop)
    share_out(sch, panels, tiles, work, target)
    head = own_loops(sch, sch.decompose_reduction(block, reducing[0]))
    sch.vectorize(head[-1])
    for loop in head[:-1]:
        sch.unroll(loop)
    sch.tensorize(column_lanes, dot.intrinsic)


def _tile(match: Contraction, dot: DotProduct, target: Target) -> Tile:
    """Returns the register tile; its rows divide those of an image, which cannot be padded."""
    m, n, registers = match.m, match.n, target.vector_registers
    even = match.rows is None or _place(match.broadcast, match.rows, Analyzer()) is None
    if not dot.adds:
        element = element_bytes(match.panel.buffer)
        rows = prod(static_extents(match.broadcast.buffer) or (0,)) * element
        return best_tile(
            m, n, dot.lanes, registers - 1, depth=match.k * element, even=even, broadcast=BROADCAST,
            near=target.l1 // 2, streamed=BESIDE_FAR_ROWS if rows > FAR_ROWS * target.l2 else STREAMED,
        )[1]  # fmt: skip
    best = choose_tile(m, n, dot.lanes, registers)
    if not even or m % best.rows == 0:
        return best
    rows = max(r for r in range(1, best.rows + 1) if m % r == 0)
    vectors = min((registers - 2) // (rows + 1), -(-n // dot.lanes), 6)
    return Tile(rows, max(vectors, 1), dot.lanes)


def _copied(sch: Schedule, block: BlockRV, number: int, original: SSAValue) -> BlockRV:
    """Returns the block that copies an input: the one that padded it, otherwise a new one."""
    op = block_of(sch, block)
    buffer = buffers_read(op)[number]
    if buffer is not original:
        return sch.handle(next(p for p in producers(op) if buffers_written(p)[0] is buffer))
    return cached(sch, block, number)


def _is_zipped(sch: Schedule, packing: BlockRV, match: Contraction, dot: DotProduct, tile: Tile) -> bool:
    """Returns whether B is packed by interleaving rows, so quickly that all of it is packed at once.

    So it is where B is stored in rows of whole panels, and has whole groups of them.
    """
    column, depth = _places(match, dot)
    loops, rank = own_loops(sch, packing), len(match.panel.indices)
    if column != rank - 1 or len(loops) != rank or not is_copy(block_of(sch, packing)):
        return False
    extents = [extent_of(sch, loop) or 1 for loop in loops]
    return extents[column] % tile.columns == 0 and extents[depth] % dot.group == 0


def _places(match: Contraction, dot: DotProduct) -> tuple[int, int]:
    """Returns the dimensions of B along which columns and groups run."""
    analyzer = Analyzer()
    column, depth = _place(match.panel, match.columns, analyzer), _place(match.panel, dot.axis, analyzer)
    assert column is not None and depth is not None
    return column, depth


def _pack(
    sch: Schedule, packing: BlockRV, match: Contraction, dot: DotProduct, tile: Tile, target: Target, *, zipped: bool
) -> None:
    """Packs B as [column panel, other dimensions with k in groups, column in panel, k in group]."""
    column, depth = _places(match, dot)
    width, group = tile.columns, dot.group

    def layout(*indices: Expr) -> list[Expr]:
        others = [i // group if k == depth else i for k, i in enumerate(indices) if k != column]
        return [indices[column] // width, *others, indices[column] % width * group + indices[depth] % group]

    # The loop of dimension k drives axis k of the copy; dimensions of one iteration have none.
    columns, groups = (loop_of_axis(sch, packing, place) for place in (column, depth))
    rest = [loop for loop in own_loops(sch, packing) if loop not in (columns, groups)]
    sch.transform_layout(packing, ("write", 0), layout)
    if columns is None or groups is None:
        return
    outer, inner = sch.split(groups, [None, group])
    if zipped:
        # As many columns at a time as are one vector then.
        across, vectors, lanes = sch.split(columns, [None, tile.vectors, tile.lanes])
        sch.reorder(across, *rest, outer, vectors, lanes, inner)
        sch.tensorize(lanes, interleave_name(tile.lanes, group, _dtype(match.panel.buffer), column - depth + 1))
        if not match.is_constant(match.panel):
            parallelize(sch, [across, *rest, outer], match.shape.points // match.uses, target)
    elif depth == len(match.panel.indices) - 1:
        # Rows of k are copied in groups, a cache line of each row at a time.
        outer, run = sch.split(outer, [None, max(RUN_BYTES // group, 1)])
        sch.reorder(*rest, outer, columns, run, inner)
        sch.unroll(run)
        sch.vectorize(inner)
    else:
        sch.reorder(*rest, outer, columns, inner)
        sch.unroll(inner)


def _as_packed(match: Contraction) -> list[SSAValue]:
    """Returns the reduced axes in the order of the panel's dimensions, so that it is read front to back.

    Others come first.
    """
    analyzer = Analyzer()
    places = {axis: _place(match.panel, axis, analyzer) for axis in match.shape.reduction}
    return sorted(places, key=lambda axis: -1 if places[axis] is None else places[axis] or 0)


RUN_BYTES = 64
"""Bytes of a row that are copied together: a cache line."""


def _group_rows(
    sch: Schedule, block: BlockRV, number: int, match: Contraction, dot: DotProduct, target: Target
) -> None:
    """Makes the groups of A contiguous: in place where k is its last dimension, otherwise in a copy.

    The copy is [.., k / group, .., k in it].
    """
    place = _place(match.broadcast, dot.axis, Analyzer())
    if place is None:
        return
    op = block_of(sch, block)
    original = match.broadcast.buffer
    moved = place != len(match.broadcast.indices) - 1
    if buffers_read(op)[number] is original and not moved:
        return
    copy = _copied(sch, block, number, original)
    loops = own_loops(sch, copy)
    if not moved:
        if loops:
            vectorize_loop(sch, loops[-1], target.lanes(element_bytes(original)))
        return
    group, last = dot.group, len(match.broadcast.indices) - 1

    def layout(*indices: Expr) -> list[Expr]:
        # Groups are in the last dimension, one for each of its elements.
        inner = indices[last] * group + indices[place] % group
        return [*(i // group if k == place else i for k, i in enumerate(indices[:last])), inner]

    sch.transform_layout(copy, ("write", 0), layout)
    block_of_copy = block_of(sch, copy)
    stores = [s for s in block_of_copy.body.block.ops if isinstance(s, tir.StoreOp)]
    if len(loops) <= last or not isinstance(stores[0].value.owner, tir.LoadOp):
        # Channels that were padded are no rows to be interleaved.
        return
    whole = extent_of(sch, loops[last]) or 1
    count = max((n for n in range(1, target.vector_bytes + 1) if whole % n == 0), default=1)
    if count < 4:
        return
    outer, members = sch.split(loops[place], [None, group])
    along, elements = sch.split(loops[last], [None, count])
    rest = [outer if k == place else loop for k, loop in enumerate(loops[:last])]
    sch.reorder(*rest, along, elements, members)
    sch.tensorize(elements, interleave_name(count, group, _dtype(original), last - place + 1))


def _dtype(buffer: SSAValue) -> str:
    assert isinstance(buffer.type, tir.BufferType)
    return tir.type_to_dtype(buffer.type.dtype)
