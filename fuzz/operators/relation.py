"""Applies an operator's type relation to argument types, without inference of a whole program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, TupleType
from xdsl.ir import Attribute

from ...dialects.relay.operator import Operator
from ...dialects.relay.operators.common.relations import ANY, tensor_type, tuple_type
from ...dialects.relay.text import type_text
from ...support.diagnostics import Diagnostic, MirError


class Postponed(Exception):
    """A relation asked for a type that is not known yet."""


class Typing:
    """One use of an operator; an argument's type may be None."""

    def __init__(self, operator: Operator, attrs: dict[str, Any], types: Sequence[Attribute | None]):
        self.operator = operator
        self.attrs = operator.attrs(attrs)
        self.types = list(types)
        self.result: Attribute | None = None
        problem = operator.problem(attrs, len(types))
        assert problem is None, problem

    @property
    def count(self) -> int:
        return len(self.types)

    def type_of(self, index: int) -> Attribute | None:
        return self.types[index]

    def tensor(self, index: int) -> TensorType[Attribute]:
        type = self.types[index]
        if type is None:
            raise Postponed
        if not isinstance(type, TensorType):
            raise self.fail(f"argument {index} is not a tensor")
        return type

    def tensors(self, index: int) -> Sequence[TensorType[Attribute]]:
        type = self.types[index]
        if type is None:
            raise Postponed
        assert isinstance(type, TupleType)
        return [field for field in type.types.data if isinstance(field, TensorType)]

    def set_argument(self, index: int, type: Attribute) -> None:
        known = self.types[index]
        if known is None:
            self.types[index] = type
            return
        assert isinstance(known, TensorType) and isinstance(type, TensorType)
        a, b = known.get_shape(), type.get_shape()
        if (
            known.element_type != type.element_type
            or len(a) != len(b)
            or any(x != y and ANY not in (x, y) for x, y in zip(a, b, strict=True))
        ):
            raise self.fail(f"argument {self.operator.arguments[index]} is {type_text(known)}, not {type_text(type)}")

    def set_result(self, type: Attribute) -> None:
        self.result = type

    def fail(self, message: str, *notes: str, argument: int | None = None) -> Exception:
        diagnostic = Diagnostic(message)
        for note in notes:
            diagnostic = diagnostic.with_note(note)
        return MirError(diagnostic)


def type_of(value: Any) -> Attribute:
    """Returns the Relay type of an array or of a tuple of arrays."""
    if isinstance(value, (tuple, list)):
        return tuple_type(type_of(v) for v in value)
    return tensor_type(np.shape(value), np.asarray(value).dtype.name)


def infer(operator: Operator, attrs: dict[str, Any], types: Sequence[Attribute | None]) -> Attribute:
    """Returns the result type of a use."""
    typing = Typing(operator, attrs, types)
    operator.relation(typing)
    assert typing.result is not None, f"{operator.name} sets no result type"
    return typing.result
