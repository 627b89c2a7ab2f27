"""Defines type relations that many operators share, and their helpers: dimensions, messages.

A dimension is an integer; `ANY` is one that is known only at run time (`?`). `?` fits every dimension, and where one
side knows more than the other, the known dimension wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, TensorType, TupleType
from xdsl.ir import Attribute

from .....support.diagnostics import MirError
from .... import interned
from ....tir.types import dtype_to_type, type_to_dtype
from ...operator import Relation
from ...text import type_text
from .open_dims import OpenDim, combine, note

ANY = DYNAMIC_INDEX

Shape: TypeAlias = tuple[int, ...]
TypeRelation: TypeAlias = Callable[[Relation], None]


def shape_of(type: TensorType[Attribute]) -> Shape:
    """Returns the dimensions, `?` as ANY."""
    return type.get_shape()


def dtype_of(type: TensorType[Attribute]) -> str:
    """Returns TVM's name of the element type."""
    return type_to_dtype(type.element_type)


def tensor_type(shape: Iterable[int], dtype: str | Attribute) -> TensorType[Attribute]:
    """Returns a tensor type from dimensions and an element type or its name."""
    element, dims = dtype_to_type(dtype) if isinstance(dtype, str) else dtype, tuple(shape)
    # An open dimension may remember whose it is, though it equals every other one.
    return TensorType(element, dims) if ANY in dims else interned.tensor_type(element, *dims)


def tuple_type(fields: Iterable[Attribute]) -> TupleType:
    """Returns a tuple type of these field types."""
    return TupleType(ArrayAttr(list(fields)))  # pyright: ignore[reportArgumentType]


def dtype_attr(rel: Relation, name: str, default: str | Attribute) -> Attribute:
    """Returns the element type of the dtype attribute `name`, or `default` if unset ("" or None)."""
    dtype = rel.attrs[name] or default
    if not isinstance(dtype, str):
        return dtype
    try:
        return dtype_to_type(dtype)
    except MirError:
        raise rel.fail(f"{rel.operator.name}: {name}={dtype!r} is not a dtype") from None


def show_argument(rel: Relation, index: int) -> str:
    """Returns an argument with its type, for a message."""
    type = rel.type_of(index)
    return f"'{rel.operator.arguments[index].lstrip('*')}'" + ("" if type is None else f" ({type_text(type)})")


def same_dim(a: int, b: int) -> bool:
    """Returns whether two dimensions can be equal."""
    if isinstance(a, OpenDim) or isinstance(b, OpenDim):
        note(a, b)
    return a in (b, ANY) or b == ANY


def can_stretch(a: int, b: int) -> bool:
    """Returns whether dimensions that are not known to be 1 can be equal, or one a 1 at run time."""
    note(a, b, "stretch")
    return a in (b, ANY) or b == ANY


def known_dim(a: int, b: int) -> int:
    """Returns the known one of two dimensions that can be equal."""
    return b if a == ANY else a


def at_most(a: int, b: int) -> bool:
    """Returns whether a dimension can be at most another."""
    if ANY not in (a, b):
        return a <= b
    note(a, b, "within")
    return True


def can_expand(a: int, b: int) -> bool:
    """Returns whether a dimension can be equal to another one, or a 1 that is stretched to it."""
    if a == 1 or ANY not in (a, b):
        return a in (1, b)
    note(a, b, "expand")
    return True


def is_multiple(dim: int, by: int) -> bool:
    """Returns whether a dimension can be a multiple of a positive number."""
    return by == 1 or same_dim(combine("%", dim, by), 0)


def add_dims(*dims: int) -> int:
    """Returns the sum, `?` when one is."""
    if ANY not in dims:
        return sum(dims)
    return combine("+", reduce(lambda a, b: combine("+", a, b), _open(dims)), sum(dim for dim in dims if dim != ANY))


def multiply_dims(*dims: int) -> int:
    """Returns the product, `?` when one is."""
    if ANY not in dims:
        return prod(dims)
    return combine("*", reduce(lambda a, b: combine("*", a, b), _open(dims)), prod(dim for dim in dims if dim != ANY))


def divide_dims(dim: int, by: int) -> int:
    """Returns the quotient, rounded down; `?` when the dimension is."""
    return combine("//", dim, by)


def _open(dims: Sequence[int]) -> list[int]:
    return [dim for dim in dims if dim == ANY]


def size_of(shape: Sequence[int]) -> int:
    """Returns the number of elements, `?` when a dimension is (and none is 0)."""
    return 0 if 0 in shape else multiply_dims(*shape)


def axis_of(rel: Relation, axis: int, rank: int, name: str = "axis", what: str = "the tensor") -> int:
    """Returns `axis` counted from the front. Fails when a tensor of that rank has no such axis."""
    if not -rank <= axis < rank:
        raise rel.fail(f"{rel.operator.name}: {name}={axis} is out of range: {what} has rank {rank}")
    return axis % rank if rank else 0


def axes_of(rel: Relation, axes: Sequence[int] | None, rank: int, name: str = "axis") -> tuple[int, ...]:
    """Axes counted from the front, all for None. Fails on one out of range or given twice."""
    if axes is None:
        return tuple(range(rank))
    result = tuple(axis_of(rel, axis, rank, name) for axis in axes)
    if len(set(result)) != len(result):
        raise rel.fail(f"{rel.operator.name}: {name}={list(axes)} names an axis twice")
    return result


def check_dims(rel: Relation, shape: Sequence[int]) -> Shape:
    """Returns `shape`, from an attribute. Fails on a negative dimension."""
    if any(dim < 0 for dim in shape):
        raise rel.fail(f"{rel.operator.name}: the shape {list(shape)} has a negative dimension")
    return tuple(shape)


def rank_must_be(rel: Relation, index: int, *ranks: int) -> TensorType[Attribute]:
    """Returns argument `index`'s tensor type. Fails unless its rank is one of `ranks`."""
    type = rel.tensor(index)
    if type.get_num_dims() not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise rel.fail(
            f"{rel.operator.name}: argument {show_argument(rel, index)} must have rank {wanted}, not {type.get_num_dims()}",
            argument=index,
        )
    return type


def is_number(rel: Relation, index: int) -> bool:
    """Returns whether an argument can be one number: a scalar or a vector of one element."""
    shape = shape_of(rel.tensor(index))
    return len(shape) < 2 and all(same_dim(dim, 1) for dim in shape)


def number_must_be(rel: Relation, *indices: int) -> None:
    """Fails unless each of these arguments is one number."""
    for index in indices:
        if not is_number(rel, index):
            raise rel.fail(f"{rel.operator.name}: {show_argument(rel, index)} must be one number", argument=index)


def rank_at_least(rel: Relation, index: int, rank: int) -> TensorType[Attribute]:
    """Returns argument `index`'s tensor type. Fails when it has fewer than `rank` dimensions."""
    type = rel.tensor(index)
    if type.get_num_dims() < rank:
        raise rel.fail(
            f"{rel.operator.name}: argument {show_argument(rel, index)} must have rank {rank} or more", argument=index
        )
    return type


def _written_as(left: TensorType[Attribute], right: TensorType[Attribute]) -> str:
    """Returns a hint at another spelling of `add(%x, 1)` with an `%x` of floats: `1f`; "" for other types."""
    for one, other in ((left, right), (right, left)):
        if type_text(one) == "int32" and (suffix := _SUFFIXES.get(dtype_of(other))) is not None:
            return f"; a number is of {dtype_of(other)} where it is written with {suffix}, as 1{suffix}"
    return ""


_SUFFIXES = {"float32": "f", "float64": "f64", "float16": "f16"}


def same_dtype(rel: Relation, *indices: int) -> Attribute:
    """Returns the element type that the arguments have in common. Fails when they differ."""
    first = rel.tensor(indices[0]).element_type
    for index in indices[1:]:
        if rel.tensor(index).element_type != first:
            raise rel.fail(
                f"{rel.operator.name}: arguments {show_argument(rel, indices[0])} and {show_argument(rel, index)}"
                " have different dtypes",
                "cast one of them with cast(…, dtype=…)" + _written_as(rel.tensor(indices[0]), rel.tensor(index)),
                argument=index,
            )
    return first


def identity(rel: Relation) -> None:
    """Types a result of the (first) argument's type, a tensor."""
    rel.set_result(rel.tensor(0))


def identity_of_any(rel: Relation) -> None:
    """Types a result of the argument's type, whatever it is."""
    type = rel.type_of(0)
    rel.set_result(rel.tensor(0) if type is None else type)


def same_shape(dtype: str) -> TypeRelation:
    """Returns the relation of a result of the argument's shape and the given element type."""

    def relation(rel: Relation) -> None:
        rel.set_result(tensor_type(shape_of(rel.tensor(0)), dtype))

    return relation


def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> Shape | int:
    """Returns numpy's broadcast of two shapes, or the axis of the result at which they differ."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    result: list[int] = []
    for axis, (x, y) in enumerate(zip(a, b, strict=True)):
        if x == 1:
            result.append(y)
        elif y == 1:
            result.append(x)
        elif can_stretch(x, y):
            result.append(known_dim(x, y))
        else:
            return axis
    return tuple(result)


def broadcast_arguments(rel: Relation, *indices: int) -> Shape:
    """Returns the shape that the arguments broadcast to. Fails naming the dimension at which two do not."""
    shape = shape_of(rel.tensor(indices[0]))
    for index in indices[1:]:
        other = shape_of(rel.tensor(index))
        joined = broadcast_shapes(shape, other)
        if isinstance(joined, int):
            rank = max(len(shape), len(other))
            left, right = shape[joined - rank], other[joined - rank]
            raise rel.fail(
                f"{rel.operator.name}: arguments {show_argument(rel, indices[0])} and {show_argument(rel, index)}"
                f" do not broadcast: dimension {joined} is {left} against {right}",
                "dimensions are aligned from the last; they must be equal, or one of them 1",
                argument=index,
            )
        # Checks between any two, not only with the broadcast of those before.
        for before in indices[1 : indices.index(index)]:
            broadcast_shapes(shape_of(rel.tensor(before)), other)
        shape = joined
    return shape


def broadcast(rel: Relation) -> None:
    """Types arguments broadcast against each other, all of the result's element type."""
    indices = range(rel.count)
    rel.set_result(tensor_type(broadcast_arguments(rel, *indices), same_dtype(rel, *indices)))


def compare(rel: Relation) -> None:
    """Types arguments broadcast against each other, and a result of bool."""
    indices = range(rel.count)
    same_dtype(rel, *indices)
    rel.set_result(tensor_type(broadcast_arguments(rel, *indices), "bool"))
