"""Holds the state that a module's functions share: constant data, external declarations, callees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation

from ...dialects.interned import integer
from ...support.diagnostics import error_at
from ...support.text import take_name
from ..emitter import dense

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


@dataclass(frozen=True)
class Callee:
    """The calling convention of a function of the module, once lowered."""

    inputs: tuple[Attribute, ...]
    output: Attribute | None
    symbols: tuple[str, ...]


class ModuleGlobals:
    """The constants (`memref.global`), external declarations and callees that functions share."""

    def __init__(self, taken: Iterable[str], strict_math: bool = False) -> None:
        self.strict_math = strict_math
        """Whether each float operation is rounded for itself, and reductions take lanes in order."""
        self.ops: list[Operation] = []
        self.functions: dict[str, Callee] = {}
        self._taken = set(taken)
        self._constants: dict[tuple[Attribute, bytes], str] = {}
        self._declared: dict[str, tuple[tuple[Attribute, ...], Attribute | None]] = {}

    def constant(self, where: Operation, type_: MemRefType, data: bytes, hint: str) -> str:
        """Returns the name of the global that holds `data`; equal data of equal type is held once."""
        name = self._constants.get((type_, data))
        if name is None:
            name = self._constants[type_, data] = take_name(hint, self._taken)
            op = _constant_global(name, type_, data)
            op.location = where.location
            self.ops.append(op)
        return name

    def declare(self, where: Operation, name: str, inputs: Sequence[Attribute], output: Attribute | None) -> None:
        """Declares an external C function; raises MirError when it is used at another type elsewhere."""
        from xdsl.dialects import func

        signature = tuple(inputs), output
        known = self._declared.get(name)
        if known is None and name in self._taken:
            raise error_at(where, f"'{name}' is a function of this module and no external one", "call it by its name")
        if known is None:
            self._declared[name] = signature
            op = func.FuncOp.external(name, list(inputs), [] if output is None else [output])
            op.location = where.location
            self.ops.append(op)
        elif known != signature:
            raise error_at(where, f"the external function '{name}' is called with different types in this module")


def _constant_global(name: str, type_: MemRefType, data: bytes) -> memref.GlobalOp:
    """Returns a read-only global that holds `data`."""
    tensor = TensorType(type_.element_type, type_.shape)
    if type_.element_type == i1:  # a byte in numpy, a bit in a dense attribute
        data = bytes(dense(tensor, list(data)).data.data)
    value = DenseIntOrFPElementsAttr(tensor, BytesAttr(data))  # pyright: ignore[reportArgumentType]
    return memref.GlobalOp.get(
        StringAttr(name),
        type_,
        value,
        StringAttr("private"),
        UnitAttr(),
        integer(ALIGNMENT, i64),  # pyright: ignore[reportArgumentType]
    )
