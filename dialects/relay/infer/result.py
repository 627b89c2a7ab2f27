"""Infers and verifies the types of one use of an operator by its type relation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ....support.diagnostics import Diagnostic, MirError, error_at
from ....support.edit import set_type
from ..text import type_text
from .relation import Postponed, Types, Use, attribute_place
from .unify import Mismatch, Unifier

if TYPE_CHECKING:
    from ..operator import AttrValue, OperatorOp

_MAX_REMEMBERED = 10_000


class _Known:
    """The types of a new use's arguments, and its inferred result; implements `relation.Types`."""

    def __init__(self) -> None:
        self.unifier = Unifier()
        self.result: Attribute | None = None

    def type_of(self, value: SSAValue) -> Attribute:
        return value.type if isinstance(value.type, TensorType) else self.unifier.open(value.type)

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        self.result = self.unifier.close(type)


class _Written:
    """The types as they are written, each use of an unknown one a hole of its own."""

    def __init__(self) -> None:
        self.unifier = Unifier()
        self._types: dict[SSAValue, Attribute] = {}

    def type_of(self, value: SSAValue) -> Attribute:
        if isinstance(value.type, TensorType):
            return value.type
        found = self._types.get(value)
        if found is None:
            found = self._types[value] = self.unifier.open(value.type)
        return found

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        own = op.result.type
        if own == type:
            return
        try:
            self.unifier.unify(self.unifier.open(own), type)
        except Mismatch as mismatch:
            message = f"the result of {op.OPERATOR.name} is {type_text(self.unifier.close(type))}, not {type_text(own)}"
            note = f"incompatible types: {mismatch.detail}"
            raise MirError(Diagnostic(message, op.location).with_note(note)) from None


def _key(op: OperatorOp, seen: Iterable[Attribute]) -> tuple[object, ...]:
    """Returns the identity of all that a relation reads; a memo keeps `seen`, so that ids stay valid."""
    return (type(op), *op.attributes, *map(id, seen))


def _relate(op: OperatorOp, given: Mapping[str, AttrValue], types: Types, any_size: bool = False) -> None:
    """Runs the type relation of a use. Raises MirError if it fails, Postponed if too little is known."""
    try:
        op.OPERATOR.relation(Use(op, op.OPERATOR.attrs(given), types, any_size))
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise error_at(op, f"{op.OPERATOR.name}: the attributes do not fit: {error}") from error


_RESULTS: dict[tuple[object, ...], tuple[Attribute, list[Attribute]]] = {}


def infer_result(op: OperatorOp, any_size: bool = False) -> None:
    """Sets the result type of an operator from the types of its arguments.

    With `any_size` the result may be larger than memory: that of a probe, which is not computed.

    Raises:
        MirError: where attributes are missing or wrong, the arguments do not fit, or too little is known of them.
    """
    seen = [*[value.type for value in op.operands], *op.attributes.values()]
    key = (any_size, *_key(op, seen))
    known = _RESULTS.get(key)
    if known is None:
        operator = op.OPERATOR
        given = op.given()
        problem = operator.problem(given, len(op.operands))
        if problem is not None:
            raise error_at(attribute_place(op, problem), problem)
        types = _Known()
        try:
            _relate(op, given, types, any_size)
        except Postponed:
            types.result = None
        if types.result is None:
            raise error_at(op, f"the type of {operator.name}'s result does not follow from its arguments")
        if len(_RESULTS) >= _MAX_REMEMBERED:
            _RESULTS.clear()
        known = _RESULTS[key] = types.result, seen
    set_type(op.result, known[0])


_VERIFIED: dict[tuple[object, ...], list[Attribute]] = {}


def check_relation(op: OperatorOp) -> None:
    """Verifies the types of an operator whose attributes are valid.

    Raises:
        MirError: when the arguments do not fit, or the result is of another type than follows from them.
    """
    seen = [op.results[0].type, *[value.type for value in op.operands], *op.attributes.values()]
    key = _key(op, seen)
    if key in _VERIFIED:
        return
    try:
        _relate(op, op.given(), _Written())
    except Postponed:
        return  # Too little is known of the arguments.
    if len(_VERIFIED) >= _MAX_REMEMBERED:
        _VERIFIED.clear()
    _VERIFIED[key] = seen
