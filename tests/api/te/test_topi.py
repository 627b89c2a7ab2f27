"""`topi`: arguments by position mean what they mean in TOPI, checked by numbers that would differ in Relay's order."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import te, topi

RNG = np.random.default_rng(0)
X = RNG.random((1, 4, 3, 3)).astype("float32")
M, N = RNG.random((2, 3)).astype("float32"), RNG.random((4, 3)).astype("float32")
V = np.array([2.0, -1.0, 0.5], "float32")
ROWS = np.array([4, 5, 1, 2, 3, 3, 4, 5, 5, 5], "int32")


def run(call: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """What a function of tensors computes."""
    arrays = tuple(map(np.ascontiguousarray, arrays))
    tensors = [te.placeholder(a.shape, a.dtype.name, f"a{n}") for n, a in enumerate(arrays)]
    made = call(*tensors)
    results = made if isinstance(made, list) else [made]
    outs = [np.full([int(d) for d in r.shape], 7).astype(r.dtype) for r in results]
    mirstack.build(te.create_schedule([r.op for r in results]), [*tensors, *results])(*arrays, *outs)
    return outs


def lrn(x: np.ndarray) -> np.ndarray:
    squares = np.stack([(x[:, max(0, c - 1) : c + 2] ** 2).sum(1) for c in range(4)], 1)
    return x / (2.0 + 0.5 / 3 * squares) ** 0.75


def normal(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


PADDED = np.pad(X, ((0, 0), (0, 0), (1, 0), (1, 0)))
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], Any]] = {
    "nn.lrn": (lambda x: topi.nn.lrn(x, 3, 1, 0.5, 0.75, 2.0), [X], lrn(X)),
    "nn.dense": (lambda x, w, b: topi.nn.dense(x, w, b), [M, N, np.arange(4, dtype="float32")], M @ N.T + np.arange(4)),
    "nn.matmul": (lambda x, w: topi.nn.matmul(x, w, None, None, False, True), [M, N], M @ N.T),
    "nn.batch_matmul": (
        lambda x, w: topi.nn.batch_matmul(x, w, None, "float32", False, True),
        [M[None], N[None]],
        (M @ N.T)[None],
    ),
    "nn.conv2d": (
        lambda x, w: topi.nn.conv2d(x, w, 1, "SAME", 1, "NHWC"),
        [X.transpose(0, 2, 3, 1), np.ones((2, 2, 4, 1), "float32")],
        np.stack([PADDED[:, :, i : i + 3, j : j + 3] for i in (0, 1) for j in (0, 1)]).sum((0, 2))[..., None],
    ),
    "nn.conv1d": (
        lambda x, w: topi.nn.conv1d(x, w, 1, "VALID", 1, 1, "NCW"),
        [X[0], np.ones((1, 3, 3), "float32")],
        X[0].sum((1, 2))[:, None, None],
    ),
    "nn.layer_norm": (lambda x, g, b: topi.nn.layer_norm(x, g, b, (1,)), [M, V, V], normal(M, (1,)) * V + V),
    "nn.layer_norm of several axes": (
        lambda x, g, b: topi.nn.layer_norm(x, g, b, (1, 2)),
        [X[0], X[0, 0], X[0, 1]],
        normal(X[0], (1, 2)) * X[0, 0] + X[0, 1],
    ),
    "nn.instance_norm": (
        lambda x, g, b: topi.nn.instance_norm(x, g, b, 1, (2, 3)),
        [X, X[0, :, 0, 0], X[0, :, 1, 1]],
        normal(X, (2, 3)) * X[:, :, :1, :1] + X[:, :, 1:2, 1:2],
    ),
    "nn.group_norm": (
        lambda x, g, b: topi.nn.group_norm(x, g, b, 4, 1, (2, 3)),
        [X, X[0, :, 0, 0], X[0, :, 1, 1]],
        normal(X, (2, 3)) * X[:, :, :1, :1] + X[:, :, 1:2, 1:2],
    ),
    "nn.pad": (lambda x: topi.nn.pad(x, (1, 0), (0, 2), 5.0), [M], np.pad(M, ((1, 0), (0, 2)), constant_values=5)),
    "nn.mirror_pad": (lambda x: topi.nn.mirror_pad(x, (1, 0), (0, 1)), [M], np.pad(M, ((1, 0), (0, 1)), "symmetric")),
    "nn.space_to_batch_nd": (
        lambda x: topi.nn.space_to_batch_nd(x, [2], [0], [1], 5.0),
        [M],
        np.concatenate([M[:, ::2], np.stack([M[:, 1], [5, 5]], 1)]),
    ),
    "nn.batch_to_space_nd": (lambda x: topi.nn.batch_to_space_nd(x, [2], [0], [1]), [M], np.stack([M[0], M[1]], 1).reshape(1, 6)[:, :5]),
    "nn.flatten": (lambda x: topi.nn.flatten(x), [X], X.reshape(1, 36)),
    "argwhere": (
        lambda shape, x: topi.argwhere(shape, x),
        [np.zeros((2, 1), "int32"), np.array([0, 1, 0, 1], "int32")],
        np.array([[1], [3]]),
    ),
    "unique": (
        lambda x: topi.unique(x, True, True),
        [ROWS],
        [[1, 2, 3, 4, 5] + [0] * 5, [2, 3, 4, 0, 1] + [0] * 5, ROWS - 1, [5], [1, 1, 2, 2, 4] + [0] * 5],
    ),
    "unique as they come": (
        lambda x: topi.unique(x, False),
        [ROWS],
        [[4, 5, 1, 2, 3] + [0] * 5, [0, 1, 2, 3, 4] + [0] * 5, [0, 1, 2, 3, 4, 4, 0, 1, 1, 1], [5]],
    ),
    "einsum": (lambda x, y: topi.einsum("ij,kj->ik", x, y), [M, N], M @ N.T),
    "adv_index": (lambda x, i: topi.adv_index(x, [i]), [N, np.array([2, 0], "int32")], N[[2, 0]]),
    "full": (lambda: topi.full((2, 2), "float32", 7), [], np.full((2, 2), 7)),
    "full_like": (lambda x: topi.full_like(x, 1.5), [M], np.full((2, 3), 1.5)),
    "argsort": (lambda x: topi.argsort(x, None, 0, False, "int32"), [N], np.argsort(-N, 0)),
    "argmax": (lambda x: topi.argmax(x, 1, False, True), [np.ones((2, 3), "float32")], np.array([2, 2])),
    "sum": (lambda x: topi.sum(x, (0, 1)), [M], M.sum()),
    "topk": (lambda x: topi.topk(x, 1, 1, "indices"), [M], M.argmax(1)[:, None]),
    "searchsorted": (lambda x, y: topi.searchsorted(x, y, False), [np.sort(V), V], np.array([2, 0, 1])),
    "concatenate": (lambda x: topi.concatenate((x, x)), [M], np.concatenate([M, M])),
    "stack": (lambda x: topi.stack([x, x]), [M], np.stack([M, M])),
    "flip": (lambda x: topi.flip(x), [M], M[::-1]),
    "shape": (lambda x: topi.shape(x), [X], np.array(X.shape)),
    "image.resize2d": (
        lambda x: topi.image.resize2d(x, (0.0, 0.0, 0.0, 0.0), (6, 6), "NCHW", "nearest_neighbor", "asymmetric"),
        [X],
        X.repeat(2, 2).repeat(2, 3),
    ),
    "multiply by a number": (lambda x: topi.multiply(topi.subtract(1, x), 2.5), [M], (1 - M) * 2.5),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_by_position(name: str) -> None:
    call, arrays, wanted = CASES[name]
    results = run(call, *arrays)
    for result, expected in zip(results, wanted if len(results) > 1 else [wanted], strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_dtypes_that_are_chosen() -> None:
    x = te.placeholder((4,), "float32", "x")
    assert topi.topk(x, 2, ret_type="indices").dtype == "int64" and topi.searchsorted(x, x).dtype == "int64"
    assert topi.argsort(x).dtype == "float32"


def test_signatures() -> None:
    assert list(signature(topi.nn.lrn).parameters) == ["data", "size", "axis", "alpha", "beta", "bias"]
    assert list(signature(topi.random.uniform).parameters) == ["gen", "low", "high", "out_shape", "out_dtype"]
    assert {"flip", "unique", "einsum"} <= set(dir(topi)) and "flatten" in dir(topi.nn)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: topi.nn.batch_matmul(x, x, (1, 2, 2)), r"topi\.nn\.batch_matmul takes no oshape but None"),
        (lambda x: topi.argsort(x, x), r"topi\.argsort takes no valid_count but None"),
        (lambda x: topi.nn.instance_norm(x, x, x, 1, (1, 2)), "along all axes but the batch and the channels"),
        (lambda x: topi.nn.conv1d(x, x, 1, "FULL"), "padding is numbers, 'VALID' or 'SAME', not 'FULL'"),
    ],
)
def test_refused(call: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(te.placeholder((2, 2, 2), "float32", "x"))
