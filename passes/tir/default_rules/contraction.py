"""Contractions: dense, matmul, batch_matmul, convolution, known by what they compute and not by name.

C[m, n] += A[m, k] * B[n, k]: B is packed in panels of whole vectors along n, a tile of m x n is kept in vector registers
while k runs, and what follows (bias, activation) is applied to the tile before it is stored. The scheme is that of Goto
and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), with the panel of A left where it is: rows of
it are broadcast from memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.tir.analysis import Analyzer, Expr
from ....dialects.tir.analysis.expr import free_vars
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.structure import buffers_read, buffers_written, child_blocks, consumers, function_of, producers
from ..constant_params import constant_params
from .elementwise import extent_of, parallelize, schedule_elementwise, vectorize_loop
from .shape import Load, Shape, element_bytes, shape_of


@dataclass(frozen=True)
class Contraction:
    """A block that sums products of two loads."""

    shape: Shape
    broadcast: Load
    """The input whose elements are repeated in all lanes (A)."""
    panel: Load
    """The input that is loaded in vectors (B)."""
    rows: SSAValue | None
    """The axis of A that a tile runs over; None when A has none of its own."""
    columns: SSAValue
    """The axis of B that vectors run over."""


def match_contraction(shape: Shape) -> Contraction | None:
    """The block as a contraction; None when it is none, or one that vectors do not help."""
    if not shape.reduction or len(shape.stores) != 1 or any(shape.extent(v) is None for v in shape.reduction):
        return None
    store = shape.stores[0]
    factors = _factors(store)
    if factors is None:
        return None
    loads = [next((x for x in shape.loads if x.op is op), None) for op in factors]
    if None in loads:
        return None
    found: list[tuple[bool, Contraction]] = []
    for a, b in ((loads[0], loads[1]), (loads[1], loads[0])):
        assert a is not None and b is not None
        match = _oriented(shape, store, a, b)
        if match is not None:
            found.append(match)
    # Vectors along the output's last dimension are stored whole.
    return max(found, key=lambda each: each[0], default=(False, None))[1]


def _factors(store: tir.StoreOp) -> tuple[tir.LoadOp, tir.LoadOp] | None:
    """The loads of `C = C + A * B`, casts apart."""
    total = store.value.owner
    if not isinstance(total, tir.AddOp):
        return None
    sides = [total.lhs.owner, total.rhs.owner]
    old = [s for s in sides if isinstance(s, tir.LoadOp) and s.buffer is store.buffer]
    terms = [s for s in sides if isinstance(s, tir.MulOp)]
    if len(old) != 1 or len(terms) != 1 or list(old[0].indices) != list(store.indices):
        return None
    factors = [_behind_casts(terms[0].lhs), _behind_casts(terms[0].rhs)]
    if not all(isinstance(f, tir.LoadOp) and f.buffer is not store.buffer for f in factors):
        return None
    a, b = factors
    assert isinstance(a, tir.LoadOp) and isinstance(b, tir.LoadOp)
    return a, b


def _behind_casts(value: SSAValue) -> object:
    owner = value.owner
    while isinstance(owner, tir.CastOp):
        owner = owner.value.owner
    return owner


def _oriented(shape: Shape, store: tir.StoreOp, a: Load, b: Load) -> tuple[bool, Contraction] | None:
    """The contraction with B in vectors, and whether these are stored whole."""
    if a.op is b.op or a.buffer is b.buffer:
        return None
    analyzer = Analyzer()
    own = [v for v in shape.spatial if v in b.axes and v not in a.axes]
    plain = {index.atom for index in b.indices}
    columns = [v for v in own if analyzer.expr(v).atom in plain and shape.extent(v) is not None]
    if not columns or not any(v in a.axes and v in b.axes for v in shape.reduction):
        return None
    order = {v: k for k, v in enumerate(store.indices)}
    if any(v not in order for v in shape.spatial):
        return None
    last = max(columns, key=lambda v: order[v])
    rows = [v for v in shape.spatial if v in a.axes and v not in b.axes and (shape.extent(v) or 0) > 1]
    row = max(rows, key=lambda v: order[v], default=None)
    return order[last] == len(store.indices) - 1, Contraction(shape, a, b, row, last)


# Sizes


@dataclass(frozen=True)
class Tile:
    """A register tile: rows, vectors across, lanes of a vector."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def choose_tile(m: int, n: int, lanes: int, registers: int) -> Tile:
    """The tile that wastes least: few turns past the edges, few loads per multiplication, all accumulators in registers."""
    best: tuple[float, Tile] | None = None
    for vectors, rows in product(range(1, 7), range(1, 17)):
        # Accumulators, the vectors of B, and one for A (which x86 broadcasts as an operand).
        if rows * vectors + vectors + 1 > registers or rows > m:
            continue
        tile = Tile(rows, vectors, lanes)
        padded = -(-m // rows) * rows / m * (-(-n // tile.columns) * tile.columns / n)
        loads = (rows + vectors) / (rows * vectors)
        copy = 0.04 if m % rows else 0.0
        score = padded * (1 + 0.35 * loads + copy)
        if best is None or score < best[0]:
            best = (score, tile)
    return best[1] if best is not None else Tile(1, 1, lanes)


VECTOR_TYPES = (tir.types.F32, Float64Type(), tir.types.I32)
"""What sums may be kept in: others have no vector multiply-add, or round after each."""
RUN = 16
"""Elements of a row that are copied together into a panel: a cache line of float32."""
MIN_WORK = 1 << 13
"""Multiplications below which packing is not worth its code."""
MIN_ROWS = 4
"""Rows below which a panel is used so seldom that packing it costs more than it saves."""


def pays(match: Contraction) -> bool:
    """Whether the tiled scheme is worth it; else the block is scheduled as any reduction."""
    rows = 1
    for axis in match.shape.spatial:
        if axis in match.broadcast.axes and axis not in match.panel.axes:
            rows *= match.shape.extent(axis) or 1
    return match.shape.points >= MIN_WORK and rows >= MIN_ROWS and match.shape.stores[0].value.type in VECTOR_TYPES


def schedule_contraction(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> None:
    """Packs, tiles, vectorizes and fuses what follows."""
    shape = match.shape
    work = shape.points * 2
    element = element_bytes(shape.stores[0].buffer)
    m = 1 if match.rows is None else shape.extent(match.rows) or 1
    n = shape.extent(match.columns) or 1
    tile = choose_tile(m, n, target.lanes(element), target.vector_registers)
    names = list(shape.axes)
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)

    padding = [1] * len(names)
    if match.rows is not None:
        padding[names.index(match.rows)] = tile.rows if m % tile.rows else 1
    padding[names.index(match.columns)] = tile.columns if n % tile.columns else 1
    constants = constant_params(function_of(op))
    constant = match.panel.buffer in constants
    before = set(producers(op))
    number = _read_number(op, match.panel.buffer)
    if any(p > 1 for p in padding):
        sch.pad_einsum(block, padding)
    made = [p for p in producers(op) if p not in before]
    packed = next((p for p in made if buffers_written(p)[0] is _read_buffer(op, number)), None)
    for each in made:
        if each is not packed:
            schedule_elementwise(sch, handle_of(sch, each), target)
    if match.broadcast.buffer in constants:
        _pack_rows(sch, block, match, tile)
    packing: BlockRV = handle_of(sch, packed) if packed is not None else sch.cache_read(block, number, "global")
    epilogue = take_out(sch, block)

    lanes_innermost(sch, block, match)

    loops: list[LoopRV] = sch.get_loops(block)
    by_axis = dict(zip(names, loops, strict=True))
    column = by_axis[match.columns]
    column_outer, column_vectors, column_lanes = sch.split(column, [None, tile.vectors, tile.lanes])
    row_outer: list[LoopRV] = []
    row_inner: list[LoopRV] = []
    if match.rows is not None:
        outer, inner = sch.split(by_axis[match.rows], [None, tile.rows])
        row_outer, row_inner = [outer], [inner]
    shared = [by_axis[v] for v in shape.spatial if v in match.panel.axes and v is not match.columns]
    alone = [by_axis[v] for v in shape.spatial if v not in match.panel.axes and v is not match.rows]
    reducing = [by_axis[v] for v in shape.reduction]
    sch.reorder(*shared, column_outer, *alone, *row_outer, *reducing, *row_inner, column_vectors, column_lanes)
    if not constant:
        # What is packed once lies at the root, where `lift-transform-params` takes it from.
        sch.compute_at(packing, column_outer)
    _pack(sch, packing, match, tile, target)
    innermost_row = [*shared, column_outer, *alone, *row_outer][-1]
    sch.reverse_compute_at(epilogue, innermost_row)
    store_tile(sch, epilogue, target)
    sch.vectorize(column_lanes)
    for loop in (*row_inner, column_vectors):
        sch.unroll(loop)
    share_out(sch, [*shared, column_outer], [*alone, *row_outer], work, target)
    init = sch.decompose_reduction(block, reducing[0])
    head = own_loops(sch, init)
    sch.vectorize(head[-1])
    for loop in head[:-1]:
        sch.unroll(loop)


def share_out(sch: Schedule, panels: list[LoopRV], tiles: list[LoopRV], work: int, target: Target) -> None:
    """Threads share out column panels, or rows where there are too few of them."""
    few = _turns(sch, panels) < min(2 * target.cores, _turns(sch, tiles))
    parallelize(sch, tiles if few else panels, work, target)


def _turns(sch: Schedule, loops: list[LoopRV]) -> int:
    """How many turns loops have together."""
    return prod(extent_of(sch, loop) or 1 for loop in loops)


def _read_number(block: tir.BlockOp, buffer: SSAValue) -> int:
    return buffers_read(block).index(buffer)


def _read_buffer(block: tir.BlockOp, number: int) -> SSAValue:
    return buffers_read(block)[number]


def handle_of(sch: Schedule, block: tir.BlockOp) -> BlockRV:
    """The handle of a block."""
    handle = sch.state.handle(block)
    assert isinstance(handle, BlockRV)
    return handle


def take_out(sch: Schedule, block: BlockRV) -> BlockRV:
    """The block that takes the tile out of the registers: the one elementwise reader, else a copy."""
    from .inline import attempt

    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    while True:
        output = buffers_written(op)[0]
        readers = consumers(op)
        if not isinstance(output.owner, tir.AllocBufferOp) or len(readers) != 1 or not _is_epilogue(readers[0], output):
            copy: BlockRV = sch.cache_write(block, 0, "local")
            return copy
        reader = readers[0]
        # A crop of the padded output is computed where it is read, when something reads it.
        if _is_copy(reader) and isinstance(buffers_written(reader)[0].owner, tir.AllocBufferOp):
            after = consumers(reader)
            if len(after) == 1 and _is_epilogue(after[0], buffers_written(reader)[0]) and attempt(sch, reader):
                continue
        sch.set_scope(block, 0, "local")
        return handle_of(sch, reader)


def lanes_innermost(sch: Schedule, block: BlockRV, match: Contraction) -> None:
    """Lays the accumulators out so that those of a vector lie side by side."""
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    store = next(s for s in op.body.block.ops if isinstance(s, tir.StoreOp))
    place = list(store.indices).index(match.columns)
    if place == len(store.indices) - 1:
        return

    def layout(*indices: Expr) -> list[Expr]:
        return [*indices[:place], *indices[place + 1 :], indices[place]]

    sch.transform_layout(block, ("write", 0), layout)


def _is_copy(block: tir.BlockOp) -> bool:
    shape = shape_of(block)
    return shape is not None and len(shape.stores) == 1 and isinstance(shape.stores[0].value.owner, tir.LoadOp)


def _is_epilogue(block: tir.BlockOp, buffer: SSAValue) -> bool:
    """Whether a block reads each element of the buffer once, at its own axes, and computes without reduction."""
    shape = shape_of(block)
    if shape is None or shape.reduction or len(shape.stores) != 1:
        return False
    analyzer = Analyzer()
    axes = [analyzer.expr(a) for a in shape.axes]
    for load in shape.loads:
        if load.buffer is buffer and (
            len(load.indices) != len(axes)
            or sorted(map(repr, load.indices)) != sorted(map(repr, axes))
            or not all(i in axes for i in load.indices)
        ):
            return False
    return True


def _pack(sch: Schedule, packing: BlockRV, match: Contraction, tile: Tile, target: Target) -> None:
    """Lays the panel out as [column panel, other dimensions, column in the panel] and orders its copying loops."""
    place = next(k for k, index in enumerate(match.panel.indices) if index == Analyzer().expr(match.columns))
    rank, width = len(match.panel.indices), tile.columns
    loops: list[LoopRV] = own_loops(sch, packing)

    def layout(*indices: Expr) -> list[Expr]:
        others = [i for k, i in enumerate(indices) if k != place]
        return [indices[place] // width, *others, indices[place] % width]

    # The loop of dimension k drives axis k of the copy; dimensions of one turn have none.
    driving = _loop_of_axis(sch, packing, place)
    sch.transform_layout(packing, ("write", 0), layout)
    if driving is None:
        return
    rest = [loop for loop in loops if loop is not driving]
    if place == rank - 1:
        # Rows of B are copied as they lie.
        sch.reorder(*rest, driving)
        vectorize_loop(sch, driving, tile.lanes)
    elif rest:
        # B is transposed: a few elements of each row at a time, so that the rows of the panel stay in cache.
        run: list[LoopRV] = []
        length = 1
        while rest and length < RUN:
            loop = rest.pop()
            extent = extent_of(sch, loop) or RUN
            if extent * length > 2 * RUN:
                head, loop = sch.split(loop, [None, max(RUN // length, 1)])
                rest.append(head)
                extent = RUN
            run.insert(0, loop)
            length *= extent
        sch.reorder(*rest, driving, *run)
        sch.unroll(run[-1])


def _pack_rows(sch: Schedule, block: BlockRV, match: Contraction, tile: Tile) -> None:
    """Lays the constant A out as [row tile, other dimensions, row in the tile], so that a tile reads it from front to end."""
    if match.rows is None or tile.rows < 2:
        return
    row = Analyzer().expr(match.rows)
    places = [k for k, index in enumerate(match.broadcast.indices) if index == row]
    if len(places) != 1:
        return
    place = places[0]
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    load = next(x for x in match.shape.loads if x is match.broadcast)
    number = _read_number(op, load.op.buffer)

    def layout(*indices: Expr) -> list[Expr]:
        others = [i for k, i in enumerate(indices) if k != place]
        return [indices[place] // tile.rows, *others, indices[place] % tile.rows]

    packing = sch.cache_read(block, number, "global")
    sch.transform_layout(packing, ("write", 0), layout)


def own_loops(sch: Schedule, block: BlockRV) -> list[LoopRV]:
    """The loops that hold nothing but this block."""
    return [loop for loop in sch.get_loops(block) if len(child_blocks(sch.get(loop))) == 1]


def _loop_of_axis(sch: Schedule, block: BlockRV, axis: int) -> LoopRV | None:
    """The one of its own loops that an axis of the block is bound to (plus what is fixed)."""
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    used = {a.payload for a in free_vars(Analyzer().expr(op.bindings[axis]))}
    for loop in own_loops(sch, block):
        inner = sch.get(loop)
        if isinstance(inner, tir.ForOp) and inner.loop_var in used:
            return loop
    return None


def store_tile(sch: Schedule, epilogue: BlockRV, target: Target) -> None:
    """The tile is stored along the output's last dimension."""
    op = sch.get(epilogue)
    assert isinstance(op, tir.BlockOp)
    loops = own_loops(sch, epilogue)
    if not loops:
        return
    store = next(s for s in op.body.block.ops if isinstance(s, tir.StoreOp))
    last = store.indices[-1] if store.indices else None
    axis = next((k for k, v in enumerate(op.iter_vars) if v is last), None)
    inner = None if axis is None else _loop_of_axis(sch, epilogue, axis)
    if inner is None:
        return
    rest = [loop for loop in loops if loop is not inner]
    if rest:
        sch.reorder(*rest, inner)
    heads = vectorize_loop(sch, inner, target.lanes(element_bytes(store.buffer)))
    for loop in (*rest, *heads):
        sch.unroll(loop)
