"""Draws calls of rolling_buffer, decompose_padding, read_at, transform_layout, …; programs for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects.tir import AllocBufferOp
from ...passes.schedule.analysis.structure import buffers_written
from .block_moves import Playing, any_block, any_loop

WINDOWS = """
@T.prim_func
def main(A: T.Buffer((12, 14), "float32"), D: T.Buffer((8, 9), "float32")):
    B = T.alloc_buffer((12, 12))
    C = T.alloc_buffer((10, 10))
    for i, j, q in T.grid(12, 12, 3):
        with T.block("B"):
            vi, vj, vq = T.axis.remap("SSR", [i, j, q])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + A[vi, vj + vq]
    for i, j in T.grid(10, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 2, vj + 1] * T.float32(2)
    for i, j in T.grid(8, 9):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj + 1] - C[vi + 1, vj] + C[vi + 2, vj]
"""

PADDED = """
@T.prim_func
def main(A: T.Buffer((10, 6), "float32"), C: T.Buffer((10, 6), "float32"), E: T.Buffer((14, 8), "float32")):
    P = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.if_then_else(1 <= vi and vi < 11 and 1 <= vj and vj < 7, A[vi - 1, vj - 1], T.float32(5))
    for i, j, p, q in T.grid(10, 6, 3, 3):
        with T.block("C"):
            vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + P[vi + vp, vj + vq]
    for i, j in T.grid(14, 8):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.if_then_else(2 <= vi and vi < 12, C[vi - 2, vj // 2] + P[vi - 2, vj], T.float32(0))
"""

PROGRAMS = {"windows": WINDOWS, "padded": PADDED}


def compute_at_readers(game: Playing) -> None:
    """Moves a block to a loop of its reader, which is split before."""
    s, draw = game.schedule, game.draw
    block = any_block(game)
    readers = s.get_consumers(block)
    loops = s.get_loops(draw.choice(readers))
    loop = draw.choice(loops[:2])
    outer, _ = s.split(loop, [None, draw.choice([1, 2, 3, 4])])
    s.compute_at(block, outer)


def rolling_buffer(game: Playing) -> None:
    game.schedule.rolling_buffer(any_block(game), 0)


def roll_at_readers(game: Playing) -> None:
    """Computes a block at a loop of its reader, split or not, and rolls its buffer there."""
    s, draw = game.schedule, game.draw
    block = any_block(game)
    loops = s.get_loops(draw.choice(s.get_consumers(block)))
    loop = draw.choice(loops[:2])
    if draw.random() < 0.6:
        loop, _ = s.split(loop, [None, draw.choice([1, 2, 3, 4])])
    s.compute_at(block, loop)
    s.rolling_buffer(block, 0)


def decompose_padding(game: Playing) -> None:
    s, draw = game.schedule, game.draw
    padding = [b for b in s.get_child_blocks(s.get_block("root")) if s.get(b).block_name.data in ("P", "E")]
    block = draw.choice(padding) if padding and draw.random() < 0.8 else any_block(game)
    s.decompose_padding(block, draw.choice(s.get_loops(block)))


def read_at(game: Playing) -> None:
    block = any_block(game)
    loop = game.draw.choice(game.schedule.get_loops(block))
    game.schedule.read_at(loop, block, game.draw.choice([0, 0, 1]), game.draw.choice(["shared", "local"]))


def write_at(game: Playing) -> None:
    block = any_block(game)
    loop = game.draw.choice(game.schedule.get_loops(block))
    game.schedule.write_at(loop, block, 0, game.draw.choice(["shared", "local"]))


MAPS: list[Callable[..., list[Any]]] = [
    lambda *v: list(v[::-1]),
    lambda *v: [*v[:-1], v[-1] // 4, v[-1] % 4],
    lambda *v: [*v[1:], v[0] // 3, v[0] % 3],
    lambda *v: [v[0] // 4, *v[1:-1], v[-1] // 4, v[0] % 4, v[-1] % 4],
    lambda *v: [*v[:-1], (v[-1] + 1) // 4, (v[-1] + 1) % 4],
    lambda *v: [0, v[0] // 2, *v],
    lambda *v: [(v[0] * 7 + v[-1]) // 4, (v[0] * 7 + v[-1]) % 4],
]


def transform_layout(game: Playing) -> None:
    """Of an intermediate buffer: the callers of parameters would have to know."""
    s, draw = game.schedule, game.draw
    block = any_block(game)
    op = s.get(block)
    if all(isinstance(buffer.owner, AllocBufferOp) for buffer in buffers_written(op)):
        s.transform_layout(block, ("write", 0), draw.choice(MAPS), pad_value=draw.choice([None, 0.0, 3.0, 3.0]))


def sample_tiles(game: Playing) -> None:
    s, draw = game.schedule, game.draw
    loop = any_loop(game)
    if draw.random() < 0.5:
        s.split(loop, s.sample_perfect_tile(loop, draw.choice([2, 3])))
    else:
        s.split(loop, s.sample_partitioned_tile(loop, 3, draw.choice([0, 1, 2]), draw.choice([1, 2])))


def sample_location(game: Playing) -> None:
    block = any_block(game)
    game.schedule.compute_at(block, game.schedule.sample_compute_location(block))


def sample_width(game: Playing) -> None:
    width = game.schedule.sample_categorical([2, 3, 4], [0.5, 0.25, 0.25])
    game.schedule.split(any_loop(game), [None, width])


MOVES: list[Callable[[Playing], None]] = [
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
