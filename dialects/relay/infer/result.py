"""Infers the type of one new operator from its typed arguments, without inference over the module."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ....support.diagnostics import MirError, error_at
from ....support.edit import set_type
from ..operator import OperatorOp, attribute_place
from .relation import Postponed, Use
from .unify import Unifier


class _Known:
    """Types as they are; implements `relation.Types`."""

    def __init__(self) -> None:
        self.unifier = Unifier()
        self.result: Attribute | None = None

    def type_of(self, value: SSAValue) -> Attribute:
        return value.type if isinstance(value.type, TensorType) else self.unifier.open(value.type)

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        self.result = self.unifier.close(type)


# By the identity of all that a relation sees, as in `check`.
_RESULTS: dict[tuple[object, ...], tuple[Attribute, list[Attribute]]] = {}
_MAX_REMEMBERED = 10_000


def infer_result(op: OperatorOp) -> None:
    """Sets the result type of an operator from the types of its arguments.

    Raises:
        MirError: where attributes are missing or wrong, the arguments do not fit, or too little is known of them.
    """
    seen = [*[value.type for value in op.operands], *op.attributes.values()]
    key = (type(op), *op.attributes, *map(id, seen))
    known = _RESULTS.get(key)
    if known is None:
        operator = op.OPERATOR
        problem = operator.problem(op.given(), len(op.args))
        if problem is not None:
            raise error_at(attribute_place(op, problem), problem)
        types = _Known()
        try:
            operator.relation(Use(op, op.attrs(), types))
        except Postponed:
            raise error_at(op, f"the type of {operator.name}'s result does not follow from its arguments") from None
        except MirError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise error_at(op, f"{operator.name}: the attributes do not fit: {error}") from error
        if types.result is None:
            raise error_at(op, f"the type of {operator.name}'s result does not follow from its arguments")
        if len(_RESULTS) >= _MAX_REMEMBERED:
            _RESULTS.clear()
        known = _RESULTS[key] = types.result, seen
    set_type(op.result, known[0])
