"""Forms around an attention: heads of layers whose rows are filled up, heads that share keys, and a schedule that is refused."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects import tir
from mirstack.dialects.array import numpy_dtype
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from mirstack.passes.registry import pass_factories
from mirstack.passes.schedule.analysis.structure import const_int
from mirstack.support.walk import walk_ops
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

Array = NDArray[Any]

LAYER = """
def @main(%q: Tensor[(ROWS, WIDTH), float32], %k: Tensor[(ROWS, WIDTH), float32], %v: Tensor[(ROWS, WIDTH), float32]) {
  %0 = reshape(transpose(reshape(%q, newshape=[BATCH, TOKENS, HEADS, 16]), axes=[0, 2, 1, 3]), newshape=[-1, TOKENS, 16]);
  %1 = reshape(transpose(reshape(%k, newshape=[BATCH, TOKENS, HEADS, 16]), axes=[0, 2, 1, 3]), newshape=[-1, TOKENS, 16]);
  %2 = reshape(transpose(reshape(%v, newshape=[BATCH, TOKENS, HEADS, 16]), axes=[0, 2, 1, 3]), newshape=[-1, TOKENS, 16]);
  %3 = nn.softmax(multiply(nn.batch_matmul(%0, %1, transpose_b=True), 0.25f));
  %4 = reshape(nn.batch_matmul(%3, %2, transpose_b=False), newshape=[BATCH, HEADS, TOKENS, 16]);
  reshape(transpose(%4, axes=[0, 2, 1, 3]), newshape=[ROWS, WIDTH])
}
"""
SHARED = """
def @main(%q: Tensor[(6, 20, 16), float32], %k: Tensor[(2, 24, 16), float32], %v: Tensor[(2, 24, 16), float32]) {
  %0 = reshape(%q, newshape=[2, 60, 16]);
  %1 = nn.softmax(multiply(nn.batch_matmul(%0, %k, transpose_b=True), 0.25f));
  reshape(nn.batch_matmul(%1, %v, transpose_b=False), newshape=[6, 20, 16])
}
"""
REFUSED = """
def @main(%q: Tensor[(2, 60, 16), float32], %k: Tensor[(2, 24, 16), float32], %v: Tensor[(2, 24, 16), float32]) {
  %9 = fn (%a: Tensor[(2, 60, 16), float32], %b: Tensor[(2, 24, 16), float32], %c: Tensor[(2, 24, 16), float32], Primitive=1) {
    %0 = nn.batch_matmul(%a, %b, transpose_b=True);
    %1 = multiply(%0, 0.25f);
    %2 = exp(subtract(%1, max(%1, axis=[-1], keepdims=True)));
    %3 = divide(nn.batch_matmul(%2, %c, transpose_b=False), sum(%2, axis=[-1], keepdims=True));
    reshape(%3, newshape=[6, 20, 16])
  };
  %9(%q, %k, %v)
}
"""
"""The last reshape cuts rows that belong together, which only a kernel of a person's own has in it."""


def attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(Q·Kᵀ / 4)·V."""
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) / 4
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = weights / weights.sum(-1, keepdims=True) @ v
    return result


def run_and_keep(text: str, inputs: list[Array], cpu: str | None = None) -> tuple[Array, list[tir.PrimFuncOp]]:
    """The result, and the kernels as they are scheduled for one thread."""
    scheduled: list[ModuleOp] = []

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "default-schedule":
            scheduled.append(module.clone())

    run = mirstack.compile(mirstack.parse(text), threads=1, cpu=cpu, observers=(keep,))
    return run(*inputs), [op for module in scheduled for op in module.ops if isinstance(op, tir.PrimFuncOp)]


def outermost_loops(kernel: tir.PrimFuncOp) -> list[list[str]]:
    """The blocks' names in each of a kernel's outermost loops."""
    loops = [op for op in kernel.body.block.ops if isinstance(op, tir.ForOp)]
    return [[b.block_name.data for b in walk_ops(loop) if isinstance(b, tir.BlockOp)] for loop in loops]


def assert_together(kernels: list[tir.PrimFuncOp]) -> None:
    """One kernel has both products in one loop, and its tiles are small."""
    (kernel,) = (k for k in kernels if "batch_matmul_NN" in print_mir(ModuleOp([k.clone()])))
    products = ("batch_matmul_NT_update", "batch_matmul_NN_update")
    assert any(all(any(p in name for name in names) for p in products) for names in outermost_loops(kernel))
    unrolled = [op for op in walk_ops(kernel) if isinstance(op, tir.ForOp) and "unroll" in op.kind.data]
    assert all((const_int(op.extent) or 0) <= 24 for op in unrolled)


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(("batch", "tokens", "heads"), [(1, 53, 3), (2, 53, 3), (2, 24, 1)])
def test_rows_that_are_filled_up(batch: int, tokens: int, heads: int, cpu: str | None) -> None:
    """A prime number of tokens fills no tiles: rows are filled up, and only the real ones are put together again."""
    sizes = {"BATCH": batch, "TOKENS": tokens, "HEADS": heads, "ROWS": batch * tokens, "WIDTH": heads * 16}
    text = LAYER
    for name, size in sizes.items():
        text = text.replace(name, str(size))
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((batch * tokens, heads * 16), dtype=np.float32) for _ in range(3)]
    result, kernels = run_and_keep(text, inputs, cpu)
    q, k, v = (x.reshape(batch, tokens, heads, 16).swapaxes(1, 2) for x in inputs)
    expected = attention(q, k, v).swapaxes(1, 2).reshape(batch * tokens, heads * 16)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert_together(kernels)


@pytest.mark.parametrize("kind", ["split", "strided_slice"])
def test_parts_of_one_projection(kind: str) -> None:
    """Queries, keys and values are columns of one matrix: the kernel reads them there."""
    parts = ["%9.0", "%9.1", "%9.2"]
    if kind == "strided_slice":
        parts = [f"strided_slice(%x, begin=[{48 * k}], end=[{48 * k + 48}], axes=[1])" for k in range(3)]
    text = LAYER.replace(
        "def @main(%q: Tensor[(ROWS, WIDTH), float32], %k: Tensor[(ROWS, WIDTH), float32], %v:", "def @main(%x:"
    )
    text = text.replace("%x: Tensor[(ROWS, WIDTH)", "%x: Tensor[(ROWS, 144)")
    if kind == "split":
        text = text.replace("{\n", "{\n  %9 = split(%x, indices_or_sections=3, axis=1);\n", 1)
    for name, part in zip(("%q", "%k", "%v"), parts, strict=True):
        text = text.replace(name, part)
    for name, size in {"BATCH": 1, "TOKENS": 37, "HEADS": 3, "ROWS": 37, "WIDTH": 48}.items():
        text = text.replace(name, str(size))
    x = np.random.default_rng(0).standard_normal((37, 144), dtype=np.float32)
    result, kernels = run_and_keep(text, [x])
    q, k, v = (part.reshape(1, 37, 3, 16).swapaxes(1, 2) for part in np.split(x, 3, axis=1))
    np.testing.assert_allclose(result, attention(q, k, v).swapaxes(1, 2).reshape(37, 48), rtol=1e-4, atol=1e-5)
    assert len(kernels) == 1
    assert_together(kernels)


def test_heads_that_share_keys() -> None:
    """Queries of several heads are rows of one matrix; the reshape that parts them stays outside."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape, dtype=np.float32) for shape in ((6, 20, 16), (2, 24, 16), (2, 24, 16))]
    result, kernels = run_and_keep(SHARED, inputs)
    q, k, v = inputs
    expected = attention(q, k.repeat(3, axis=0), v.repeat(3, axis=0))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert_together(kernels)


DIRECT = """
def @main(%q: Tensor[(HEADS, ROWS, 24), float32], %k: Tensor[(HEADS, KEYS, 24), float32], %v: Tensor[(HEADS, KEYS, WIDTH), float32]) {
  %0 = nn.softmax(multiply(nn.batch_matmul(%q, %k, transpose_b=True), 0.25f));
  nn.batch_matmul(%0, %v, transpose_b=False)
}
"""


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize("width", [64, 48, 33])
@pytest.mark.parametrize(("heads", "rows", "keys"), [(2, 20, 37), (1, 32, 64), (3, 17, 300)])
def test_values_where_they_lie(heads: int, rows: int, keys: int, width: int, cpu: str | None) -> None:
    """Rows of V that are whole panels are read in place, others are packed, of K the last panel is not full; heads, or where threads
    cannot share them evenly blocks of rows, are shared out to two threads."""
    text = DIRECT
    for name, size in {"HEADS": heads, "ROWS": rows, "KEYS": keys, "WIDTH": width}.items():
        text = text.replace(name, str(size))
    rng = np.random.default_rng(0)
    shapes = ((heads, rows, 24), (heads, keys, 24), (heads, keys, width))
    inputs = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    for threads in (1, 2):
        run = mirstack.compile(mirstack.parse(text), threads=threads, cpu=cpu)
        np.testing.assert_allclose(run(*inputs), attention(*inputs), rtol=1e-4, atol=1e-5)


REPEATED = """
def @main(%q: Tensor[(6, ROWS, 16), float32], %k: Tensor[(1, 2, KEYS, 16), float32], %v: Tensor[(1, KEYS, 2, 16), float32]) {
  %0 = broadcast_to(expand_dims(%k, axis=2), shape=[1, 2, 3, KEYS, 16]);
  %1 = reshape(transpose(reshape(%0, newshape=[1, 6, KEYS, 16]), axes=[0, 1, 3, 2]), newshape=[6, 16, KEYS]);
  %2 = nn.softmax(multiply(nn.batch_matmul(%q, %1, transpose_b=False), 0.25f));
  %3 = reshape(transpose(repeat(%v, repeats=3, axis=2), axes=[0, 2, 1, 3]), newshape=[6, KEYS, 16]);
  nn.batch_matmul(%2, %3, transpose_b=False)
}
"""


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(("rows", "keys"), [(1, 37), (3, 130), (20, 24)])
def test_keys_are_not_copied_for_heads_that_share_them(rows: int, keys: int, cpu: str | None) -> None:
    """Of few queries and of many: tensors between kernels take less than keys of all heads."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(s, dtype=np.float32) for s in ((6, rows, 16), (1, 2, keys, 16), (1, keys, 2, 16))]
    run = mirstack.compile(
        mirstack.parse(REPEATED.replace("ROWS", str(rows)).replace("KEYS", str(keys))), threads=1, cpu=cpu
    )
    q, k, v = inputs[0], inputs[1][0], inputs[2][0].swapaxes(0, 1)
    expected = attention(q, k.repeat(3, axis=0), v.repeat(3, axis=0))
    np.testing.assert_allclose(run(*inputs), expected, rtol=1e-4, atol=1e-5)
    assert isinstance(run, RelayExecutable)
    assert run.arena_bytes < inputs[1].nbytes * 3


@pytest.mark.parametrize(("dtype", "unit"), [("bfloat16", 2.0**-8), ("float16", 2.0**-11)])
def test_half_precision_is_rounded_once(dtype: str, unit: float) -> None:
    """The kernel is that of float32: sums, scores and their softmax are not rounded in between."""
    text = LAYER.replace("nn.softmax(multiply(", "nn.softmax(add(multiply(").replace(
        "0.25f));", 'cast(0.25f, dtype="H")), %m));'
    )
    text = text.replace(
        "%v: Tensor[(ROWS, WIDTH), float32]", "%v: Tensor[(ROWS, WIDTH), float32], %m: Tensor[(24, 24), float32]"
    )
    for word, value in {
        "ROWS": 24,
        "WIDTH": 32,
        "BATCH": 1,
        "TOKENS": 24,
        "HEADS": 2,
        "float32": dtype,
        '"H"': f'"{dtype}"',
    }.items():
        text = text.replace(word, str(value))
    rng = np.random.default_rng(0)
    element = numpy_dtype(dtype)
    q, k, v = (rng.standard_normal((24, 32)).astype(element) for _ in range(3))
    found, kernels = run_and_keep(text, [q, k, v, np.zeros((24, 24), element)])
    heads = [x.astype(np.float64).reshape(24, 2, 16).swapaxes(0, 1) for x in (q, k, v)]
    expected = attention(*heads).swapaxes(0, 1).reshape(24, 32)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1.01 * unit, atol=1e-5)
    texts = [print_mir(ModuleOp([kernel.clone()])) for kernel in kernels]
    assert [f'"{dtype}"' in kernel for kernel in texts if "T.exp(" in kernel] == [False]


def test_a_refused_schedule_leaves_nothing_behind() -> None:
    """Blocks are then scheduled one by one: each product on its own, in registers; what is printed does the same."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape, dtype=np.float32) for shape in ((2, 60, 16), (2, 24, 16), (2, 24, 16))]
    result, (kernel,) = run_and_keep(REFUSED, inputs)
    np.testing.assert_allclose(result.reshape(2, 60, 16), attention(*inputs), rtol=1e-4, atol=1e-5)
    names = outermost_loops(kernel)
    assert all(any(p in name for loop in names for name in loop) for p in ("NT_update", "NN_update"))
    assert not any("NT_update" in a and "NN_update" in a for a in map(" ".join, names))

    module = mirstack.parse(REFUSED)
    steps = ("infer-type", "fuse-ops", "lower-relay-to-te", "lower-te-to-tir")
    for step in steps:
        pass_factories()[step]()().apply(Context(), module)
    plain = module.clone()
    DefaultSchedule(threads=1).apply(Context(), module)
    DefaultSchedule(threads=1, print=True).apply(Context(), plain)
    plain = parse_mir(print_mir(plain))
    pass_factories()["apply-schedule"]()().apply(Context(), plain)

    def kernels(where: ModuleOp) -> list[str]:
        return [print_mir(ModuleOp([op.clone()])) for op in where.ops if isinstance(op, tir.PrimFuncOp)]

    assert [k.replace(' "tir.is_scheduled": T.int32(1),', "") for k in kernels(plain)] == kernels(module)
