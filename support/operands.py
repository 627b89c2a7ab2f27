"""Operands of ops that may have very many: one of them is replaced in constant time.

xDSL keeps an op's operands as a tuple and makes a new one for each operand that is replaced: rewriting each of the
100,000 ops that a tuple gathers would copy the tuple as often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast, overload

from xdsl.ir import Operation, OpOperands, SSAValue
from xdsl.ir.core import SSAValues

MANY = 64
"""Up to so many operands a copy is as cheap."""


class _Held(list[SSAValue]):
    """The operands of an op that had one of many replaced: as a list, which can be written in place."""


class ManyOperands(OpOperands):
    """The view `op.operands` of an op that may have many: as xDSL's, but for what writing an operand costs."""

    @overload
    def __getitem__(self, idx: int) -> SSAValue: ...

    @overload
    def __getitem__(self, idx: slice) -> Sequence[SSAValue]: ...

    def __getitem__(self, idx: int | slice) -> SSAValue | Sequence[SSAValue]:
        operands = _operands(self._op)
        return operands[idx] if isinstance(idx, int) else SSAValues(operands[idx])

    def __setitem__(self, idx: int, operand: SSAValue) -> None:
        op, operands = self._op, _operands(self._op)
        if len(operands) <= MANY:
            super().__setitem__(idx, operand)
            return
        if not isinstance(operands, _Held):
            operands = _Held(operands)
            op._operands = cast("SSAValues", operands)  # pyright: ignore[reportPrivateUsage]
        use = op._operand_uses[idx]  # pyright: ignore[reportPrivateUsage]
        operands[idx].remove_use(use)
        operand.add_use(use)
        operands[idx] = operand

    def __iter__(self) -> Iterator[SSAValue]:
        operands = _operands(self._op)
        # What is replaced meanwhile does not change what a loop sees, as with a tuple.
        return iter(tuple(operands) if isinstance(operands, _Held) else operands)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOperands) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def set_operands(op: Operation, new: Sequence[SSAValue]) -> None:
    """`op.operands = new`, for a class that gives the property anew."""
    cast("property", Operation.operands).__set__(op, new)


def _operands(op: Operation) -> Sequence[SSAValue]:
    return op._operands  # pyright: ignore[reportPrivateUsage]
