"""Defines simulated quantization: floating-point numbers, and a dtype that is a run-time number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, along, round_half_away
from ..common.relations import dtype_of, is_number, same_dim, shape_of, show_argument

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

CODES = {1: "int8", 2: "uint8", 3: "int32"}
"""The numbers that represent dtypes; any other number leaves the data as it is."""


def _relation(rel: Relation) -> None:
    data, code = rel.tensor(0), rel.tensor(1)
    name = rel.operator.name
    if "float" not in dtype_of(data):
        raise rel.fail(f"{name}: {show_argument(rel, 0)} must be of a floating-point dtype", argument=0)
    if not is_number(rel, 1) or not dtype_of(code).startswith(("int", "uint")):
        raise rel.fail(f"{name}: {show_argument(rel, 1)} must be one integer, the dtype's number", argument=1)
    shape = shape_of(data)
    axis: int = rel.attrs.axis
    size: int = shape[axis] if -len(shape) <= axis < len(shape) else 1
    for index in (2, 3):
        own = shape_of(rel.tensor(index))
        if len(own) > 1 or any(dim != 1 and not same_dim(dim, size) for dim in own):
            raise rel.fail(
                f"{name}: {show_argument(rel, index)} must be a scalar or a vector along axis {axis} of {show_argument(rel, 0)}",
                argument=index,
            )
    rel.set_result(data)


def _spread(values: Array, axis: int, x: Array) -> Array:
    return values.reshape(()) if values.size == 1 else along(values, axis, x.ndim)


def _quantize(attrs: Attrs, x: Array, code: Array, scale: Array, zero_point: Array) -> Array:
    dtype = CODES.get(int(code.reshape(())))
    if dtype is None:
        return x.copy()
    scale, zero_point = (_spread(p, attrs.axis, x).astype(x.dtype) for p in (scale, zero_point))
    info = np.iinfo(dtype)
    return np.clip(round_half_away(x / scale) + zero_point, x.dtype.type(info.min), x.dtype.type(info.max))


def _dequantize(attrs: Attrs, x: Array, code: Array, scale: Array, zero_point: Array) -> Array:
    if int(code.reshape(())) not in CODES:
        return x.copy()
    scale, zero_point = (_spread(p, attrs.axis, x).astype(x.dtype) for p in (scale, zero_point))
    return ((x - zero_point) * scale).astype(x.dtype)


def _element(x: Tensor, indices: Sequence[Expr], axis: int, dtype: str) -> Expr:
    if not x.shape:
        return x().astype(dtype)
    is_scalar = isinstance(x.shape[0], int) and x.shape[0] == 1
    return x(0 if is_scalar else indices[axis]).astype(dtype)


def _compute(combine: Callable[[Expr, Expr, Expr, Expr], Expr]) -> Any:
    """Returns the compute of `combine(value, dtype's number, scale, zero point)` for each element."""

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        x, code, scale, zero_point = xs

        def body(*i: Expr) -> Expr:
            number = code(0) if code.shape else code()
            return combine(x(*i), number, *(_element(p, i, attrs.axis, x.dtype) for p in (scale, zero_point)))

        return [te.compute(x.shape, body, name="T_simulated")]

    return compute


def _te_quantize(value: Expr, code: Expr, scale: Expr, zero_point: Expr) -> Expr:
    result = value
    exact = te.round(value / scale) + zero_point
    for number, dtype in CODES.items():
        low, high = (bound(dtype).astype(value.dtype) for bound in (te.min_value, te.max_value))
        result = te.Select(code.equal(number), te.max(te.min(exact, high), low), result)
    return result


def _te_dequantize(value: Expr, code: Expr, scale: Expr, zero_point: Expr) -> Expr:
    known = te.any(*(code.equal(number) for number in CODES))
    return te.Select(known, (value - zero_point) * scale, value)


define(
    "qnn.simulated_quantize", ("data", "out_dtype", "output_scale", "output_zero_point"), _relation,
    OpPattern.ELEMWISE,
    numpy=_quantize, compute=_compute(_te_quantize), attributes=(attr("axis", -1),),
    doc="round(data / scale) + zero_point within the range of a dtype, as floating-point numbers; the dtype's number is"
    " 1 for int8, 2 for uint8, 3 for int32, another for none.",
    source="https://arxiv.org/abs/1712.05877",
)  # fmt: skip

define(
    "qnn.simulated_dequantize", ("data", "in_dtype", "input_scale", "input_zero_point"), _relation,
    OpPattern.ELEMWISE,
    numpy=_dequantize, compute=_compute(_te_dequantize), attributes=(attr("axis", -1),),
    doc="(data - zero_point) * scale of numbers that `qnn.simulated_quantize` returned.",
    source="https://arxiv.org/abs/1712.05877",
)  # fmt: skip
