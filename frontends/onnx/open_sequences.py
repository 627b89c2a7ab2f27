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
    """Returns a tensor of no rows, each of the shape of `row`."""
    sizes = builder.type_shape(row)
    if DYNAMIC_INDEX not in sizes:
        return builder.constant(np.zeros((0, *sizes)), builder.dtype(row))
    shape = builder.call("concatenate", builder.tuple([builder.integers([0]), builder.shape_tensor(row)]), axis=0)
    return builder.call("dyn.zeros", shape, dtype=builder.dtype(row))


def rows_of(builder: GraphBuilder, sequence: SequenceValue | OpenSequence) -> SSAValue:
    """Returns the tensors of a sequence that is not known to be empty as the rows of a tensor."""
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
    """Makes sequences of different lengths in the branches of an `If` open ones, in place."""
    for place, pair in enumerate(zip(*values, strict=True)):
        if not all(isinstance(each, SequenceValue | OpenSequence) for each in pair):
            continue
        lengths = [len(each.items) if isinstance(each, SequenceValue) else None for each in pair]
        if lengths[0] == lengths[1] and lengths[0] is not None:
            continue
        for own, builder, other, length in zip(values, builders, reversed(pair), lengths, strict=True):
            rows = _none_like(builder, other) if length == 0 else rows_of(builder, _sequence(own[place]))
            own[place] = OpenSequence(rows)


def _none_like(builder: GraphBuilder, other: Value) -> SSAValue:
    """Returns no rows of the shape of the tensors in another sequence, which is computed elsewhere."""
    if isinstance(other, OpenSequence):
        like, shape = other.rows, builder.type_shape(other.rows)[1:]
    else:
        like = _sequence(other).items[0]
        shape = builder.type_shape(like)
    if DYNAMIC_INDEX in shape:
        raise Refused("a sequence is empty in one branch, and in the other its tensors are of open sizes")
    return builder.constant(np.zeros((0, *shape)), builder.dtype(like))


class TensorLoop:
    """A loop that carries the rows of sequences, or collects what is only appended to them.

    It runs `body` from `states`, which are tensors; `restore` makes its results those of the loop that was given.
    """

    def __init__(self, node: Node, carried: Sequence[Value], body: Body):
        places = [place for place, each in enumerate(carried) if not isinstance(each, SSAValue)]
        if any(not isinstance(carried[place], SequenceValue | OpenSequence) for place in places):
            raise node.refuse(
                "an optional is carried through a loop whose number of iterations is known only at run time",
                "whether an optional has a value must be known when the model is imported",
            )
        self._builder, self._carried, self._given_body = node.builder, carried, body
        self._first = _first_rows(node, carried, places, body)
        """The rows of each sequence before the first iteration."""
        appended = self._trial(places)
        self._collected = {place: count for place, count in appended.items() if count}
        """Sequences that iterations only append to, and how many tensors each appends."""
        self._state_places = [place for place in range(len(carried)) if appended.get(place) is None]
        """Values that iterations change otherwise; a sequence to which they append nothing is read around the loop."""
        self.states = [cast("SSAValue", self._first.get(place, carried[place])) for place in self._state_places]

    def _trial(self, places: Sequence[int]) -> dict[int, int | None]:
        """Builds an iteration that is not kept; returns what it appends to sequences (`_only_appended`)."""
        trial = GraphBuilder(self._builder)
        values = list(self._carried)
        for place in places:
            values[place] = OpenSequence(trial.typed_parameter("", _of_any_number(self._first[place])))
        number = trial.typed_parameter("", self._builder.integers(0).type)
        found = self._given_body(trial, number, values).carried
        return {place: _only_appended(values[place], found[place]) for place in places}

    def body(self, within: GraphBuilder, number: SSAValue, states: Sequence[Value]) -> Step:
        """Builds an iteration, whose scans end with what it appends to sequences."""
        values = [self._value(place, self._first.get(place, each)) for place, each in enumerate(self._carried)]
        for place, each in zip(self._state_places, states, strict=True):
            values[place] = self._value(place, each)
        step = self._given_body(within, number, values)
        after = [
            rows_of(within, _sequence(step.carried[place])) if place in self._first else step.carried[place]
            for place in self._state_places
        ]
        rows = [_in_one(within, step.carried[place]) for place in self._collected]
        return Step(step.condition, after, [*step.scans, *rows])

    def restore(self, results: Sequence[Value]) -> list[Value]:
        """Returns the results of the loop that was given: values, then scans."""
        found = list(self._carried)
        for place, each in zip(self._state_places, results, strict=False):
            found[place] = self._value(place, each)
        end = len(results) - len(self._collected)
        for place, each in zip(self._collected, results[end:], strict=True):
            found[place] = OpenSequence(self._with_first(place, cast("SSAValue", each)))
        return [*found, *results[len(self._state_places) : end]]

    def _with_first(self, place: int, rows: SSAValue) -> SSAValue:
        """Returns the rows of a sequence that a loop has collected, after those that it had before."""
        b, first = self._builder, self._first[place]
        if self._collected[place] > 1:
            rows = b.call("reshape", rows, newshape=[-3, -2])
        if b.type_shape(first)[0] == 0:
            return rows
        return b.call("concatenate", b.tuple([first, rows]), axis=0)

    def _value(self, place: int, value: Value) -> Value:
        """Returns the value of a tensor that a loop carries in a place."""
        return OpenSequence(cast("SSAValue", value)) if place in self._first else value


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
            if within is builder or DYNAMIC_INDEX not in builder.type_shape(row):
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
