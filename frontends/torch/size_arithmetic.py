"""Converts arithmetic of symbolic sizes: calls of Python's and torch's functions in FX graphs.

%lesser = torch.sym_min(%size, 512)      →      %3 = minimum(%2, 512)       on tensors of rank 0, of int64, float64 or bool
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.rule.levels.imported import node_op
from ..common.graph_builder import GraphBuilder
from ..common.operator_rules import convert_by_rules
from .registry import TABLE

_NUMBERS: Mapping[str, str] = {
    "_operator.add": "add", "_operator.sub": "subtract", "_operator.mul": "multiply", "_operator.floordiv": "floor_divide",
    "_operator.mod": "floor_mod", "_operator.pow": "power", "torch.sym_min": "minimum", "torch.sym_max": "maximum",
}  # fmt: skip
"""Functions of two numbers of one kind, by the module and the name of the function."""

_COMPARISONS: Mapping[str, str] = {
    "_operator.eq": "equal", "_operator.ne": "not_equal", "_operator.lt": "less", "_operator.le": "less_equal",
    "_operator.gt": "greater", "_operator.ge": "greater_equal",
}  # fmt: skip

_TRUTHS: Mapping[str, str] = {"_operator.and_": "logical_and", "_operator.or_": "logical_or"}

_ROUNDED: Mapping[str, str] = {
    "math.floor": "floor", "math.ceil": "ceil", "math.trunc": "trunc", "torch.sym_int": "trunc", "builtins.round": "round",
}  # fmt: skip
"""Functions that make an integer of a fraction; Python's `round` is to the even one of two, Relay's is not."""

_FRACTIONS: Mapping[str, str | None] = {"torch.sym_float": None, "torch._sym_sqrt": "sqrt", "math.sqrt": "sqrt"}

_OTHERS = frozenset({"_operator.truediv", "_operator.neg", "torch.sym_not", "torch.sym_ite", "torch.sym_sum"})

_ALL = frozenset((*_NUMBERS, *_COMPARISONS, *_TRUTHS, *_ROUNDED, *_FRACTIONS, *_OTHERS))


def _name(target: Any) -> str:
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', '')}"


def is_arithmetic(target: Any) -> bool:
    """Returns whether a function of an FX graph computes a number from sizes and is converted here."""
    return _name(target) in _ALL


def arithmetic(builder: GraphBuilder, target: Any, arguments: Sequence[Any]) -> Any:
    """Returns a number that is computed from numbers and tensors of rank 0."""
    name = _name(target)
    if name == "torch.sym_sum":
        (terms,) = arguments
        return reduce(lambda a, b: _number(builder, "add", [a, b]), terms, 0)
    if not any(isinstance(each, SSAValue) for each in arguments):
        return target(*arguments)
    if name in _NUMBERS:
        return _number(builder, _NUMBERS[name], arguments)
    if name in _COMPARISONS:
        return builder.call(_COMPARISONS[name], *_of_one_kind(builder, arguments))
    if name in _TRUTHS:
        return builder.call(_TRUTHS[name], *(_cast(builder, each, "bool") for each in arguments))
    if name in _FRACTIONS or name in _ROUNDED:
        return _of_fraction(builder, name, arguments[0])
    if name == "_operator.truediv":
        return builder.call("divide", *(_cast(builder, each, "float64") for each in arguments))
    if name == "_operator.neg":
        return builder.call("negative", arguments[0])
    if name == "torch.sym_not":
        return builder.call("logical_not", arguments[0])
    condition, *sides = arguments
    return builder.call("where", _cast(builder, condition, "bool"), *_of_one_kind(builder, sides))


def _number(builder: GraphBuilder, operator: str, arguments: Sequence[Any]) -> Any:
    if not any(isinstance(each, SSAValue) for each in arguments):
        return sum(arguments)  # The terms of a sum: other functions have an operand that is computed.
    return builder.call(operator, *_of_one_kind(builder, arguments))


def _of_fraction(builder: GraphBuilder, name: str, value: SSAValue) -> SSAValue:
    """Computes a function of one number: integers are rounded already."""
    if name in _FRACTIONS:
        value, operator = _cast(builder, value, "float64"), _FRACTIONS[name]
        return value if operator is None else builder.call(operator, value)
    if builder.dtype(value) == "int64":
        return value
    rounded = _half_to_even(builder, value) if name == "builtins.round" else builder.call(_ROUNDED[name], value)
    return builder.call("cast", rounded, dtype="int64")


def _half_to_even(builder: GraphBuilder, value: SSAValue) -> SSAValue:
    """Rounds as torch does, by the rule of its operator."""
    found = convert_by_rules(
        node_op("torch", "aten.round", [value], {"dtype": builder.dtype(value)}), TABLE.rule_files, builder
    )
    assert found is not None, "a rule of elementwise.mir"
    return found


def _of_one_kind(builder: GraphBuilder, values: Sequence[Any]) -> list[SSAValue]:
    """Returns numbers as tensors of one dtype: float64 with a fraction, bool where all are truths."""
    kinds = {_dtype(builder, each) for each in values}
    dtype = next(kind for kind in ("float64", "int64", "bool") if kind in kinds)
    return [_cast(builder, each, dtype) for each in values]


def _dtype(builder: GraphBuilder, value: Any) -> str:
    if isinstance(value, SSAValue):
        return builder.dtype(value)
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64"


def _cast(builder: GraphBuilder, value: Any, dtype: str) -> SSAValue:
    if not isinstance(value, SSAValue):
        return builder.constant(value, dtype)
    return value if builder.dtype(value) == dtype else builder.call("cast", value, dtype=dtype)
