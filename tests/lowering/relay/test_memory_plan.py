"""No two buffers that live at the same time may overlap, and the arena stays near the most that lives at once."""

from hypothesis import given
from hypothesis import strategies as st
from mirstack.lowering.relay.memory_plan import ALIGNMENT, Lifetime, plan_memory

lifetimes = st.builds(
    lambda size, start, length: Lifetime(size, start, start + length),
    st.integers(0, 5000),
    st.integers(0, 30),
    st.integers(0, 10),
)


@given(st.lists(lifetimes, max_size=30))
def test_buffers_that_live_together_do_not_overlap(buffers: list[Lifetime]):
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


def test_a_chain_needs_two_buffers():
    plan = plan_memory([Lifetime(1000, k, k + 1) for k in range(50)])
    assert plan.size == plan.lower_bound == 2 * 1024


def test_a_smaller_buffer_takes_the_gap_that_fits_best():
    plan = plan_memory(
        [Lifetime(640, 0, 9), Lifetime(256, 0, 4), Lifetime(128, 5, 9), Lifetime(64, 5, 9), Lifetime(64, 0, 9)]
    )
    assert plan.size == plan.lower_bound == 640 + 256 + 64
