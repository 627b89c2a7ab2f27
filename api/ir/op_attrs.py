"""Registers attributes of operators, by TVM's names: rules of `Legalize` and `AlterOpLayout`.

@mirstack.ir.register_op_attr("nn.conv2d", "FTVMAlterOpLayout")
def alter(attrs, inputs, tinfos, out_type): …
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects.relay.operator import get_operator
from ...support.arguments import check, integer
from ...support.diagnostics import Diagnostic, MirValueError
from .op import Op

_GIVEN: dict[tuple[str, str], tuple[int, Any]] = {}
"""By operator and key: the level at which a value was registered, and the value."""

_OF_ENTRIES: dict[str, Callable[[Any], Any]] = {
    "TOpPattern": lambda operator: int(operator.pattern),
    "TOpIsStateful": lambda operator: operator.stateful,
}
"""What operators have by themselves."""

HONORED = ("FTVMAlterOpLayout",)
"""Keys that passes ask for, besides those that end with Legalize or Canonicalize."""


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Registers an attribute of an operator; without a value it decorates a function.

    `FTVMAlterOpLayout` is asked for by `AlterOpLayout`, `FTVMLegalize`, or any key that ends with Legalize or Canonicalize, by
    `Legalize(key)`. A higher level wins. Raises MirValueError for an operator that there is not, and for keys that no pass asks for.
    """
    operator = Op.get(op_name)
    check(attr_key, "attr_key", "the name of an attribute", str)
    if attr_key not in HONORED and not attr_key.endswith(("Legalize", "Canonicalize")):
        message = f"no pass asks an operator for '{attr_key}'"
        note = "they ask for FTVMAlterOpLayout, FTVMLegalize; an operator of your own is mirstack.register_operator (docs/extend.md)"
        raise MirValueError(Diagnostic(message).with_note(note))

    def register(given: Any) -> Any:
        set_op_attr(operator, attr_key, given, integer(level, "level", 0))
        return given

    return register if value is None else register(value)


def set_op_attr(op: Op, attr_key: str, value: Any, level: int) -> None:
    """Registers an attribute of an operator, unless it has one of a higher level."""
    before = _GIVEN.get((op.name, attr_key))
    if before is None or before[0] <= level:
        _GIVEN[op.name, attr_key] = level, value


def op_attr(name: str, attr_key: str) -> Any:
    """Returns an attribute of an operator; None where it has none of that key."""
    given = _GIVEN.get((name, attr_key))
    if given is not None:
        return given[1]
    own, operator = _OF_ENTRIES.get(attr_key), get_operator(name)
    return None if own is None or operator is None else own(operator)


def reset_op_attr(name: str, attr_key: str) -> None:
    """Removes an attribute that a program registered for an operator."""
    _GIVEN.pop((name, attr_key), None)


def is_given(attr_key: str) -> bool:
    """Returns whether a program registered the attribute for any operator."""
    return any(key == attr_key for _, key in _GIVEN)
