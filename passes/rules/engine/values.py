"""Values and attributes as rules compare and compute them."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import ConstantLike

from ....dialects.relay.operator import from_attribute
from ....dialects.rule.functions import NoMatch
from ....dialects.rule.knowledge import known_elements
from ....dialects.rule.levels import level_of
from ....support.diagnostics import error_at


def same_value(a: Any, b: Any) -> bool:
    """Returns whether two captures are the same: one value, equal constants, or runs of such."""
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
    """Returns whether two attributes are equal; True is not 1."""
    return type(a) is type(b) and a == b if isinstance(a, bool) or isinstance(b, bool) else bool(a == b)


def refines(type: Attribute, old: Attribute) -> bool:
    """Returns whether a tensor's or tuple's type is another one with sizes in the place of some `?`."""
    if isinstance(type, TensorType) and isinstance(old, TensorType):
        sizes, old_sizes = type.get_shape(), old.get_shape()
        return (
            type.element_type == old.element_type
            and len(sizes) == len(old_sizes)
            and all([size == before or before == DYNAMIC_INDEX for size, before in zip(sizes, old_sizes, strict=True)])
        )
    if isinstance(type, TupleType) and isinstance(old, TupleType) and len(type.types.data) == len(old.types.data):
        return all(a == b or refines(a, b) for a, b in zip(type.types.data, old.types.data, strict=True))
    return False


def is_filled_with(value: SSAValue, wanted: float) -> bool:
    """Returns whether a value is a constant all of whose elements are `wanted`; of scalars, True is not 1."""
    owner = value.owner
    constant = None if isinstance(owner, Block) else level_of(owner.name).constant(value)
    if constant is None or isinstance(constant, (Attribute, str)):
        return False
    if isinstance(constant, (int, float)):
        return constant == wanted and isinstance(constant, bool) == isinstance(wanted, bool)
    # Most arrays differ in their first element.
    return constant.size > 0 and constant.flat[0] == wanted and bool((constant == wanted).all())


def plain(value: Any, as_values: bool) -> Any:
    """Returns a function's argument: a value as its elements, unless the function takes values."""
    if as_values or not isinstance(value, SSAValue):
        return from_attribute(value) if isinstance(value, Attribute) else value
    elements = _elements(value)
    if elements is None:
        raise NoMatch
    return elements


def _elements(value: SSAValue) -> Any:
    """Returns the elements of a constant or of a value known where the rules are applied; None otherwise."""
    owner = value.owner
    constant = level_of(owner.name).constant(value) if isinstance(owner, Operation) else None
    return known_elements(value) if constant is None else constant


def truth(value: Any, op: Operation) -> bool:
    """A condition's value as a bool. Raises MirError where it is an array of several elements."""
    try:
        return bool(value)
    except ValueError:
        raise error_at(op, "this condition is an array, neither true nor false", "write all(…) or any(…)") from None


def evaluate(value: SSAValue) -> Any:
    """Computes a value from constants and known elements. Raises NoMatch if it depends on others."""
    pending, known = [value], cast("dict[SSAValue, Any]", {})
    while pending:
        current = pending[-1]
        if current in known:
            pending.pop()
            continue
        elements = _elements(current)
        if elements is not None:
            known[current] = elements
            continue
        owner = current.owner
        if isinstance(owner, Block):
            raise NoMatch
        missing = [operand for operand in owner.operands if operand not in known]
        if missing:
            pending += missing
            continue
        known[current] = level_of(owner.name).fold(owner, [known[operand] for operand in owner.operands])
    return known[value]
