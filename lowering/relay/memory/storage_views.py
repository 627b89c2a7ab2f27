"""Finds operators that move no data: their tensors are parts of one another in memory.

A concatenation whose dimensions before its axis are all 1 is its pieces, one after the other; otherwise each piece is stored in rows, one
in each part of the result. A reshape has the memory of its argument, and a slice is a part of it, in rows where it is not of whole ones.
Such an operator needs no kernel where its tensors can share memory so (`share_storage.py`, `frame.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute, Operation

from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.operators.shape.strided_slice import slice_ranges
from ....dialects.relay.operators.shape.transform import sections
from ....dialects.tir.buffer import compact_strides
from ..functions.flat_values import item_bytes

RESHAPES = frozenset(
    ("reshape", "contrib_reverse_reshape", "reshape_like", "squeeze", "expand_dims", "nn.batch_flatten")
)
"""Operators whose result has the elements of their first argument, in their order."""


@dataclass(frozen=True)
class Rows:
    """The layout of a part of a tensor: `count` rows, one starting each `pitch` elements."""

    count: int
    pitch: int

    def strides(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """Returns the strides of a tensor in these rows; None where they are not its first dimensions."""
        split = next((k for k in range(len(shape) + 1) if prod(shape[:k]) == self.count), None)
        if split is None or 0 in shape:
            return None
        return (*(self.pitch * step for step in compact_strides(shape[:split])), *compact_strides(shape[split:]))


def piece_offsets(op: Operation) -> list[int] | None:
    """Returns the pieces' byte offsets in a concatenation (or stack); None for others, and unknown sizes."""
    rows = piece_rows(op)
    fields = op.operands[0].type if op.operands else None
    if rows is None or not isinstance(fields, TupleType):
        return None
    sizes = [(_bytes(field) or 0) // rows for field in fields.types.data]
    return list(accumulate(sizes, initial=0))[:-1]


def piece_rows(op: Operation) -> int | None:
    """Returns the rows of each piece in a concatenation (or stack), or None as `piece_offsets`."""
    if not isinstance(op, OperatorOp) or op.OPERATOR.name not in ("concatenate", "stack"):
        return None
    shape, fields = static_shape(op.result.type), op.args[0].type
    if shape is None or not isinstance(fields, TupleType) or any(_bytes(field) is None for field in fields.types.data):
        return None
    # Of an empty concatenation all is one row.
    return prod(shape[: op.attrs().axis % len(shape)]) or 1


def view_offsets(op: Operation) -> list[int] | None:
    """Returns the byte offsets of an operator's results in its first argument; None if not parts of it."""
    if not isinstance(op, OperatorOp) or not op.args:
        return None
    type = op.args[0].type
    shape = static_shape(type)
    if shape is None or not isinstance(type, TensorType):
        return None
    name = op.OPERATOR.name
    if name in RESHAPES or (name == "transpose" and _moves_ones_only(op, shape)):
        return None if static_shape(op.result.type) is None else [0]
    size = item_bytes(type.element_type)
    if name == "strided_slice":
        ranges = slice_ranges(op.attrs(), shape)
        start = _start(ranges, shape)
        if start is None and _cut_axis(ranges, shape) is not None:
            start = _number([taken[0] for taken in ranges], shape)
        return None if start is None else [start * size]
    if name == "split":
        attrs = op.attrs()
        axis: int = attrs.axis % len(shape)
        row = size * prod(shape[axis + 1 :])
        return [low * row for low, _ in sections(attrs, shape[axis])] if 0 not in shape else None
    return None


def view_rows(op: Operation) -> Rows | None:
    """Returns the rows in which a slice or split's result is stored; None if it is one range, or none."""
    shape = static_shape(op.operands[0].type) if isinstance(op, OperatorOp) and op.args else None
    if shape is None or not isinstance(op, OperatorOp):
        return None
    axis: int | None = None
    if op.OPERATOR.name == "split":
        axis = op.attrs().axis % len(shape)
    elif op.OPERATOR.name == "strided_slice":
        ranges = slice_ranges(op.attrs(), shape)
        axis = _cut_axis(ranges, shape) if _start(ranges, shape) is None else None
    if axis is None or (count := prod(shape[:axis])) == 1:
        return None
    return Rows(count, prod(shape[axis:]))


def is_reshape(op: Operation) -> bool:
    """Returns whether the operator's result is its first argument, all of it, in the same order in memory."""
    return (
        isinstance(op, OperatorOp)
        and isinstance(op.result.type, TensorType)
        and (op.OPERATOR.name in RESHAPES or op.OPERATOR.name == "transpose")
        and view_offsets(op) is not None
    )


def static_shape(type: Attribute) -> tuple[int, ...] | None:
    """Returns the shape of a static tensor type; None for any other type."""
    if not isinstance(type, TensorType) or DYNAMIC_INDEX in (shape := type.get_shape()):
        return None
    return shape


def _bytes(type: Attribute) -> int | None:
    shape = static_shape(type)
    return prod(shape) * item_bytes(type.element_type) if shape is not None and isinstance(type, TensorType) else None


def _moves_ones_only(op: OperatorOp, shape: Sequence[int]) -> bool:
    """Returns whether a transposition leaves the axes of more than one element in their order."""
    axes = op.attrs().axes
    order = [axis % len(shape) for axis in axes] if axes else list(reversed(range(len(shape))))
    long = [axis for axis in order if shape[axis] != 1]
    return long == sorted(long)


def _start(ranges: Sequence[range], shape: Sequence[int]) -> int | None:
    """Returns the number of the first element of a slice of adjacent elements; None for other slices."""
    if not all(ranges):
        return None
    long = next((axis for axis, taken in enumerate(ranges) if len(taken) > 1), len(shape))
    behind = list(zip(ranges, shape, strict=True))[long + 1 :]
    if any(len(taken) != size or taken.step < 0 < size - 1 for taken, size in behind):
        return None
    if long < len(shape) and ranges[long].step != 1:
        return None
    return _number([taken[0] for taken in ranges], shape)


def _cut_axis(ranges: Sequence[range], shape: Sequence[int]) -> int | None:
    """Returns the one axis along which a slice takes a part, element after element; None for other slices."""
    if not all(ranges):
        return None
    cut = [axis for axis, (taken, size) in enumerate(zip(ranges, shape, strict=True)) if taken != range(size)]
    return cut[0] if len(cut) == 1 and ranges[cut[0]].step == 1 else None


def _number(place: Sequence[int], shape: Sequence[int]) -> int:
    """Returns the number of the element at a place, counted row by row."""
    number = 0
    for index, size in zip(place, shape, strict=True):
        number = number * size + index
    return number
