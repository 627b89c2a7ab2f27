"""Whole programs with their schedules as text (the files in `scheduled/`): they compute what numpy does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from numpy.typing import NDArray

PROGRAMS = Path(__file__).parent / "scheduled"
Arrays = list[NDArray[Any]]


def conv2d(x: NDArray[Any], w: NDArray[Any], pad: int = 0) -> NDArray[Any]:
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwab,ocab->nohw", windows, w)


def attention(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(np.einsum("hid,hjd->hij", q, k) * 0.35355339)
    return np.einsum("hij,hjd->hid", e / e.sum(-1, keepdims=True), v)


def layer_norm(x: NDArray[Any], g: NDArray[Any]) -> NDArray[Any]:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g


def outer(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    a, b = np.broadcast_arrays(a[:, None], b[None])
    rows, columns = np.indices(a.shape)
    return np.where(rows < columns, a * b, a - b) + 1


def blurred(a: NDArray[Any], axis: int) -> NDArray[Any]:
    return np.lib.stride_tricks.sliding_window_view(a, 3, axis).mean(-1)


# The shapes of the inputs (a string: indices below a number), and what comes out.
CASES: dict[str, tuple[list[Any], Callable[..., Any]]] = {
    "attention": ([(4, 16, 8)] * 3, attention),
    "blocks": ([(20, 30)], lambda a: [np.pad(a, 1) * 2, np.pad(a, 1) + 3]),
    "conv2d": ([(2, 3, 18, 18), (8, 3, 3, 3)], conv2d),
    "einsum": ([(13, 11), (11, 7)], np.matmul),
    "gather": ([(50, 16), ((24,), 50)], lambda t, i: t[i] * 2),
    "hybrid": ([(12,), (20,)], outer),
    "layernorm": ([(12, 40), (40,)], layer_norm),
    "sample": ([(64, 64)] * 2, lambda a, b: np.maximum(a @ b, 0) + 1),
    "scan": ([((64,), 64)], np.cumsum),
    "stencil": ([(34, 34)], lambda a: blurred(blurred(a, 1), 0)),
    "te_conv": ([(1, 4, 10, 10), (6, 4, 3, 3)], lambda x, w: conv2d(x, w, 1)),
    "te_item": ([(40, 50)], lambda a: np.exp(a - a.mean(1, keepdims=True))),
    "te_mm": ([(23, 64), (64, 48)], lambda a, b: np.maximum(a @ b, 0)),
    "te_scan": ([(9, 13)], lambda a: np.cumsum(a, 0)),
    "tensorize": ([(16, 32), (24, 32)], lambda a, b: a @ b.T),
}


def inputs_of(shapes: list[Any]) -> Arrays:
    generator = np.random.default_rng(0)
    return [
        generator.integers(0, shape[1], shape[0]).astype("int32")
        if isinstance(shape[0], tuple)
        else generator.standard_normal(shape).astype("float32")
        for shape in shapes
    ]


def test_every_program_has_a_case() -> None:
    assert {file.stem for file in PROGRAMS.glob("*.mir")} == CASES.keys()


@pytest.mark.parametrize("target", ["cpu", "interp"])
@pytest.mark.parametrize("name", CASES)
def test_computes(name: str, target: Any) -> None:
    shapes, meaning = CASES[name]
    arrays = inputs_of(shapes)
    expected = meaning(*arrays)
    outputs: Arrays = [np.asarray(e, arrays[0].dtype) for e in (expected if isinstance(expected, list) else [expected])]
    results = [np.zeros_like(e) for e in outputs]
    run = mirstack.compile(PROGRAMS / f"{name}.mir", target=target, entry="mm" if name == "tensorize" else None)
    run(*arrays, *results)
    for result, output in zip(results, outputs, strict=True):
        np.testing.assert_allclose(result, output, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", CASES)
def test_schedules_keep_the_meaning(name: str, mir_opt: Callable[..., Any]) -> None:
    ran = mir_opt(PROGRAMS / f"{name}.mir", "-p", "apply-schedule,lower-te-to-tir", "--check-each")
    assert ran.code == 0, ran.err
