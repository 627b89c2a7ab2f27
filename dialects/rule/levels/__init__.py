"""What rules need to know of the dialect that they rewrite: names, attributes, constants, how an op is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..functions import NoMatch, named_function

LEVELS = (
    "relay", "tir", "te", "arith", "math", "index", "scf", "memref", "vector", "tensor", "linalg", "llvm", "cf", "func",
)  # fmt: skip
"""The dialects that rules may be for."""


class Level(Protocol):
    """How one dialect looks to rules. Attribute values are Python's; `Attribute` objects where they have no such form."""

    name: str

    def resolve(self, name: str) -> str | None:
        """The full name of the op that a rule's text calls `name`, or None where there is none."""
        ...

    def implied(self, name: str) -> Mapping[str, Any]:
        """Attributes that a name stands for besides the op it resolves to: of TIR's `exp`, `intrinsic="exp"`."""
        ...

    def close_to(self, name: str) -> str | None:
        """An op's name that `name` may be a slip of."""
        ...

    def spelled(self, op_name: str) -> str:
        """An op's full name as a rule's text of this level writes it; the inverse of `resolve`."""
        ...

    def infix(self, function: str) -> str | None:
        """The op that an infix operator stands for, by the name of its function: `add`, `lt`, `and_`, …"""
        ...

    def operator(self, op_name: str) -> str | None:
        """The function whose infix operator a rule's text writes for an op; None for an op that is written as a call."""
        ...

    def is_commutative(self, op_name: str) -> bool:
        """Whether the two operands of an op may be exchanged."""
        ...

    def problem(self, op_name: str, arguments: int | None, attributes: Sequence[str]) -> str | None:
        """What is wrong with a pattern or replacement by its argument count (None: not known) and attribute names alone."""
        ...

    def attribute(self, op: Operation, name: str) -> Any:
        """The value of an op's attribute, its default where it is not written. Raises KeyError where it has none such."""
        ...

    def attributes(self, op: Operation) -> Mapping[str, Any]:
        """The attributes that are written on an op."""
        ...

    def constant(self, value: SSAValue) -> Any:
        """A constant's value, as a numpy array or a Python number; None where the value is no constant."""
        ...

    def make_constant(self, value: Any, dtype: str | None, like: Attribute) -> Operation:
        """A constant op of a number or array, of `dtype` or else of the element type of the type `like`."""
        ...

    def build(self, op_name: str, args: Sequence[SSAValue], attributes: Mapping[str, Any], like: SSAValue) -> Operation:
        """A new op, not yet inserted; its result type is inferred, or, where it cannot be, that of `like`.

        Raises:
            MirError: where the arguments or attributes do not fit the op.
        """
        ...

    def fold(self, op: Operation, args: Sequence[Any]) -> Any:
        """What an op gives of constant operands, as `constant` gives it. Raises NoMatch where it has no meaning here."""
        ...


@cache
def level_of(op_name: str) -> Level:
    """The level of an op by its full name: Relay's, TIR's, or that of any other dialect."""
    return named_level(op_name.partition(".")[0])


@cache
def named_level(name: str) -> Level:
    """The level called like its dialect ("relay", "tir", "arith", …)."""
    if name == "relay":
        from .relay import RelayLevel

        return RelayLevel()
    if name == "tir":
        from .tir import TirLevel

        return TirLevel()
    from .other import OtherLevel

    return OtherLevel(name)


@named_function(arity=2, wants_values=True)
def attribute(value: SSAValue, name: str) -> Any:
    """an attribute of the op that gives a value, by its name; `%m.axis`"""
    owner = value.owner
    if isinstance(owner, Block):
        raise NoMatch
    return level_of(owner.name).attribute(owner, name)
