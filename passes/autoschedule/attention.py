"""Attention: two contractions with row-wise stages between them, run for a block of rows at a time.

S = Q·Kᵀ, then what a softmax does to its rows, then O = P·V. A block of query rows goes through all stages before the next one
begins, so that only block × keys scores exist at a time, in cache. Both contractions are tiled into registers as others are (see
`contraction`); K and V are packed once for each head. Heads and blocks of rows are shared out to threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

from xdsl.ir import SSAValue

from ...dialects import tir
from ...dialects.arith import Analyzer, Expr
from ...support.target import Target
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.analysis.structure import buffers_read, buffers_written, consumers, producers
from .attention_limits import diagonal_of, key_loop, limit_keys
from .block_shape import Load, Shape, element_bytes, shape_of
from .contraction.epilogue import take_out
from .contraction.gemm import VECTOR_TYPES
from .contraction.pack import transpose_tiles
from .elementwise import schedule_elementwise
from .loop_nests import attempt, block_of, cached, extent_of, loop_of_axis, own_loops, parallelize, vectorize_loop
from .reduction import schedule_row

SCORES_OF_L1 = 2
"""A block of scores takes this part of the first cache."""
MIN_ROWS = 4
"""Query rows below which a tile of registers stays empty: then the stages are scheduled one by one."""
QUICKEST = 32
"""Bytes of a vector than which narrower ones take no less time: processors work on 32 at once, and on 64 no quicker than on twice 32."""
IN_PLACE = 4
"""Tiles of rows that read parts of V's rows in place: these are far apart and so share sets of a cache, and copies take as long as
some such reads.
"""
RUN = 16
"""Elements of a row that are copied together into a panel: a cache line of float32."""


@dataclass(frozen=True)
class Product:
    """A block C[batch…, i, j] += A[batch…, i, k] * B[…]."""

    shape: Shape
    left: Load
    right: Load

    @property
    def block(self) -> tir.BlockOp:
        return self.shape.block

    @property
    def batch(self) -> list[SSAValue]:
        return self.shape.spatial[:-2]

    @property
    def row(self) -> SSAValue:
        return self.shape.spatial[-2]

    @property
    def column(self) -> SSAValue:
        return self.shape.spatial[-1]

    @property
    def depth(self) -> SSAValue:
        return self.shape.reduction[0]

    @property
    def element(self) -> int:
        """Bytes of an element of the sums."""
        return element_bytes(self.shape.stores[0].buffer)

    def size(self, axis: SSAValue) -> int:
        """Returns the extent of an axis, which `match_attention` has seen to be known."""
        extent = self.shape.extent(axis)
        assert extent is not None
        return extent


@dataclass(frozen=True)
class Attention:
    """The stages of an attention."""

    scores: Product
    rows: tuple[tir.BlockOp, ...]
    """What is done to rows of the scores, in order."""
    weights: tir.BlockOp
    """The one of them that the output is computed from."""
    output: Product


def match_attention(blocks: list[tir.BlockOp]) -> Attention | None:
    """Returns the attention among the blocks of a function; None when there is none."""
    found = [p for p in map(_product, blocks) if p is not None]
    if len(found) != 2:
        return None
    scores, output = found
    s, o = scores.shape, output.shape
    if len(scores.batch) != len(output.batch) or any(s.extent(a) is None for a in s.axes):
        return None
    pairs = zip((*scores.batch, scores.row, scores.column), (*output.batch, output.row, output.depth), strict=True)
    if any(s.extent(a) != o.extent(b) for a, b in pairs) or o.extent(output.column) is None:
        return None
    if scores.size(scores.row) < MIN_ROWS:
        return None
    after = _reached([output.block])
    inside = _reached([scores.block]) - after - {output.block}
    before = [b for b in blocks if b in inside]
    made = {buffers_written(b)[0] for b in (scores.block, *before)}
    if not before or not all(_is_row_wise(shape_of(b), len(output.batch) + 1, made) for b in before):
        return None
    weights = next((b for b in before if buffers_written(b)[0] is output.left.buffer), None)
    return None if weights is None else Attention(scores, tuple(before), weights, output)


def _product(block: tir.BlockOp) -> Product | None:
    shape = shape_of(block)
    if shape is None or len(shape.reduction) != 1 or len(shape.stores) != 1 or len(shape.spatial) < 2:
        return None
    store = shape.stores[0]
    total = store.value.owner
    if store.value.type not in VECTOR_TYPES or not isinstance(total, tir.AddOp):
        return None
    term = total.rhs.owner
    if not isinstance(term, tir.MulOp) or list(store.indices) != shape.spatial:
        return None
    left, right = (next((x for x in shape.loads if x.op is side.owner), None) for side in (term.lhs, term.rhs))
    if left is None or right is None:
        return None
    analyzer = Analyzer()
    row, column, depth = shape.spatial[-2], shape.spatial[-1], shape.reduction[0]
    plain = {analyzer.expr(a).atom for a in shape.axes}
    if any(index.value is None and index.atom not in plain for index in right.indices):
        return None
    own = row in left.axes and column in right.axes and column not in left.axes and row not in right.axes
    return Product(shape, left, right) if own and depth in left.axes and depth in right.axes else None


def _reached(start: list[tir.BlockOp]) -> set[tir.BlockOp]:
    """Returns the blocks that read what some blocks make, or what those make that read it."""
    found: set[tir.BlockOp] = set()
    pending = list(start)
    while pending:
        new = [reader for reader in consumers(pending.pop()) if reader not in found]
        found.update(new)
        pending += new
    return found


def _is_row_wise(shape: Shape | None, count: int, made: set[SSAValue]) -> bool:
    """Returns whether the first `count` axes are the row of everything that a block writes.

    What is read of `made` must be of the same row.
    """
    if shape is None or len(shape.stores) != 1:
        return False
    analyzer = Analyzer()
    first = [analyzer.expr(axis) for axis in shape.axes[:count]]
    if len(first) < count or any(kind != "S" for kind in shape.kinds[:count]):
        return False
    accesses = [load.indices for load in shape.loads if load.buffer in made]
    accesses += [tuple(analyzer.expr(i) for i in store.indices) for store in shape.stores]

    def is_own(indices: tuple[Expr, ...]) -> bool:
        pairs = zip(indices[:count], first, shape.extents[:count], strict=True)
        return all(index == own or (extent == 1 and index.value == 0) for index, own, extent in pairs)

    return all(len(indices) >= count and is_own(indices) for indices in accesses)


# Sizes


@dataclass(frozen=True)
class Sizes:
    """The tiling of the two contractions."""

    rows: int
    """Of a tile, in both."""
    score_vectors: int
    output_vectors: int
    """Across a tile of each."""
    output_lanes: int
    """Lanes of a vector of the output: fewer than the target has where so fewer columns are filled up."""
    block: int
    """Rows that go through all stages together."""


def choose_sizes(queries: int, keys: int, width: int, element: int, target: Target) -> Sizes:
    """Returns the tiles that waste least of both contractions, and how many rows fit in the caches."""
    lanes, registers = target.lanes(element), target.vector_registers
    parts = {lanes} if width % lanes == 0 else {lanes, min(lanes, QUICKEST // element)}
    best: tuple[float, Sizes] | None = None
    for rows, scores, output, part in product(range(1, 15), range(1, 7), range(1, 7), sorted(parts)):
        # Accumulators, the vectors of the panel, and one for what is broadcast.
        if queries % rows or any(rows * v + v + 1 > registers for v in (scores, output)):
            continue
        cost = 0.0
        for vectors, columns, across in ((scores, keys, lanes), (output, width, part)):
            whole = -(-columns // (vectors * across)) * vectors * across
            cost += whole / columns * (1 + 0.35 * (rows + vectors) / (rows * vectors))
        if best is None or cost < best[0]:
            best = (cost, Sizes(rows, scores, output, part, rows))
    _, sizes = best or (0.0, Sizes(1, 1, 1, lanes, 1))
    fitting = target.l1 // SCORES_OF_L1 // (keys * element * sizes.rows)
    return replace(sizes, block=sizes.rows * _divisor(queries // sizes.rows, fitting))


def _divisor(number: int, most: int) -> int:
    """Returns the largest divisor of a number that is not above another, at least 1."""
    return max((d for d in range(1, number + 1) if number % d == 0 and d <= most), default=1)


# Schedule


def schedule_attention(sch: Schedule, attention: Attention, target: Target) -> None:
    """Tiles and packs both contractions, and brings all stages under one loop over blocks of rows."""
    scores, output = attention.scores, attention.output
    element = scores.element
    diagonal = diagonal_of(attention)
    queries, keys = scores.size(scores.row), scores.size(scores.column)
    sizes = choose_sizes(queries, keys, output.size(output.column), element, target)
    lanes = target.lanes(element)
    first, weights, last = (sch.handle(b) for b in (scores.block, attention.weights, output.block))
    at = attention.rows.index(attention.weights)
    before, after = ([sch.handle(b) for b in part] for part in (attention.rows[:at], attention.rows[at + 1 :]))
    own = {scores.block, *attention.rows}
    alone = [sch.handle(p) for stage in attention.rows for p in producers(stage) if p not in own]
    alone += [sch.handle(p) for p in _makers(scores, scores.left) if not _inline_form(sch, p)]
    k_pack = _bring(sch, first, scores, sizes.score_vectors * lanes)
    panel = sizes.output_vectors * sizes.output_lanes
    v_pack = None if _is_read_in_place(output, panel, queries // sizes.rows) else _bring(sch, last, output, panel)
    changed = take_out(sch, first)
    # What the scores are changed by belongs to their tile.
    before = [stage for stage in before if sch.resolve(stage) is not sch.resolve(changed)]

    outer, row, column = _output_loops(sch, last, output)
    block, tile, *inner_row = sch.split(row, [None, sizes.block // sizes.rows, sizes.rows])
    across, *inner_column = sch.split(column, [None, sizes.output_vectors, sizes.output_lanes])
    sch.reorder(*outer, block, across, tile, *inner_row, *inner_column)
    # Of few heads that threads cannot share evenly the panels are packed in front, and threads share out the blocks of rows.
    heads = prod(scores.size(axis) for axis in scores.batch)
    longest = max(outer, key=lambda loop: extent_of(sch, loop) or 0, default=None)
    even = longest is not None and (extent_of(sch, longest) or 1) % target.cores == 0
    shared = longest if longest is not None and (heads >= 2 * target.cores or even) else block
    many = shared is not block
    work = (scores.shape.points + output.shape.points) * 2
    # Before sums are apart from their start: what is in a parallel loop has one writer.
    parallelize(sch, [shared], work, target)
    sch.compute_at(last, tile)
    depth = _register_tile(sch, last, sizes.output_lanes)
    _unroll_tile(sch, inner_row, inner_column)

    for stage in reversed((*before, weights, *after)):
        sch.compute_at(stage, block)
    sch.compute_at(changed, block)
    # A block of columns may reach into the next head.
    *_, rows, columns = own_loops(sch, changed)
    tile, *inner_row = sch.split(rows, [None, sizes.rows])
    across, *inner_column = sch.split(columns, [None, sizes.score_vectors, lanes])
    sch.reorder(across, tile, *inner_row, *inner_column)
    sch.compute_at(first, tile)
    _register_tile(sch, first, lanes)
    _unroll_tile(sch, inner_row, inner_column)
    for stage in (*before, weights, *after):
        schedule_row(sch, stage, target)
    if diagonal is not None:
        stages = [key_loop(sch, stage, keys) for stage in (*before, weights, *after)]
        limited = [(across, sizes.score_vectors * lanes), *(s for s in stages if s is not None), (depth, 1)]
        if len(limited) == len(stages) + 2:
            limit_keys(sch, block, sizes.block, limited, keys, diagonal)
    for maker in alone:
        schedule_elementwise(sch, maker, target)

    panels = (
        (k_pack, scores, sizes.score_vectors, lanes),
        (v_pack, output, sizes.output_vectors, sizes.output_lanes),
    )
    for pack, match, vectors, across in panels:
        if pack is None:
            continue
        if many:
            sch.compute_at(pack, outer[-1])
        _pack(sch, pack, match, vectors * across, across)
        if not many:
            parallelize(sch, sch.get_loops(pack)[: max(len(scores.batch), 1)], work, target)


def _is_read_in_place(match: Product, width: int, tiles: int) -> bool:
    """Returns whether the right side is read in place, by so many tiles of rows.

    So it is where its rows are one panel each, as a copy would be, or have whole adjacent panels that too few tiles read for copies to pay.
    """
    columns = match.size(match.column)
    place = match.right.indices.index(Analyzer().expr(match.column))
    if _makers(match, match.right) or place != len(match.right.indices) - 1:
        return False
    return columns == width or (columns % width == 0 and tiles <= IN_PLACE)


def _makers(match: Product, load: Load) -> list[tir.BlockOp]:
    """Returns the block that makes what a contraction loads; none for a parameter."""
    return [p for p in producers(match.block) if buffers_written(p)[0] is load.buffer]


def _inline_form(sch: Schedule, block: tir.BlockOp) -> bool:
    """Computes what only brings a tensor into form where it is read."""
    return _is_form(block) and attempt(sch, block)


def _bring(sch: Schedule, block: BlockRV, match: Product, columns: int) -> BlockRV:
    """Pads a contraction to whole tiles of columns; returns the block that copies its right side."""
    op = block_of(sch, block)
    makers = _makers(match, match.right)
    if match.size(match.column) % columns == 0:
        if makers:
            return sch.handle(makers[0])
        return cached(sch, block, buffers_read(op).index(match.right.buffer))
    before = set(producers(op))
    sch.pad_einsum(block, [columns if axis is match.column else 1 for axis in match.shape.axes])
    packed = next(p for p in producers(op) if p not in before)
    for maker in makers:
        attempt(sch, maker)
    return sch.handle(packed)


def _is_form(block: tir.BlockOp) -> bool:
    """Returns whether a block only copies."""
    shape = shape_of(block)
    return shape is not None and not shape.reduction and isinstance(shape.stores[0].value.owner, tir.LoadOp)


def _output_loops(sch: Schedule, last: BlockRV, match: Product) -> tuple[list[LoopRV], LoopRV, LoopRV]:
    """Returns the loops over heads, rows and columns of the block that stores the output.

    It is its one reader, which may bring it into another form, otherwise a copy.
    """
    op = block_of(sch, last)
    readers = consumers(op)
    # What crops the padded output is computed where it is read.
    if len(readers) == 1 and _is_form(readers[0]) and consumers(readers[0]) and attempt(sch, readers[0]):
        readers = consumers(op)
    found = _framed(readers[0], buffers_written(op)[0], match) if len(readers) == 1 else None
    if found is None:
        stored: BlockRV = sch.cache_write(last, 0, "local")
        *heads, row, column = sch.get_loops(stored)
        return heads, row, column
    sch.set_scope(last, 0, "local")
    stored = sch.handle(readers[0])
    loops = sch.get_loops(stored)
    outer: list[LoopRV] = []
    ends: dict[int, LoopRV] = {}
    for k, loop in enumerate(loops):
        size = found.get(k)
        if size is None:
            outer.append(loop)
        elif size == 0:
            ends[k] = loop
        else:
            head, ends[k] = sch.split(loop, [None, size])
            outer.append(head)
    row, column = (ends[k] for k in found)
    return outer, row, column


def _framed(reader: tir.BlockOp, buffer: SSAValue, match: Product) -> dict[int, int] | None:
    """Returns which axes of a reader of the output are its rows and its columns.

    Their places, and the size of the inner part that is split off (0: all of it). None where the reader does more than to store each element once.
    """
    shape = shape_of(reader)
    if shape is None or shape.reduction or len(shape.stores) != 1:
        return None
    loads = [load for load in shape.loads if load.buffer is buffer]
    if len(loads) != 1 or any(e is None for e in shape.extents):
        return None
    analyzer = Analyzer()
    found: dict[int, int] = {}
    for index, axis in zip(loads[0].indices[-2:], (match.row, match.column), strict=True):
        size = match.size(axis)
        for k, (own, extent) in enumerate(zip(shape.axes, shape.extents, strict=True)):
            whole = analyzer.expr(own)
            if k in found or extent is None:
                continue
            # The last rows may be those that only fill the last tile up.
            if index == whole and (extent == size or (axis is match.row and extent < size)):
                found[k] = 0
                break
            if extent > size and extent % size == 0 and index == analyzer.simplify(whole % size):
                found[k] = size
                break
        else:
            return None
    return found


def _register_tile(sch: Schedule, block: BlockRV, lanes: int) -> LoopRV:
    """Schedules a tile of a contraction in registers during the reduction; returns its loop."""
    *rows, columns, depth = own_loops(sch, block)
    across, tail = sch.split(columns, [None, lanes])
    sch.reorder(depth, *rows, across, tail)
    sch.vectorize(tail)
    for loop in (*rows, across):
        sch.unroll(loop)
    *head, tail = own_loops(sch, sch.decompose_reduction(block, depth))
    sch.vectorize(tail)
    for loop in head:
        sch.unroll(loop)
    return depth


def _unroll_tile(sch: Schedule, rows: list[LoopRV], columns: list[LoopRV]) -> None:
    """Unrolls the loops that store a tile out of registers."""
    *heads, tail = (*rows, *columns)
    sch.vectorize(tail)
    for loop in heads:
        sch.unroll(loop)


def _pack(sch: Schedule, packing: BlockRV, match: Product, width: int, lanes: int) -> None:
    """Packs the right side in panels of `width` columns: [batch…, panel, depth, column in the panel]."""
    place = match.right.indices.index(Analyzer().expr(match.column))
    batch = len(match.batch)

    def layout(*indices: Expr) -> list[Expr]:
        others = [i for k, i in enumerate(indices) if k != place]
        return [*others[:batch], indices[place] // width, *others[batch:], indices[place] % width]

    loops, columns = own_loops(sch, packing), loop_of_axis(sch, packing, place)
    sch.transform_layout(packing, ("write", 0), layout)
    if columns is None:  # There is one.
        return
    depth = loops[-1]
    if sch.resolve(columns) is sch.resolve(depth):
        vectorize_loop(sch, columns, lanes)
        return
    rest = [loop for loop in loops if sch.resolve(loop) is not sch.resolve(columns)]
    if transpose_tiles(sch, columns, rest, match.element, lanes):
        return
    # The right side is transposed: a few elements of each row at a time, so that the rows of the panel stay in cache.
    extent = extent_of(sch, depth) or RUN
    if extent > 2 * RUN:
        outer, depth = sch.split(depth, [None, RUN])
        sch.reorder(outer, columns, depth)
    sch.unroll(depth)
