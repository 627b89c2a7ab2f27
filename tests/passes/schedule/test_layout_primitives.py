"""add_unit_loop, reorder_block_iter_var, storage_align, set_axis_separator, unsafe_set_dtype: effect and refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.passes.schedule.primitives.transform_layout import AXIS_SEPARATOR
from mirstack.support.verify import verify
from test_primitives import scheduled

Steps = Callable[[Schedule], object]


def test_unit_loops() -> None:
    def steps(sch: Schedule) -> None:
        block = sch.get_block("B")
        _, j = sch.get_loops(block)
        sch.add_unit_loop(j)
        u = sch.add_unit_loop(block)
        assert sch.resolve(u) is sch.resolve(sch.get_loops(block)[-1])

    assert "for i, u, j, u_1 in T.grid(16, 1, 30, 1):" in scheduled(CHAIN, steps)


def test_order_of_axes() -> None:
    text = scheduled(MATMUL, lambda sch: sch.reorder_block_iter_var(sch.get_block("C"), [2, 0, 1]))
    assert 'vk, vi, vj = T.axis.remap("RSS", [k, i, j])' in text


def test_aligned_strides() -> None:
    def steps(sch: Schedule) -> None:
        block = sch.get_block("B")
        sch.storage_align(block, 0, axis=0, factor=8, offset=1)
        sch.storage_align(block, 0, axis=-1, factor=2, offset=0)
        sch.storage_align(block, "B", axis=0, factor=16, offset=4)

    assert '"buffer_dim_align": [[0, 1, 2, 0], [0, 0, 16, 4]]' in scheduled(CHAIN, steps)


def test_separators() -> None:
    def steps(sch: Schedule) -> None:
        sch.set_axis_separator(sch.get_block("B"), "A", [1])
        sch.transform_layout(sch.get_block("B"), "B", lambda i, j: [j, AXIS_SEPARATOR, i])

    text = scheduled_by_value(CHAIN, steps)
    assert "A = T.match_buffer(A_handle, (16, 30), axis_separators=[1])" in text
    assert "B = T.alloc_buffer((30, 16), axis_separators=[1])" in text
    module = parse_mir(text)
    sch = Schedule(module)
    sch.set_axis_separator(sch.get_block("B"), ("write", 0), [])
    assert "B = T.alloc_buffer((30, 16))" in print_mir(module)


@pytest.mark.parametrize("separators", [[], None])
def test_no_axis_separators_leave_a_parameter_a_buffer(separators: list[int] | None) -> None:
    """A handle matched to the same buffer would read as the buffer."""
    text = scheduled(CHAIN, lambda s: s.set_axis_separator(s.get_block("C"), ("write", 0), separators))
    assert 'C: T.Buffer((16, 30), "float32")' in text


def test_axis_separators_taken_back_leave_a_parameter_a_buffer() -> None:
    def steps(sch: Schedule) -> None:
        block = sch.get_block("C")
        sch.set_axis_separator(block, ("write", 0), [0, 1])
        sch.set_axis_separator(block, ("write", 0), [])

    assert 'C: T.Buffer((16, 30), "float32")' in scheduled(CHAIN, steps)


def scheduled_by_value(text: str, steps: Steps) -> str:
    """`scheduled`, of a program whose parameters become handles."""
    module = parse_mir(text)
    steps(Schedule(module))
    verify(module)
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    return printed


def test_other_dtype() -> None:
    text = scheduled(CHAIN, lambda sch: sch.unsafe_set_dtype(sch.get_block("B"), 0, "float64"))
    assert 'B = T.alloc_buffer((16, 30), "float64")' in text
    assert 'B[vi, vj] = T.Cast("float64", A[vi, vj] * T.float32(2))' in text
    assert 'C[vi, vj] = T.Cast("float32", B[vi, vj]) + T.float32(1)' in text


def test_same_dtype_changes_nothing() -> None:
    assert "Cast" not in scheduled(CHAIN, lambda sch: sch.unsafe_set_dtype(sch.get_block("B"), 0, "float32"))


def test_the_index_that_is_stored_stays_an_index() -> None:
    own = """
@T.prim_func
def main(O: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = vi
    for i in range(4):
        with T.block("O"):
            vi = T.axis.spatial(4, i)
            O[vi] = B[vi]
"""
    text = scheduled(own, lambda sch: sch.unsafe_set_dtype(sch.get_block("B"), 0, "int64"))
    assert 'B[vi] = T.Cast("int64", vi)' in text


MATCHED = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            b = T.match_buffer(B[vi], (), offset_factor=1)
            b[()] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi]
"""

REFUSALS: list[tuple[str, Steps, str]] = [
    (CHAIN, lambda s: s.add_unit_loop(s.get_block("root")), "add_unit_loop: function 'main' is the whole function"),
    (
        MATMUL,
        lambda s: s.reorder_block_iter_var(s.get_block("C"), [2, 1]),
        "reorder_block_iter_var: [2, 1] is not an order of the 3 axes of block 'C'\nnote: list each of 0 to 2 once",
    ),
    (
        CHAIN,
        lambda s: s.storage_align(s.get_block("B"), 0, 0, 0, 1),
        "storage_align: factor 0 for dimension 0 of buffer 'B' is not a positive number",
    ),
    (
        CHAIN,
        lambda s: s.storage_align(s.get_block("B"), 0, 0, 4, 0.5),  # type: ignore[arg-type]
        "storage_align: 'offset' must be an integer, not 0.5",
    ),
    (
        CHAIN,
        lambda s: s.storage_align(s.get_block("B"), 0, 2, 4, 1),
        "storage_align: buffer 'B' has no dimension 2\nnote: it has 2 dimensions, 0 to 1",
    ),
    (
        CHAIN,
        lambda s: s.storage_align(s.get_block("C"), 0, 0, 4, 1),
        "storage_align: buffer 'C' is not an allocation of this function, so its strides are its caller's",
    ),
    (
        CHAIN,
        lambda s: s.set_axis_separator(s.get_block("B"), "B", [3]),
        "set_axis_separator: 3 separates no dimensions of 'B'\nnote: it has 2 dimensions",
    ),
    (
        CHAIN,
        lambda s: s.set_axis_separator(s.get_block("B"), "B", [1, 0]),
        "set_axis_separator: the separators [1, 0] do not ascend",
    ),
    (
        CHAIN,
        lambda s: s.set_axis_separator(s.get_block("B"), ("reads", 0), [1]),
        "set_axis_separator: a buffer is chosen as ('read', k) or ('write', k), not ('reads', …)",
    ),
    (
        CHAIN,
        lambda s: s.unsafe_set_dtype(s.get_block("B"), 0, "float31"),
        "unsafe_set_dtype: there is no dtype 'float31'",
    ),
    (
        CHAIN,
        lambda s: s.unsafe_set_dtype(s.get_block("C"), 0, "float16"),
        "unsafe_set_dtype: buffer 'C' is not an allocation of this function, so its dtype is its caller's",
    ),
    (
        MATCHED,
        lambda s: s.unsafe_set_dtype(s.get_block("B"), 0, "float16"),
        "unsafe_set_dtype: 'B' is used otherwise than by its elements",
    ),
    (
        CHAIN,
        lambda s: s.transform_layout(s.get_block("B"), "B", lambda i, j: [i, "j"]),
        "transform_layout: the map gives 'j', which is not an index",
    ),
    (
        CHAIN,
        lambda s: s.annotate(s.get_block("B"), "key", object),
        "is not a number, string, list or dictionary\nnote: an annotation is made of numbers, strings, lists and dictionaries",
    ),
]


@pytest.mark.parametrize(("text", "steps", "message"), REFUSALS, ids=[r[2][:40] for r in REFUSALS])
def test_refused(text: str, steps: Steps, message: str) -> None:
    module = parse_mir(text)
    before = print_mir(module)
    with pytest.raises(ScheduleError) as caught:
        steps(Schedule(module))
    assert message in str(caught.value)
    assert print_mir(module) == before
