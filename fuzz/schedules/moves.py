"""Draws calls of every schedule primitive: `Player` applies them to a schedule one after the other.

BLOCK_MOVES     rfactor, blockize, tensorize, reindex, cache_index, cache_inplace
WINDOW_MOVES    rolling_buffer, decompose_padding, read_at, write_at, transform_layout, sampling
OTHER_MOVES     queries, annotations, partitions, layouts of blocks
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ...dialects.tir import AllocBufferOp, ForOp
from ...parser import parse_mir
from ...passes.schedule import LoopRV, Schedule
from ...passes.schedule.analysis.structure import buffers_written, const_int
from ...passes.schedule.engine.tensor_intrinsics import TensorIntrin

Move = Callable[["Player"], None]


TWICE = """
@T.prim_func
def twice(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            B[vi] = A[vi] * T.float32(2)
"""

TWICE_BACKWARD = """
@T.prim_func
def twice(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    for i in range(5):
        B[4 - i] = A[4 - i] + A[4 - i]
"""

DOT = """
@T.prim_func
def dot(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
    for k in range(4):
        with T.block("C"):
            vk = T.axis.reduce(4, k)
            C[0] = C[0] + A[vk] * B[vk]
"""

DOT_AT_ONCE = """
@T.prim_func
def dot(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
    C[0] = C[0] + (A[0] * B[0] + A[1] * B[1] + A[2] * B[2] + A[3] * B[3])
"""

for _name, _desc, _impl in (("random twice", TWICE, TWICE_BACKWARD), ("random dot", DOT, DOT_AT_ONCE)):
    TensorIntrin.register(
        _name, parse_mir(_desc).body.block.first_op, parse_mir(_impl).body.block.first_op, override=True
    )


def any_block(game: Player) -> Any:
    """Returns a block of the function, or sometimes one in another block."""
    block = game.block()
    while game.draw.random() < 0.5:
        inner = game.schedule.get_child_blocks(block)
        if not inner:
            break
        block = game.draw.choice(inner)
    return block


def any_loop(game: Player) -> LoopRV:
    """Returns a loop around such a block; the innermost as often as any other."""
    loops = game.schedule.get_loops(any_block(game))
    return loops[-1] if game.draw.random() < 0.5 else game.draw.choice(loops)


def split_last(game: Player) -> None:
    loops = game.schedule.get_loops(any_block(game))
    game.schedule.split(loops[-1], [None, game.draw.choice([2, 4, 5])])


def rfactor(game: Player) -> None:
    game.schedule.rfactor(any_loop(game), game.draw.choice([0, 0, 1, -1, 2]))


def blockize(game: Player) -> None:
    if game.draw.random() < 0.2:
        count = game.draw.choice([1, 2, 2])
        game.schedule.blockize([any_block(game) for _ in range(count)], game.draw.random() < 0.5)
    else:
        game.schedule.blockize(any_loop(game), game.draw.random() < 0.5)


def tensorize(game: Player) -> None:
    """Tensorizes a loop nest that may match the intrinsic, often enough."""
    if game.draw.random() < 0.3:
        target = any_block(game) if game.draw.random() < 0.5 else any_loop(game)
        game.schedule.tensorize(target, game.draw.choice(["random twice", "random dot"]))
        return
    loop = game.schedule.get_loops(any_block(game))[-1]
    op = game.schedule.resolve(loop)
    assert isinstance(op, ForOp)
    game.schedule.tensorize(loop, "random twice" if const_int(op.extent) == 5 else "random dot")


def reindex(game: Player) -> None:
    game.schedule.reindex(any_block(game), (game.draw.choice(["read", "write"]), game.draw.choice([0, 0, 1])))


MAPS: list[Callable[..., list[Any]]] = [
    lambda *v: list(v),
    lambda *v: list(v[::-1]),
    lambda *v: [*v[:-1], v[-1] // 2, v[-1] % 2],
    lambda *v: [v[0] // 2],
    lambda *v: [*v[1:], v[0] * 2],
]


def reindex_cache(game: Player) -> None:
    call = game.draw.choice([game.schedule.reindex_cache_read, game.schedule.reindex_cache_write])
    call(any_block(game), game.draw.choice([0, 0, 1]), "local", game.draw.choice(MAPS))


def cache_index(game: Player) -> None:
    game.schedule.cache_index(any_block(game), "global", game.draw.choice([0, 0, 1, 2]))


def cache_inplace(game: Player) -> None:
    game.schedule.cache_inplace(any_block(game), game.draw.randrange(2), "local")


BLOCK_MOVES: list[Move] = [
    split_last,
    rfactor,
    rfactor,
    blockize,
    blockize,
    tensorize,
    tensorize,
    reindex,
    reindex_cache,
    cache_index,
    cache_inplace,
]


def compute_at_readers(game: Player) -> None:
    """Moves a block to a loop of its reader, which is split before."""
    s, draw = game.schedule, game.draw
    block = any_block(game)
    readers = s.get_consumers(block)
    loops = s.get_loops(draw.choice(readers))
    loop = draw.choice(loops[:2])
    outer, _ = s.split(loop, [None, draw.choice([1, 2, 3, 4])])
    s.compute_at(block, outer)


def rolling_buffer(game: Player) -> None:
    game.schedule.rolling_buffer(any_block(game), 0)


def roll_at_readers(game: Player) -> None:
    """Computes a block at a loop of its reader, split or not, and rolls its buffer there."""
    s, draw = game.schedule, game.draw
    block = any_block(game)
    loops = s.get_loops(draw.choice(s.get_consumers(block)))
    loop = draw.choice(loops[:2])
    if draw.random() < 0.6:
        loop, _ = s.split(loop, [None, draw.choice([1, 2, 3, 4])])
    s.compute_at(block, loop)
    s.rolling_buffer(block, 0)


def decompose_padding(game: Player) -> None:
    s, draw = game.schedule, game.draw
    padding = [b for b in s.get_child_blocks(s.get_block("root")) if s.resolve(b).block_name.data in ("P", "E")]
    block = draw.choice(padding) if padding and draw.random() < 0.8 else any_block(game)
    s.decompose_padding(block, draw.choice(s.get_loops(block)))


def read_at(game: Player) -> None:
    block = any_block(game)
    loop = game.draw.choice(game.schedule.get_loops(block))
    game.schedule.read_at(loop, block, game.draw.choice([0, 0, 1]), game.draw.choice(["shared", "local"]))


def write_at(game: Player) -> None:
    block = any_block(game)
    loop = game.draw.choice(game.schedule.get_loops(block))
    game.schedule.write_at(loop, block, 0, game.draw.choice(["shared", "local"]))


LAYOUTS: list[Callable[..., list[Any]]] = [
    lambda *v: list(v[::-1]),
    lambda *v: [*v[:-1], v[-1] // 4, v[-1] % 4],
    lambda *v: [*v[1:], v[0] // 3, v[0] % 3],
    lambda *v: [v[0] // 4, *v[1:-1], v[-1] // 4, v[0] % 4, v[-1] % 4],
    lambda *v: [*v[:-1], (v[-1] + 1) // 4, (v[-1] + 1) % 4],
    lambda *v: [0, v[0] // 2, *v],
    lambda *v: [(v[0] * 7 + v[-1]) // 4, (v[0] * 7 + v[-1]) % 4],
]


def transform_layout(game: Player) -> None:
    """Transforms an intermediate buffer: the callers of parameters would have to know."""
    s, draw = game.schedule, game.draw
    block = any_block(game)
    op = s.resolve(block)
    if all(isinstance(buffer.owner, AllocBufferOp) for buffer in buffers_written(op)):
        s.transform_layout(block, ("write", 0), draw.choice(LAYOUTS), pad_value=draw.choice([None, 0.0, 3.0, 3.0]))


def sample_tiles(game: Player) -> None:
    s, draw = game.schedule, game.draw
    loop = any_loop(game)
    if draw.random() < 0.5:
        s.split(loop, s.sample_perfect_tile(loop, draw.choice([2, 3])))
    else:
        s.split(loop, s.sample_partitioned_tile(loop, 3, draw.choice([0, 1, 2]), draw.choice([1, 2])))


def sample_location(game: Player) -> None:
    block = any_block(game)
    game.schedule.compute_at(block, game.schedule.sample_compute_location(block))


def sample_width(game: Player) -> None:
    width = game.schedule.sample_categorical([2, 3, 4], [0.5, 0.25, 0.25])
    game.schedule.split(any_loop(game), [None, width])


WINDOW_MOVES: list[Move] = [
    compute_at_readers,
    rolling_buffer,
    roll_at_readers,
    roll_at_readers,
    decompose_padding,
    decompose_padding,
    read_at,
    write_at,
    transform_layout,
    transform_layout,
    sample_tiles,
    sample_location,
    sample_width,
]


def loop_partition(game: Player) -> None:
    """Splits a loop into two or three, one after the other."""
    game.schedule.loop_partition(
        any_loop(game), game.draw.choice([[None, 2], [2, None], [3, None], [None, 1, 2], [1, 2]])
    )


def merge(game: Player) -> None:
    """Merges the first loops of two blocks, or some of one."""
    s = game.schedule
    loops = [s.get_loops(game.block())[0] for _ in range(2)]
    s.merge(*loops)


def reorder_axes(game: Player) -> None:
    """Reorders the axes of a block."""
    block = any_block(game)
    count = sum(op.name == "tir.iter_var" for op in game.schedule.resolve(block).body.block.ops)
    order = list(range(count))
    game.draw.shuffle(order)
    game.schedule.reorder_block_iter_var(block, order)


def add_unit_loop(game: Player) -> None:
    """Adds a loop of one iteration."""
    game.schedule.add_unit_loop(any_block(game) if game.draw.random() < 0.5 else any_loop(game))


def bind(game: Player) -> None:
    """Binds a loop to threads."""
    game.schedule.bind(any_loop(game), game.draw.choice(["threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread.x"]))


def queries(game: Player) -> None:
    """Calls primitives that change nothing."""
    s = game.schedule
    s.get_output_blocks(s.get_block("root"))
    block = any_block(game)
    s.get_producers(block)
    s.get_consumers(block)
    s.get_loops(block)


def annotate(game: Player) -> None:
    """Adds an annotation, and mostly removes it."""
    s, draw = game.schedule, game.draw
    target = any_block(game) if draw.random() < 0.5 else any_loop(game)
    s.annotate(target, "note", draw.choice([1, "text", [1, 2]]))
    if draw.random() < 0.7:
        s.unannotate(target, "note")


def storage_align(game: Player) -> None:
    """Pads the rows of a buffer."""
    game.schedule.storage_align(
        any_block(game), 0, game.draw.choice([0, -1]), game.draw.choice([4, 8]), game.draw.choice([0, 1])
    )


def set_scope(game: Player) -> None:
    """Moves a buffer to another memory."""
    game.schedule.set_scope(any_block(game), 0, game.draw.choice(["shared", "local"]))


def unsafe_set_dtype(game: Player) -> None:
    """Widens a buffer's dtype."""
    s = game.schedule
    block = any_block(game)
    buffers = list(buffers_written(s.resolve(block)))
    if buffers and isinstance(buffers[0].owner, AllocBufferOp):
        name = str(buffers[0].type)
        s.unsafe_set_dtype(
            block, 0, "float64" if "f" in name.rpartition(",")[2] or "f32" in name or "f16" in name else "int64"
        )


def transform_block_layout(game: Player) -> None:
    """Transforms the axes of a block."""
    game.schedule.transform_block_layout(any_block(game), game.draw.choice(MAPS))


def set_axis_separator(game: Player) -> None:
    """Separates a buffer's dimensions into groups."""
    game.schedule.set_axis_separator(any_block(game), ("write", 0), game.draw.choice([[1], [], None]))


def pad_einsum(game: Player) -> None:
    """Pads loops to multiples."""
    block = any_block(game)
    count = sum(op.name == "tir.iter_var" for op in game.schedule.resolve(block).body.block.ops)
    game.schedule.pad_einsum(block, [game.draw.choice([1, 2, 4, 8]) for _ in range(count)])


def omit_padding(game: Player) -> None:
    """Omits a padding that is not stored."""
    block = any_block(game)
    game.schedule.omit_padding(block, game.draw.choice(game.schedule.get_loops(block)))


def control(game: Player) -> None:
    """Adds marks to the trace."""
    if game.draw.random() < 0.5:
        game.schedule.enter_postproc()
    else:
        game.schedule.work_on("main")


OTHER_MOVES: list[Move] = [
    loop_partition, loop_partition, merge, reorder_axes, add_unit_loop, bind, queries, annotate, storage_align, set_scope, unsafe_set_dtype,
    transform_block_layout, transform_block_layout, set_axis_separator, pad_einsum, pad_einsum, omit_padding, control,
]  # fmt: skip


ALL_MOVES = (BLOCK_MOVES, WINDOW_MOVES, OTHER_MOVES)
"""Calls of every primitive, by topic."""


class Player:
    """Applies primitives drawn at random: loops and blocks moved, and, as often, one of the `moves`."""

    def __init__(self, schedule: Schedule, generator: random.Random, moves: Sequence[Sequence[Move]] = ALL_MOVES[:2]):
        self.schedule = schedule
        self.draw = generator
        self.moves = moves

    def block(self) -> Any:
        return self.draw.choice(self.schedule.get_child_blocks(self.schedule.get_block("root")))

    def loops(self) -> list[LoopRV]:
        found = self.schedule.get_loops(self.block())
        if not found:
            raise IndexError
        return found

    def loop(self) -> LoopRV:
        loops = [loop for _ in range(4) for loop in self.loops()]
        return self.draw.choice(loops)

    def step(self) -> None:
        s, draw = self.schedule, self.draw
        if draw.random() < 0.5:
            draw.choice(draw.choice(self.moves))(self)
            return
        match draw.randrange(14):
            case 0 | 1:
                s.split(self.loop(), draw.choice([[None, 2], [None, 3], [2, None], [None, 4, 2], [3, 5], [None, 16]]))
            case 2:
                loops = self.loops()
                start = draw.randrange(len(loops))
                s.fuse(*loops[start : start + draw.randint(1, 3)])
            case 3 | 4:
                loops = self.loops()
                s.reorder(*draw.sample(loops, draw.randint(1, len(loops))))
            case 5:
                draw.choice([s.parallel, s.vectorize, s.unroll])(self.loop())
            case 6:
                s.cache_read(self.block(), draw.randrange(2), "local")
            case 7:
                s.cache_write(self.block(), 0, "local")
            case 8 | 9:
                s.compute_at(self.block(), self.loop(), draw.random() < 0.3)
            case 10 | 11:
                s.reverse_compute_at(self.block(), self.loop(), draw.random() < 0.3)
            case 12:
                draw.choice([s.compute_inline, s.reverse_compute_inline])(self.block())
            case _:
                block = self.block()
                s.decompose_reduction(block, draw.choice(s.get_loops(block)))
