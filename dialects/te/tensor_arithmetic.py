"""Arithmetic on whole tensors, element by element, shapes broadcast as numpy does: `A + B`, `2 * A`, `-A`, `A.astype("int8")`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ...support.diagnostics import MirError
from . import arithmetic
from .expr import Const, Elementwise, Expr, ExprLike, fail

if TYPE_CHECKING:
    from .tensor import Dims, Tensor


class TensorArithmetic(Elementwise):
    """The operators of tensors. The results are named as TOPI names them: `T_add`, `T_multiply`."""

    __slots__ = ()

    def __add__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_add", arithmetic.add, self, other)

    def __radd__(self, other: ExprLike) -> Tensor:
        return broadcast("T_add", arithmetic.add, other, self)

    def __sub__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_subtract", arithmetic.subtract, self, other)

    def __rsub__(self, other: ExprLike) -> Tensor:
        return broadcast("T_subtract", arithmetic.subtract, other, self)

    def __mul__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_multiply", arithmetic.multiply, self, other)

    def __rmul__(self, other: ExprLike) -> Tensor:
        return broadcast("T_multiply", arithmetic.multiply, other, self)

    def __truediv__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_divide", arithmetic.divide, self, other)

    def __rtruediv__(self, other: ExprLike) -> Tensor:
        return broadcast("T_divide", arithmetic.divide, other, self)

    def __floordiv__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_floor_divide", arithmetic.floordiv, self, other)

    def __rfloordiv__(self, other: ExprLike) -> Tensor:
        return broadcast("T_floor_divide", arithmetic.floordiv, other, self)

    def __mod__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_floor_mod", arithmetic.floormod, self, other)

    def __rmod__(self, other: ExprLike) -> Tensor:
        return broadcast("T_floor_mod", arithmetic.floormod, other, self)

    def __neg__(self) -> Tensor:
        return broadcast("T_multiply", arithmetic.multiply, self, -1)

    def astype(self, dtype: str) -> Tensor:
        """Returns the tensor with its elements converted to `dtype`."""
        from .tensor import compute_named

        tensor = _tensor(self)
        names = [f"ax{number}" for number in range(tensor.ndim)]
        return compute_named(tensor.dims, names, lambda *i: tensor(*i).astype(dtype), "T_cast", "elemwise")


def broadcast(name: str, scalar: Callable[[Any, Any], Expr], lhs: object, rhs: object) -> Tensor:
    """Returns the compute `name` of two operands, at least one of them a tensor: shapes (4, 1), (3,) → (4, 3).

    Dtypes are matched as those of scalars. Raises MirError for shapes that do not broadcast.
    """
    from .tensor import compute_named

    dims = _common(_shape(lhs), _shape(rhs), name)
    names = [f"ax{number}" for number in range(len(dims))]
    return compute_named(
        dims, names, lambda *i: scalar(_element(lhs, i, dims), _element(rhs, i, dims)), name, "broadcast"
    )


def _tensor(value: object) -> Tensor:
    from .tensor import Tensor

    assert isinstance(value, Tensor)
    return value


def _element(value: object, indices: tuple[Expr, ...], dims: Dims) -> Expr | object:
    """The element of an operand that a place of the result needs: of the last axes, 0 along those of one element."""
    if not isinstance(value, Elementwise):
        return value
    tensor = _tensor(value)
    own = indices[len(dims) - tensor.ndim :]
    shared = dims[len(dims) - tensor.ndim :]
    return tensor(
        *(
            Const(0, index.dtype) if _is_one(dim) and not _is_one(whole) else index
            for index, dim, whole in zip(own, tensor.dims, shared, strict=True)
        )
    )


def _is_one(dim: Expr) -> bool:
    return isinstance(dim, Const) and dim.value == 1


def _shape(value: object) -> Dims:
    return _tensor(value).dims if isinstance(value, Elementwise) else ()


def _common(lhs: Dims, rhs: Dims, name: str) -> Dims:
    """The shape of both together. An open extent beside a known one is taken to be it; two open ones must be one variable."""
    dims: list[Expr] = []
    for a, b in zip_longest(reversed(lhs), reversed(rhs), fillvalue=Const(1, "int32")):
        if _is_one(a):
            dims.append(b)
        elif _is_one(b) or a is b:
            dims.append(a)
        elif isinstance(a, Const) and isinstance(b, Const) and a.value != b.value:
            raise _unequal(name, lhs, rhs, a, b)
        elif isinstance(a, Const) or isinstance(b, Const):
            dims.append(a if isinstance(a, Const) else b)
        else:
            raise _unequal(name, lhs, rhs, a, b)
    return tuple(reversed(dims))


def _unequal(name: str, lhs: Dims, rhs: Dims, a: Expr, b: Expr) -> MirError:
    shapes = " and ".join(f"({', '.join(map(str, dims))})" for dims in (lhs, rhs))
    return fail(
        f"{name}: tensors of shapes {shapes} do not broadcast: {a} against {b}",
        "dimensions are aligned from the last; they must be equal, or one of them 1",
    )
