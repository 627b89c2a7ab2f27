"""Defines TE computations that many operators share.

Shapes come from the input tensors, so that sizes known only at run time stay symbolic. A dimension is an int or a TE
expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from ....tir.types import dtype_to_type
from ._lazy import te

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor
    from ...operator import Attrs, Compute

Dim: TypeAlias = "int | Expr"

Combine: TypeAlias = Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
"""An expression of the elements of two or three tensors."""


class Reducer(Protocol):
    """A reduction of an element over axes: `lambda e, axis: te.sum(e, axis=axis)`."""

    def __call__(self, e: Any, axis: Any) -> Any: ...


def compute_of(name: str) -> Compute:
    """Returns the TE compute of another operator."""
    from ...operator import get_operator

    operator = get_operator(name)
    if operator is None or operator.compute is None:
        raise ValueError(f"{name} is not an operator with a TE compute")
    return operator.compute


def constant(dim: Dim) -> int | None:
    """Returns a dimension's value where it is known at compile time."""
    return dim if isinstance(dim, int) else int(dim) if isinstance(dim, te.Const) else None


def without_elements(shape: Sequence[Dim], dtype: str, name: str) -> Tensor | None:
    """Returns an empty tensor of a shape with a known 0; None for other shapes.

    Nothing is computed, as sizes are divided by.
    """
    if all(constant(dim) != 0 for dim in shape):
        return None
    return te.compute(shape, lambda *_: te.const(0, dtype), name=name)


def signed_index(index: Expr) -> Expr:
    """Casts an index to int32, or to int64 where its dtype needs that; uint64 saturates."""
    match index.dtype:
        case "int32" | "int64":
            return index
        case "uint64":
            return te.min(index, te.const((1 << 63) - 1, "uint64")).astype("int64")
        case "bool" | "int8" | "int16" | "uint8" | "uint16":
            return index.astype("int32")
        case _:
            return index.astype("int64")


def is_one(dim: Dim) -> bool:
    """Returns whether a dimension is known to be 1."""
    return constant(dim) == 1


def elementwise(function: Callable[[Expr], Expr], x: Tensor, name: str = "T_elemwise") -> Tensor:
    """Computes `function` of each element."""
    return te.compute(x.shape, lambda *i: function(x(*i)), name=name)


def wide_dtype(dtype: str) -> str:
    """Returns the dtype that sums of numbers of `dtype` are accumulated in: of half precision float32."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def in_wide_dtype(compute: Compute, wide: Callable[[str], str] = wide_dtype) -> Compute:
    """Wraps `compute` to compute in the dtype `wide` of the first tensor's dtype, and to round once."""

    def widened(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
        narrow = xs[0].dtype
        dtype = wide(narrow)
        if dtype == narrow:
            return compute(attrs, xs, out)
        given = [in_dtype(x, dtype) if x.dtype == narrow else x for x in xs]
        return [in_dtype(t, narrow) if t.dtype == dtype else t for t in compute(attrs, given, out)]

    return widened


def in_dtype(x: Tensor, dtype: str) -> Tensor:
    """Returns the tensor, each element brought to `dtype`; itself where it is of that."""
    return x if x.dtype == dtype else elementwise(lambda e: e.astype(dtype), x, "T_cast")


def from_half(x: Tensor) -> Tensor:
    """Converts float16 to float32 once, for all products that use it; returns other tensors as they are.

    Processors multiply float16 as float32, and each product would convert its element again. For bfloat16 there are dot
    products.
    """
    return in_dtype(x, "float32") if x.dtype == "float16" else x


def broadcast_dims(shapes: Sequence[Sequence[Dim]]) -> list[Dim]:
    """Returns numpy's broadcast of shapes that are known to fit."""
    rank = max(map(len, shapes))
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            result[axis] = _joined(result[axis], dim)
    return result


def _joined(a: Dim, b: Dim) -> Dim:
    if a is b or is_one(b) or constant(a) not in (None, 1):
        return a
    if is_one(a) or constant(b) is not None:
        return b
    # Two sizes known only at run time are equal, or one of them is a 1 that is stretched.
    return te.Select(te.equal(a, 1), b, a)


def broadcast_index(x: Tensor, indices: Sequence[Expr], shape: Sequence[Dim]) -> Expr:
    """Returns the element of `x` that an element of the broadcast shape reads."""
    own = list(x.shape)
    tail = indices[len(indices) - len(own) :]
    outer = shape[len(shape) - len(own) :]
    return x(*(_stretched(i, dim, target) for i, dim, target in zip(tail, own, outer, strict=True)))


def _stretched(index: Expr, dim: Dim, target: Dim) -> Any:
    if is_one(dim):
        return 0
    if constant(dim) is None and dim is not target:
        # A size known only at run time may be 1 and stretch.
        return te.if_then_else(te.equal(dim, 1), 0, index)
    return index


def broadcast(function: Combine, *xs: Tensor, name: str = "T_broadcast") -> Tensor:
    """Computes `function` of the elements of tensors broadcast against each other."""
    shape = broadcast_dims([x.shape for x in xs])
    combine = cast("Callable[..., Any]", function)
    return te.compute(shape, lambda *i: combine(*(broadcast_index(x, i, shape) for x in xs)), name=name)


def reduce_over(
    reducer: Reducer,
    element: Callable[[Expr], Expr],
    x: Tensor,
    axes: Sequence[int],
    keepdims: bool,
    name: str,
) -> Tensor:
    """Computes `reducer(element(x), axis=…)` over `axes` (counted from the front)."""
    extents = {axis: te.reduce_axis((0, x.shape[axis]), name=f"k{axis}") for axis in axes}
    shape = [1 if a in extents else d for a, d in enumerate(x.shape) if keepdims or a not in extents]

    def body(*indices: Expr) -> Expr:
        rest = iter(indices)
        if keepdims:
            return reducer(element(x(*(extents.get(a, i) for a, i in enumerate(indices)))), axis=list(extents.values()))
        full = [extents[a] if a in extents else next(rest) for a in range(len(x.shape))]
        return reducer(element(x(*full)), axis=list(extents.values()))

    return te.compute(shape, body, name=name)


def lowest(dtype: str) -> Expr:
    """Returns the start value of a maximum: no number of the dtype is below it."""
    return te.const(-inf, dtype) if dtype.startswith(("float", "bfloat")) else te.min_value(dtype)


def highest(dtype: str) -> Expr:
    """Returns the start value of a minimum: no number of the dtype is above it."""
    return te.const(inf, dtype) if dtype.startswith(("float", "bfloat")) else te.max_value(dtype)


def te_largest(e: Expr, axis: Any) -> Expr:
    """Returns the largest element over axes; of none minus infinity, or the least integer."""
    return te.max(e, axis=axis, init=lowest(e.dtype))


def te_smallest(e: Expr, axis: Any) -> Expr:
    """Returns the smallest element over axes; of none infinity, or the greatest integer."""
    return te.min(e, axis=axis, init=highest(e.dtype))


def divide(a: Expr, b: Expr) -> Expr:
    """Returns a / b; integers are rounded toward zero, and divided by 0 yield 0.

    `b` may be the constant 0, by which TE itself refuses to divide.
    """
    if a.dtype.startswith(("float", "bfloat")):
        return a * te.const(inf, a.dtype) if is_zero(b) else a / b
    return divide_integers(te.truncdiv, a, b)


def divide_integers(division: Callable[[Expr, Expr], Expr], a: Expr, b: Expr) -> Expr:
    """Returns a quotient or remainder of integers; 0 where `b` is 0.

    `b` may be the constant 0, by which TE itself refuses to divide.
    """
    return te.const(0, a.dtype) if is_zero(b) else division(a, b)


def is_zero(x: Any) -> bool:
    """Returns whether an expression is the constant 0."""
    return isinstance(x, te.Const) and x.value == 0


def _has_none(dim: Dim) -> bool:
    return dim == 0 if isinstance(dim, int) else is_zero(dim)


def divisor(dim: Dim) -> Dim:
    """Returns the divisor for indices along a dimension: its size, or 1 where it has no elements."""
    return 1 if _has_none(dim) else dim


def flat_index(indices: Sequence[Expr], shape: Sequence[Dim]) -> Any:
    """Returns the row-major position of an element."""
    position: Any = 0
    for index, dim in zip(indices, shape, strict=True):
        position = position * dim + index
    return position


def unflatten(position: Any, shape: Sequence[Dim]) -> list[Any]:
    """Returns the indices of the element at a row-major position; 0 along dimensions of size 1 or 0."""
    result: list[Any] = [0] * len(shape)
    if any(_has_none(dim) for dim in shape):
        return result
    whole = [k for k, dim in enumerate(shape) if not is_one(dim)]
    for k in reversed(whole[1:]):
        result[k] = te.floormod(position, shape[k])
        position = te.floordiv(position, shape[k])
    if whole:
        # No remainder is left at the outermost dimension: the position ends there.
        result[whole[0]] = position
    return result


def sums_of_products(
    shape: Sequence[Dim], factors: Callable[..., tuple[Any, Any]], axes: Sequence[Any], dtype: str, name: str
) -> Tensor:
    """Returns the tensor of the sums over `axes` of two factors' products, in `dtype`.

    Half precision is accumulated in float32 and rounded once.
    """
    wide = wide_dtype(dtype)

    def body(*i: Expr) -> Expr:
        left, right = factors(*i)
        return te.sum(left.astype(wide) * right.astype(wide), axis=list(axes))

    sums = te.compute(tuple(shape), body, name=name)
    return sums if wide == dtype else te.compute(tuple(shape), lambda *i: sums(*i).astype(dtype), name=f"{name}_cast")


def type_of_tensor(tensor: Tensor) -> TensorType[Attribute]:
    """Returns the Relay type of a TE tensor; an extent that is not a number is `?`."""
    extents = [int(dim.value) if isinstance(dim, te.Const) else DYNAMIC_INDEX for dim in tensor.dims]
    return TensorType(dtype_to_type(tensor.dtype), extents)
