"""Defines one use of an operator as its type relation sees it in inference (`operator.Relation`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from xdsl.dialects.builtin import DYNAMIC_INDEX, LocationAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ....support.diagnostics import Diagnostic, MirError, location_of
from ....support.locations import argument_place
from ..text import type_text
from ..types import why_no_tensor
from .unify import Hole, Mismatch, Unifier

if TYPE_CHECKING:
    from ..operator import Attrs, Operator, OperatorOp


class Types(Protocol):
    """The types that a use reads and sets."""

    @property
    def unifier(self) -> Unifier: ...

    def type_of(self, value: SSAValue) -> Attribute:
        """Returns a value's type, perhaps with holes."""
        ...

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        """Sets the op's result type. Raises MirError when it is known to be another."""
        ...


class Postponed(Exception):
    """A rule cannot say anything before a hole is filled."""

    def __init__(self, hole: Hole):
        super().__init__()
        self.hole = hole


class Use:
    """One use of an operator; implements `operator.Relation`.

    A result of `any_size` may be larger than memory: that of a probe, which is not computed.
    """

    __slots__ = ("_any_size", "_types", "attrs", "op", "operator")

    def __init__(self, op: OperatorOp, attrs: Attrs, types: Types, any_size: bool = False):
        self.op = op
        self.operator: Operator = op.OPERATOR
        self.attrs = attrs
        self._types = types
        self._any_size = any_size

    @property
    def count(self) -> int:
        return len(self.op.args)

    def type_of(self, index: int) -> Attribute | None:
        type = self._types.type_of(self.op.args[index])
        if isinstance(type, TensorType):
            return type
        unifier = self._types.unifier
        return None if unifier.first_hole(type) is not None else unifier.close(type)

    def tensor(self, index: int) -> TensorType[Attribute]:
        type = self._types.type_of(self.op.args[index])
        if isinstance(type, TensorType):
            return type
        type = self._types.unifier.head(type)
        if isinstance(type, TensorType):
            return type
        if isinstance(type, Hole):
            raise Postponed(type)
        raise self.fail(
            f"{self.operator.name}: argument '{self.operator.arguments[index].lstrip('*')}' must be a tensor,"
            f" not {type_text(self._types.unifier.close(type))}",
            argument=index,
        )

    def tensors(self, index: int) -> Sequence[TensorType[Attribute]]:
        unifier = self._types.unifier
        type = unifier.head(self._types.type_of(self.op.args[index]))
        if isinstance(type, Hole):
            raise Postponed(type)
        name = self.operator.arguments[index].lstrip("*")
        if not isinstance(type, TupleType):
            raise self.fail(
                f"{self.operator.name}: argument '{name}' must be a tuple of tensors, not {type_text(unifier.close(type))}",
                "a tuple is written (%a, %b)",
                argument=index,
            )
        found: list[TensorType[Attribute]] = []
        for place, part in enumerate(type.types.data):
            field = unifier.head(part)
            if isinstance(field, Hole):
                raise Postponed(field)
            if not isinstance(field, TensorType):
                raise self.fail(
                    f"{self.operator.name}: field {place} of '{name}' must be a tensor, not {type_text(unifier.close(field))}",
                    argument=index,
                )
            found.append(field)
        return found

    def set_argument(self, index: int, type: Attribute) -> None:
        unifier = self._types.unifier
        own = self._types.type_of(self.op.args[index])
        try:
            unifier.unify(own, type)
        except Mismatch as mismatch:
            raise self.fail(
                f"{self.operator.name}: argument '{self.operator.arguments[index].lstrip('*')}' must be"
                f" {type_text(unifier.close(type))}, not {type_text(unifier.close(own))}",
                f"incompatible types: {mismatch.detail}",
                argument=index,
            ) from None

    def set_result(self, type: Attribute) -> None:
        reason = None if self._any_size else why_no_tensor(type)
        if reason is not None:
            raise self.fail(f"{self.operator.name}: the result {type_text(type)} {reason}")
        self._types.set_result(self.op, type)

    def fail(self, message: str, *notes: str, argument: int | None = None) -> MirError:
        # A relation computes with DYNAMIC_INDEX for an open dimension; people write `?`.
        diagnostic = Diagnostic(message.replace(str(DYNAMIC_INDEX), "?"), attribute_place(self.op, message))
        for note in notes:
            diagnostic = diagnostic.with_note(note)
        if argument is not None:
            value = self.op.args[argument]
            place = location_of(value)
            type = self._types.unifier.close(self._types.type_of(value))
            name = self.operator.arguments[argument].lstrip("*")
            diagnostic = diagnostic.with_note(f"argument '{name}', of type {type_text(type)}, comes from here", place)
        return MirError(diagnostic)


def attribute_place(op: Operation, message: str) -> LocationAttr:
    """Returns the place of the attribute that a message names (`axis=3`, `'axis'`), or that of the use."""
    for name in op.attributes:
        if re.search(rf"(?<![\w']){re.escape(name)}=|'{re.escape(name)}'", message):
            return argument_place(op.location, name)
    return op.location
