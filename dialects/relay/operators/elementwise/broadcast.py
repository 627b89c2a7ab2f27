"""Defines operators of two broadcast tensors: arithmetic, comparisons, logic, bits; and `where`.

lhs (2,1,4), rhs (3,4) -> (2,3,4)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...operator import Attrs, Operator, OpPattern, Relation, define
from ..common._lazy import elementary, np, numeric, te
from ..common.numpy_meanings import Array, floor_divide, is_float, keep_dtype, trunc_divide
from ..common.relations import TypeRelation, broadcast, broadcast_arguments, compare, same_dtype, tensor_type
from ..common.sources import NUMPY, TVM, C
from ..common.te_computes import broadcast as te_broadcast
from ..common.te_computes import constant, divide_integers

if TYPE_CHECKING:
    from ....te.builder import Expr


def binary(
    name: str,
    numpy: Callable[[Array, Array], Array],
    compute: Callable[[Expr, Expr], Expr],
    doc: str,
    relation: TypeRelation = broadcast,
    *,
    commutative: bool = False,
    source: str,
) -> Operator:
    """Registers a broadcasting operator of two tensors without attributes."""
    return define(
        name, ("lhs", "rhs"), relation, OpPattern.BROADCAST,
        numpy=lambda attrs, a, b: numpy(a, b),
        compute=lambda attrs, xs, out: [te_broadcast(compute, *xs, name=f"T_{name}")],
        doc=doc, source=source,
        commutative=commutative,
    )  # fmt: skip


symmetric = partial(binary, commutative=True)


def _is_float(x: Expr) -> bool:
    return x.dtype.startswith(("float", "bfloat"))


def _power(a: Array, b: Array) -> Array:
    return elementary.power(a, b) if is_float(a) else numeric.integer_power(a, b)


def _trunc_mod(a: Array, b: Array) -> Array:
    return keep_dtype(numeric.trunc_mod(a, b), a)


def _te_floor_mod(a: Expr, b: Expr) -> Expr:
    if not _is_float(a):
        return divide_integers(te.floormod, a, b)
    rest = te.fmod(a, b)
    # A remainder that changes with the divisor's sign is not 0 and below the divisor: the sum has that sign.
    signed = te.copysign(rest, b)
    return te.Select(te.not_equal(signed, rest), rest + b, signed)


def _te_shift(a: Expr, b: Expr, left: bool = True) -> Expr:
    """Returns `a << b` or `a >> b`; TE itself refuses constants outside of the dtype's width."""
    if _is_float(a):
        return a << b if left else a >> b  # TE refuses it.
    count, bits = constant(b), 1 if a.dtype == "bool" else int(a.dtype.lstrip("uint"))
    if count is None or 0 <= count < bits:
        return a << b if left else a >> b
    is_signed = a.dtype.startswith("int")
    return te.const(0, a.dtype) if left or not is_signed else a >> te.const(bits - 1, a.dtype)


# fmt: off
symmetric("add", lambda a, b: np.add(a, b), lambda a, b: a + b, "lhs + rhs; integers wrap around.", source=NUMPY.format("add"))
binary("subtract", lambda a, b: _minus(a, b), lambda a, b: a - b, "lhs - rhs; integers wrap around.", source=NUMPY.format("subtract"))
symmetric("multiply", lambda a, b: np.multiply(a, b), lambda a, b: a * b, "lhs * rhs; integers wrap around.", source=NUMPY.format("multiply"))
binary("divide", trunc_divide, lambda a, b: a / b if _is_float(a) else divide_integers(te.truncdiv, a, b),
    "lhs / rhs; integers round toward zero.", source=TVM.format("divide"))
binary("trunc_divide", lambda a, b: np.trunc(a / b) if is_float(a) else trunc_divide(a, b), lambda a, b: te.trunc(a / b) if _is_float(a) else divide_integers(te.truncdiv, a, b), "lhs / rhs rounded toward zero.", source=TVM.format("trunc_divide"))
binary("floor_divide", lambda a, b: np.floor(a / b) if is_float(a) else floor_divide(a, b), lambda a, b: te.floor(a / b) if _is_float(a) else divide_integers(te.floordiv, a, b), "lhs / rhs rounded down.", source=NUMPY.format("floor_divide"))
binary("mod", _trunc_mod, lambda a, b: te.fmod(a, b) if _is_float(a) else divide_integers(te.truncmod, a, b),
    "What division toward zero leaves of lhs; it has the sign of lhs.", source=TVM.format("mod"))
binary("trunc_mod", _trunc_mod, lambda a, b: te.fmod(a, b) if _is_float(a) else divide_integers(te.truncmod, a, b),
    "What division toward zero leaves of lhs; it has the sign of lhs.", source=TVM.format("trunc_mod"))
binary("floor_mod", lambda a, b: keep_dtype(numeric.floor_mod(a, b), a), _te_floor_mod,
    "What division rounded down leaves of lhs; it has the sign of rhs.", source=NUMPY.format("remainder"))
binary("power", _power, lambda a, b: te.power(a, b), "lhs to the power of rhs.", source=NUMPY.format("power"))
# Neither commutes: of two zeros the result is one or the other.
binary("maximum", lambda a, b: numeric.larger(a, b), lambda a, b: te.max(a, b), "The larger of lhs and rhs.", source=NUMPY.format("maximum"))
binary("minimum", lambda a, b: numeric.smaller(a, b), lambda a, b: te.min(a, b), "The smaller of lhs and rhs.", source=NUMPY.format("minimum"))
binary("left_shift", lambda a, b: numeric.shift_left(numeric.bits(a), b), _te_shift,
    "lhs shifted left by rhs bits; by the width or more, or a negative number, 0.", source=NUMPY.format("left_shift"))
binary("right_shift", lambda a, b: numeric.shift_right(numeric.bits(a), b), lambda a, b: _te_shift(a, b, left=False),
    "lhs shifted right by rhs bits; signed integers keep their sign, which is what is left by the width or more, or a negative number.", source=NUMPY.format("right_shift"))
symmetric("bitwise_and", lambda a, b: np.bitwise_and(numeric.bits(a), numeric.bits(b)), lambda a, b: a & b,
    "The bits that are set in lhs and in rhs.", source=NUMPY.format("bitwise_and"))
symmetric("bitwise_or", lambda a, b: np.bitwise_or(numeric.bits(a), numeric.bits(b)), lambda a, b: a | b,
    "The bits that are set in lhs or in rhs.", source=NUMPY.format("bitwise_or"))
symmetric("bitwise_xor", lambda a, b: np.bitwise_xor(numeric.bits(a), numeric.bits(b)), lambda a, b: a ^ b,
    "The bits that are set in one of lhs and rhs.", source=NUMPY.format("bitwise_xor"))
symmetric("logical_and", lambda a, b: np.logical_and(a, b).astype(a.dtype), lambda a, b: _te_logical(te.all, a, b),
    "Whether lhs and rhs are both true.", source=NUMPY.format("logical_and"))
symmetric("logical_or", lambda a, b: np.logical_or(a, b).astype(a.dtype), lambda a, b: _te_logical(te.any, a, b),
    "Whether lhs or rhs is true.", source=NUMPY.format("logical_or"))
symmetric("logical_xor", lambda a, b: np.logical_xor(a, b).astype(a.dtype), lambda a, b: (_truth(a) != _truth(b)).astype(a.dtype),
    "Whether one of lhs and rhs is true.", source=NUMPY.format("logical_xor"))
symmetric("equal", lambda a, b: np.equal(a, b), lambda a, b: a == b, "Whether lhs is equal to rhs.", compare, source=NUMPY.format("equal"))
symmetric("not_equal", lambda a, b: np.not_equal(a, b), lambda a, b: a != b,
    "Whether lhs is not equal to rhs.", compare, source=NUMPY.format("not_equal"))
binary("less", lambda a, b: np.less(a, b), lambda a, b: a < b, "Whether lhs is below rhs.", compare, source=NUMPY.format("less"))
binary("less_equal", lambda a, b: np.less_equal(a, b), lambda a, b: a <= b,
    "Whether lhs is not above rhs.", compare, source=NUMPY.format("less_equal"))
binary("greater", lambda a, b: np.greater(a, b), lambda a, b: a > b, "Whether lhs is above rhs.", compare, source=NUMPY.format("greater"))
binary("greater_equal", lambda a, b: np.greater_equal(a, b), lambda a, b: a >= b,
    "Whether lhs is not below rhs.", compare, source=NUMPY.format("greater_equal"))
# fmt: on


def _minus(a: Array, b: Array) -> Array:
    # numpy has no subtraction of bools.
    return np.subtract(a, b) if a.dtype.kind != "b" else np.logical_xor(a, b)


def _truth(x: Expr) -> Expr:
    return x if x.dtype == "bool" else x != te.const(0, x.dtype)


def _te_logical(combine: Callable[..., Expr], a: Expr, b: Expr) -> Expr:
    return combine(_truth(a), _truth(b)).astype(a.dtype)


def _where(attrs: Attrs, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _where_relation(rel: Relation) -> None:
    rel.set_result(tensor_type(broadcast_arguments(rel, 1, 2, 0), same_dtype(rel, 1, 2)))


define(
    "where", ("condition", "x", "y"), _where_relation, OpPattern.BROADCAST,
    numpy=_where,
    compute=lambda attrs, xs, out: [
        te_broadcast(lambda c, x, y: te.Select(_truth(c), x, y), xs[0], xs[1], xs[2], name="T_where")
    ],
    doc="The element of `x` where `condition` is true, otherwise that of `y`; all three broadcast.",
    source=NUMPY.format("where"),
)  # fmt: skip

define(
    "ewise_fma", ("lhs", "rhs", "addend"), broadcast, OpPattern.BROADCAST,
    numpy=lambda attrs, a, b, c: a * b + c,
    compute=lambda attrs, xs, out: [te_broadcast(lambda a, b, c: a * b + c, *xs, name="T_fma")],
    doc="lhs * rhs + addend, in one operation where the machine has it.",
    source=C.format("fma"),
)  # fmt: skip
