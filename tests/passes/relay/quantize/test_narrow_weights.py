"""Weights that stay narrow: values against float64, by every form in which they are widened, on several processors."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.lowering.driver.build import assembly_text
from mirstack.lowering.pipeline import Options
from mirstack.passes.relay.quantize import narrow_weights
from mirstack.passes.relay.quantize.narrow_weights import NarrowWeights
from mirstack.support.target import named
from mirstack.support.walk import walk_ops
from xdsl.context import Context

UNITS, INPUTS = 392, 700
"""More than a megabyte of float32: more than the second-level caches that are known of."""
CPUS = ["", "haswell", "znver4", "x86-64"]


def weights(dtype: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "float16":
        return rng.standard_normal((UNITS, INPUTS)).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(max(low, -1000), min(high, 1000) + 1, (UNITS, INPUTS)).astype(dtype)


SCALE = (np.random.default_rng(1).random(UNITS) * 0.01 + 0.005).astype(np.float32)
ZERO = np.random.default_rng(2).integers(100, 140, UNITS).astype(np.int32)


def forms() -> dict[str, tuple[Any, Any, Any]]:
    """By names: the product of `x`, the real numbers that weights stand for, and the dtype in which they stay."""
    bytes_, unsigned, half, words = (weights(dtype) for dtype in ("int8", "uint8", "float16", "int16"))
    const = relay.const

    def real(w: Any, zero: Any = 0, scale: Any = 1.0) -> Any:
        return (w.astype(np.float64) - zero) * scale

    def column(values: Any) -> Any:
        return values[:, None]

    return {
        "dequantized": (
            lambda x: relay.nn.dense(x, relay.qnn.dequantize(const(bytes_), const(SCALE), const(0), axis=0), units=UNITS),
            real(bytes_, 0, column(SCALE)), "int8",
        ),
        "zero points": (
            lambda x: relay.nn.dense(x, relay.qnn.dequantize(const(unsigned), const(SCALE), const(ZERO), axis=0), units=UNITS),
            real(unsigned, column(ZERO), column(SCALE)), "int16",
        ),
        "one zero point": (
            lambda x: relay.nn.dense(x, relay.qnn.dequantize(const(unsigned), const(np.float32(0.02)), const(128)), units=UNITS),
            real(unsigned, 128, np.float32(0.02)), "int8",
        ),
        "cast": (
            lambda x: relay.nn.dense(x, relay.multiply(const(column(SCALE)), relay.cast(const(bytes_), "float32")), units=UNITS),
            real(bytes_, 0, column(SCALE)), "int8",
        ),
        "transposed": (
            lambda x: relay.nn.matmul(x, relay.transpose(relay.multiply(relay.cast(const(bytes_), "float32"), const(column(SCALE))))),
            real(bytes_, 0, column(SCALE)), "int8",
        ),
        "matrix": (
            lambda x: relay.nn.matmul(x, relay.qnn.dequantize(const(np.ascontiguousarray(bytes_.T)), const(SCALE), const(0), axis=1)),
            real(bytes_, 0, column(SCALE)), "int8",
        ),
        "half": (lambda x: relay.nn.dense(x, relay.cast(const(half), "float32"), units=UNITS), real(half), "float16"),
        "words": (
            lambda x: relay.nn.dense(x, relay.multiply(relay.cast(const(words), "float32"), const(np.float32(0.5))), units=UNITS),
            real(words, 0, 0.5), "int16",
        ),
    }  # fmt: skip


FORMS = forms()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_values(cpu: str, rows: int) -> None:
    if cpu == "znver4" and named("").vector_bytes < 64:
        pytest.skip("a processor with AVX-512 runs this")
    x = relay.var("x", shape=(rows, INPUTS), dtype="float32")
    function = relay.Function([x], relay.Tuple([make(x) for make, _, _ in FORMS.values()]))
    data = np.random.default_rng(3).standard_normal((rows, INPUTS)).astype(np.float32)
    results = mirstack.compile(mirstack.IRModule.from_expr(function), threads=1 + rows % 2, cpu=cpu or None)(data)
    for (name, (_, matrix, _)), result in zip(FORMS.items(), results, strict=True):
        wanted = data.astype(np.float64) @ matrix.T
        # As near as float32 is: the scale is applied to sums, not to weights.
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=0, atol=3e-6 * np.abs(wanted).max(), err_msg=name)


@pytest.mark.parametrize(("name", "rows"), [(name, rows) for name in FORMS for rows in (1, 4, 5, 9)])
def test_kept(name: str, rows: int) -> None:
    make, _, dtype = FORMS[name]
    x = relay.var("x", shape=(rows, INPUTS), dtype="float32")
    module = mirstack.transform.InferType()(mirstack.IRModule.from_expr(relay.Function([x], make(x))))
    module = mirstack.transform.QnnCanonicalizeOps()(module)
    ops = module.op.clone()
    NarrowWeights(cpu="haswell").apply(Context(), ops)
    kept = [op for op in walk_ops(ops) if isinstance(op, ir.ConstantOp) and op.value.array.size == UNITS * INPUTS]
    used = {op.OPERATOR.name for op in walk_ops(ops) if isinstance(op, OperatorOp)}
    few = rows * np.dtype(dtype).itemsize <= 8
    assert ("cast" not in used) == few
    assert not few or [op.value.array.dtype.name for op in kept] == [dtype]


@pytest.mark.parametrize(("name", "widening"), [("dequantized", "scvtf"), ("words", "sshll"), ("half", "fcvtl")])
def test_arm_widens_in_registers(name: str, widening: str) -> None:
    x = relay.var("x", shape=(1, INPUTS), dtype="float32")
    module = mirstack.IRModule.from_expr(relay.Function([x], FORMS[name][0](x)))
    text = assembly_text(module.op, Options(cpu="neoverse-n1"))
    assert re.search(rf"\t{widening}\tv\d+\.4s", text) and re.search(r"\tfmla\tv\d+\.4s", text)


def test_weights_that_several_products_share_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    weights_of = narrow_weights.weights_of
    monkeypatch.setattr(narrow_weights, "weights_of", lambda value: looked.append(value) or weights_of(value))
    x = relay.var("x", shape=(1, INPUTS), dtype="float32")
    weight = relay.multiply(relay.cast(relay.const(weights("int8")), "float32"), relay.const(SCALE[:, None]))
    steps = [relay.nn.dense(relay.multiply(x, relay.const(np.float32(k))), weight, units=UNITS) for k in range(2, 5)]
    module = mirstack.transform.InferType()(mirstack.IRModule.from_expr(relay.Function([x], relay.Tuple(steps))))
    ops = module.op.clone()
    NarrowWeights(cpu="haswell").apply(Context(), ops)
    assert len(looked) == 1
    assert "cast" not in {op.OPERATOR.name for op in walk_ops(ops) if isinstance(op, OperatorOp)}
