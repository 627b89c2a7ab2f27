"""`Player`: primitives drawn at random, applied to a schedule one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ...passes.schedule import LoopRV, Schedule
from . import block_moves, other_moves, window_moves
from .programs import CHAIN, MATMUL, ROWS, STENCIL, TRANSPOSED

Move = Callable[[block_moves.Playing], None]

PROGRAMS = {
    "chain": CHAIN,
    "matmul": MATMUL,
    "stencil": STENCIL,
    "rows": ROWS,
    "transposed": TRANSPOSED,
    **block_moves.PROGRAMS,
    **window_moves.PROGRAMS,
}


ALL_MOVES = (block_moves.MOVES, window_moves.MOVES, other_moves.MOVES)
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
