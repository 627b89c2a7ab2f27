"""Defines operators that create tensors from attributes: constants, ranges, the shape of a tensor.

full: fill_value () , shape=[2,3] -> (2,3)
arange: start (), stop (), step () -> (ceil((stop - start) / step))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, is_float, numpy_type
from ..common.relations import ANY, check_dims, dtype_attr, rank_must_be, shape_of, tensor_type
from ..common.result_sizes import Requirement, ResultShapes, result_shape
from ..common.sources import NUMPY, TVM
from ..elementwise.unary import convert

if TYPE_CHECKING:
    from ....te.builder import Tensor

SHAPE_AND_DTYPE = (attr("shape", None, "ints", printed=True), attr("dtype", None, "str"))


def check_shape(rel: Relation) -> tuple[int, ...]:
    """Returns the attribute `shape`. Fails when it is not given or has a negative dimension."""
    if rel.attrs.shape is None:
        raise rel.fail(f"{rel.operator.name}: shape must be given, as a list of integers")
    return check_dims(rel, rel.attrs.shape)


def _filled(name: str, value: int, *, source: str) -> None:
    def relation(rel: Relation) -> None:
        rel.set_result(tensor_type(check_shape(rel), dtype_attr(rel, "dtype", "float32")))

    def dtype(attrs: Attrs) -> str:
        return attrs.dtype or "float32"

    define(
        name, (), relation, OpPattern.ELEMWISE,
        numpy=lambda attrs: np.full(attrs.shape, value, numpy_type(dtype(attrs))),
        compute=lambda attrs, xs, out: [
            te.compute(attrs.shape, lambda *i: te.const(value, dtype(attrs)), name=f"T_{name}")
        ],
        attributes=SHAPE_AND_DTYPE,
        doc=f"A tensor of {name}.",
        source=source,
    )  # fmt: skip


_filled("zeros", 0, source=NUMPY.format("zeros"))
_filled("ones", 1, source=NUMPY.format("ones"))


def _full_relation(rel: Relation) -> None:
    value = rank_must_be(rel, 0, 0)
    rel.set_result(tensor_type(check_shape(rel), dtype_attr(rel, "dtype", value.element_type)))


define(
    "full", ("fill_value",), _full_relation, OpPattern.ELEMWISE,
    numpy=lambda attrs, x: np.full(attrs.shape, convert(x, attrs.dtype or x.dtype.name)),
    compute=lambda attrs, xs, out: [
        te.compute(attrs.shape, lambda *i: xs[0]().astype(attrs.dtype or xs[0].dtype), name="T_full")
    ],
    attributes=SHAPE_AND_DTYPE,
    doc="A tensor filled with a scalar.",
    source=NUMPY.format("full"),
)  # fmt: skip


def _arange_relation(rel: Relation) -> None:
    first = rel.tensor(0)
    # The number of elements follows from the arguments' values; a pass that knows them infers it.
    rel.set_result(tensor_type([ANY], dtype_attr(rel, "dtype", first.element_type)))


def _arange(attrs: Attrs, start: Array, stop: Array, step: Array) -> Array:
    if not step.item():
        raise ValueError("the step of arange must not be 0")
    first, last, distance = (float(v) if is_float(v) else int(v) for v in (start, stop, step))
    numbers: Array = np.arange(first, last, distance)
    return convert(numbers, attrs.dtype or start.dtype.name)


def _te_arange(attrs: Attrs, out: Attribute, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    wide = "float64" if any("float" in x.dtype for x in (start, stop, step)) else "int64"

    def body(i: Any) -> Any:
        return (start().astype(wide) + i.astype(wide) * step().astype(wide)).astype(attrs.dtype or start.dtype)

    return te.compute(result_shape(out), body, name="T_arange")


def _arange_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    real = any("float" in x.dtype for x in xs)
    start, stop, step = (x().astype("float64" if real else "int64") for x in xs)
    one, zero = te.const(1, step.dtype), te.const(0, step.dtype)
    # A step of 0 is refused; it must not divide.
    distance = te.Select(te.equal(step, zero), one, step)
    moves = te.Select(te.equal(step, zero), 0, 1)
    refused = [Requirement("within", 1, moves, "the step must not be 0")]
    if real:
        steps = (stop - start) / distance
        is_number = te.Select(te.isnan(steps), 0, 1)
        refused.append(Requirement("within", 1, is_number, "how many numbers there are is NaN"))
        count = te.ceil(steps).astype("int64")
    else:
        count = te.floordiv(stop - start + distance - te.Select(distance > zero, one, zero - one), distance)
    return ResultShapes([[te.max(count, te.const(0, "int64"))]], refused)


define(
    "arange", ("start", "stop", "step"), _arange_relation, OpPattern.OPAQUE,
    numpy=_arange,
    compute=lambda attrs, xs, out: [_te_arange(attrs, out, *xs)],
    extents=_arange_extents,
    # The first three repeat the arguments, as expressions.
    attributes=(
        attr("start", None, "any"), attr("stop", None, "any"), attr("step", None, "any"), attr("dtype", None, "str"),
    ),
    doc="The numbers from `start` up to, not including, `stop`, `step` apart.",
    source=NUMPY.format("arange"),
)  # fmt: skip


def _shape_of_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    rel.set_result(tensor_type([len(shape_of(data))], dtype_attr(rel, "dtype", "int32")))


def _te_shape_of(attrs: Attrs, x: Tensor) -> Tensor:
    dtype = attrs.dtype or "int32"

    def element(i: Any) -> Any:
        result: Any = te.const(0, dtype)
        for axis, dim in enumerate(x.shape):
            size = te.const(dim, dtype) if isinstance(dim, int) else dim.astype(dtype)
            result = te.Select(i == axis, size, result)
        return result

    return te.compute((len(x.shape),), element, name="T_shape_of")


define(
    "shape_of", ("data",), _shape_of_relation, OpPattern.OPAQUE,
    numpy=lambda attrs, x: np.array(x.shape, numpy_type(attrs.dtype or "int32")),
    compute=lambda attrs, xs, out: [_te_shape_of(attrs, xs[0])],
    attributes=(attr("dtype", None, "str"),),
    doc="The dimensions of a tensor, as a tensor.",
    source=TVM.format("shape_of"),
)  # fmt: skip


def _size_relation(rel: Relation) -> None:
    rel.tensor(0)
    rel.set_result(tensor_type((), dtype_attr(rel, "dtype", "int32")))


def _te_size(attrs: Attrs, x: Tensor) -> Tensor:
    dtype = attrs.dtype or "int32"

    def element() -> Any:
        result: Any = te.const(1, dtype)
        for dim in x.shape:
            result = result * (te.const(dim, dtype) if isinstance(dim, int) else dim.astype(dtype))
        return result

    return te.compute((), element, name="T_ndarray_size")


define(
    "ndarray_size", ("data",), _size_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: np.array(x.size, numpy_type(attrs.dtype or "int32")),
    compute=lambda attrs, xs, out: [_te_size(attrs, xs[0])],
    attributes=(attr("dtype", None, "str"),),
    doc="The number of elements of a tensor, as a scalar.",
    source=TVM.format("ndarray_size"),
)  # fmt: skip
