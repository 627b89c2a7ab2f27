"""Defines the interface by which rules use a dialect: names, attributes, constants, how ops are built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....support import extensions
from ..functions import NoMatch, named_function

LEVELS = (
    "relay", "tir", "te", "arith", "math", "index", "scf", "memref", "vector", "tensor", "linalg", "llvm", "cf", "func",
    "onnx", "torch", "jax",
)  # fmt: skip
"""The dialects that rules may be for."""


class Level(Protocol):
    """A dialect as rules use it; attributes are Python values, or `Attribute` where there are none."""

    name: str

    def resolve(self, name: str) -> str | None:
        """Returns the full name of the op that a rule's text calls `name`, None if there is not one."""
        ...

    def implied(self, name: str) -> Mapping[str, Any]:
        """Returns attributes that a name implies besides its op: `intrinsic="exp"` for TIR's `exp`."""
        ...

    def close_to(self, name: str) -> str | None:
        """Returns the op's name closest to a misspelt `name`."""
        ...

    def spelled(self, op_name: str) -> str:
        """Returns an op's full name as a rule's text of this level writes it; the inverse of `resolve`."""
        ...

    def infix(self, function: str) -> str | None:
        """Returns the op of an infix operator by the name of its function: `add`, `lt`, `and_`, …"""
        ...

    def operator(self, op_name: str) -> str | None:
        """Returns the function of the infix operator that a rule's text writes for an op; None for a call."""
        ...

    def is_commutative(self, op_name: str) -> bool:
        """Returns True if the two operands of an op may be exchanged."""
        ...

    def of_one_dtype(self, op_name: str) -> tuple[tuple[int, ...], bool]:
        """Returns which operands of an op must have the same dtype, and whether its result has it, too."""
        ...

    def problem(self, op_name: str, arguments: int | None, attributes: Sequence[str]) -> str | None:
        """Returns an error in the argument count (None: unknown) or attribute names of a pattern, or None."""
        ...

    def attribute(self, op: Operation, name: str) -> Any:
        """Returns an op's attribute or its default. Raises KeyError if the op has no such attribute."""
        ...

    def attributes(self, op: Operation) -> Mapping[str, Any]:
        """Returns the attributes that are written on an op."""
        ...

    def constant(self, value: SSAValue) -> Any:
        """Returns a constant's value as a numpy array or a Python number; None if the value is not constant."""
        ...

    def make_constant(self, value: Any, dtype: str | None, like: Attribute) -> Operation:
        """Creates a constant op of a number or array, of `dtype`, by default of the element type of `like`."""
        ...

    def build(self, op_name: str, args: Sequence[SSAValue], attributes: Mapping[str, Any], like: SSAValue) -> Operation:
        """Creates an op without inserting it; its result type is inferred, otherwise that of `like`.

        Raises:
            MirError: where the arguments or attributes do not fit the op.
        """
        ...

    def fold(self, op: Operation, args: Sequence[Any]) -> Any:
        """Returns an op's result on constants, as `constant` does. Raises NoMatch if it is not computed here."""
        ...


def is_level(name: str) -> bool:
    """Returns whether rules may be for a dialect: one of LEVELS, or an extension's."""
    return name in LEVELS or extensions.find("dialect", name) is not None


@cache
def level_of(op_name: str) -> Level:
    """Returns the level of an op by its full name: Relay's, TIR's or another dialect's."""
    return named_level(op_name.partition(".")[0])


@cache
def named_level(name: str) -> Level:
    """Returns the level called like its dialect ("relay", "tir", "arith", …)."""
    if name == "relay":
        from .relay import RelayLevel

        return RelayLevel()
    if name == "tir":
        from .tir import TirLevel

        return TirLevel()
    if name == "onnx":
        from .imported import OnnxLevel

        return OnnxLevel()
    if name == "torch":
        from .imported import TorchLevel

        return TorchLevel()
    if name == "jax":
        from .imported import JaxLevel

        return JaxLevel()
    from .other import OtherLevel

    return OtherLevel(name)


@named_function(arity=2, wants_values=True)
def attribute(value: SSAValue, name: str) -> Any:
    """an attribute of the op that a value is the result of, by its name; `%m.axis`"""
    owner = value.owner
    if isinstance(owner, Block):
        raise NoMatch
    return level_of(owner.name).attribute(owner, name)
