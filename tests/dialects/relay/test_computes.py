"""TE computes on the values that samples seldom hit: any scale in fixed point, NaN, stable order, places out of bounds."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.operator import get_operator
from mirstack.dialects.relay.operators.qnn.te_qnn import multiplier_and_shift
from mirstack.dialects.te import builder as te
from mirstack.dialects.te.interpreter import interpret_te_func
from mirstack.fuzz.operators.relation import type_of
from mirstack.support.diagnostics import MirError
from xdsl.dialects.builtin import ModuleOp


def kernel(name: str, attrs: dict[str, Any], arrays: list[np.ndarray], result: Any, known: tuple[int, ...] = ()) -> Any:
    """The te.func of one operator, with the arrays numbered in `known` (scalars) written into it."""
    operator = get_operator(name)
    assert operator is not None and operator.compute is not None
    inputs = [te.placeholder(a.shape, a.dtype.name, f"p{n}") for n, a in enumerate(arrays)]
    given = [_number(a) if n in known else inputs[n] for n, a in enumerate(arrays)]
    outputs = operator.compute(operator.attrs(attrs), given, type_of(result))
    return te.func("main", [*inputs, *outputs]), [t.name for t in outputs]


def _number(value: np.ndarray) -> Any:
    from mirstack.dialects.te.apply import NumberTensor

    return NumberTensor(te.const(value.item(), value.dtype.name))


def meaning(name: str, attrs: dict[str, Any], arrays: list[np.ndarray]) -> Any:
    operator = get_operator(name)
    assert operator is not None
    with np.errstate(all="ignore"):
        return operator.numpy(operator.attrs(attrs), *arrays)  # type: ignore[call-arg]


def native(function: Any, arrays: list[np.ndarray], result: np.ndarray, opt_level: int = 0) -> np.ndarray:
    got = np.empty_like(result)
    mirstack.compile(ModuleOp([function]), "cpu", entry="main", opt_level=opt_level)(*arrays, got)
    return got


@pytest.mark.parametrize("known", ((), (1, 2, 3, 4)), ids=("run time", "constants"))
@pytest.mark.parametrize("rounding", ("UPWARD", "TONEAREST"))
@pytest.mark.parametrize("compute", ("int64", "float32", "float64"))
def test_requantize_by_any_scale(known: tuple[int, ...], rounding: str, compute: str) -> None:
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.integers(-(2**20), 2**20, 60), [0, 1, -1, 2**30, -(2**30)]]).astype(np.int32)
    attrs = {"rounding": rounding, "compute_dtype": compute, "out_dtype": "int32"}
    for scale, out_scale in ((0.1, 0.3), (1.0, 16.0), (0.75, 0.75), (3e-12, 2.0), (1.7, 0.0123), (1 - 2**-24, 1.0)):
        arrays = [x, *(np.array(v, t) for v, t in ((scale, "float32"), (3, "int32"), (out_scale, "float32"), (-2, "int32")))]  # fmt: skip
        wanted = meaning("qnn.requantize", attrs, arrays)
        function, (name,) = kernel("qnn.requantize", attrs, arrays, wanted, known)
        got = interpret_te_func(function, {f"p{n}": a for n, a in enumerate(arrays)})[name]
        np.testing.assert_array_equal(got, wanted, err_msg=f"{scale} to {out_scale}")


def test_halves_round_away_from_zero_in_native_code() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997], np.float32)
    arrays = [x, np.array(1, np.float32), np.array(0, np.int32)]
    wanted = np.array([-3, -2, -1, 1, 2, 3, 0], np.int8)
    function, _ = kernel("qnn.quantize", {}, arrays, wanted)
    np.testing.assert_array_equal(native(function, arrays, wanted), wanted)


@pytest.mark.parametrize("scale", (0.5, 1.0, 0.3, 1e-9, 1 - 2**-40, 123.25))
def test_a_multiplier_of_run_time_is_that_of_compile_time(scale: float) -> None:
    known = multiplier_and_shift(te.const(scale, "float64"))
    p = te.placeholder((), "float64", "p")
    parts = [te.compute((), lambda *_, k=k: multiplier_and_shift(p())[k], name=f"part{k}") for k in range(2)]
    found = interpret_te_func(te.func("main", [p, *parts]), {"p": np.array(scale)})
    assert [int(found[f"part{k}"]) for k in range(2)] == [int(part) for part in known]  # type: ignore[call-overload]


@pytest.mark.parametrize("ascending", (True, False))
@pytest.mark.parametrize("size", (0, 1, 2, 3, 7, 8, 9, 100))
def test_sort_is_stable_and_puts_nan_as_numpy_does(ascending: bool, size: int) -> None:
    x = np.random.default_rng(size).integers(0, 4, (2, size)).astype(np.float32)
    x[:, 3:5] = np.nan
    attrs = {"is_ascend": ascending, "axis": 1}
    wanted = meaning("argsort", attrs, [x])
    function, _ = kernel("argsort", attrs, [x], wanted)
    np.testing.assert_array_equal(native(function, [x], wanted), wanted)


def test_sort_of_many_elements_takes_no_quadratic_time() -> None:
    x = np.arange(200_000, 0, -1).astype(np.int32)
    function, _ = kernel("sort", {}, [x], x)
    np.testing.assert_array_equal(native(function, [x], x), np.sort(x))


@pytest.mark.parametrize("right", (True, False))
def test_searchsorted_among_nan(right: bool) -> None:
    rows = np.array([-1, 0, 0, 2, np.nan, np.nan], np.float32)
    values = np.array([-2, -1, 0, 1, 2, 3, np.nan], np.float32)
    wanted = meaning("searchsorted", {"right": right}, [rows, values])
    function, _ = kernel("searchsorted", {"right": right}, [rows, values], wanted)
    np.testing.assert_array_equal(native(function, [rows, values], wanted), wanted)


def test_scatter_counts_from_the_end_and_writes_nothing_out_of_bounds() -> None:
    x, updates = np.zeros(4, np.int32), np.array([1, 2, 4, 8], np.int32)
    indices = np.array([-1, 4, -5, 0], np.int64)
    function, _ = kernel("scatter_elements", {"axis": 0, "reduction": "add"}, [x, indices, updates], x)
    np.testing.assert_array_equal(native(function, [x, indices, updates], x), [8, 0, 0, 1])


@pytest.mark.parametrize("stride", (-3, -1, 0, 1, 2))
def test_strided_set_by_ends_beyond_the_tensor(stride: int) -> None:
    x = np.arange(6, dtype=np.float32)
    begin, end = (0, 100) if stride >= 0 else (100, -100)
    taken = range(*slice(begin, end, stride or 1).indices(6))
    v = -np.arange(1, len(taken) + 1, dtype=np.float32)
    wanted = x.copy()
    wanted[list(taken)] = v
    arrays = [x, v, *(np.array([n], np.int64) for n in (begin, end, stride))]
    function, _ = kernel("strided_set", {}, arrays, wanted)
    np.testing.assert_array_equal(native(function, arrays, wanted), wanted)


def test_a_sum_of_bools_is_or() -> None:
    x = np.array([[True, True, False], [False, False, False]])
    for name, wanted in (("sum", [True, False]), ("prod", [False, False])):
        function, _ = kernel(name, {"axis": [1]}, [x], np.array(wanted))
        np.testing.assert_array_equal(native(function, [x], np.array(wanted)), wanted)


def test_a_shape_known_only_at_run_time() -> None:
    text = "def @main(%x: Tensor[(4, 5), float32], %k: int32) { dyn.topk(%x, %k, k=None, axis=0) }"
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    values, places = mirstack.compile(mirstack.parse(text), "cpu")(x, np.int32(2))
    np.testing.assert_array_equal(values, x[:1:-1])
    np.testing.assert_array_equal(places, [[3] * 5, [2] * 5])


def test_a_shape_that_follows_from_what_is_known_is_compiled() -> None:
    text = """def @main(%x: Tensor[(2, 3), float32]) {
      %0 = shape_of(%x, dtype="int32");
      dyn.tile(%x, %0, reps=[])
    }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text), "cpu")(x), np.tile(x, (2, 3)))


def test_the_number_of_axes_that_are_indexed_is_known():
    module = mirstack.parse(
        "def @main(%x: Tensor[(4, 5), float32], %i: Tensor[(?), int64]) { strided_set(%x, %x, %i, %i, %i) }"
    )
    with pytest.raises(
        MirError, match="dimension 0 of 'p1' is known only at run time, but says how many axes are indexed"
    ):
        mirstack.compile(module)
