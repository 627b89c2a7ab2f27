"""A primitive costs the same however many blocks there are elsewhere in the function; a ResNet block is scheduled quickly."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from mirstack.benchmarks.schedules import Timed, chains, resnet_block, schedule_chain, schedule_resnet_block, transposed
from mirstack.parser import parse_mir
from mirstack.passes.schedule import LoopRV, Schedule
from mirstack.support.verify import verify


def calls_of(work: Callable[[], object]) -> int:
    """How many calls of Python functions something takes."""
    total = 0

    def counter(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal total
        total += event == "call"

    sys.setprofile(counter)
    try:
        work()
    finally:
        sys.setprofile(None)
    return total


def calls_made(count: int) -> int:
    """How many calls it takes to schedule one chain of `count`, in the middle of the function."""
    schedule = Schedule(parse_mir(chains(count)))
    # The first schedule of a function finds its blocks by name, once.
    schedule_chain(schedule, 0)
    return calls_of(lambda: schedule_chain(schedule, count // 2))


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


Action = Callable[[Schedule, int], object]


def loops(schedule: Schedule, block: str) -> list[LoopRV]:
    return schedule.get_loops(block)


ACTIONS: dict[str, Action] = {
    "add_unit_loop": lambda s, k: s.add_unit_loop(s.get_block(f"X{k}")),
    "bind": lambda s, k: s.bind(loops(s, f"X{k}")[0], "threadIdx.x"),
    "blockize": lambda s, k: s.blockize(loops(s, f"X{k}")[1]),
    "cache_index": lambda s, k: s.cache_index(f"X{k}", "global", 0),
    "cache_write": lambda s, k: s.cache_write(f"O{k}", 0, "local"),
    "compute_inline": lambda s, k: s.compute_inline(f"X{k}"),
    "fuse": lambda s, k: s.fuse(*loops(s, f"X{k}")),
    "loop_partition": lambda s, k: s.loop_partition(loops(s, f"X{k}")[0], [16, None]),
    "pad_einsum": lambda s, k: s.pad_einsum(f"Y{k}", [48, 1, 1]),
    "read_at": lambda s, k: s.read_at(loops(s, f"O{k}")[0], f"O{k}", 0, "shared"),
    "reindex": lambda s, k: s.reindex(f"Y{k}", ("read", 0)),
    "reindex_cache_write": lambda s, k: s.reindex_cache_write(f"X{k}", 0, "local", transposed),
    "reorder_block_iter_var": lambda s, k: s.reorder_block_iter_var(f"X{k}", [1, 0]),
    "rfactor": lambda s, k: s.rfactor(loops(s, f"Y{k}")[2], 0),
    "sample_compute_location": lambda s, k: s.sample_compute_location(f"X{k}"),
    "set_axis_separator": lambda s, k: s.set_axis_separator(f"X{k}", ("write", 0), [1]),
    "storage_align": lambda s, k: s.storage_align(f"X{k}", 0, 0, 8, 1),
    "transform_block_layout": lambda s, k: s.transform_block_layout(f"X{k}", transposed),
    "unsafe_set_dtype": lambda s, k: s.unsafe_set_dtype(f"X{k}", 0, "float16"),
    "write_at": lambda s, k: s.write_at(loops(s, f"O{k}")[0], f"O{k}", 0, "shared"),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_cost_of_each_primitive(name: str) -> None:
    counts: list[int] = []
    for count in (4, 16):
        schedule = Schedule(parse_mir(chains(count)), seed=1)
        ACTIONS[name](schedule, 0)
        counts.append(calls_of(lambda at=count // 2, s=schedule: ACTIONS[name](s, at)))
    assert counts[1] < counts[0] * 1.1
