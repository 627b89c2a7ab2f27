"""The functions of operators, called as TVM's are: what they make has a type, which is that of TVM."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import mirstack
import numpy as np
import pytest
from mirstack import relay as R
from mirstack import transform

_NUMBERS = count()


def var(*shape: int, dtype: str = "float32") -> Any:
    return R.var(f"v{next(_NUMBERS)}", shape=shape, dtype=dtype)


def f(value: float) -> Any:
    return R.const(np.float32(value))


x, m, v = var(2, 3, 8, 8), var(4, 6), var(6)
i, q, key = var(3, dtype="int32"), var(4, 6, dtype="int8"), var(10, dtype="uint64")
zero = R.const(0)

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "adaptive_avg_pool2d": (lambda: R.nn.adaptive_avg_pool2d(x, (1, 1)), "Tensor[(2, 3, 1, 1), float32]"),
    "arange": (lambda: R.arange(5, dtype="int32"), "Tensor[(?), int32]"),
    "argmax": (lambda: R.argmax(m, axis=1), "Tensor[(4), int32]"),
    "argsort": (lambda: R.argsort(m), "Tensor[(4, 6), int32]"),
    "avg_pool2d": (lambda: R.nn.avg_pool2d(x, (2, 2), padding=(1, 1)), "Tensor[(2, 3, 9, 9), float32]"),
    "batch_matmul": (lambda: R.nn.batch_matmul(var(2, 4, 6), var(2, 5, 6)), "Tensor[(2, 4, 5), float32]"),
    "broadcast_to": (lambda: R.broadcast_to(v, (4, 6)), "Tensor[(4, 6), float32]"),
    "clip": (lambda: R.clip(m, 0.0, 6.0), "Tensor[(4, 6), float32]"),
    "conv1d": (lambda: R.nn.conv1d(var(1, 2, 9), var(4, 2, 3), padding=1, strides=2), "Tensor[(1, 4, 5), float32]"),
    "conv2d_transpose": (
        lambda: R.nn.conv2d_transpose(
            x, var(3, 5, 3, 3), strides=(2, 2), padding=1, output_padding=1, channels=5, kernel_size=(3, 3)
        ),
        "Tensor[(2, 5, 16, 16), float32]",
    ),
    "conv3d": (lambda: R.nn.conv3d(var(1, 2, 5, 5, 5), var(4, 2, 3, 3, 3)), "Tensor[(1, 4, 3, 3, 3), float32]"),
    "cumsum": (lambda: R.cumsum(m, 0), "Tensor[(4, 6), float32]"),
    "dropout": (lambda: R.nn.dropout(m), "Tensor[(4, 6), float32]"),
    "einsum": (lambda: R.einsum([m, m], "ij,kj->ik"), "Tensor[(4, 4), float32]"),
    "full": (lambda: R.full(R.const(1.0), 3), "Tensor[(3), float32]"),
    "gather": (lambda: R.gather(m, 0, R.cast(m, "int64")), "Tensor[(4, 6), float32]"),
    "layer_norm": (lambda: R.nn.layer_norm(m, v, v), "Tensor[(4, 6), float32]"),
    "logsumexp": (lambda: R.logsumexp(m, 1), "Tensor[(4), float32]"),
    "matrix_set_diag": (lambda: R.matrix_set_diag(m, var(4), 0), "Tensor[(4, 6), float32]"),
    "max_pool1d": (lambda: R.nn.max_pool1d(var(1, 2, 9), pool_size=2, strides=2), "Tensor[(1, 2, 4), float32]"),
    "mean_std": (lambda: R.mean_std(m, 1).astuple(), "(Tensor[(4), float32], Tensor[(4), float32])"),
    "meshgrid": (lambda: R.meshgrid([v, v]).astuple(), "(Tensor[(6, 6), float32], Tensor[(6, 6), float32])"),
    "mirror_pad": (lambda: R.nn.mirror_pad(m, ((1, 1), (0, 0))), "Tensor[(6, 6), float32]"),
    "non_max_suppression": (
        lambda: R.vision.non_max_suppression(
            var(1, 5, 6), var(1, dtype="int32"), var(1, 5, dtype="int32"), return_indices=False
        ),
        "Tensor[(1, 5, 6), float32]",
    ),
    "one_hot": (lambda: R.one_hot(i, 1.0, 0.0, 4, -1, "float32"), "Tensor[(3, 4), float32]"),
    "pad": (lambda: R.nn.pad(m, ((0, 1), (1, 0)), 1.5), "Tensor[(5, 7), float32]"),
    "pad by an expression": (lambda: R.nn.pad(m, var(2, 2, dtype="int64"), 0.0), "Tensor[(?, ?), float32]"),
    "qnn.batch_matmul": (
        lambda: R.qnn.op.batch_matmul(var(1, 4, 2, dtype="int8"), var(1, 5, 2, dtype="int8"), zero, zero, f(2.0), f(6.0)),
        "Tensor[(1, 4, 5), int32]",
    ),
    "qnn.concatenate": (
        lambda: R.qnn.op.concatenate([q, q], [f(0.5)] * 2, [zero] * 2, f(0.5), zero, 0),
        "Tensor[(8, 6), int8]",
    ),
    "qnn.conv2d": (
        lambda: R.qnn.op.conv2d(
            var(1, 3, 8, 8, dtype="uint8"), var(4, 3, 3, 3, dtype="uint8"), zero, zero, f(0.5), f(0.5), (3, 3), 4,
            padding=(1, 1),
        ),
        "Tensor[(1, 4, 8, 8), int32]",
    ),
    "qnn.dense": (lambda: R.qnn.op.dense(q, q, zero, zero, f(0.5), f(0.5), 4), "Tensor[(4, 4), int32]"),
    "qnn.quantize": (lambda: R.qnn.op.quantize(m, f(0.5), zero), "Tensor[(4, 6), int8]"),
    "qnn.requantize": (
        lambda: R.qnn.op.requantize(R.cast(q, "int32"), f(0.5), zero, f(0.2), zero),
        "Tensor[(4, 6), int8]",
    ),
    "random.normal": (lambda: R.random.normal(key, (2, 3), mean=1.0)[1], "Tensor[(2, 3), float32]"),
    "random.threefry_key": (lambda: R.random.threefry_split(R.random.threefry_key(3))[0], "Tensor[(10), uint64]"),
    "scatter_elements": (lambda: R.scatter_elements(m, R.cast(m, "int64"), m), "Tensor[(4, 6), float32]"),
    "shape_of": (lambda: R.shape_of(m), "Tensor[(2), int32]"),
    "split": (lambda: R.split(v, (1, 3)).astuple(), "(Tensor[(1), float32], Tensor[(2), float32], Tensor[(3), float32])"),
    "squeeze": (lambda: R.squeeze(R.expand_dims(m, 0), axis=0), "Tensor[(4, 6), float32]"),
    "stack": (lambda: R.stack((m, m), 0), "Tensor[(2, 4, 6), float32]"),
    "std": (lambda: R.std(m, 1), "Tensor[(4), float32]"),
    "stft": (lambda: R.stft(var(1, 64), 16), "Tensor[(1, 9, 13, 2), float32]"),
    "strided_set": (lambda: R.strided_set(m, var(2, 6), [0, 0], [2, 6]), "Tensor[(4, 6), float32]"),
    "strided_slice": (lambda: R.strided_slice(m, [0], [2], strides=[1], axes=[1]), "Tensor[(4, 2), float32]"),
    "take": (lambda: R.take(m, i, axis=0), "Tensor[(3, 6), float32]"),
    "topk": (lambda: R.topk(m, 2, ret_type="values"), "Tensor[(4, 2), float32]"),
    "trilu": (lambda: R.trilu(m, 1), "Tensor[(4, 6), float32]"),
    "unravel_index": (lambda: R.unravel_index(i, [2, 3]), "Tensor[(2, 3), int32]"),
    "upsampling": (lambda: R.nn.upsampling(x, 2, 2), "Tensor[(2, 3, 16, 16), float32]"),
    "valid_counts": (lambda: R.vision.get_valid_counts(var(1, 5, 6), 0.5)[0], "Tensor[(1), int32]"),
    "zeros": (lambda: R.zeros((2,), "int8"), "Tensor[(2), int8]"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_types(name: str) -> None:
    make, expected = CASES[name]
    module = transform.InferType()(mirstack.IRModule.from_expr(make()))
    assert str(module["main"].ret_type) == expected


@pytest.mark.parametrize(
    ("dtype", "wanted"), [("int8", [-128, 2, 127]), ("uint8", [0, 2, 199]), ("disable", [-99, 0.6, 99])]
)
def test_simulated_quantization_by_the_dtypes_name(dtype: str, wanted: list[float]) -> None:
    x = R.var("x", shape=(3,))
    there = R.qnn.op.simulated_quantize(x, f(0.5), R.const(1), axis=0, out_dtype=dtype)
    back = R.qnn.op.simulated_dequantize(there, f(0.5), R.const(1), in_dtype=dtype)
    given = np.array([-99, 0.6, 99], "float32")
    got, again = mirstack.compile(mirstack.IRModule.from_expr(R.Tuple([there, back])))(given)
    np.testing.assert_allclose(got, np.array(wanted, "float32"))
    np.testing.assert_allclose(again, given if dtype == "disable" else (np.array(wanted, "float32") - 1) * 0.5)
    with pytest.raises(ValueError, match="the dtype is one of disable, int8, uint8, int32, not 'int4'"):
        R.qnn.op.simulated_quantize(x, f(0.5), R.const(1), out_dtype="int4")


def test_padding_is_written_for_each_side() -> None:
    def padding(call: Any) -> tuple[int, ...]:
        return call.attrs.padding

    w = var(4, 3, 3, 3)
    assert padding(R.nn.conv2d(x, w)) == (0, 0, 0, 0)
    assert padding(R.nn.conv2d(x, w, padding=(1, 2))) == (1, 2, 1, 2)
    assert padding(R.nn.conv2d(x, w, padding=(1, 2, 3, 4))) == (1, 2, 3, 4)
    assert padding(R.nn.conv1d(x, w, padding=1)) == (1, 1)
    assert padding(R.nn.max_pool3d(x, padding=(1, 2, 3))) == (1, 2, 3, 1, 2, 3)


def test_numbers_beside_an_expression_are_what_the_static_operator_takes() -> None:
    size, end = R.var("size", shape=(2,), dtype="int64"), R.shape_of(R.var("v", shape=(10,)))
    image, scale = var(1, 1, 2, 2), R.var("scale", shape=(), dtype="float64")
    resized = R.image.resize2d(image, size)
    assert resized.args[2].value.array.tolist() == [0, 0, 0, 0]
    assert R.image.resize2d(image, size, (0, 0.5, 1, 1)).args[2].value.array.dtype == "float32"
    assert R.strided_slice(R.var("v", shape=(10,)), [0], end).args[3].value.array.tolist() == [1]
    assert R.nn.upsampling(image, scale, 1.5).args[2].value.array == 1.5
    run = mirstack.compile(mirstack.IRModule.from_expr(R.Function([image, size], resized)))
    values = np.arange(4, dtype="float32").reshape(1, 1, 2, 2)
    np.testing.assert_allclose(run(values, np.array([1, 1]))[0, 0], [[1.5]])


def test_devices() -> None:
    written = "virtual_device=VirtualDevice(device_type=1, virtual_device_id=0)"
    for device in (mirstack.cpu(), "cpu", "llvm"):
        assert written in str(mirstack.IRModule.from_expr(R.on_device(x, device)))
    copied = str(R.device_copy(x, mirstack.cpu(1), "cuda"))
    assert "src_virtual_device=VirtualDevice(device_type=1, virtual_device_id=1)" in copied
    assert "dst_virtual_device=VirtualDevice(device_type=2, virtual_device_id=0)" in copied
    again: Any = R.parse_expr(copied)
    assert again.attrs["dst_virtual_device"] == {"node": "VirtualDevice", "device_type": 2, "virtual_device_id": 0}
    assert R.device_copy(x, again.attrs["src_virtual_device"]).attrs["src_virtual_device"]["virtual_device_id"] == 1
    with pytest.raises(ValueError, match="there is no device 'bogus'; there are cpu, cuda"):
        R.on_device(x, "bogus")


def test_sparse_matrices() -> None:
    class Rows(NamedTuple):
        data: Any
        indices: Any
        indptr: Any

    matrix = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]], np.float32)
    sparse = Rows(np.array([2, 1, 3], np.float32), np.array([1, 0, 2], np.int32), np.array([0, 1, 2, 3], np.int32))
    rows = Rows(R.const(sparse.data), R.const(sparse.indices), R.const(sparse.indptr))
    x, a = R.var("x", shape=(3, 3)), np.arange(9, dtype=np.float32).reshape(3, 3)
    for made, wanted in (
        (R.nn.sparse_dense(x, sparse), a @ matrix.T),
        (R.nn.sparse_dense(x, rows, sparse_lhs=True), matrix @ a.T),
        (R.nn.sparse_add(x, sparse), a + matrix),
    ):
        module = mirstack.IRModule.from_expr(R.Function([x], made))
        np.testing.assert_array_equal(mirstack.compile(module, target="interp")(a), wanted)
    assert len(R.nn.sparse_transpose(sparse)) == 3
