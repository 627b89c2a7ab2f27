"""Converts ONNX operators on sequences and optionals.

Their structure is known on import; sequences of tensors of one shape may be of any length (`open_sequences.py`).
"""

from __future__ import annotations

from typing import cast

from xdsl.ir import SSAValue

from ....support.text import counted
from ..node import Node, only_tensors
from ..open_sequences import rows_of
from ..protos import element_dtype
from ..registry import operator
from ..values import EmptyOptional, OpenSequence, SequenceValue, Value
from .shape import split_into


def _position(node: Node, index: int, length: int, default: int) -> int:
    """Returns a constant position in a sequence, counted from the first."""
    found = node.integers(index, "the position")
    position = default if found is None else found[0]
    if not -length <= position <= max(length - 1, default):
        raise node.refuse(f"position {position} is outside of a sequence of {counted(length, 'tensor')}")
    return position + length if position < 0 else position


@operator("SequenceConstruct", since=11)
def sequence_construct(node: Node) -> Value:
    """Converts `SequenceConstruct`."""
    return SequenceValue(tuple(node.tensors()))


@operator("SequenceEmpty", since=11)
def sequence_empty(node: Node) -> Value:
    """Converts `SequenceEmpty`."""
    return SequenceValue((), element_dtype(int(node.attr("dtype", 1))))


@operator("SequenceInsert", since=11)
def sequence_insert(node: Node) -> Value:
    """Converts `SequenceInsert`, at the end where no position is given."""
    sequence = node.any_sequence(0)
    if isinstance(sequence, OpenSequence):
        if node.has(2):
            raise node.refuse("a sequence whose length is known only at run time takes tensors at its end alone")
        return OpenSequence(sequence.rows, (*sequence.appended, node[1]))
    items = list(sequence.items)
    items.insert(_position(node, 2, len(items), len(items)), node[1])
    return SequenceValue(tuple(items))


@operator("SequenceErase", since=11)
def sequence_erase(node: Node) -> Value:
    """Converts `SequenceErase`, of the last tensor where no position is given."""
    sequence = node.sequence(0)
    items = list(sequence.items)
    if not items:
        raise node.refuse("the sequence is empty")
    erased = items.pop(_position(node, 1, len(items), len(items) - 1))
    return SequenceValue(tuple(items), node.builder.dtype(erased))


@operator("SequenceAt", since=11)
def sequence_at(node: Node) -> Value:
    """Converts `SequenceAt`; a position that is computed selects from a stack of tensors of one type."""
    sequence = node.any_sequence(0)
    if isinstance(sequence, OpenSequence):
        return _at(node, rows_of(node.builder, sequence))
    items = sequence.items
    if not items:
        raise node.refuse("the sequence is empty")
    if node.builder.array(node[1]) is not None:
        return items[_position(node, 1, len(items), len(items) - 1)]
    if any(item.type != items[0].type for item in items):
        raise node.refuse("the position must be constant, not computed at run time: the tensors differ in type")
    return _at(node, node.call("stack", node.builder.tuple(items), axis=0))


def _at(node: Node, rows: SSAValue) -> SSAValue:
    """Returns the row at a position that is computed; a negative one counts from the end."""
    return node.call("take", rows, node.builder.reshape(node[1], []), axis=0, mode="wrap")


@operator("SequenceLength", since=11)
def sequence_length(node: Node) -> Value:
    """Converts `SequenceLength`, to a constant where it is known."""
    sequence = node.any_sequence(0)
    if isinstance(sequence, OpenSequence):
        return node.builder.size(rows_of(node.builder, sequence), 0)
    return node.builder.integers(len(sequence.items))


@operator("SplitToSequence", since=11)
def split_to_sequence(node: Node) -> Value:
    """Converts `SplitToSequence`: into slices, parts of one size and a rest, or parts of given sizes."""
    builder, x = node.builder, node[0]
    axis = node.axis(node.rank(0), 0)
    size = builder.extents(x)[axis]
    if not isinstance(size, int):
        if node.has(1):
            raise node.refuse(f"axis {axis}, which is split, must have a known size, not an open one")
        order = [axis, *(each for each in range(node.rank(0)) if each != axis)]
        rows = builder.call("transpose", x, axes=order) if axis else x
        return OpenSequence(builder.call("expand_dims", rows, axis=1 + axis) if node.attr("keepdims", 1) else rows)
    if not node.has(1):
        slices = split_into(node, x, axis, [1] * size) if size else []
        if not node.attr("keepdims", 1):
            slices = [builder.call("squeeze", each, axis=[axis]) for each in slices]
        return SequenceValue(tuple(slices), builder.dtype(x))
    given = node.integers(1, "the sizes of the parts") or []
    if node.rank(1) == 0:
        if given[0] < 1:
            raise node.refuse(f"the size of the parts is {given[0]}; it must be 1 or more")
        given = [min(given[0], size - start) for start in range(0, size, given[0])]
    return SequenceValue(tuple(split_into(node, x, axis, given)), builder.dtype(x))


@operator("ConcatFromSequence", since=11)
def concat_from_sequence(node: Node) -> Value:
    """Converts `ConcatFromSequence`: along an axis, or along a new one."""
    is_new = bool(node.attr("new_axis", 0))
    sequence = node.any_sequence(0)
    if isinstance(sequence, OpenSequence):
        return _joined(node, rows_of(node.builder, sequence), is_new)
    items = sequence.items
    if not items:
        raise node.refuse("the sequence is empty")
    axis = node.axis(node.builder.rank(items[0]) + is_new)
    if len(items) == 1 and not is_new:
        return items[0]
    return node.call("stack" if is_new else "concatenate", node.builder.tuple(items), axis=axis)


def _joined(node: Node, rows: SSAValue, is_new: bool) -> SSAValue:
    """Moves the axis of the rows to where a new axis is wanted, or before the one that it is merged with."""
    rank = node.builder.rank(rows)
    axis = node.axis(rank if is_new else rank - 1)
    order = list(range(1, rank))
    order.insert(axis, 0)
    moved = node.call("transpose", rows, axes=order) if axis else rows
    return moved if is_new else node.call("reshape", moved, newshape=[*[0] * axis, -3, -2])


@operator("SequenceMap", since=17)
def sequence_map(node: Node) -> list[Value | None]:
    """Converts `SequenceMap`: the graph inside is repeated for each place of the sequences."""
    first = node.sequence(0)
    results: list[list[SSAValue]] = [[] for _ in node.outputs]
    for place in range(len(first.items)):
        inputs: list[Value] = []
        for value in node.inputs:
            if isinstance(value, SequenceValue):
                if len(value.items) != len(first.items):
                    raise node.refuse(
                        f"the sequences have {len(first.items)} and {len(value.items)} tensors; they must have the same number"
                    )
                inputs.append(value.items[place])
            else:
                inputs.append(cast("Value", value))
        for result, value in zip(results, only_tensors(node.importer.subgraph(node.attr("body"), inputs)), strict=True):
            result.append(value)
    return [SequenceValue(tuple(result)) for result in results]


# Optionals -----------------------------------------------------------------------------------------------------------


@operator("Optional", since=15)
def optional(node: Node) -> Value:
    """Converts `Optional`: the value itself, or none."""
    value = node.inputs[0] if node.inputs else None
    return EmptyOptional() if value is None else value


@operator("OptionalHasElement", since=15)
def optional_has_element(node: Node) -> Value:
    """Converts `OptionalHasElement` to a constant."""
    value = node.inputs[0] if node.inputs else None
    return node.builder.constant(value is not None and not isinstance(value, EmptyOptional), "bool")


@operator("OptionalGetElement", since=15)
def optional_get_element(node: Node) -> Value:
    """Converts `OptionalGetElement`: an optional that has a value is this value."""
    value = node.inputs[0] if node.inputs else None
    if value is None or isinstance(value, EmptyOptional):
        raise node.refuse("the optional is empty")
    return value
