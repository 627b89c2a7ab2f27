"""Reads operands directly or by segment, and replaces them in constant time where there are very many.

xDSL keeps an op's operands as a tuple and makes a new one for each operand that is replaced: rewriting each of the
100,000 ops that a tuple gathers would copy the tuple as often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from struct import unpack
from typing import Any, cast, overload

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, Operation, OpOperands, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.irdl import AttrSizedOperandSegments

from .memoize import memoized

MANY = 64
"""Up to so many operands a copy is as cheap."""


def operands_of(op: Operation) -> tuple[SSAValue, ...]:
    """Returns the operands of an op as they are now."""
    return op._operands  # pyright: ignore[reportPrivateUsage]


_take = tuple[Any, ...].__getitem__
_SIZES: str = AttrSizedOperandSegments.attribute_name


def places_of(op: Operation) -> tuple[int, ...]:
    """Returns where the operand segments of `op` begin, and the last of them ends."""
    return _starts(op.properties[_SIZES])


@memoized
def _starts(sizes: Attribute) -> tuple[int, ...]:
    """Computed once for all ops of the same sizes."""
    assert isinstance(sizes, DenseArrayBase)
    data = sizes.data.data
    return tuple(accumulate(unpack(f"<{len(data) // 4}i", data), initial=0))


def segment(op: Operation, index: int) -> tuple[SSAValue, ...]:
    """Returns the operands of one segment of an op that has such."""
    places = places_of(op)
    return _take(operands_of(op), slice(places[index], places[index + 1]))


class _Held(list[SSAValue]):
    """The operands of an op that had one of many replaced: as a list, which can be written in place."""


class ManyOperands(OpOperands):
    """The view `op.operands` of an op that may have many: as xDSL's, except for the cost of writing one."""

    @overload
    def __getitem__(self, idx: int) -> SSAValue: ...

    @overload
    def __getitem__(self, idx: slice) -> Sequence[SSAValue]: ...

    def __getitem__(self, idx: int | slice) -> SSAValue | Sequence[SSAValue]:
        operands = operands_of(self._op)
        return operands[idx] if isinstance(idx, int) else SSAValues(operands[idx])

    def __setitem__(self, idx: int, operand: SSAValue) -> None:
        op, operands = self._op, operands_of(self._op)
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
        operands = operands_of(self._op)
        # What is replaced meanwhile does not change what a loop sees, as with a tuple.
        return iter(tuple(operands) if isinstance(operands, _Held) else operands)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOperands) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def set_operands(op: Operation, new: Sequence[SSAValue]) -> None:
    """Sets `op.operands = new`, for a class that overrides the property."""
    cast("property", Operation.operands).__set__(op, new)
