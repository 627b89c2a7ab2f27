"""Values that programs take and return, by TVM's names, and as the interpreter has them.

numpy array, nd.array, number, list  ↔  array
tuple, runtime.container.ADT         ↔  tuple
ConstructorValue                     ↔  value of a data type
RefValue                             ↔  cell
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from ...dialects.relay.interpreter import AdtValue, Cell, Value
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirTypeError
from ..nd import NDArray
from ..runtime.container import ADT
from .adt import Constructor
from .expr import Constant, RelayExpr, const


class ConstructorValue:
    """A value of a data type: the constructor, its number `tag`, and the values of its fields."""

    __slots__ = ("constructor", "fields", "tag")

    def __init__(self, tag: int, fields: Sequence[Any] | None, constructor: Constructor):
        self.tag = tag
        self.fields = tuple(fields or ())
        self.constructor = constructor

    def __repr__(self) -> str:
        # Not the fields: a list may be thousands deep.
        return f"ConstructorValue({self.constructor.name_hint}, {len(self.fields)} fields)"


class RefValue:
    """A reference: the value that it points to."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        return f"RefValue({self.value!r})"


def argument(value: Any, evaluate: Callable[[RelayExpr], Value], constructor: Callable[[int], Constructor]) -> Value:
    """Returns a value from Python as the interpreter has it.

    `evaluate` computes expressions, `constructor` returns that of a tag. Raises MirTypeError for what is not a value.
    """
    return in_deep_stack(lambda: _argument(value, evaluate, constructor))


def _argument(value: Any, evaluate: Callable[[RelayExpr], Value], constructor: Callable[[int], Constructor]) -> Value:
    match value:
        case NDArray():
            return value.storage
        case np.ndarray():
            return np.asarray(cast("Any", value), order="C")
        case ConstructorValue():
            made = value.constructor
            fields = tuple(_argument(field, evaluate, constructor) for field in value.fields)
            return AdtValue(made.belong_to.name_hint, made.name_hint, fields)
        case RefValue():
            return Cell(_argument(value.value, evaluate, constructor))
        case tuple():
            given = cast("tuple[Any, ...]", value)
            fields = tuple(_argument(field, evaluate, constructor) for field in given)
            if isinstance(value, ADT) and value.tag:
                made = constructor(value.tag)
                return AdtValue(made.belong_to.name_hint, made.name_hint, fields)
            return fields
        case Constant():
            return value.data.storage
        case RelayExpr():
            return evaluate(value)
        case bool() | int() | float() | np.generic() | list():
            return const(cast("object", value)).data.storage
        case _ if hasattr(value, "__dlpack__"):
            return np.asarray(np.from_dlpack(value), order="C")
        case _:
            raise MirTypeError(
                Diagnostic(f"{type(value).__name__} is not a value of Relay").with_note(
                    "programs take arrays, numbers, tuples and values of data types"
                )
            )


Form: TypeAlias = Literal["debug", "vm", "graph"]
"""How results are returned: tuples as `ADT` and values of data types as `ConstructorValue`; both as `ADT`; tuples as `tuple`."""


def result(value: Value, constructor: Callable[[str, str], Constructor], form: Form = "debug") -> Any:
    """Returns a value of the interpreter as Python has it, with arrays of its own; functions stay.

    `constructor` returns that of a type's name and its own.
    """
    return in_deep_stack(lambda: _result(value, constructor, form))


def _result(value: Value, constructor: Callable[[str, str], Constructor], form: Form) -> Any:
    match value:
        case np.ndarray():
            return NDArray(np.array(cast("Any", value), order="C"))
        case tuple():
            fields = [_result(field, constructor, form) for field in value]
            return tuple(fields) if form == "graph" else ADT(0, fields)
        case AdtValue():
            made = constructor(value.type_name, value.constructor)
            fields = [_result(field, constructor, form) for field in value.fields]
            return ADT(made.tag, fields) if form == "vm" else ConstructorValue(made.tag, fields, made)
        case Cell():
            return RefValue(_result(value.value, constructor, form))
        case _:
            return value


__all__ = ["ConstructorValue", "Form", "RefValue", "argument", "result"]
