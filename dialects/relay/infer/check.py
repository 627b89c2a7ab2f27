"""Verifies the types of an operator's use by its type relation."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ....support.diagnostics import Diagnostic, MirError
from ..operator import OperatorOp
from ..text import type_text
from .relation import Postponed, Use
from .unify import Mismatch, Unifier


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


# Uses that were in order, by the identity of all that a relation sees; the objects are kept, so that ids stay theirs.
_IN_ORDER: dict[tuple[object, ...], list[Attribute]] = {}
_MAX_REMEMBERED = 10_000


def check_relation(op: OperatorOp) -> None:
    """Verifies the types of an operator whose attributes are valid.

    Raises:
        MirError: when the arguments do not fit, or the result is of another type than follows from them.
    """
    attributes = op.attributes
    seen = [op.results[0].type, *[value.type for value in op.operands], *attributes.values()]
    key = (type(op), *attributes, *map(id, seen))
    if key in _IN_ORDER:
        return
    try:
        op.OPERATOR.relation(Use(op, op.attrs(), _Written()))
    except Postponed:
        return  # Too little is known of the arguments.
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        message = f"{op.OPERATOR.name}: the attributes do not fit: {error}"
        raise MirError(Diagnostic(message, op.location)) from error
    if len(_IN_ORDER) >= _MAX_REMEMBERED:
        _IN_ORDER.clear()
    _IN_ORDER[key] = seen
