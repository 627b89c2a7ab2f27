"""default-schedule: scheduled functions compute what they did, have the shape that the rules promise, on every target."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.autoschedule import auto_inline as inline
from mirstack.passes.autoschedule.contraction.tile import Turns, best_tile
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from mirstack.passes.registry import pass_factories
from mirstack.support.diagnostics import MirError
from mirstack.support.target import named
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

CPUS = ("x86-64", "haswell", "znver4", "neoverse-n1")


def scheduled(text: str, cpu: str = "znver4", threads: int = 4) -> str:
    """The script after default-schedule, which must read back."""
    module = parse_mir(text)
    DefaultSchedule(cpu=cpu, threads=threads).apply(Context(), module)
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    return printed


def matmul(m: int, n: int, k: int, transposed: bool = True, dtype: str = "float32") -> str:
    """C = relu(A B + b), B given as n x k or k x n."""
    shape, index = (f"({n}, {k})", "vj, vk") if transposed else (f"({k}, {n})", "vk, vj")
    return f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "{dtype}"), B: T.Buffer({shape}, "{dtype}"), b: T.Buffer(({n},), "{dtype}"), D: T.Buffer(({m}, {n}), "{dtype}")):
    T.func_attr({{"tir.noalias": T.bool(True)}})
    C = T.alloc_buffer(({m}, {n}), "{dtype}")
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{dtype}(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[{index}]
    for i, j in T.grid({m}, {n}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj] + b[vj], T.{dtype}(0))
"""


def run(text: str, arrays: list[np.ndarray[Any, Any]], cpu: str | None = None) -> None:
    """Runs the function on the arrays, in place; also with the bare loops, to the same end."""
    copies = [a.copy() for a in arrays]
    mirstack.compile(mirstack.parse(text), cpu=cpu)(*arrays)
    mirstack.compile(mirstack.parse(text), opt_level=0)(*copies)
    for ours, plain in zip(arrays, copies, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(
    "shape",
    [(1, 10, 128), (3, 7, 5), (8, 48, 256), (16, 64, 160), (33, 17, 29), (64, 50, 100), (67, 131, 41), (128, 96, 64)],
)
def test_contraction_computes_the_product(shape: tuple[int, int, int], transposed: bool) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((n, k) if transposed else (k, n))
    bias = rng.standard_normal(n)
    arrays = [x.astype(np.float32) for x in (a, b, bias, np.zeros((m, n)))]
    run(matmul(m, n, k, transposed), arrays)
    expected = np.maximum(a @ (b.T if transposed else b) + bias, 0)
    np.testing.assert_allclose(arrays[3], expected, rtol=1e-4, atol=1e-4)


def test_contraction_on_avx2() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((61, 70), (45, 70), (45,), (61, 45))]
    run(matmul(61, 45, 70), arrays, cpu="haswell")


def test_contraction_in_double() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((32, 40), (24, 40), (24,), (32, 24))]
    run(matmul(32, 24, 40, dtype="float64"), arrays)


@pytest.mark.parametrize("cpu", CPUS)
def test_contraction_is_tiled_for_the_target(cpu: str) -> None:
    target = named(cpu, 4)
    turns, sums = Turns(target.cores), target.independent_sums
    _, tile = best_tile(240, 240, target.lanes(4), target.vector_registers, turns=turns, in_flight=sums)
    text = scheduled(matmul(240, 240, 240), cpu)
    assert tile.rows * tile.vectors + tile.vectors < target.vector_registers
    assert f"T.vectorized({tile.lanes})" in text and f"T.unroll({tile.rows})" in text
    for part in ('T.block("C_init")', 'T.block("C_update")', 'T.block("D")', 'scope="local"', "T.parallel("):
        assert part in text


def test_what_follows_is_applied_to_the_tile() -> None:
    text = scheduled(matmul(100, 100, 100), threads=1)
    assert text.index("C_update") < text.index('T.block("D")') and 'C_pad")' not in text
    assert "T.parallel" not in text


def test_few_rows_are_not_packed() -> None:
    text = scheduled(matmul(4, 64, 512), threads=1)
    assert 'alloc_buffer((4, 64), scope="local")' in text and "vectorized" not in text


def test_scheduled_functions_are_left_alone() -> None:
    text = (
        matmul(64, 64, 64)
        .replace("T.grid(64, 64, 64)", "T.grid(64, 64, 64)")
        .replace("for i, j in T.grid(64, 64):", "for i in T.parallel(64):\n        for j in range(64):")
        .replace(
            '        with T.block("D"):\n            vi, vj', '            with T.block("D"):\n                vi, vj'
        )
        .replace("            D[vi, vj]", "                D[vi, vj]")
    )
    assert scheduled(text) == print_mir(parse_mir(text))


ELEMENTWISE = """
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), b: T.Buffer(({m},), "float32"), C: T.Buffer(({n}, {m}), "float32")):
    T.func_attr({{"tir.noalias": T.bool(True)}})
    B = T.alloc_buffer(({n}, {m}))
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(B[vi, vj]) + b[vj]
"""


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (7, 16), (9, 33), (64, 100), (128, 257)])
def test_elementwise(shape: tuple[int, int]) -> None:
    n, m = shape
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in (shape, (m,), shape))
    arrays = [a, b, c]
    run(ELEMENTWISE.format(n=n, m=m), arrays)
    np.testing.assert_allclose(c, np.exp(a * 2) + b, rtol=1e-5, atol=1e-5)


def test_elementwise_is_inlined_and_vectorized() -> None:
    text = scheduled(ELEMENTWISE.format(n=512, m=512))
    assert 'T.block("B")' not in text and "T.vectorized(32)" in text and "T.parallel(512)" in text


def halves(first: int, second: int, size: int = 64) -> str:
    """exp of a matrix, of whose columns two others take some."""
    return f"""
@T.prim_func
def main(A: T.Buffer((32, 64), "float32"), C: T.Buffer((32, {size}), "float32"), D: T.Buffer((32, {size}), "float32")):
    B = T.alloc_buffer((32, 64))
    for i, j in T.grid(32, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.exp(A[vi, vj])
    for i, j in T.grid(32, {size}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj + {first}]
    for i, j in T.grid(32, {size}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj + {second}] + T.float32(1)
"""


def test_what_readers_share_out_is_not_stored() -> None:
    """The parts of a split are computed where they are; what two read is stored if it costs much."""
    assert 'T.block("B")' not in scheduled(halves(0, 32, 32))
    assert 'T.block("B")' in scheduled(halves(0, 0, 64))
    # A copy is not stored, but rows from anywhere in a table are read once.
    assert 'T.block("B")' not in scheduled(halves(0, 1, 63).replace("T.exp(A[vi, vj])", "A[vi, 63 - vj]"))
    table = halves(0, 0, 64).replace("T.exp(A[vi, vj])", "A[T.Cast('int32', A[0, vi]), vj]")
    assert 'T.block("B")' in scheduled(table)


def test_pairs_of_a_stack_are_computed_in_their_places() -> None:
    """Rotary embeddings: even and odd elements turn one another."""
    text = """def @main(%x: Tensor[(4, 3, 32), float32], %c: Tensor[(16,), float32], %s: Tensor[(16,), float32]) {
      %0 = strided_slice(%x, begin=[0], end=[32], strides=[2], axes=[2]);
      %1 = strided_slice(%x, begin=[1], end=[32], strides=[2], axes=[2]);
      %2 = subtract(multiply(%0, %c), multiply(%1, %s));
      %3 = add(multiply(%0, %s), multiply(%1, %c));
      reshape(stack((%2, %3), axis=3), newshape=[4, 3, 32])
    }"""
    seen: list[str] = []

    def look(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "default-schedule":
            seen.append(print_mir(module))

    rng = np.random.default_rng(0)
    x, c, s = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3, 32), (16,), (16,)))
    turned = mirstack.compile(mirstack.parse(text), observers=(look,))(x, c, s)
    assert "alloc_buffer" not in "".join(seen)
    even, odd = x[..., ::2], x[..., 1::2]
    expected = np.stack((even * c - odd * s, even * s + odd * c), 3).reshape(x.shape)
    np.testing.assert_allclose(turned, expected, rtol=1e-5, atol=1e-5)


def stages(count: int) -> str:
    """`count` additions, each a block of its own."""
    names = [*(f"B{k}" for k in range(count - 1)), "O"]
    lines = ['@T.prim_func\ndef main(A: T.Buffer((40, 48), "float32"), O: T.Buffer((40, 48), "float32")):']
    lines += [f"    {name} = T.alloc_buffer((40, 48))" for name in names[:-1]]
    for before, name in zip(["A", *names], names, strict=False):
        lines.append(
            f"""    for i, j in T.grid(40, 48):
        with T.block("{name}"):
            vi, vj = T.axis.remap("SS", [i, j])
            {name}[vi, vj] = {before}[vi, vj] + T.float32(1)"""
        )
    return "\n".join(lines) + "\n"


def test_chains_of_very_many_stages_are_a_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "LONGEST", 16)
    assert scheduled(stages(8)).count('with T.block("B') == 0
    assert scheduled(stages(40)).count('with T.block("B') == 2
    run(stages(40), [np.zeros((40, 48), np.float32), np.zeros((40, 48), np.float32)])


def test_the_time_of_a_chain_grows_with_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "LONGEST", 16)

    def seconds(count: int) -> float:
        module = parse_mir(stages(count))
        return cpu_seconds(lambda: DefaultSchedule(cpu="znver4", threads=1).apply(Context(), module))

    assert growth(seconds, 32, 128, below=7) < 7


def test_long_chains_take_two_vectors_a_turn() -> None:
    def chain(size: int, cpu: str, body: str = "T.tanh(A[v]) * T.sigmoid(A[v])") -> str:
        text = f"""
@T.prim_func
def main(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32")):
    for i in range({size}):
        with T.block("B"):
            v = T.axis.spatial({size}, i)
            B[v] = {body}
"""
        return scheduled(text, cpu, threads=1)

    printed = chain(1 << 12, "znver4")
    assert "in range(128)" in printed and "T.vectorized(32)" in printed
    assert "T.vectorized(16)" in chain(1 << 12, "haswell")
    # An odd number of vectors, and processors of another kind: one vector a turn.
    assert "T.vectorized(16)" in chain(17 * 16, "znver4")
    assert "T.vectorized(4)" in chain(1 << 12, "neoverse-n1")
    assert "T.vectorized(8)" in chain(1 << 12, "haswell", "T.exp(A[v])")


def test_images_of_whole_vectors_are_joined_row_by_row() -> None:
    """Where a fused axis would be divided in each turn: 56 columns are seven vectors of AVX2, but no whole number of AVX-512's."""
    joined = """from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8, 56, 56), "float32"), B: T.Buffer((8, 56, 56), "float32"), C: T.Buffer((16, 56, 56), "float32")):
    for c, h, w in T.grid(16, 56, 56):
        with T.block("C"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            C[vc, vh, vw] = T.if_then_else(vc >= 8, B[vc - 8, vh, vw], A[vc, vh, vw])
"""
    assert "//" not in scheduled(joined, "haswell")
    assert "// 56" in scheduled(joined, "znver4")


def test_small_kernels_stay_on_one_thread() -> None:
    assert "T.parallel" not in scheduled(ELEMENTWISE.format(n=8, m=16))


SOFTMAX = """
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), D: T.Buffer(({n}, {m}), "float32")):
    T.func_attr({{"tir.noalias": T.bool(True)}})
    M = T.alloc_buffer(({n},))
    E = T.alloc_buffer(({n}, {m}))
    S = T.alloc_buffer(({n},))
    for i, k in T.grid({n}, {m}):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, j in T.grid({n}, {m}):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(A[vi, vj] - M[vi])
    for i, k in T.grid({n}, {m}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid({n}, {m}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = E[vi, vj] / S[vi]
"""


@pytest.mark.parametrize("shape", [(1, 10), (6, 50), (32, 128), (70, 1000)])
def test_softmax_runs_row_by_row(shape: tuple[int, int]) -> None:
    n, m = shape
    rng = np.random.default_rng(0)
    a, d = rng.standard_normal(shape).astype(np.float32), np.zeros(shape, np.float32)
    run(SOFTMAX.format(n=n, m=m), [a, d])
    e = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(d, e / e.sum(1, keepdims=True), rtol=1e-5)
    text = scheduled(SOFTMAX.format(n=64, m=256))
    # One loop over rows holds every stage.
    assert text.count("range(64)") + text.count("T.parallel(64)") == 1


COLUMN_SUM = """
@T.prim_func
def main(A: T.Buffer((40, 70), "float32"), C: T.Buffer((70,), "float32")):
    for j, k in T.grid(70, 40):
        with T.block("C"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                C[vj] = T.float32(0)
            C[vj] = C[vj] + A[vk, vj]
"""


def test_reduction_over_rows_is_vectorized_over_columns() -> None:
    a, c = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32), np.zeros(70, np.float32)
    run(COLUMN_SUM, [a, c])
    np.testing.assert_allclose(c, a.sum(0), rtol=1e-5)
    assert "T.vectorized(16)" in scheduled(COLUMN_SUM)


OPEN_COLUMN_SUM = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A, C = T.match_buffer(a, (n, m)), T.match_buffer(c, (m,))
    for j, k in T.grid(m, n):
        with T.block("C"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                C[vj] = T.float32(0)
            C[vj] = C[vj] + A[vk, vj]
"""


def test_rows_of_unknown_length_are_one_strip() -> None:
    """A strip's loop would go on far past the end of a short row."""
    for rows, columns in ((9, 5), (3, 0), (0, 5), (17, 100)):
        a, c = (
            np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32),
            np.ones(columns, np.float32),
        )
        run(OPEN_COLUMN_SUM, [a, c])
        np.testing.assert_allclose(c, a.sum(0), rtol=1e-5, atol=1e-6)
    loops = re.findall(r"range\((.*)\):", scheduled(OPEN_COLUMN_SUM))
    assert loops
    assert all("m" in extent or "n" in extent for extent in loops), loops


MEAN = """
@T.prim_func
def main(A: T.Buffer((12, 25, 51), "float32"), D: T.Buffer((), "float32")):
    S = T.alloc_buffer(())
    for i, j, k in T.grid(12, 25, 51):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("RRR", [i, j, k])
            with T.init():
                S[()] = T.float32(0)
            S[()] = S[()] + A[vi, vj, vk]
    with T.block("D"):
        v = T.axis.spatial(1, 0)
        D[()] = S[()] / T.float32(15300)
"""


def test_a_single_value_does_not_keep_others_from_vectors() -> None:
    assert '"reduction_lanes": 16' in scheduled(MEAN)
    a, d = np.random.default_rng(0).random((12, 25, 51), np.float32), np.zeros((), np.float32)
    run(MEAN, [a, d])
    np.testing.assert_allclose(d, a.mean(dtype=np.float64), rtol=1e-5)


def test_unknown_processor() -> None:
    with pytest.raises(MirError, match="nothing is known of a processor 'pentium'"):
        DefaultSchedule(cpu="pentium").apply(Context(), parse_mir(COLUMN_SUM))


def test_convolutions_with_channels_in_blocks_are_contractions() -> None:
    """Their channels are written by number, (outer * 16 + inner) // 16, which is found to be an axis."""
    text = """
def @main(%x: Tensor[(1, 2, 10, 10, 16), float32], %w: Tensor[(3, 2, 3, 3, 16, 16), float32]) {
  nn.relu(nn.contrib_conv2d_NCHWc(
    %x, %w, channels=48, kernel_size=[3, 3], data_layout="NCHW16c", kernel_layout="OIHW16i16o", out_layout="NCHW16c"
  ))
}
"""
    module = parse_mir(text)
    pipeline = "fuse-ops,lower-relay-to-te,lower-te-to-tir,default-schedule{cpu=znver4 threads=1}"
    for module_pass in read_pipeline(pipeline, pass_factories()):
        module_pass.apply(Context(), module)
    printed = print_mir(module)
    # Weights are packed by columns of the output's last axis, tiles stay in registers, relu is applied to them.
    assert "p1_global = T.alloc_buffer" in printed and 'scope="local"' in printed
    update = printed[printed.index('T.block("conv2d_update")') :]
    assert "v_i4 // 16" not in printed and "* p1_global[v_i1, 0, v_rc // 16, v_rh, v_rw, v_rc % 16, v_i4]" in update
    assert "T.max(conv2d[" in update
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype("float32") for shape in ((1, 2, 10, 10, 16), (3, 2, 3, 3, 16, 16))]
    ours, plain = (np.asarray(mirstack.compile(parse_mir(text), opt_level=level)(*inputs)) for level in (3, 0))
    np.testing.assert_allclose(ours, plain, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("function, vectors", [("", False), ("T.exp", True)])
def test_what_is_read_anywhere_is_read_one_by_one(function: str, vectors: bool):
    """Lanes from anywhere are as many loads as without vectors, which only an expensive function is worth."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((40, 50), "float32"), I: T.Buffer((99,), "int32"), B: T.Buffer((40, 99), "float32")):
    for i, j in T.grid(40, 99):
        with T.block("take"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = {function}(A[vi, T.max(T.min(I[vj], 49), 0)])
"""
    assert ("T.vectorized" in scheduled(text)) == vectors


def test_rows_from_anywhere_are_read_in_vectors():
    text = """
@T.prim_func
def main(A: T.Buffer((50, 64), "float32"), I: T.Buffer((99,), "int32"), B: T.Buffer((99, 64), "float32")):
    for i, j in T.grid(99, 64):
        with T.block("take"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[T.max(T.min(I[vi], 49), 0), vj]
"""
    assert "T.vectorized" in scheduled(text)


def test_threads_share_one_axis_of_a_transpose_whose_rows_are_merged():
    """A loop fused of both axes would divide twice, and tiles would not be seen to be any."""
    text = """
@T.prim_func
def main(A: T.Buffer((64, 100, 50), "float32"), B: T.Buffer((50, 64, 100), "float32")):
    for i, j, k in T.grid(50, 64, 100):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vj, vk, vi]
"""
    assert "T.parallel(400)" in scheduled(text, threads=2)
