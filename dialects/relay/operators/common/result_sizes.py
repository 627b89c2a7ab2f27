"""Defines result shapes that are known only at run time, for `extents` (TVM's FShapeFunc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from ._lazy import te
from .te_computes import Dim, constant, is_one

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

Rule = Literal["equal", "stretch", "expand", "within"]
"""The two sizes are equal; equal or one of them is 1; equal or the first is 1; the first is not above the second."""


def fits(rule: Rule, left: int, right: int) -> bool:
    """Returns whether two known sizes fit by a rule."""
    match rule:
        case "equal":
            return left == right
        case "stretch":
            return left == right or 1 in (left, right)
        case "expand":
            return left in (right, 1)
        case "within":
            return left <= right


def with_sizes(message: str, sizes: Sequence[int]) -> str:
    """Returns a message with a size in the place of each `{size}`."""
    for size in sizes:
        message = message.replace("{size}", str(size), 1)
    return message


@dataclass(frozen=True)
class Requirement:
    """A rule that two sizes must meet, and the message otherwise, with `{size}` for each size."""

    rule: Rule
    left: Dim
    right: Dim
    message: str


@dataclass(frozen=True)
class ResultShapes:
    """The shape of each result of an operator and the requirements on sizes, in TE over the input tensors."""

    shapes: Sequence[Sequence[Dim]]
    requirements: Sequence[Requirement] = ()


def result_shape(type: Attribute) -> list[Dim]:
    """Returns a result's dimensions as its compute has them: each `?` is a size that `extents` computes."""
    assert isinstance(type, TensorType)
    return [te.size_var("m") if extent == DYNAMIC_INDEX else extent for extent in type.get_shape()]


def number(x: Tensor, *place: int) -> Expr:
    """Returns an element of an argument that holds sizes, as int64."""
    return x(*place).astype("int64")


def size_tensor(size: Expr, name: str) -> Tensor:
    """Returns a tensor of rank 0 that holds a size, as int64."""
    return te.compute((), lambda: size.astype("int64"), name=name)


def numbers(x: Tensor) -> list[Expr]:
    """Returns the elements of a vector of known length, as int64."""
    return [number(x, k) for k in range(constant(x.shape[0]) or 0)]


def product(dims: Sequence[Dim]) -> Any:
    """Returns the number of elements, as int64."""
    result: Any = te.const(1, "int64")
    for dim in dims:
        if not is_one(dim):
            result = result * (te.const(dim, "int64") if isinstance(dim, int) else dim.astype("int64"))
    return result


def same_elements(x: Tensor, shape: Sequence[Dim]) -> Requirement:
    """Requires that a new shape has as many elements as the tensor."""
    return Requirement(
        "equal", product(x.shape), product(shape), "'data' has {size} elements, but the new shape has {size}"
    )


def has_elements(size: Dim, taken: Sequence[Dim], what: str) -> list[Requirement]:
    """Requires that a dimension of `size`, known only at run time, is not 0 if elements are `taken`.

    `what` names the dimension: "dimension 0 of 'data'".
    """
    if constant(size) is not None:
        return []  # The type relation compares it.
    return [
        Requirement("within", te.min(product(taken), te.const(1, "int64")), size, f"{what} has no elements to take")
    ]


def stretches_to(x: Tensor, shape: Sequence[Dim], name: str = "data") -> list[Requirement]:
    """Requires that a tensor broadcasts to a shape."""
    first = len(shape) - len(x.shape)
    return [
        Requirement(
            "expand", dim, target, f"dimension {axis} of '{name}' is {{size}}, which does not broadcast to {{size}}"
        )
        for axis, (dim, target) in enumerate(zip(x.shape, shape[first:], strict=True))
    ]


def reshaped_to(x: Tensor, newshape: Sequence[Expr], allow_zero: bool) -> ResultShapes:
    """Returns the shape that the numbers `newshape` ask for, and its requirements.

    0 keeps the old dimension at its index (or is 0 with `allow_zero`), -1 is inferred from the number of elements.
    """
    one, wrong = te.const(1, "int64"), te.const(-2, "int64")
    shape: list[Any] = []
    given: Any = one  # what -1 is divided by, and
    left: Any = one  # the old dimensions that it has to account for
    for place in range(max(len(newshape), len(x.shape))):
        old = product(x.shape[place : place + 1]) if place < len(x.shape) else None
        value = newshape[place] if place < len(newshape) else None
        takes = te.const(0, "bool") if value is None or allow_zero else te.equal(value, 0)
        if value is not None:
            shape.append(te.Select(takes, wrong if old is None else old, value))
            given = given * te.Select(te.any(takes, value < 0), one, value)
        if old is not None:
            left = left * te.Select(takes, one, old)
    # With a given size of 0, -1 cannot be inferred.
    inferred = te.floordiv(left, te.max(given, one))
    shape = [te.Select(te.equal(dim, -1), inferred, dim) for dim in shape]
    return ResultShapes([shape], [same_elements(x, shape)])
