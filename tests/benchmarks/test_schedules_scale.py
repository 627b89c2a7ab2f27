"""A primitive costs the same however many blocks there are elsewhere in the function; a ResNet block is scheduled quickly."""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Any

from mirstack.benchmarks.schedules import Timed, chains, resnet_block, schedule_chain, schedule_resnet_block
from mirstack.parser import parse_mir
from mirstack.passes.schedule import Schedule
from mirstack.support.verify import verify


def calls_made(count: int) -> int:
    """How many calls of Python functions it takes to schedule one chain of `count`, in the middle of the function."""
    schedule = Schedule(parse_mir(chains(count)))
    # The first schedule of a function finds its blocks by name, once.
    schedule_chain(schedule, 0)
    total = 0

    def counter(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal total
        total += event == "call"

    sys.setprofile(counter)
    try:
        schedule_chain(schedule, count // 2)
    finally:
        sys.setprofile(None)
    return total


def test_cost_does_not_grow_with_the_function() -> None:
    small, double, large = calls_made(4), calls_made(8), calls_made(32)
    assert double < small * 1.02
    assert large < small * 1.05


def test_a_hundred_primitives_on_a_resnet_block() -> None:
    schedule = Schedule(parse_mir(resnet_block()))
    timed = Timed(schedule)
    start = time.process_time()
    schedule_resnet_block(timed)
    seconds = time.process_time() - start
    assert len(timed.seconds) >= 100
    # Some 2 ms each on an idle machine: the bound is one that only a change of kind exceeds.
    assert seconds / len(timed.seconds) < 0.05
    verify(schedule.module)
