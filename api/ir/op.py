"""Operators as values: `Op.get("nn.dense")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import LocationAttr

from ...dialects.relay.operator import Attrs, AttrValue, Operator, all_operators, get_operator
from ...passes.extensions.packages import load_packages
from ...support.arguments import check
from ...support.diagnostics import Diagnostic, MirValueError, error_at
from ...support.public_names import public_names
from ...support.text import did_you_mean
from .node import Node

if TYPE_CHECKING:
    from ..relay.expr import Call, RelayExpr

# The text writes a call of this name, but the operator table has no entry for it.
CALL_TIR = "call_tir"


class Op(Node):
    """An operator by its name in Relay's text; there is one object of each name."""

    __slots__ = ("name", "operator")

    def __init__(self, name: str, operator: OpEntry | None):
        self.span = None
        self.name = name
        self.operator = operator

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator of that name. Raises MirError where there is none."""
        found = _OPS.get(op_name) if isinstance(op_name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if found is None:
            check(op_name, "op_name", "the name of an operator, such as 'nn.dense'", str)
            operator = get_operator(op_name)
            if operator is None and load_packages():
                operator = get_operator(op_name)
            if operator is None and op_name != CALL_TIR:
                raise MirValueError(
                    Diagnostic(f"there is no operator '{op_name}'{did_you_mean(op_name, all_operators())}")
                )
            found = _OPS[op_name] = Op(op_name, None if operator is None else OpEntry(operator))
        return found

    @staticmethod
    def list_op_names() -> Sequence[str]:
        """The names of all operators."""
        return sorted(all_operators())

    @property
    def num_inputs(self) -> int:
        """Returns the number of arguments; -1 if it varies."""
        return -1 if self.operator is None else len(self.operator.entry.arguments)

    def get_attr(self, attr_name: str) -> object:
        """Returns an attribute that a program registered, or `TOpPattern`; None for any other."""
        return import_module(".op_attrs", __package__).op_attr(self.name, attr_name)

    def has_attr(self, attr_name: str) -> bool:
        """Returns whether the operator has such an attribute."""
        return self.get_attr(attr_name) is not None

    def set_attr(self, attr_name: str, value: object, plevel: int = 10) -> None:
        """Registers an attribute of the operator, as `ir.register_op_attr`."""
        import_module(".op_attrs", __package__).register_op_attr(self.name, attr_name, value, plevel)

    def reset_attr(self, attr_name: str) -> None:
        """Removes an attribute that a program registered."""
        import_module(".op_attrs", __package__).reset_op_attr(self.name, attr_name)

    def __call__(self, *args: RelayExpr) -> Call:
        from ..relay.expr import Call

        return Call(self, args)

    def __repr__(self) -> str:
        return f"Op({self.name})"


class OpEntry:
    """An entry of the operator table, with what calls without attributes share."""

    __slots__ = ("default_attrs", "entry")

    def __init__(self, entry: Operator):
        self.entry = entry
        self.default_attrs = entry.attrs({})

    def attrs(self, given: Mapping[str, object], place: LocationAttr) -> Attrs:
        """Completes a call's attributes by defaults. Raises MirError for one that the operator does not have."""
        values = {name: cast("AttrValue", plain(value)) for name, value in given.items()}
        problem = self.entry.problem(values)
        if problem is not None:
            raise error_at(place, problem)
        return self.entry.attrs(values)


def plain(value: object) -> object:
    """An attribute as a Python value: numbers of TIR, of numpy and of lists become Python's."""
    from ..tir import FloatImm, IntImm, StringImm

    match value:
        case IntImm() | FloatImm() | StringImm():
            return value.value
        case list() | tuple():
            return tuple(plain(item) for item in cast("Sequence[object]", value))
        case dict():
            return {name: plain(item) for name, item in cast("dict[str, object]", value).items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            item = getattr(value, "item", None)
            return item() if callable(item) and getattr(value, "ndim", 1) == 0 else value


_OPS: dict[str, Op] = {}


def get(op_name: str) -> Op:
    """The operator of that name (`Op.get`)."""
    return Op.get(op_name)


__dir__ = public_names(__name__)
