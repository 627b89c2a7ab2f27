"""No two buffers that live at the same time may overlap, and the arena stays near the most that lives at once."""

from __future__ import annotations

import random
import re
from pathlib import Path

import mirstack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.examples.models.registry import MODELS, build, options_of
from mirstack.lowering.relay.memory import memory_plan
from mirstack.lowering.relay.memory.alignment import ALIGNMENT
from mirstack.lowering.relay.memory.memory_plan import Group, Lifetime, plan_memory
from mirstack.lowering.relay.memory.static_memory_plan import StaticMemoryPlan, memory_report
from mirstack.support.diagnostics import MirError
from xdsl.context import Context

lifetimes = st.builds(
    lambda size, start, length: Lifetime(size, start, start + length),
    st.integers(0, 5000),
    st.integers(0, 30),
    st.integers(0, 10),
)


def assert_apart(buffers: list[Lifetime]) -> None:
    """Plans, and checks each pair of buffers."""
    plan = plan_memory(buffers)
    assert all(offset % ALIGNMENT == 0 for offset in plan.offsets)
    for i, a in enumerate(buffers):
        assert plan.offsets[i] + a.size <= plan.size
        for j in range(i):
            b = buffers[j]
            together = a.start <= b.end and b.start <= a.end
            apart = plan.offsets[i] + a.size <= plan.offsets[j] or plan.offsets[j] + b.size <= plan.offsets[i]
            assert not together or apart or not a.size or not b.size
    assert plan.lower_bound <= plan.size


@given(st.lists(lifetimes, max_size=30))
def test_buffers_that_live_together_do_not_overlap(buffers: list[Lifetime]):
    assert_apart(buffers)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """Parts one after the other, some of them of odd sizes, some empty; between them nothing is left."""
    parts: list[tuple[int, Lifetime]] = []
    size = 0
    for _ in range(draw(st.integers(1, 5))):
        part = draw(lifetimes)
        parts.append((size, part))
        size += part.size
    return Group(size, tuple(parts))


@given(st.lists(st.one_of(lifetimes, groups()), max_size=12))
def test_parts_of_groups_do_not_overlap_with_others(buffers: list[Lifetime | Group]):
    plan = plan_memory(buffers)
    placed = [
        (k, plan.offsets[k] + offset, part)
        for k, buffer in enumerate(buffers)
        for offset, part in (buffer.parts if isinstance(buffer, Group) else ((0, buffer),))
        if part.size
    ]
    for i, a, first in placed:
        assert a + first.size <= plan.size
        for j, b, second in placed:
            together = i != j and first.start <= second.end and second.start <= first.end
            assert not together or a + first.size <= b or b + second.size <= a
    assert plan.lower_bound <= plan.size and all(offset % ALIGNMENT == 0 for offset in plan.offsets)


def test_what_a_group_does_not_need_yet_is_free():
    """A skip connection: its half of the concatenation is written first, the other half when all between is gone."""
    group = Group(2048, ((0, Lifetime(1024, 0, 9)), (1024, Lifetime(1024, 8, 9))))
    plan = plan_memory([group, Lifetime(512, 1, 3), Lifetime(512, 2, 5), Lifetime(512, 4, 8)])
    assert plan.size == plan.lower_bound == 2048 + 512


@pytest.mark.parametrize(("ranges", "worst"), [(2, 1.5), (8, 1.3), (memory_plan.MOST_RANGES, 1.15)])
def test_nothing_overlaps_where_gaps_are_given_up(ranges: int, worst: float, monkeypatch: pytest.MonkeyPatch):
    """Memory that is free in many small pieces between buffers of unrelated sizes and lifetimes."""
    monkeypatch.setattr(memory_plan, "MOST_RANGES", ranges)
    rng = random.Random(ranges)
    spans = [sorted(rng.sample(range(250), 2)) for _ in range(250)]
    buffers = [Lifetime(rng.randrange(1, 1_000_000), start, end) for start, end in spans]
    assert_apart(buffers)
    plan = plan_memory(buffers)
    assert plan.size < worst * plan.lower_bound


def test_fewer_orders_are_tried_where_each_is_much_work(monkeypatch: pytest.MonkeyPatch):
    buffers = [Lifetime(64 * (1 + k * 7 % 11), k, k + k * 5 % 13) for k in range(200)]
    thorough = plan_memory(buffers)
    monkeypatch.setattr(memory_plan, "MOST_WORK", 0)
    assert plan_memory(buffers).size > thorough.size


def test_a_chain_needs_two_buffers():
    plan = plan_memory([Lifetime(1000, k, k + 1) for k in range(50)])
    assert plan.size == plan.lower_bound == 2 * 1024


def test_a_smaller_buffer_takes_the_gap_that_fits_best():
    plan = plan_memory(
        [Lifetime(640, 0, 9), Lifetime(256, 0, 4), Lifetime(128, 5, 9), Lifetime(64, 5, 9), Lifetime(64, 0, 9)]
    )
    assert plan.size == plan.lower_bound == 640 + 256 + 64


def test_residual_connections_are_placed_before_what_comes_and_goes_beside_them():
    """Two blocks as of a transformer: by size alone, what the residual connection keeps would lie in the way."""
    unit = 1024
    block = [
        (1, 2, 32),
        (1, 6, 16),
        (1, 10, 18),
        (1, 14, 20),
        (1, 16, 22),
        (1, 18, 22),
        (1, 20, 26),
        (2, 22, 24),
        (2, 24, 26),
    ]
    behind = [(1, 26, 28), (1, 28, 32), (1, 32, 40), (1, 40, 48), (4, 44, 48), (1, 48, 56)]
    plan = plan_memory([Lifetime(size * unit, start, end) for size, start, end in block + behind])
    assert plan.size == plan.lower_bound == 6 * unit


@given(st.lists(st.tuples(st.sampled_from([64, 128, 192, 1024]), st.integers(1, 6)), min_size=5, max_size=40))
def test_the_arena_stays_near_the_lower_bound(buffers: list[tuple[int, int]]):
    """One buffer a step, as the operators of a network make them."""
    plan = plan_memory([Lifetime(size, step, step + length) for step, (size, length) in enumerate(buffers)])
    assert plan.size <= 1.2 * plan.lower_bound


@pytest.mark.parametrize("length", [2, 10_000])
def test_linear(length: int):
    """Eight times the buffers, each read soon or all at the end, take about eight times as long."""

    def seconds(count: int) -> float:
        buffers = [Lifetime(64 << k % 7, k, min(k + length, count)) for k in range(count)]
        return cpu_seconds(lambda: plan_memory(buffers))

    assert growth(seconds, 500, 4_000, below=24) < 24


REDUCED = {"image": 64, "width": 1 / 4}


@pytest.mark.parametrize("name", MODELS)
def test_examples_need_no_more_than_lives_at_once(name: str, tmp_path: Path):
    sizes = {option.name: REDUCED[option.name] for option in options_of(name) if option.name in REDUCED}
    module = mirstack.load(build(name, 0, **sizes).write(tmp_path, name))
    for line in memory_report(module):
        found = re.search(r"in (\d+) bytes.*lower bound (\d+)", line)
        assert found is not None and int(found[1]) == int(found[2]), line


def test_levels():
    module = mirstack.parse("def @main(%x: Tensor[(8, 8), float32]) {\n  nn.relu(add(exp(%x), %x))\n}\n")
    (plain,), (fused,) = (list(memory_report(module, opt_level=level)) for level in (0, 3))
    assert plain.startswith("@main: 2 tensors of") and fused.startswith("@main: 0 tensors of")
    with pytest.raises(MirError, match="static-memory-plan: opt-level=4 must be 0, 1, 2 or 3"):
        StaticMemoryPlan(opt_level=4).apply(Context(), module)
