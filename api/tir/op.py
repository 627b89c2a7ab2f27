"""`tir.op`: TVM's functions on scalar expressions: operators, mathematics, intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects.te import builder
from ...dialects.tir.intrinsics import DTYPE_FIRST, DTYPE_LAST, KNOWN, intrinsic_type
from ...dialects.tir.node import operators
from ...dialects.tir.node.emit_expr import type_of
from ...dialects.tir.node.expr import Call, Expr, StringImm, argument, call, convert, fail
from ...dialects.tir.types import HandleType, StringType, type_to_dtype
from ..no_attribute import no_attribute

_TENSORS = (
    "AxisReducer", "Buffer", "IRBuilder", "Operation", "Tensor", "compute", "current_location", "extern", "func",
    "location_scope", "placeholder", "reduce_axis", "scan",
)  # fmt: skip

NAMES = frozenset(name for name in builder.NAMES if name not in _TENSORS)
"""The functions of `te` that are `tir`'s, too."""

_OTHER = {
    "add": operators.add,
    "floor_mod": operators.floormod,
    "multiply": operators.multiply,
    "pow": "power",
    "shift_left": operators.left_shift,
    "shift_right": operators.right_shift,
    "subtract": operators.subtract,
}
"""Names that are not those of `te`."""


def _intrinsic(name: str) -> Callable[..., Expr]:
    def build(*args: Any, dtype: str | None = None, span: object = None) -> Expr:
        given = args
        if dtype is None and name in DTYPE_FIRST:
            dtype, *given = args
        elif dtype is None and name in DTYPE_LAST:
            *given, dtype = args
        operands = tuple(map(argument, given))
        if dtype is None:
            types = [_type(each) for each in operands]
            dtype = type_to_dtype(intrinsic_type(name, types)) if name != "anylist_setitem_call_packed" else "void"
        return call(name, operands, dtype)

    build.__name__ = name
    build.__doc__ = f"Returns the call that scripts write `T.{name}(…)`, of the same arguments."
    return build


def _type(operand: object) -> Any:
    if isinstance(operand, StringImm):
        return StringType()
    return type_of(operand.dtype) if isinstance(operand, Expr) and operand.dtype != "handle" else HandleType.get()


def ret(val: Any, span: object = None) -> Call:
    """Returns the call that ends a function with a value."""
    value = convert(val)
    return call("ret", (value,), value.dtype)


def logaddexp(a: Any, b: Any, span: object = None) -> Expr:
    """Returns the logarithm of the sum of the exponentials of two floats."""
    a, b = operators.match_types(convert(a), convert(b), "logaddexp")
    most = operators.maximum(a, b)
    smaller = operators.minimum(a, b)
    functions: Any = builder
    return most + functions.log1p(functions.exp(smaller - most))


def trace(args: Any, trace_action: str = "tvm.default_trace_action") -> Expr:
    """Refuses to report values while a program runs. Raises MirError."""
    raise fail(
        "te.trace calls a Python function from compiled code, which is not there",
        "print what mir-run --profile measures",
    )


def lookup(name: str) -> Any:
    """Returns the function of that name. Raises AttributeError where `tir` has none."""
    if name in NAMES:
        return getattr(builder, name)
    found = _OTHER.get(name)
    if found is not None:
        return getattr(builder, found) if isinstance(found, str) else found
    if name in KNOWN:
        return _intrinsic(name)
    raise no_attribute("tir", name, NAMES | KNOWN | _OTHER.keys())


def __getattr__(name: str) -> Any:
    found = lookup(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*NAMES, *KNOWN, *_OTHER, "logaddexp", "ret", "trace"})
