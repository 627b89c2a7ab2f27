"""Computes with sequences whose length is known at run time only, as the rows of a tensor.

A loop carries the rows of a sequence, or collects them where each iteration only appends to it:

    xs = SequenceEmpty(); Loop { xs = SequenceInsert(xs, x) }; y = ConcatFromSequence <new_axis = 1> (xs)

is a loop whose scan output of the x is y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import SSAValue

from ..common.graph_builder import GraphBuilder
from .node import Node, Refused
from .values import OpenSequence, SequenceValue, Value

ONE_SHAPE = "the length of a sequence is known only at run time, and its tensors must then be of one rank and dtype"


@dataclass(frozen=True)
class Step:
    """The values that an iteration computes; `condition` is that of the next one, None for true."""

    condition: SSAValue | None
    carried: list[Value]
    scans: list[SSAValue]


Body: TypeAlias = "Callable[[GraphBuilder, SSAValue, Sequence[Value]], Step]"
"""Builds an iteration from its number and the carried values."""


def no_rows(builder: GraphBuilder, row: SSAValue) -> SSAValue:
    """Returns a tensor of no rows of the shape of one."""
    if DYNAMIC_INDEX not in _shape(row):
        return builder.constant(np.zeros((0, *_shape(row))), builder.dtype(row))
    shape = builder.call("concatenate", builder.tuple([builder.integers([0]), builder.shape_tensor(row)]), axis=0)
    return builder.call("dyn.zeros", shape, dtype=builder.dtype(row))


def rows_of(builder: GraphBuilder, sequence: SequenceValue | OpenSequence) -> SSAValue:
    """Returns the tensors of a sequence that is not known to be empty as the rows of one."""
    items = sequence.items if isinstance(sequence, SequenceValue) else sequence.appended
    parts = [builder.call("expand_dims", each, axis=0) for each in items]
    if isinstance(sequence, OpenSequence):
        parts.insert(0, sequence.rows)
    if any(
        builder.rank(each) != builder.rank(parts[0]) or builder.dtype(each) != builder.dtype(parts[0]) for each in parts
    ):
        raise Refused(ONE_SHAPE)
    return parts[0] if len(parts) == 1 else builder.call("concatenate", builder.tuple(parts), axis=0)


def with_equal_structure(builders: Sequence[GraphBuilder], values: Sequence[list[Value]]) -> None:
    """Makes sequences of other lengths in the branches of an `If` open ones, in place."""
    for place, pair in enumerate(zip(*values, strict=True)):
        lengths = [len(each.items) if isinstance(each, SequenceValue) else -1 for each in pair]
        if not all(isinstance(each, SequenceValue | OpenSequence) for each in pair) or (
            lengths[0] == lengths[1] and -1 not in lengths
        ):
            continue
        for own, builder, other, length in zip(values, builders, reversed(pair), lengths, strict=True):
            rows = _none_like(builder, other) if length == 0 else rows_of(builder, _sequence(own[place]))
            own[place] = OpenSequence(rows)


def _none_like(builder: GraphBuilder, other: Value) -> SSAValue:
    """Returns no rows of the shape of the tensors in another sequence, which is computed elsewhere."""
    rows = other.rows if isinstance(other, OpenSequence) else None
    shape = _shape(rows)[1:] if rows is not None else _shape(_sequence(other).items[0])
    if DYNAMIC_INDEX in shape:
        raise Refused("a sequence is empty in one branch, and in the other its tensors are of open sizes")
    like = rows if rows is not None else _sequence(other).items[0]
    return builder.constant(np.zeros((0, *shape)), builder.dtype(like))


@dataclass(frozen=True)
class TensorLoop:
    """A loop that carries tensors in the place of sequences.

    `restore` makes its results those of the loop that was given: of the last values and the scans.
    """

    carried: list[SSAValue]
    body: Body
    restore: Callable[[Sequence[Value]], list[Value]]


def without_sequences(node: Node, carried: Sequence[Value], body: Body) -> TensorLoop:
    """Returns a loop that carries the rows of sequences, or collects what is only appended to them."""
    places = [place for place, each in enumerate(carried) if not isinstance(each, SSAValue)]
    if any(not isinstance(carried[place], SequenceValue | OpenSequence) for place in places):
        raise node.refuse(
            "an optional is carried through a loop whose number of iterations is known only at run time",
            "whether an optional has a value must be known when the model is imported",
        )
    builder = node.builder
    first = _first_rows(node, carried, places, body)
    trial = GraphBuilder(builder)
    values = list(carried)
    for place in places:
        values[place] = OpenSequence(trial.typed_parameter("", _of_any_number(first[place])))
    found = body(trial, trial.typed_parameter("", builder.integers(0).type), values).carried
    appended = {place: _only_appended(values[place], found[place]) for place in places}
    kept = [place for place, count in appended.items() if count == 0]
    collected = [place for place, count in appended.items() if count]
    outside = {place: OpenSequence(first[place]) for place in places}
    states = [place for place in range(len(carried)) if place not in kept and place not in collected]

    def without(within: GraphBuilder, number: SSAValue, given: Sequence[Value]) -> Step:
        values: list[Value] = [outside.get(place, each) for place, each in enumerate(carried)]
        for place, each in zip(states, given, strict=True):
            values[place] = OpenSequence(cast("SSAValue", each)) if place in places else each
        step = body(within, number, values)
        after = [
            rows_of(within, _sequence(step.carried[place])) if place in places else step.carried[place]
            for place in states
        ]
        rows = [_in_one(within, step.carried[place]) for place in collected]
        return Step(step.condition, after, [*step.scans, *rows])

    def restore(results: Sequence[Value]) -> list[Value]:
        found: list[Value] = list(carried)
        for place, each in zip(states, results, strict=False):
            found[place] = OpenSequence(cast("SSAValue", each)) if place in places else each
        scans = results[len(states) : len(results) - len(collected)]
        for place, each in zip(collected, results[len(results) - len(collected) :], strict=True):
            rows = cast("SSAValue", each)
            if (appended[place] or 0) > 1:
                rows = builder.call("reshape", rows, newshape=[-3, -2])
            if _shape(first[place])[0] != 0:
                rows = builder.call("concatenate", builder.tuple([first[place], rows]), axis=0)
            found[place] = OpenSequence(rows)
        return [*found, *scans]

    given = [first[place] if place in places else cast("SSAValue", carried[place]) for place in states]
    return TensorLoop(given, without, restore)


def _first_rows(node: Node, carried: Sequence[Value], places: Sequence[int], body: Body) -> dict[int, SSAValue]:
    """Returns the rows of the sequences that a loop begins with.

    Those of empty ones are none, of the shape of what the first iteration appends.
    """
    builder = node.builder
    found: dict[int, SSAValue] = {}
    empty = [
        place for place in places if isinstance(carried[place], SequenceValue) and not _sequence(carried[place]).items
    ]
    for place in places:
        if place not in empty:
            found[place] = rows_of(builder, _sequence(carried[place]))
    if not empty:
        return found
    for within in (GraphBuilder(builder), builder):
        # An iteration that is not kept tells the types; where these leave sizes open, one before the loop tells the sizes.
        step = body(within, builder.integers(0), carried)
        for place in empty:
            after = _sequence(step.carried[place])
            if isinstance(after, SequenceValue) and not after.items:
                raise node.refuse("a sequence that stays empty is carried through a loop")
            row = within.call("take", rows_of(within, after), within.integers(0), axis=0)
            if isinstance(after, SequenceValue):
                row = after.items[0]
            if within is builder or DYNAMIC_INDEX not in _shape(row):
                found[place] = no_rows(builder, row)
        if all(place in found for place in empty):
            break
    return found


def _only_appended(before: Value, after: Value) -> int | None:
    """Returns how many tensors an iteration appends; None where it uses the sequence otherwise."""
    assert isinstance(before, OpenSequence)
    if not isinstance(after, OpenSequence) or after.rows is not before.rows or before.rows.uses.get_length():
        return None
    return len(after.appended)


def _in_one(builder: GraphBuilder, sequence: Value) -> SSAValue:
    """Returns what an iteration appends: one tensor, or several as rows."""
    assert isinstance(sequence, OpenSequence)
    items = sequence.appended
    return items[0] if len(items) == 1 else rows_of(builder, SequenceValue(items))


def _of_any_number(rows: SSAValue) -> TensorType[Any]:
    type = cast("TensorType[Any]", rows.type)
    return TensorType(type.element_type, [DYNAMIC_INDEX, *type.get_shape()[1:]])


def _sequence(value: Value) -> SequenceValue | OpenSequence:
    if not isinstance(value, SequenceValue | OpenSequence):
        raise Refused("an iteration or a branch returns something else in the place of a sequence")
    return value


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(cast("TensorType[Any]", value.type).get_shape())
