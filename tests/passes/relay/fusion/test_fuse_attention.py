"""Attention as one kernel: against numpy over sizes, masks, forms and processors, and that it is scheduled as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects import tir
from mirstack.parser import print_mir
from mirstack.passes.autoschedule import attention as rule
from mirstack.support.target import named
from mirstack.support.walk import walk_ops
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """Sizes of an attention, and what is done to its scores."""

    heads: int
    queries: int
    keys: int
    depth: int
    width: int
    change: str = ""
    """`where` with a mask, `add` of a bias for each score, `keys` for each key of a head."""

    def text(self) -> str:
        bias = {
            "where": f", %m: Tensor[({self.queries}, {self.keys}), bool]",
            "add": f", %m: Tensor[({self.queries}, {self.keys}), float32]",
            "keys": f", %m: Tensor[({self.heads}, 1, {self.keys}), float32]",
        }.get(self.change, "")
        changed = {"where": "where(%m, %1, -1e9f)", "add": "add(%1, %m)", "keys": "add(%m, %1)"}.get(self.change, "%1")
        types = ", ".join(f"%{n}: Tensor[{s}, float32]" for n, s in zip("qkv", self.shapes(), strict=True))
        return f"""
            def @main({types}{bias}) {{
              %0 = nn.batch_matmul(%q, %k, transpose_b=True);
              %1 = divide(%0, {np.sqrt(self.depth):.9g}f);
              %2 = {changed};
              nn.batch_matmul(nn.softmax(%2), %v, transpose_b=False)
            }}"""

    def shapes(self) -> list[tuple[int, int, int]]:
        return [
            (self.heads, self.queries, self.depth),
            (self.heads, self.keys, self.depth),
            (self.heads, self.keys, self.width),
        ]

    def inputs(self) -> list[Array]:
        rng = np.random.default_rng(0)
        arrays: list[Array] = [rng.standard_normal(shape).astype(np.float32) for shape in self.shapes()]
        if self.change == "where":
            arrays.append(np.tri(self.queries, self.keys, dtype=np.bool_))
        elif self.change:
            shape = (self.queries, self.keys) if self.change == "add" else (self.heads, 1, self.keys)
            arrays.append(rng.standard_normal(shape).astype(np.float32))
        return arrays

    def expected(self, q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
        scores = q.astype(np.float64) @ k.transpose(0, 2, 1) / np.sqrt(self.depth)
        if mask is not None:
            scores = np.where(mask, scores, -1e9) if self.change == "where" else scores + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        result: Array = weights @ v / weights.sum(-1, keepdims=True)
        return result


FUSED = [
    Case(4, 32, 32, 64, 64),
    Case(2, 77, 77, 40, 40),
    Case(3, 61, 50, 64, 64, "add"),
    Case(2, 40, 40, 32, 32, "where"),
    Case(1, 33, 17, 8, 24),
    Case(3, 20, 30, 16, 20, "keys"),
    Case(2, 4, 127, 7, 64),
    Case(1, 64, 600, 16, 16),
    Case(6, 96, 8, 1, 15),
]
CASES = [*FUSED, Case(2, 3, 90, 16, 16), Case(2, 13, 130, 7, 64)]


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers(case: Case, cpu: str | None) -> None:
    inputs = case.inputs()
    threads = 1 if cpu else 2
    result = mirstack.compile(mirstack.parse(case.text()), cpu=cpu, threads=threads)(*inputs)
    np.testing.assert_allclose(result, case.expected(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", FUSED, ids=str)
def test_one_block_of_rows_at_a_time(case: Case) -> None:
    """All stages are under one loop over blocks of rows: only what packs or pads is beside it."""
    scheduled: list[ModuleOp] = []

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "default-schedule":
            scheduled.append(module.clone())

    mirstack.compile(mirstack.parse(case.text()), threads=1, observers=(keep,))
    (kernel,) = (op for op in scheduled[0].ops if isinstance(op, tir.PrimFuncOp))
    outermost = [op for op in kernel.body.block.ops if isinstance(op, tir.ForOp)]
    names = [[b.block_name.data for b in walk_ops(loop) if isinstance(b, tir.BlockOp)] for loop in outermost]
    (together,) = (each for each in names if any("batch_matmul_NN" in name for name in each))
    assert any("batch_matmul_NT" in name and "update" in name for name in together)
    assert sum("max_red" in name or "sum_red" in name for name in together) >= 2


HEADS = """
def @main(%q: Tensor[(2, 24, WIDTH), float32], %k: Tensor[(2, 30, WIDTH), float32], %v: Tensor[(2, 30, WIDTH), float32],
          %m: Tensor[(2, 1, 1, 30), float32]) {
  %0 = reshape(transpose(reshape(%q, newshape=[2, 24, 6, SIZE]), axes=[0, 2, 1, 3]), newshape=[-1, 24, SIZE]);
  %1 = reshape(transpose(reshape(%k, newshape=[2, 30, 6, SIZE]), axes=[0, 2, 1, 3]), newshape=[-1, 30, SIZE]);
  %2 = reshape(transpose(reshape(%v, newshape=[2, 30, 6, SIZE]), axes=[0, 2, 3, 1]), newshape=[-1, SIZE, 30]);
  %3 = add(multiply(reshape(nn.batch_matmul(%0, %1, transpose_b=True), newshape=[2, 6, 24, 30]), 0.25f), %m);
  %4 = nn.batch_matmul(reshape(nn.softmax(%3), newshape=[-1, 24, 30]), %2, transpose_b=True);
  reshape(transpose(reshape(%4, newshape=[2, 6, 24, SIZE]), axes=[0, 2, 1, 3]), newshape=[2, 24, WIDTH])
}
"""


@pytest.mark.parametrize("size", [16, 40, 7])
@pytest.mark.parametrize("cpu", [None, "haswell"])
def test_heads_of_layers(cpu: str | None, size: int) -> None:
    """As exported transformers have it: heads are cut out of rows and put together again, the mask is for each key."""
    rng = np.random.default_rng(0)
    shapes = [(2, 24, 6 * size), (2, 30, 6 * size), (2, 30, 6 * size), (2, 1, 1, 30)]
    q, k, v, mask = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    heads = [x.reshape(2, -1, 6, size).transpose(0, 2, 1, 3).astype(np.float64) for x in (q, k, v)]
    scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / 4 + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (weights @ heads[2] / weights.sum(-1, keepdims=True)).transpose(0, 2, 1, 3).reshape(2, 24, 6 * size)
    run = mirstack.compile(mirstack.parse(HEADS.replace("WIDTH", str(6 * size)).replace("SIZE", str(size))), cpu=cpu)
    np.testing.assert_allclose(run(q, k, v, mask), expected, rtol=1e-4, atol=1e-5)


def test_sizes_known_at_run_time() -> None:
    text = """
    def @main(%q: Tensor[(2, ?, 16), float32], %k: Tensor[(2, ?, 16), float32]) {
      nn.batch_matmul(nn.softmax(nn.batch_matmul(%q, %k, transpose_b=True)), %k)
    }"""
    run = mirstack.compile(mirstack.parse(text))
    for queries, keys in ((1, 5), (40, 33)):
        case = Case(2, queries, keys, 16, 16)
        q, k, _ = case.inputs()
        scaled = q * np.float32(4)
        np.testing.assert_allclose(run(scaled, k), case.expected(scaled * 4, k, k), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
@pytest.mark.parametrize(
    ("queries", "keys", "width"), [(128, 128, 64), (77, 77, 40), (197, 197, 64), (31, 9, 5), (500, 500, 100)]
)
def test_sizes_of_tiles(cpu: str, queries: int, keys: int, width: int) -> None:
    """Tiles fit in registers and divide the rows; a block is whole tiles."""
    target = named(cpu, 1)
    sizes = rule.choose_sizes(queries, keys, width, 4, target)
    # Vectors of less than 32 bytes would each take as long.
    assert sizes.output_lanes in (target.lanes(4), min(target.lanes(4), 8))
    for vectors in (sizes.score_vectors, sizes.output_vectors):
        assert sizes.rows * vectors + vectors + 1 <= target.vector_registers
    assert queries % sizes.block == 0 and sizes.block % sizes.rows == 0


@pytest.mark.parametrize("heads", [12, 2])
def test_threads_share_heads_or_blocks_of_rows(heads: int) -> None:
    """All stages are in a loop that is shared out, and two threads give what one gives."""
    case = Case(heads, 256, 256, 64, 64)
    text = case.text()
    scheduled: list[str] = []

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "default-schedule" and "max" in (printed := print_mir(module)):
            scheduled.append(printed)

    inputs = case.inputs()
    two = mirstack.compile(mirstack.parse(text), threads=2, observers=(keep,))(*inputs)
    (kernel,) = scheduled
    assert kernel.index("T.parallel(") < kernel.index('with T.block("max')
    np.testing.assert_array_equal(two, mirstack.compile(mirstack.parse(text), threads=1)(*inputs))
