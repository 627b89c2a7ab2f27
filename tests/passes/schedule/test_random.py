"""Random primitives on random loops and blocks: whatever is accepted computes the same, whatever is refused changes nothing."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.fuzz.schedules.player import PROGRAMS, Player
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.support.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from test_primitives import run


class Watched(Schedule):
    """Keeps the program as it was before the last primitive."""

    before = ""

    def apply(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self.before = print_mir(self.module)
        return super().apply(name, args, kwargs)


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
