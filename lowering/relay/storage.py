"""Operators that move nothing: their tensors, as they stand in memory, are parts of one another.

A concatenation whose dimensions before its axis are all 1 is its pieces, one after the other; a reshape is the tensor that it takes; and
a slice of rows is a part of one. Such an operator needs no kernel where its tensors can be laid so (`share_storage.py`, `frame.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute, Operation

from ...dialects.relay.operator import OperatorOp
from ...dialects.relay.operators.slices import slice_ranges
from ...dialects.relay.operators.transform import sections
from .leaves import item_bytes

RESHAPES = frozenset(
    ("reshape", "contrib_reverse_reshape", "reshape_like", "squeeze", "expand_dims", "nn.batch_flatten")
)
"""Operators whose result has the elements of their first argument, in their order."""


def piece_offsets(op: Operation) -> list[int] | None:
    """Where in a concatenation (or a stack) each of its pieces begins, in bytes; None where they do not lie one after the other."""
    if not isinstance(op, OperatorOp) or op.OPERATOR.name not in ("concatenate", "stack"):
        return None
    shape, fields = static_shape(op.result.type), op.args[0].type
    if shape is None or not isinstance(fields, TupleType) or not isinstance(op.result.type, TensorType):
        return None
    if prod(shape[: op.attrs().axis % len(shape)]) != 1:
        return None
    sizes = [_bytes(field) for field in fields.types.data]
    if any(size is None for size in sizes):
        return None
    return list(accumulate((size or 0 for size in sizes), initial=0))[:-1]


def view_offsets(op: Operation) -> list[int] | None:
    """Where in the operator's first argument each tensor that it gives begins, in bytes; None where it gives no parts of it."""
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
        start = _start(slice_ranges(op.attrs(), shape), shape)
        return None if start is None else [start * size]
    if name == "split":
        attrs = op.attrs()
        axis: int = attrs.axis % len(shape)
        row = size * prod(shape[axis + 1 :])
        return [low * row for low, _ in sections(attrs, shape[axis])] if prod(shape[:axis]) == 1 else None
    return None


def is_reshape(op: Operation) -> bool:
    """Whether the operator gives its first argument, all of it, as it stands in memory."""
    return (
        isinstance(op, OperatorOp)
        and isinstance(op.result.type, TensorType)
        and (op.OPERATOR.name in RESHAPES or op.OPERATOR.name == "transpose")
        and view_offsets(op) is not None
    )


def static_shape(type: Attribute) -> tuple[int, ...] | None:
    """The shape of a tensor type; None where a dimension is known only at run time, and for other types."""
    if not isinstance(type, TensorType) or DYNAMIC_INDEX in (shape := type.get_shape()):
        return None
    return shape


def _bytes(type: Attribute) -> int | None:
    shape = static_shape(type)
    return prod(shape) * item_bytes(type.element_type) if shape is not None and isinstance(type, TensorType) else None


def _moves_ones_only(op: OperatorOp, shape: Sequence[int]) -> bool:
    """Whether a transposition leaves the axes of more than one element in their order."""
    axes = op.attrs().axes
    order = [axis % len(shape) for axis in axes] if axes else list(reversed(range(len(shape))))
    long = [axis for axis in order if shape[axis] != 1]
    return long == sorted(long)


def _start(ranges: Sequence[range], shape: Sequence[int]) -> int | None:
    """The number of the first element of a slice whose elements stand one after the other; None for other slices."""
    if not all(ranges):
        return None
    long = next((axis for axis, taken in enumerate(ranges) if len(taken) > 1), len(shape))
    behind = list(zip(ranges, shape, strict=True))[long + 1 :]
    if any(len(taken) != size or taken.step < 0 < size - 1 for taken, size in behind):
        return None
    if long < len(shape) and ranges[long].step != 1:
        return None
    start = 0
    for taken, size in zip(ranges, shape, strict=True):
        start = start * size + taken[0]
    return start
