"""The names that a TE function may use: `te.…`, `tir.…`, `tvm.te.…`, `T.…` and a few of Python's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...dialects.te import builder as te
from ...dialects.te.functions import OF_TABLE
from ...dialects.te.schedule_interface import create_schedule
from ...dialects.tir import node as ex


@dataclass(frozen=True)
class Builtin:
    """A function that the text may call, under the name that messages use."""

    name: str
    function: Callable[..., Any]


@dataclass(frozen=True)
class Namespace:
    """A module: names to functions and further modules."""

    name: str
    members: dict[str, Any]


@dataclass(frozen=True)
class Range:
    """`range(a, b)`, `T.parallel(a, b)`: what a loop of statements runs over."""

    begin: Any
    end: Any
    kind: str


SCHEDULING = frozenset(["tag_scope", "hybrid", "decl_tensor_intrin", "decl_buffer", "gradient"])
"""What is for Python only, or is written as an item of its own."""

# Under `te` and under `tir`; which of the two TVM has them under is not held against the writer.
_FUNCTIONS = (
    *("var", "size_var", "placeholder", "compute", "reduce_axis", "scan", "extern", "comm_reducer"),
    *("sum", "prod", "min", "max", "all", "any", "maximum", "minimum", "const", "if_then_else", "Select", "likely"),
    *("min_value", "max_value", "infinity", "logical_and", "logical_or", "logical_not", "floordiv", "floormod"),
    *("truncdiv", "truncmod", "indexdiv", "indexmod", "ceildiv", "div", "abs", "fabs", "isnan", "isinf", "isfinite"),
    *("ldexp", "popcount", "clz", *OF_TABLE),
    *("q_multiply_shift", "q_multiply_shift_per_axis", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
    *("reinterpret", "call_extern", "call_pure_extern", "call_packed", "call_intrin"),
)
_ALIASES = {
    "Not": "logical_not", "And": "logical_and", "Or": "logical_or", "shift_left": "left_shift", "left_shift": "left_shift",
    "shift_right": "right_shift", "right_shift": "right_shift", "Cast": "cast", "Min": "minimum", "Max": "maximum",
    "equal": "equal", "less": "less", "not_equal": "not_equal", "Var": "var", "SizeVar": "size_var",
}  # fmt: skip


def _number(kind: str) -> Callable[[Any, float], Any]:
    def build(dtype: str, value: float) -> Any:
        return te.const(value if kind == "int" else float(value), dtype)

    return build


def _conversion(dtype: str) -> Callable[[Any], Any]:
    def build(value: Any) -> Any:
        return te.const(value, dtype) if isinstance(value, (int, float)) else te.cast(dtype, value)

    return build


def _range(*bounds: Any, kind: str) -> Range:
    if not 1 <= len(bounds) <= 2:
        raise ex.fail("a loop runs over range(end) or range(begin, end)")
    return Range(bounds[0] if len(bounds) == 2 else 0, bounds[-1], kind)


def _loop_kind(kind: str) -> Callable[..., Range]:
    def build(*bounds: Any) -> Range:
        return _range(*bounds, kind=kind)

    return build


LOOPS = {"serial": "serial", "parallel": "parallel", "vectorized": "vectorized", "unroll": "unrolled"}
"""Loops of statements by their name after `T.`, and their kind."""


def _thread_axis(dom: Any = None, tag: Any = "", name: Any = "") -> Any:
    from ...dialects.te.axes import thread_axis

    return thread_axis(dom, tag, name)


def _length(value: Any) -> int:
    items = ex.items_of(value)
    if items is None:
        raise ex.fail(f"len() takes a tuple or list, not {ex.describe(value)}")
    return len(items)


def _python(name: str, function: Callable[..., Any], takes_several: bool) -> Builtin:
    def call(*values: Any) -> Any:
        numbers = ex.items_of(values[0]) if takes_several and len(values) == 1 else values
        if not numbers or (not takes_several and len(numbers) != 1):
            raise ex.fail(f"{name}() takes {'numbers' if takes_several else 'one number'}")
        for value in numbers:
            if not isinstance(value, (int, float)):
                raise ex.fail(
                    f"{name}() is Python's and takes numbers, not {ex.describe(value)}",
                    f"for expressions write te.{name}" if takes_several else 'for expressions write x.astype("int32")',
                )
        try:
            return function(numbers) if takes_several else function(numbers[0])
        except (OverflowError, ValueError):
            raise ex.fail(f"{name}({numbers[0]}) has no value") from None

    return Builtin(name, call)


def _to_float(value: Any) -> float:
    if isinstance(value, str) and value.strip().lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return float(value)
    if not isinstance(value, (int, float)):
        raise ex.fail(
            f"float() is Python's and takes a number, not {ex.describe(value)}",
            'for expressions write x.astype("float32")',
        )
    return float(value)


def _sequence(kind: type[tuple[Any, ...]] | type[list[Any]]) -> Callable[[Any], Any]:
    def build(value: Any = ()) -> Any:
        items = ex.items_of(value)
        if items is None:
            raise ex.fail(f"{kind.__name__}() takes a tuple or list, not {ex.describe(value)}")
        return kind(items)

    return build


@cache
def globals_of_te() -> dict[str, Any]:
    """The names that every TE function sees."""
    functions: dict[str, Any] = {name: Builtin(f"te.{name}", getattr(te, name)) for name in _FUNCTIONS}
    functions |= {alias: Builtin(f"tir.{alias}", getattr(te, name)) for alias, name in _ALIASES.items()}
    functions["allocate"] = Builtin("te.allocate", te.Buffer)
    functions["create_schedule"] = Builtin("te.create_schedule", create_schedule)
    functions["thread_axis"] = Builtin("te.thread_axis", _thread_axis)
    functions["IntImm"] = Builtin("tir.IntImm", _number("int"))
    functions["FloatImm"] = Builtin("tir.FloatImm", _number("float"))
    functions["ir_builder"] = Namespace("tir.ir_builder", {"create": Builtin("ir_builder.create", te.IRBuilder)})
    for dtype in (*ex.INT_LIMITS, *ex.FLOAT_LIMITS):
        functions.setdefault(dtype, Builtin(f"T.{dtype}", _conversion(dtype)))
    for name, kind in LOOPS.items():
        functions[name] = Builtin(f"T.{name}", _loop_kind(kind))
    space = Namespace("te", functions)
    return {
        "te": space,
        "tir": Namespace("tir", functions),
        "T": Namespace("T", functions),
        "tvm": Namespace("tvm", {**functions, "te": space, "tir": Namespace("tir", functions)}),
        "len": Builtin("len", _length),
        "range": Builtin("range", _loop_kind("serial")),
        "tuple": Builtin("tuple", _sequence(tuple)),
        "list": Builtin("list", _sequence(list)),
        "float": Builtin("float", _to_float),
        "int": _python("int", int, False),
        "bool": _python("bool", bool, False),
        "abs": _python("abs", abs, False),
        "min": _python("min", min, True),
        "max": _python("max", max, True),
        "sum": _python("sum", sum, True),
    }


@cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function that the text may call."""
    return inspect.signature(function)


TEXTS = frozenset(["name", "tag", "dtype", "ptr_type", "kind"])
"""Parameters that take a string."""
