"""Values and attributes as rules compare and compute them."""

from __future__ import annotations

from typing import Any, cast

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import ConstantLike

from ....dialects.relay.operator import from_attribute
from ....dialects.rule.functions import NoMatch
from ....dialects.rule.levels import level_of
from ....support.diagnostics import error_at


def same_value(a: Any, b: Any) -> bool:
    """Whether two captures are the same: one value, equal constants, or runs of such."""
    if a is b:
        return True
    if isinstance(a, tuple) or isinstance(b, tuple):
        return (
            isinstance(a, tuple)
            and isinstance(b, tuple)
            and len(cast("tuple[Any, ...]", a)) == len(cast("tuple[Any, ...]", b))
            and all(map(same_value, cast("tuple[Any, ...]", a), cast("tuple[Any, ...]", b)))
        )
    x, y = a.owner, b.owner
    if isinstance(x, Block) or isinstance(y, Block) or x.name != y.name or not x.has_trait(ConstantLike):
        return False
    return a.type == b.type and x.properties == y.properties and x.attributes == y.attributes


def same_attr(a: Any, b: Any) -> bool:
    """Whether two attributes are equal; True is not 1."""
    return type(a) is type(b) and a == b if isinstance(a, bool) or isinstance(b, bool) else bool(a == b)


def is_filled_with(value: SSAValue, wanted: float) -> bool:
    """Whether a value is a constant each of whose elements is `wanted`; of scalars, True is not 1."""
    owner = value.owner
    constant = None if isinstance(owner, Block) else level_of(owner.name).constant(value)
    if constant is None or isinstance(constant, (Attribute, str)):
        return False
    if isinstance(constant, (int, float)):
        return constant == wanted and isinstance(constant, bool) == isinstance(wanted, bool)
    # Most arrays differ in their first element.
    return constant.size > 0 and constant.flat[0] == wanted and bool((constant == wanted).all())


def plain(value: Any, as_values: bool) -> Any:
    """A function's argument: values of the program as constants unless the function takes values."""
    if as_values or not isinstance(value, SSAValue):
        return from_attribute(value) if isinstance(value, Attribute) else value
    owner = value.owner
    constant = level_of(owner.name).constant(value) if isinstance(owner, Operation) else None
    if constant is None:
        raise NoMatch
    return constant


def truth(value: Any, op: Operation) -> bool:
    """A condition's value as a bool. Raises MirError where it is an array of several elements."""
    try:
        return bool(value)
    except ValueError:
        raise error_at(op, "this condition is an array, neither true nor false", "write all(…) or any(…)") from None


def evaluate(value: SSAValue) -> Any:
    """What a value is, where all that it is made of is constant. Raises NoMatch else."""
    pending, known = [value], cast("dict[SSAValue, Any]", {})
    while pending:
        current = pending[-1]
        owner = current.owner
        if current in known:
            pending.pop()
            continue
        if isinstance(owner, Block):
            raise NoMatch
        level = level_of(owner.name)
        constant = level.constant(current)
        if constant is not None:
            known[current] = constant
            continue
        missing = [operand for operand in owner.operands if operand not in known]
        if missing:
            pending += missing
            continue
        known[current] = level.fold(owner, [known[operand] for operand in owner.operands])
    return known[value]
