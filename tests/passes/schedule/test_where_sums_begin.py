"""T.init(): where it runs, who may move it, and blocks that add to sums that others began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mirstack import compile, parse
from mirstack.dialects import tir
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

SUMS = """
@T.prim_func
def main(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 3):
        with T.block("b"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
"""


def parted(steps: Callable[[Schedule, Any], object], name: str = "b_k1") -> Callable[[Schedule], object]:
    def all_steps(s: Schedule) -> None:
        s.loop_partition(s.get_loops("b")[1], [2, None])
        steps(s, s.get_block(name))

    return all_steps


LATE = "reduction axis 'vk' begins at 2 there, not at 0, where T.init() runs"

FORBIDDEN: dict[str, tuple[Callable[[Schedule, Any], object], str]] = {
    "rfactor": (
        lambda s, b: s.rfactor(s.get_loops(b)[-1], 0),
        f"rfactor: block 'b_k1' is not a reduction block: {LATE}",
    ),
    "decompose_reduction": (
        lambda s, b: s.decompose_reduction(b, s.get_loops(b)[-1]),
        f"decompose_reduction: block 'b_k1' is not a reduction block: {LATE}",
    ),
    "cache_write": (
        lambda s, b: s.cache_write(b, 0, "local"),
        "cache_write: block 'b_k1' reads 'B' before it writes it, and the new buffer would not hold what it reads",
    ),
    "blockize": (
        lambda s, b: s.blockize(s.get_loops(b)[-1]),
        "blockize: reduction axis 'vk' of block 'b_k1' starts at 2, not at the start of its domain",
    ),
    "reindex": (
        lambda s, b: s.reindex(b, ("write", 0)),
        f"reindex: block 'b_k1' is neither complete (axis 'vk' is not a spatial axis) nor a reduction ({LATE})",
    ),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_later_part_is_no_whole_reduction(name: str) -> None:
    steps, message = FORBIDDEN[name]
    assert message in refused(SUMS, parted(steps))


def test_later_part_declares_what_it_adds_to() -> None:
    text = scheduled(SUMS, parted(lambda s, b: None))
    assert "T.reads(B[vi], A[vi, vk])" in text and text.count("T.reads(B[i], A[i, 2])") == 1
    assert "T.reads(A[i, 0:3])" in text


@pytest.mark.parametrize("name", ["b_k0", "b_k1"])
def test_parts_may_run_in_parallel_over_elements(name: str) -> None:
    def steps(s: Schedule) -> None:
        k, i = s.get_loops("b")[::-1]
        s.reorder(k, i)
        s.loop_partition(k, [2, None])
        s.parallel(s.get_loops(name)[-1])

    assert "in T.parallel(4):" in scheduled(SUMS, steps)


def test_first_part_begins_its_sums() -> None:
    for steps in (
        lambda s, b: s.rfactor(s.get_loops(b)[-1], 0),
        lambda s, b: s.decompose_reduction(b, s.get_loops(b)[-1]),
        lambda s, b: s.cache_write(b, 0, "local"),
        lambda s, b: s.blockize(s.get_loops(b)[-1]),
    ):
        scheduled(SUMS, parted(steps, "b_k0"))


def test_init_under_a_predicate() -> None:
    text = SUMS.replace("            with T.init", "            T.where(k >= 1)\n            with T.init")
    message = refused(text, lambda s: s.decompose_reduction("b", s.get_loops("b")[1]))
    assert "not a reduction block: its predicate, 1 <= k, may leave out the instance in which T.init() runs" in message
    split = scheduled(
        SUMS,
        lambda s: s.decompose_reduction("b", s.split(s.get_loops("b")[1], [None, 2])[0]),
    )
    assert "b_update" in split


def test_init_in_a_branch() -> None:
    text = SUMS.replace(
        """        with T.block("b"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""",
        """        if i + k > 1:
            with T.block("b"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
""",
    )
    message = refused(text, lambda s: s.decompose_reduction("b", s.get_loops("b")[1]))
    assert "it is in a branch in loop 'k', which drives its reduction" in message


def test_axis_of_an_outer_block() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 6), "int32"), B: T.Buffer((4,), "int32")):
    for i, ko in T.grid(4, 3):
        with T.block("outer"):
            vi, vo = T.axis.remap("SR", [i, ko])
            for k in range(2):
                with T.block("b"):
                    vk = T.axis.reduce(6, vo * 2 + k)
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vi, vk]
"""
    message = refused(text, lambda s: s.decompose_reduction("b", s.get_loops("b")[0]))
    assert "reduction axis 'vk' begins at vo * 2 there, not at 0, where T.init() runs" in message


# A block that writes elsewhere than its spatial axes say


def odd(loops: str, place: str) -> str:
    return SUMS.replace("i, k in T.grid(4, 3)", loops).replace("B[vi]", f"B[{place}]")


def init_at_start(loops: str, place: str, a: np.ndarray) -> np.ndarray:
    """By hand: `if vk == 0: B[place] = 0`, then the update, in the order of the loops."""
    b = np.full(4, 100, "int32")
    order = [(i, k) for i in range(4) for k in range(3)]
    for i, k in order if loops.startswith("i") else sorted(order, key=lambda each: each[1]):
        at = {"vk": k, "0": 0, "vi // 2": i // 2}[place]
        if k == 0:
            b[at] = 0
        b[at] += a[i, k]
    return b


@pytest.mark.parametrize("loops", ["i, k in T.grid(4, 3)", "k, i in T.grid(3, 4)"])
@pytest.mark.parametrize("place", ["vk", "0", "vi // 2"])
def test_init_runs_at_each_start(loops: str, place: str) -> None:
    text = odd(loops, place)
    a = np.arange(12, dtype="int32").reshape(4, 3) + 1
    want = init_at_start(loops, place, a)
    for target in ("interp", "cpu"):
        got = np.full(4, 100, "int32")
        compile(parse(text), target=target, cache=False)(a, got)
        assert got.tolist() == want.tolist(), target


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("vk", "a reduction axis indexes its output 'B'"),
        ("0", "several sums may be made in one element of 'B': loop vi is in no index"),
    ],
)
def test_init_that_repeats_stays(place: str, reason: str) -> None:
    text = odd("i, k in T.grid(4, 3)", place)
    calls: dict[str, Callable[[Schedule], object]] = {
        "decompose_reduction": lambda s: s.decompose_reduction("b", s.get_loops("b")[0]),
        "rfactor": lambda s: s.rfactor(s.get_loops("b")[1], 0),
        "blockize": lambda s: s.blockize(s.get_loops("b")[0]),
        "reorder": lambda s: s.reorder(*s.get_loops("b")[::-1]),
        "transform_block_layout": lambda s: s.transform_block_layout("b", lambda i, k: (k, i)),
    }
    orders = {
        "reorder": "reorder: T.init() of block 'b' cannot run in another order: ",
        "transform_block_layout": "transform_block_layout: T.init() of block 'b' cannot run in another order: ",
    }
    for name, call in calls.items():
        message = refused(text, call)
        assert message.split("error: ")[1].startswith(orders.get(name, name)) and reason in message


# Blocks beside the reduction

READ_BEFORE = """
@T.prim_func
def main(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("c"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
        for k in range(3):
            with T.block("b"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
"""


def test_what_others_read_is_not_initialized_early() -> None:
    message = refused(READ_BEFORE, lambda s: s.decompose_reduction("b", s.get_loops("b")[0]))
    assert (
        "decompose_reduction: block 'c' in loop 'i' reads 'B', which block 'b' would initialize before the loop\n"
        "note: decompose at a loop further in, which holds block 'b' alone" in message
    )
    scheduled(READ_BEFORE, lambda s: s.decompose_reduction("b", s.get_loops("b")[1]))


def test_threads_keep_their_init() -> None:
    def steps(s: Schedule) -> None:
        i, _ = s.get_loops("b")
        s.bind(i, "threadIdx.x")
        s.decompose_reduction("b", i)

    assert 'for i_init in T.thread_binding(4, thread="threadIdx.x"):' in scheduled(SUMS, steps)

    def blockized(s: Schedule) -> None:
        i, k = s.get_loops("b")
        s.reorder(k, i)
        s.bind(i, "threadIdx.x")
        s.blockize(i)

    assert scheduled(SUMS, blockized).count('T.thread_binding(4, thread="threadIdx.x"):') == 2


# Grouped channels that the output does not have as a dimension: default-schedule leaves them


def test_groups_need_a_dimension_of_channels() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((6, 2), "int32")):
    for i, k in T.grid(12, 3):
        with T.block("b"):
            v, w = T.axis.remap("SR", [i, k])
            with T.init():
                B[v // 2, v % 2] = 100
            B[v // 2, v % 2] = T.min(B[v // 2, v % 2], A[v + w])
"""
    a, b = np.random.default_rng(0).integers(-9, 9, 14).astype("int32"), np.zeros((6, 2), "int32")
    compile(parse(text), cache=False)(a, b)
    assert b.tolist() == np.stack([a[k : k + 12] for k in range(3)]).min(0).reshape(6, 2).tolist()


def test_interpreter_folds_no_repeated_init() -> None:
    module = parse_mir(odd("i, k in T.grid(4, 3)", "0"))
    (function,) = [op for op in module.body.block.ops if isinstance(op, tir.PrimFuncOp)]
    a, b = np.ones((4, 3), "int32"), np.zeros(4, "int32")
    interpret_prim_func(function, {"A": a, "B": b}, module)
    assert b.tolist() == [3, 0, 0, 0]


def test_wrapping_block_reads_the_old_values_that_its_reductions_read() -> None:
    reduced_into = SUMS.replace('Buffer((4,), "int32")', 'Buffer((4, 3), "int32")').replace("B[vi]", "B[vi, vk]")

    def steps(s: Schedule) -> None:
        s.loop_partition(s.get_loops("b")[0], [1, 2])
        s.cache_write(s.get_block("b_i_common"), 0, "local")

    assert "cache_write: block 'b_i_common' reads 'B' before it writes it" in refused(reduced_into, steps)
