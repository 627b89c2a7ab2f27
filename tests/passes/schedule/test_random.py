"""Random primitives on random loops and blocks: whatever is accepted computes the same, whatever is refused changes nothing."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import LoopRV, Schedule, ScheduleError
from mirstack.support.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
import random_block_moves
import random_window_moves
from test_primitives import CHAIN, MATMUL, STENCIL, run

ROWS = """
@T.prim_func
def main(A: T.Buffer((6, 14), "float32"), D: T.Buffer((6, 14), "float32")):
    S = T.alloc_buffer((6,))
    E = T.alloc_buffer((6, 14))
    for i, j in T.grid(6, 14):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = A[vi, vj] + T.float32(3)
    for i, k in T.grid(6, 14):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid(6, 14):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = E[vi, vj] * S[vi]
"""

TRANSPOSED = """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((5, 24), "float32")):
    B = T.alloc_buffer((10, 12))
    for i, j in T.grid(10, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * T.float32(2)
    for i, j in T.grid(5, 24):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi * 2 + vj // 12, vj % 12]
"""

PROGRAMS = {
    "chain": CHAIN,
    "matmul": MATMUL,
    "stencil": STENCIL,
    "rows": ROWS,
    "transposed": TRANSPOSED,
    **random_block_moves.PROGRAMS,
    **random_window_moves.PROGRAMS,
}


class Watched(Schedule):
    """Keeps the program as it was before the last primitive."""

    before = ""

    def apply(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self.before = print_mir(self.module)
        return super().apply(name, args, kwargs)


class Player:
    """Applies primitives drawn at random."""

    def __init__(self, schedule: Schedule, generator: random.Random):
        self.schedule = schedule
        self.draw = generator

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
            draw.choice(draw.choice([random_block_moves.MOVES, random_window_moves.MOVES]))(self)
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


def play(program: str, seed: int, steps: int = 7) -> None:
    """One game; raises AssertionError with the program at fault."""
    module = parse_mir(PROGRAMS[program])
    expected = run(module)
    schedule = Watched(module)
    player = Player(schedule, random.Random(seed))
    for _ in range(steps):
        try:
            player.step()
        except ScheduleError:
            assert print_mir(module) == schedule.before
        except IndexError:
            continue  # a block without loops was drawn
        verify(module)
        before, after = schedule.before, print_mir(module)
        assert print_mir(parse_mir(after)) == after
        for ours, theirs in zip(run(module), expected, strict=True):
            assert np.allclose(ours, theirs), f"{player.schedule.trace[-1]}\nbefore:\n{before}\nafter:\n{after}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_accepted_means_equal(program: str) -> None:
    for seed in range(8):
        play(program, seed)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_accepted_means_equal_long(program: str) -> None:
    for seed in range(100, 700):
        play(program, seed, 10)
