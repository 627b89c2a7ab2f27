"""ONNX operators element by element, reductions and constants: against onnxruntime or numpy, over opsets, dtypes and open sizes."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")


def one_node(
    operator: str,
    arrays: list[Any],
    opset: int = 21,
    constants: tuple[int, ...] = (),
    *,
    is_open: bool = False,
    **attributes: Any,
) -> Any:
    """Returns a model of one node; the inputs at the places `constants` are initializers, None is left out."""
    helper = onnx.helper
    names = ["" if array is None else f"x{place}" for place, array in enumerate(arrays)]
    known = [array is not None and place in constants for place, array in enumerate(arrays)]
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"n{i}" for i in range(array.ndim)] if is_open else array.shape,
        )
        for name, array, fixed in zip(names, arrays, known, strict=True)
        if name and not fixed
    ]
    weights = [onnx.numpy_helper.from_array(arrays[place], names[place]) for place in constants if names[place]]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def run(operator: str, *arrays: Any, constants: tuple[int, ...] = (), **options: Any) -> Any:
    """Compiles a model of one node and runs it."""
    executable = mirstack.compile(mirstack.from_onnx(one_node(operator, list(arrays), constants=constants, **options)))
    return executable(*(a for place, a in enumerate(arrays) if a is not None and place not in constants))


NP_IGNORE = None
X = np.array([[-2.5, -1, -0.5, 0.25], [0.5, 1.5, 2.5, 30]], "float32")


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    ("operator", "attributes", "expected"),
    [
        ("Softplus", {}, np.logaddexp(X, 0)),
        ("ThresholdedRelu", {"alpha": 1.0}, np.where(X > 1, X, 0)),
        ("HardSigmoid", {}, np.clip(0.2 * X + 0.5, 0, 1)),
        ("Shrink", {"lambd": 1.0, "bias": 0.5}, np.where(X < -1, X + 0.5, np.where(X > 1, X - 0.5, 0))),
        ("LpNormalization", {"p": 1, "axis": 0}, X / np.abs(X).sum(0)),
        ("Reciprocal", {}, 1 / X),
        ("IsInf", {"detect_negative": 0}, X == 30),
        ("Shape", {"start": -1}, np.array([4])),
        ("Size", {}, np.array(8)),
        ("EyeLike", {"k": -1}, np.eye(2, 4, -1, dtype="float32")),
    ],
)
def test_operators_of_one_tensor(operator: str, attributes: dict[str, Any], expected: Any, is_open: bool) -> None:
    x = np.where(X == 30, np.inf, X).astype("float32") if operator == "IsInf" else X
    found = run(operator, x, is_open=is_open, **attributes)
    np.testing.assert_allclose(found, expected, 1e-6, 1e-6)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_before_opset_13_is_of_rows(operator: str, is_open: bool) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
    found = run(operator, x, opset=11, axis=1, is_open=is_open)
    expected = run(operator, x.reshape(2, 12), opset=13).reshape(2, 3, 4)
    np.testing.assert_allclose(found, expected, 1e-5)


def test_broadcasting_before_opset_7() -> None:
    x, y = np.ones((2, 3, 4, 5), "float32"), np.arange(12, dtype="float32").reshape(3, 4)
    found = run("Add", x, y, opset=6, axis=1, broadcast=1)
    np.testing.assert_array_equal(found, x + y[:, :, None])
    slope = np.array([2, 3, 4], "float32")
    np.testing.assert_array_equal(run("PRelu", -x, slope, opset=6), -x * slope[:, None, None])


@pytest.mark.parametrize(("low", "high"), [(-1, 2), (None, 2), (-1, None), (2, -1)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64"])
def test_limits_of_clip(low: int | None, high: int | None, dtype: str) -> None:
    x = np.array([0, 1, 2, 3, 100], dtype)
    limits = [None if each is None else np.array(abs(each), dtype) for each in (low, high)]
    expected = x
    if limits[0] is not None:
        expected = np.maximum(expected, limits[0])
    if limits[1] is not None:
        expected = np.minimum(expected, limits[1])
    for constants in ((), (1, 2)):
        np.testing.assert_array_equal(run("Clip", x, *limits, constants=constants, opset=13), expected)


@pytest.mark.parametrize(
    ("x", "y"), [("int32", "float32"), ("float32", "int64"), ("int64", "int32"), ("float16", "float32")]
)
def test_powers_have_the_dtype_of_the_base(x: str, y: str) -> None:
    base, exponent = np.array([1, 2, 3, 10], x), np.array([3, 2, 1, 2], y)
    found = run("Pow", base, exponent, opset=15)
    assert found.dtype == base.dtype
    np.testing.assert_array_equal(found, np.power(base, exponent).astype(x))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_determinants(rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((3, rows, rows)).astype("float32")
    x[0, 0] = 0
    np.testing.assert_allclose(run("Det", x), np.linalg.det(x), 1e-4, 1e-5)


@pytest.mark.parametrize("values", [(2, 11, 3), (10, 0, -4), (3, 1, 1)])
@pytest.mark.parametrize("constants", [(), (0, 1, 2)])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_ranges(values: tuple[int, ...], constants: tuple[int, ...], dtype: str) -> None:
    scalars = [np.array(each, dtype) for each in values]
    np.testing.assert_array_equal(run("Range", *scalars, constants=constants), np.arange(*values, dtype=dtype))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [(1,), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize(
    ("operator", "dtype"),
    [
        ("ReduceMean", "float16"),
        ("ReduceMax", "int8"),
        ("ReduceMin", "bool"),
        ("ReduceLogSumExp", "float32"),
        ("ReduceProd", "int64"),
    ],
)
def test_axes_that_are_computed_at_run_time(operator: str, dtype: str, axes: tuple[int, ...], keepdims: int) -> None:
    x = np.random.default_rng(0).integers(0, 3, (2, 3, 4)).astype(dtype)
    given = np.array(axes, "int64")
    expected = run(operator, x, given, constants=(1,), keepdims=keepdims)
    found = run(operator, x, given, keepdims=keepdims)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, 1e-3)


def test_the_position_in_a_scalar_is_0() -> None:
    np.testing.assert_array_equal(run("ArgMax", np.array(2.5, "float32")), np.array(0))


def test_reductions_of_nothing_over_axes_computed_at_run_time() -> None:
    x, axes = np.zeros((2, 0, 3), "float32"), np.array([1])
    np.testing.assert_array_equal(run("ReduceMax", x, axes), np.full((2, 1, 3), -np.inf))
    np.testing.assert_array_equal(run("ReduceSum", x, axes, keepdims=0), np.zeros((2, 3)))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("from_end", [0, 1])
def test_running_sums_along_an_axis_computed_at_run_time(axis: int, from_end: int) -> None:
    expected = run("CumSum", X, np.array(axis), constants=(1,), exclusive=from_end, reverse=from_end)
    np.testing.assert_array_equal(run("CumSum", X, np.array(axis), exclusive=from_end, reverse=from_end), expected)


@pytest.mark.parametrize("source", ["float32", "float16", "int32"])
@pytest.mark.parametrize("to", ["FLOAT8E4M3FN", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "INT4", "UINT2", "BFLOAT16"])
def test_casts_to_narrow_dtypes(source: str, to: str) -> None:
    ml_dtypes = library("ml_dtypes", "onnx")
    number = onnx.TensorProto.DataType.Value(to)
    kind = onnx.helper.tensor_dtype_to_np_dtype(number)
    x = np.array([0, 1, -3, 7.5, 300, -1000, 60000], source)
    wide = x.astype("float32")
    if to.startswith("FLOAT8"):
        wide = np.clip(wide, -ml_dtypes.finfo(kind).max, ml_dtypes.finfo(kind).max)
    elif "INT" in to:
        wide = x.astype("int32").astype("int8")
    found = run("Cast", x, opset=25, to=number)
    assert found.dtype == kind
    np.testing.assert_array_equal(found.astype("float32"), wide.astype(kind).astype("float32"))


@pytest.mark.parametrize(
    ("operator", "inputs", "reason"),
    [
        ("RandomNormalLike", [X], "RandomNormalLike: it draws numbers at random"),
        ("Det", [X], "Det: its matrices must be square, of a known size"),
        ("Det", [np.zeros((65, 65), "float32")], "Det: its matrices have 65 rows; at most 64 are supported"),
        ("LpNormalization", [X], "LpNormalization: p is 3; it must be 1 or 2"),
        ("EyeLike", [X[0]], "EyeLike: the input is of rank 1, not a matrix"),
        ("CumSum", [X, np.array(2)], "CumSum: axis 2 is outside of a tensor of rank 2"),
        ("Cast", [X], "Cast: round_mode is 'away'; it must be up, down or nearest"),
    ],
)
def test_refused_nodes(operator: str, inputs: list[Any], reason: str) -> None:
    attributes: dict[str, Any] = {"LpNormalization": {"p": 3}, "Cast": {"to": 24, "round_mode": "away"}}.get(
        operator, {}
    )
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(one_node(operator, inputs, opset=25, constants=(1,)[: len(inputs) - 1], **attributes))
    assert reason in str(error.value)
