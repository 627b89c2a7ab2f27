"""Schedules of functions whose sizes are parameters: they keep the meaning for every size, 0 among them."""

from __future__ import annotations

from collections.abc import Callable

import mirstack
import numpy as np
import pytest
from mirstack.parser import print_mir
from mirstack.passes.schedule import Schedule, ScheduleError

HEAD = """@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, m), "int32")
    B = T.match_buffer(b, (n, m), "int32")
"""
SUMS = (
    HEAD
    + """    for i, j, k in T.grid(n, m, 1):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = 1
            B[vi, vj] = B[vi, vj] + A[vi, vj + vk]
"""
)
COPY = (
    HEAD
    + """    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 3
"""
)
SHIFTED = (
    HEAD
    + """    C = T.alloc_buffer((n, m), "int32")
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(1 <= vi and vj < m - 1, C[vi - 1, vj + 1], 5)
"""
)
PART = (
    HEAD
    + """    C = T.alloc_buffer((n, m), "int32")
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, vj % T.max(m // 2, 1)]
"""
)


def check(text: str, schedule: Callable[[Schedule], object]) -> None:
    """Compares the function with the scheduled one, interpreted and natively."""
    plain = mirstack.parse(text)
    scheduled = Schedule(plain.clone())
    schedule(scheduled)
    for n, m in ((0, 0), (0, 3), (1, 1), (3, 0), (5, 4)):
        a = np.arange(n * m, dtype=np.int32).reshape(n, m)
        results: list[np.ndarray] = []
        for module, target in ((plain, "interp"), (scheduled.module, "interp"), (scheduled.module, "cpu")):
            results.append(np.zeros((n, m), np.int32))
            mirstack.compile(module, target)(a, results[-1], n, m)  # pyright: ignore[reportArgumentType]
        for got in results[1:]:
            np.testing.assert_array_equal(got, results[0])


def test_sums_begin_where_the_block_runs() -> None:
    """The condition on a symbolic size stays with T.init() in the block around."""

    def schedule(sch: Schedule) -> None:
        block = sch.get_block("B")
        _, j, _ = sch.get_loops(block)
        sch.split(j, [2, None])
        sch.blockize(sch.get_loops(block)[-1])
        sch.blockize(sch.get_loops(sch.get_block("B_o"))[0])

    check(SUMS, schedule)


def test_a_buffer_of_less_than_nothing_has_no_elements() -> None:
    """Every second element of nothing ends at -1."""
    check(COPY, lambda sch: sch.reindex_cache_read(sch.get_block("B"), 0, "local", lambda i, j: [j, i * 2]))


def test_sums_of_blocks_in_blocks_outlast_the_loops_of_the_reduction() -> None:
    """What an iteration of k adds to is what T.init(), in the first one, or the iteration before has left."""

    def schedule(sch: Schedule) -> None:
        _, j, k = sch.get_loops(sch.get_block("B"))
        sch.reorder(k, j)
        block = sch.blockize(j)
        sch.write_at(sch.get_loops(block)[-1], block, 0, "local")

    check(SUMS.replace("T.grid(n, m, 1)", "T.grid(n, m, 2)").replace("vj + vk", "vj"), schedule)


def test_what_reads_nothing_runs_as_well() -> None:
    schedule = Schedule(mirstack.parse(SHIFTED))
    loop = schedule.fuse(*schedule.get_loops(schedule.get_block("C")))
    message = (
        "reverse_compute_at: axis 'vi' of block 'B' runs from 0 to n - 1, but what loop 'i_j_fused' makes is read from 1 to n only:"
        " the rest would not run"
    )
    with pytest.raises(ScheduleError) as caught:
        schedule.reverse_compute_at(schedule.get_block("B"), loop)
    assert message in str(caught.value)


def test_what_a_loop_makes_in_an_order_of_its_own_is_not_known() -> None:
    text = """@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    C = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, T.bitwise_xor(i, 1))
            C[vi] = A[vi] + 1
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = C[vi]
"""
    schedule = Schedule(mirstack.parse(text))
    with pytest.raises(ScheduleError) as caught:
        schedule.reverse_compute_at(schedule.get_block("B"), schedule.get_loops(schedule.get_block("C"))[0])
    message = "but from where to where what loop 'i' makes is read is not known: the rest would not run"
    assert message in str(caught.value)


TERMS = """@T.prim_func
def main(a: T.handle, B: T.Buffer((4,), "int32"), n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, m), "int32")
    for i, j, k in T.grid(4, n, m):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                B[vi] = 5
            B[vi] = B[vi] + A[vj, vk] * vi
"""


def test_loops_over_elements_and_over_nothing_stay_apart() -> None:
    """Fused, T.init() would run for no element, or for one."""
    for order in ([0, 1, 2], [1, 0, 2]):
        schedule = Schedule(mirstack.parse(TERMS))
        loops = schedule.get_loops(schedule.get_block("B"))
        schedule.reorder(*[loops[k] for k in order])
        names = " and ".join("ij"[k] for k in order[:2])
        with pytest.raises(ScheduleError) as caught:
            schedule.fuse(*[loops[k] for k in order[:2]])
        assert (
            f"fuse: a loop over {names} would run over elements of block 'B' and over its reduction, which may be over nothing\n"
            "note: no iteration would store what a reduction over nothing is; fuse spatial loops with each other only"
        ) in str(caught.value)


@pytest.mark.parametrize("sizes", ["(n, m)", "(3, 0)", "(0, 3)", "(0, 0)", "(1, 0)"])
def test_loops_of_one_reduction_over_nothing(sizes: str) -> None:
    """A loop without iterations still drives the reduction that is over nothing."""
    n, m = (int(size) if size.isdigit() else 0 for size in sizes.strip("()").split(", "))
    text = TERMS.replace("match_buffer(a, (n, m)", f"match_buffer(a, {sizes}")
    text = text if sizes == "(n, m)" else text.replace("T.grid(4, n, m)", f"T.grid(4, {n}, {m})")
    plain = mirstack.parse(text)
    schedule = Schedule(plain.clone())
    schedule.fuse(*schedule.get_loops(schedule.get_block("B"))[1:])
    ran = [(plain, "interp"), (schedule.module, "interp")]
    if sizes != "(n, m)":
        # Of j_k_fused % m lowering does not see that it takes all its values for each j_k_fused // m.
        ran.append((schedule.module, "cpu"))
    for module, target in ran:
        sums = np.full(4, 9, np.int32)
        mirstack.compile(module, target)(np.zeros((n, m), np.int32), sums, n, m)  # pyright: ignore[reportArgumentType]
        assert sums.tolist() == [5] * 4


@pytest.mark.parametrize("both", [False, True])
def test_a_bound_that_the_dtype_sets_is_no_number_of_iterations(both: bool) -> None:
    """Of j % T.max(m // 2, 1) the dtype says that it is below 2 ** 30; it ends at T.max(m // 2, 1) - 1."""

    def schedule(sch: Schedule) -> None:
        sch.compute_at(sch.get_block("C"), sch.get_loops(sch.get_block("B"))[0])
        assert "for ax0 in range(T.max(m // 2, 1)):" in print_mir(sch.module) or both
        assert "1073741" not in print_mir(sch.module)

    read = "C[vi, vj % T.max(m // 2, 1)]"
    check(PART.replace(read, f"T.max(C[vi, vj], {read})") if both else PART, schedule)


def test_large_tiles_of_small_sizes_run_for_these() -> None:
    schedule = Schedule(mirstack.parse(PART.replace("vj % T.max(m // 2, 1)", "vj")))
    j, _ = schedule.split(schedule.get_loops(schedule.get_block("B"))[1], [None, 65536])
    schedule.compute_at(schedule.get_block("C"), j)
    assert "for ax0 in range(T.min(m, 65536)):" in print_mir(schedule.module)


ROWS = """@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4,), "int32"), n: T.int32, m: T.int32):
    for i, k in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce({extent}, k)
            T.where({condition})
            with T.init():
                B[vi] = 5
            B[vi] = B[vi] + A[vi, vk]
"""


@pytest.mark.parametrize("extent", ["4", "n"])
@pytest.mark.parametrize("condition", ["k < n", "k < 0", "i + k < n", "i + k < 3", "i < n and k < m"])
def test_inits_run_where_the_first_terms_do(extent: str, condition: str) -> None:
    """A predicate that leaves out all terms of an element leaves out its T.init(), also in a block of its own."""
    plain = mirstack.parse(ROWS.format(extent=extent, condition=condition))
    schedule = Schedule(plain.clone())
    block = schedule.get_block("B")
    schedule.decompose_reduction(block, schedule.get_loops(block)[1])
    a = np.arange(16, dtype=np.int32).reshape(4, 4)
    for n, m in ((0, 4), (2, 0), (2, 3), (4, 4)):
        results: list[list[int]] = []
        for module, target in (
            (plain, "interp"),
            (plain, "cpu"),
            (schedule.module, "interp"),
            (schedule.module, "cpu"),
        ):
            sums = np.full(4, 9, np.int32)
            mirstack.compile(module, target)(a, sums, n, m)  # pyright: ignore[reportArgumentType]
            results.append(sums.tolist())
        assert results[1:] == results[:1] * 3, (n, m)


def test_sums_of_a_symbolic_number_are_split_twice() -> None:
    plain = mirstack.parse(TERMS)
    schedule = Schedule(plain.clone())
    k = schedule.get_loops(schedule.get_block("B"))[2]
    outer, _ = schedule.split(k, [None, 4])
    schedule.split(outer, [None, 3])
    for n, m in ((2, 0), (2, 5), (1, 13)):
        results: list[list[int]] = []
        for module, target in ((plain, "interp"), (schedule.module, "interp"), (schedule.module, "cpu")):
            sums = np.full(4, 9, np.int32)
            mirstack.compile(module, target)(np.ones((n, m), np.int32), sums, n, m)  # pyright: ignore[reportArgumentType]
            results.append(sums.tolist())
        assert results[1:] == results[:1] * 2, (n, m)
