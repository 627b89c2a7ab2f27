"""Contractions of few columns, of few rows, and for several threads: the same numbers as numpy's, by the scheme that suits them."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.dialects import tir
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.autoschedule.block_shape import shape_of
from mirstack.passes.autoschedule.contraction import match_contraction
from mirstack.passes.autoschedule.contraction.dot import choose_tile
from mirstack.passes.autoschedule.contraction.gevm import columns_of_block
from mirstack.passes.autoschedule.contraction.tile import ALONE, Turns, best_tile, rows_in_cache
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from mirstack.passes.schedule.analysis.structure import const_int
from mirstack.support.target import named
from mirstack.support.walk import enclosing, walk_ops
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

RNG = np.random.default_rng(3)


def run(
    weights: NDArray[Any], x: NDArray[Any], *, constant: bool, transposed: bool, cpu: str | None, threads: int = 1
) -> tuple[NDArray[Any], list[tir.BlockOp]]:
    """x times the weights, given as they lie (`transposed`: a row for each column of the result); the blocks of the kernel."""
    given_x, given_w = relay.var("x", shape=x.shape), relay.var("w", shape=weights.shape)
    weight = relay.const(weights) if constant else given_w
    body = relay.nn.relu(relay.nn.matmul(given_x, weight, transpose_b=transposed))
    params, inputs = ([given_x], [x]) if constant else ([given_x, given_w], [x, weights])
    scheduled: list[ModuleOp] = []

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "default-schedule":
            scheduled.append(module.clone())

    module = mirstack.IRModule.from_expr(relay.Function(params, body))
    executable = mirstack.compile(module, cpu=cpu, threads=threads, observers=(keep,))
    blocks = [op for each in scheduled for op in walk_ops(each) if isinstance(op, tir.BlockOp)]
    return np.asarray(executable(*inputs)), blocks


@pytest.mark.parametrize("cpu", [None, "haswell"])
@pytest.mark.parametrize(
    ("m", "n", "k", "transposed"), [(37, 1, 131, False), (101, 3, 300, True), (48, 4, 128, True), (6, 2, 257, True)]
)
def test_few_columns(m: int, n: int, k: int, transposed: bool, cpu: str | None) -> None:
    """A vector along the columns would be mostly empty: it lies along the sum, and nothing is copied or padded."""
    x = RNG.standard_normal((m, k), dtype=np.float32)
    weights = RNG.standard_normal((n, k) if transposed else (k, n), dtype=np.float32)
    expected = np.maximum(x @ (weights.T if transposed else weights), 0)
    for constant in (True, False):
        result, blocks = run(weights, x, constant=constant, transposed=transposed, cpu=cpu)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
        # Of a vector of four lanes three columns fill most.
        if named(cpu or "").lanes(4) >= 8:
            assert not any("pad" in block.block_name.data for block in blocks)


@pytest.mark.parametrize("threads", [1, 3])
def test_few_rows_and_columns_that_fill_no_tiles(threads: int) -> None:
    """Columns that are left over are a tile of their own."""
    x, weights = RNG.standard_normal((3, 300), dtype=np.float32), RNG.standard_normal((1031, 300), dtype=np.float32)
    result, blocks = run(weights, x, constant=False, transposed=True, cpu=None, threads=threads)
    np.testing.assert_allclose(result, np.maximum(x @ weights.T, 0), rtol=1e-4, atol=1e-4)
    assert sum("update" in block.block_name.data for block in blocks) == 2


def test_one_panel_is_read_as_it_lies() -> None:
    """Rows that are one panel of B need no packing, however many there are."""
    target = named("")
    columns, depth = target.lanes(4), 5 * target.l2 // 16 // target.lanes(4)
    x, weights = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((20, depth), (depth, columns)))
    result, blocks = run(weights, x, constant=False, transposed=False, cpu=None)
    np.testing.assert_allclose(result, np.maximum(x @ weights, 0), rtol=1e-3, atol=2e-2)
    assert {block.block_name.data.split("_")[0] for block in blocks} <= {"root", "T"}, (
        "what is packed is called after its input"
    )


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(
    ("transposes", "m", "n", "k", "copied"),
    [("tt", 5, 77, 259, "p0"), ("tt", 2, 300, 128, "p0"), ("nn", 131, 3, 200, "p1"), ("tn", 131, 3, 200, None)],
)
def test_the_smaller_input_is_laid_along_the_sums(
    transposes: str, m: int, n: int, k: int, copied: str | None, cpu: str | None
) -> None:
    """Nothing of the larger one is moved, whichever way they lie."""
    first, second = (way == "t" for way in transposes)
    a = RNG.standard_normal((k, m) if first else (m, k), dtype=np.float32)
    b = RNG.standard_normal((n, k) if second else (k, n), dtype=np.float32)
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    blocks: list[str] = []

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "default-schedule":
            blocks.extend(op.block_name.data for op in walk_ops(module) if isinstance(op, tir.BlockOp))

    product = relay.nn.relu(relay.nn.matmul(x, y, transpose_a=first, transpose_b=second))
    module = mirstack.IRModule.from_expr(relay.Function([x, y], product))
    for threads in (1, 2):
        got = mirstack.compile(module, cpu=cpu, threads=threads, cache=False, observers=(keep,))(a, b)
        want = (a.T if first else a) @ (b.T if second else b)
        np.testing.assert_allclose(got, np.maximum(want, 0), rtol=1e-4, atol=1e-4)
    if cpu is None and named("").vector_bytes == 64:
        assert {name.split("_")[0] for name in blocks} - {"root", "T"} == ({copied} if copied else set())


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("m", "n", "cpu", "inner"), [
    (100, 10, "znver4", True), (60, 36, "znver4", True), (100, 32, "znver4", False), (100, 10, "haswell", False),
])  # fmt: skip
def test_inner_products_where_lanes_were_empty(m: int, n: int, cpu: str, inner: bool, constant: bool) -> None:
    """Not where few registers make tiles of inner products too small."""
    text = f"""
@T.prim_func
def main(A: T.Buffer(({m}, 200), "float32"), B: T.Buffer(({n}, 200), "float32"), C: T.Buffer(({m}, {n}), "float32")):
    T.func_attr({{"tir.constant_params": [{"1" if constant else ""}]}})
    for i, j, k in T.grid({m}, {n}, 200):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"""
    module = parse_mir(text)
    DefaultSchedule(cpu=cpu, threads=1).apply(Context(), module)
    assert ("B_" in print_mir(module)) != inner


def test_rows_that_share_places_of_a_cache() -> None:
    """Rows that lie a multiple of 4096 bytes apart, or a few bytes more, share the places of a cache of 32K; those that lie in the same
    lines do not."""
    target = named("znver4")
    assert (
        rows_in_cache(4096, target) == rows_in_cache(4 * 4097, target) == 6 and rows_in_cache(3 * 4096 - 4, target) == 7
    )
    assert (
        rows_in_cache(2048, target)
        == rows_in_cache(4000, target)
        == rows_in_cache(4, target)
        == rows_in_cache(0, target)
        == 16
    )


@pytest.mark.parametrize(("rows", "columns"), [(1, 50257), (1500, 1), (1499, 1), (7, 5), (1, 13), (3, 8), (48, 48)])
def test_tiles_of_inner_products(rows: int, columns: int) -> None:
    """A tile lies within the matrix, its sums in half of the registers; only the longer side may be left with a part of one."""
    for registers in (16, 32):
        tile = choose_tile(rows, columns, registers)
        assert tile[0] <= rows and tile[1] <= columns and tile[0] * tile[1] <= registers // 2
        whole = columns % tile[1] if rows > columns else rows % tile[0]
        assert whole == 0
    assert choose_tile(1, 50257, 32) == (1, 1) and choose_tile(1499, 1, 32) == (8, 1)


def test_panels_are_shared_out_evenly() -> None:
    """Two threads get as many panels each, where that costs less than it saves; so many panels that it matters not change nothing."""
    _, alone = best_tile(300, 300, 16, 32, turns=ALONE)
    _, shared = best_tile(300, 300, 16, 32, turns=Turns(2))
    assert -(-300 // alone.columns) % 2 == 1
    assert -(-300 // shared.columns) % 2 == 0
    assert best_tile(2048, 2048, 16, 32, turns=Turns(2))[1] == best_tile(2048, 2048, 16, 32)[1]


@pytest.mark.parametrize(("cpu", "least"), [("haswell", 10), ("neoverse-v2", 16), ("apple-m1", 16)])
@pytest.mark.parametrize(("m", "n"), [(256, 196), (14, 256), (1024, 1024)])
def test_tiles_have_sums_for_all_multipliers(cpu: str, least: int, m: int, n: int) -> None:
    target = named(cpu, 1)
    flight = target.independent_sums
    _, tile = best_tile(m, n, target.lanes(4), target.vector_registers, depth=4096, in_flight=flight)
    assert flight == least <= tile.rows * tile.vectors


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "n", "k"), [(37, 1000, 6), (130, 1024, 20), (5, 777, 9), (701, 1001, 3), (830, 512, 1)])
def test_short_sums_of_wide_matrices(m: int, n: int, k: int, threads: int) -> None:
    """Panels that are packed together are gone through for each tile of rows, those of the rows that fill none, too."""
    x, weights = RNG.standard_normal((m, k), dtype=np.float32), RNG.standard_normal((k, n), dtype=np.float32)
    result, _ = run(weights, x, constant=False, transposed=False, cpu=None, threads=threads)
    np.testing.assert_allclose(result, np.maximum(x @ weights, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("m", "n", "k", "outermost"),
    [(16, 784, 100, "i1_0"), (33, 1000, 57, "i1_0"), (2000, 1024, 2, "i0_0")],
)
def test_threads_share_the_outermost_loop(m: int, n: int, k: int, outermost: str) -> None:
    """Groups of panels, which each packs for itself, or rows of a result that takes longer to store than to make."""
    x, weights = RNG.standard_normal((m, k), dtype=np.float32), RNG.standard_normal((k, n), dtype=np.float32)
    result, blocks = run(weights, x, constant=False, transposed=False, cpu="znver4", threads=2)
    np.testing.assert_allclose(result, np.maximum(x @ weights, 0), rtol=1e-4, atol=1e-4)
    loops = [loop for loop in enclosing(blocks[-1]) if isinstance(loop, tir.ForOp)]
    assert (loops[-1].var_name.data, loops[-1].kind.data) == (outermost, "parallel")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("batch", "m", "k"), [(3, 31, 130), (4, 40, 64), (1, 700, 33), (5, 1, 97)])
def test_columns_of_a_batch(batch: int, m: int, k: int, threads: int) -> None:
    """A matrix times one column, for each of a batch: vectors lie along the sums."""
    a, b = RNG.standard_normal((batch, m, k), dtype=np.float32), RNG.standard_normal((batch, k, 1), dtype=np.float32)
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    out = relay.nn.relu(relay.nn.batch_matmul(x, y, transpose_b=False))
    module = mirstack.IRModule.from_expr(relay.Function([x, y], out))
    for cpu in (None, "haswell"):
        got = mirstack.compile(module, threads=threads, cpu=cpu)(a, b)
        np.testing.assert_allclose(got, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "n", "k"), [(300, 1, 259), (5, 300, 127), (8, 1000, 37), (7, 131, 9)])
def test_a_transposed_matrix_is_read_in_rows(m: int, n: int, k: int, threads: int) -> None:
    """The columns of the transpose lie in rows of the matrix, also where a single column is multiplied; an odd number of rows leaves some
    for a turn of their own."""
    a, b = RNG.standard_normal((k, m), dtype=np.float32), RNG.standard_normal((k, n), dtype=np.float32)
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    blocks: list[str] = []

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "default-schedule":
            blocks.extend(op.block_name.data for op in walk_ops(module) if isinstance(op, tir.BlockOp))

    module = mirstack.IRModule.from_expr(relay.Function([x, y], relay.nn.matmul(x, y, transpose_a=True)))
    got = mirstack.compile(module, threads=threads, observers=(keep,))(a, b)
    np.testing.assert_allclose(got, a.T @ b, rtol=1e-4, atol=1e-4)
    assert not any("pad" in name or "global" in name for name in blocks)


@pytest.mark.parametrize(("m", "threads"), [(9, 1), (16, 2), (17, 1)])
def test_few_rows_read_a_large_matrix_once(m: int, threads: int) -> None:
    """Beyond the second-level cache sixteen rows are too few for panels; within it, nine are enough."""
    a, b = RNG.standard_normal((m, 75)).astype("float32"), RNG.standard_normal((75, 130)).astype("float32")
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    module = mirstack.IRModule.from_expr(relay.Function([x, y], relay.nn.matmul(x, y)))
    for caches in ("16K,32K,1M", ""):
        got = mirstack.compile(module, threads=threads, caches=caches, cache=False)(a, b)
        np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("n", "cores", "columns"),
    [(4096, 1, 4096), (4096, 2, 2048), (2000, 2, 1008), (50257, 2, 6288), (100000, 2, 8192), (40000, 3, 6672)],
)
def test_blocks_of_columns_are_shared_out_evenly(n: int, cores: int, columns: int) -> None:
    function = parse_mir(f"""
@T.prim_func
def main(A: T.Buffer((1, 64), "float32"), B: T.Buffer((64, {n}), "float32"), C: T.Buffer((1, {n}), "float32")):
    for i, j, k in T.grid(1, {n}, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    (block,) = [op for op in walk_ops(function) if isinstance(op, tir.BlockOp)]
    shape = shape_of(block)
    match = None if shape is None else match_contraction(shape)
    assert match is not None and columns_of_block(match, named("znver4", cores)) == columns


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(("vectors", "halves", "more"), [(1, 1, 0), (2, 0, 1), (2, 1, 0), (2, 1, 1)])
def test_sums_are_stored_as_registers_hold_them(vectors: int, halves: int, more: int, cpu: str | None) -> None:
    """Columns that fill no vector are stored in whole ones and a remainder, not in equal parts put together in memory; the remainder as a
    shorter vector where masks cost more."""
    lanes = named(cpu or "").lanes(4)
    columns = vectors * lanes + halves * lanes // 2 + more
    x, weights = RNG.standard_normal((41, 20), dtype=np.float32), RNG.standard_normal((20, columns), dtype=np.float32)
    result, blocks = run(weights, x, constant=True, transposed=False, cpu=cpu)
    np.testing.assert_allclose(result, np.maximum(x @ weights, 0), rtol=1e-4, atol=1e-4)
    around = [next(enclosing(block)) for block in blocks if block.block_name.data.startswith("T_elemwise")]
    stored = [loop.extent for loop in around if isinstance(loop, tir.ForOp) and loop.kind.data == "vectorized"]
    rest = 0 if named(cpu or "").has_masked_stores else columns % lanes
    assert {const_int(extent) for extent in stored} == {lanes, rest if rest > 1 else lanes}


@pytest.mark.parametrize(("rows", "inner"), [(6, [8, 6, 8]), (16, [8, 8, 16])])
def test_rows_of_the_matrix_are_loaded_once_where_registers_hold_all_sums(rows: int, inner: list[int]) -> None:
    """Turns of the sum run around the rows there, else inside of them."""
    x, weights = RNG.standard_normal((rows, 512), dtype=np.float32), RNG.standard_normal((512, 1000), dtype=np.float32)
    result, blocks = run(weights, x, constant=False, transposed=False, cpu="haswell")
    np.testing.assert_allclose(result, np.maximum(x @ weights, 0), rtol=1e-3, atol=1e-3)
    update = next(block for block in blocks if block.block_name.data.endswith("_update"))
    around = [const_int(loop.extent) for loop in enclosing(update) if isinstance(loop, tir.ForOp)]
    assert around[:3] == inner
