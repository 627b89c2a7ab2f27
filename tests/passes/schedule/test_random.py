"""Random primitives on random loops and blocks: whatever is accepted computes the same, whatever is refused changes nothing."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.fuzz.schedules.calls import Caller
from mirstack.fuzz.schedules.moves import Player
from mirstack.fuzz.schedules.programs import PROGRAMS, odd_blocks
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.support.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from test_primitives import arguments


class Watched(Schedule):
    """Keeps the program as it was before the last primitive."""

    before = ""

    def apply(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self.before = print_mir(self.module)
        return super().apply(name, args, kwargs)


def outputs(module: Any, inputs: list[Any]) -> list[Any]:
    """The parameters after the function ran; a parameter may have become a handle."""
    (function,) = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    names = [name.data for name in function.param_names.data]
    values = {name: array.copy() for name, array in zip(names, inputs, strict=True)}
    interpret_prim_func(function, values, module)
    return list(values.values())


def play(
    text: str, make: Callable[[Schedule, random.Random], Player | Caller], draw: random.Random, steps: int
) -> None:
    """One game; raises AssertionError with the program at fault."""
    module = parse_mir(text)
    inputs = arguments(module)
    expected = outputs(module, inputs)
    schedule = Watched(module)
    player = make(schedule, draw)
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
        for ours, theirs in zip(outputs(module, inputs), expected, strict=True):
            assert np.allclose(ours, theirs), f"{player.schedule.trace[-1]}\nbefore:\n{before}\nafter:\n{after}"


def play_known(program: str, seed: int, steps: int = 7) -> None:
    """A game on one of the programs above."""
    play(PROGRAMS[program], Player, random.Random(seed), steps)


def play_odd(seed: int, steps: int = 8) -> None:
    """A game on a random program, with each primitive on any block."""
    draw = random.Random(seed)
    play(odd_blocks(draw), Caller, draw, steps)


@pytest.mark.parametrize("program", PROGRAMS)
def test_accepted_means_equal(program: str) -> None:
    for seed in range(8):
        play_known(program, seed)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_accepted_means_equal_long(program: str) -> None:
    for seed in range(100, 700):
        play_known(program, seed, 10)


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_odd_programs(first: int) -> None:
    for seed in range(first, first + 15):
        play_odd(seed)


@pytest.mark.slow
def test_odd_programs_long() -> None:
    for seed in range(1000, 3000):
        play_odd(seed)
