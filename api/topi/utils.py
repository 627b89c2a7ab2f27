"""`topi.utils`: sizes as numbers, and other small helpers of TOPI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...dialects.te.tensor import Operation
from ...dialects.tir import node as ex
from ...dialects.tir.node import Const, Expr, Var, fail
from ...support.public_names import public_names
from .padding import get_pad_tuple

__all__ = [
    "ceil_div", "equal_const_int", "get_const_float", "get_const_int", "get_const_tuple", "get_max_power2_factor",
    "get_pad_tuple", "is_empty_shape", "make_idx", "prod", "simplify", "swap", "traverse_inline", "within_index",
]  # fmt: skip


def simplify(expr: Any) -> Any:
    """Returns an expression simplified; a number that it is."""
    from ..arith import Analyzer

    if not isinstance(expr, Expr):
        return expr
    found = Analyzer().simplify(expr)
    return found.value if isinstance(found, Const) else found


def get_const_int(expr: Any) -> int:
    """Returns the number that an expression is. Raises MirError for one that is not known."""
    found = simplify(expr)
    if isinstance(found, Expr):
        raise fail(f"'{found}' is not a constant integer")
    return int(found)


def get_const_float(expr: Any) -> float:
    """Returns the number that an expression is. Raises MirError for one that is not known."""
    found = simplify(expr)
    if isinstance(found, Expr):
        raise fail(f"'{found}' is not a constant float")
    return float(found)


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """Returns a shape with numbers where extents are known."""
    simplified = (each if isinstance(each, Var) else simplify(each) for each in in_tuple)
    return tuple(each if isinstance(each, Expr) else int(each) for each in simplified)


def equal_const_int(expr: Any, value: int) -> bool:
    """Returns whether an expression is known to be a number."""
    found = simplify(expr)
    return not isinstance(found, Expr) and int(found) == value


def prod(x: Sequence[Any]) -> Any:
    """Returns the product of sizes; 1 of none."""
    result: Any = 1
    for each in x:
        result = result * each
    return result


def ceil_div(a: Any, b: Any) -> Any:
    """Returns a / b rounded up, for b > 0."""
    return (a + (b - 1)) // b


def swap(arr: Sequence[Any], axis: int) -> list[Any]:
    """Returns a list with the item at `axis` and the last exchanged."""
    result = list(arr)
    result[axis], result[-1] = result[-1], result[axis]
    return result


def is_empty_shape(shape: Iterable[Any]) -> bool:
    """Returns whether one of the extents is 0."""
    return any(equal_const_int(each, 0) for each in shape)


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """Returns the greatest power of 2 that divides n, at most `max_value`."""
    factor = 1
    while n % 2 == 0 and (max_value is None or factor * 2 <= max_value):
        factor, n = factor * 2, n // 2
    return factor


def within_index(b: Any, e: Any, s: Any, i: Any) -> Expr:
    """Returns whether i is one of b, b + s, … before e."""
    bounds = ex.logical_and(ex.greater_equal(i, ex.minimum(b, e)), ex.less(i, ex.maximum(b, e)))
    return ex.logical_and(bounds, ex.equal(ex.floormod(ex.subtract(i, b), s), 0))


def make_idx(b: Any, e: Any, s: Any, z: Any, i: Any) -> Expr:
    """Returns the place of i among b, b + s, … before e; the last of z places where it is none of them."""
    place = ex.floordiv(ex.subtract(i, b), s)
    return ex.if_then_else(within_index(b, e, s, i), place, ex.subtract(z, 1))


def traverse_inline(s: Any, final_op: Operation, callback: Callable[[Operation], Any]) -> None:
    """Calls a function on an operation and its producers; injective ones but the last are computed inline."""
    from .tag import is_injective

    seen: set[int] = set()
    pending: list[Operation] = [final_op]
    outputs = {id(op) for op in s.outputs}
    while pending:
        op = pending.pop()
        if id(op) in seen:
            continue
        seen.add(id(op))
        if is_injective(op.tag) and id(op) not in outputs:
            s[op].compute_inline()
        pending += [tensor.op for tensor in op.input_tensors if tensor.op.input_tensors]
        callback(op)


__dir__ = public_names(__name__)
