"""Builds loops over the first axis of tensors: recurrent layers, whose steps depend on the one before.

A few steps become ops in a row. Many steps of a known number become functions that each call the one of half as many steps twice:

    def @scan_16(%xs: (16, …), %state) { let %a = @scan_8(%xs[:8], %state); let %b = @scan_8(%xs[8:], %a.1); … }

so that the code grows with the logarithm of the number, and each result is copied as often. An unknown number of steps becomes one
function that does so at run time (`divided_loop.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ...dialects.relay import ir
from .divided_loop import DividedLoop, Iteration
from .graph_builder import GraphBuilder

MOST_IN_A_ROW = 8
"""More steps than these are a function's."""

Values: TypeAlias = "Sequence[SSAValue]"
Step: TypeAlias = "Callable[[GraphBuilder, Values, Values, Values], tuple[Values, Values]]"
"""Creates one step: of a builder, the sequences' elements, the states and the invariants; returns the states and the results."""


@dataclass(frozen=True)
class Scanned:
    """The results of all steps, stacked along a first axis, and the last states."""

    results: Values
    states: Values


def scan(b: GraphBuilder, step: Step, sequences: Values, states: Values, invariants: Values = ()) -> Scanned:
    """Applies a step to each element of the sequences along their first axis.

    Each step must return states of the types that it takes. Invariants that are constants are constants in each function, too.
    """
    count = b.extents(sequences[0])[0]
    loop = _Loop(b, step, invariants)
    if not isinstance(count, int):
        return loop.open(b, sequences, states)
    return loop.steps(b, count, sequences, states, invariants)


class _Loop:
    """Builds the functions of a loop."""

    def __init__(self, b: GraphBuilder, step: Step, invariants: Values):
        self.builder, self.step = b, step
        self.given = [value for value in invariants if b.array(value) is None]
        """The invariants that functions take as arguments."""
        self.invariants = invariants
        self.functions: dict[int, tuple[str, Attribute, int]] = {}
        """By the number of steps: a function's name, the type and the number of results."""

    def steps(self, b: GraphBuilder, count: int, sequences: Values, states: Values, invariants: Values) -> Scanned:
        """Creates the steps of a known number."""
        if count <= MOST_IN_A_ROW:
            return self._in_a_row(b, count, sequences, states, invariants)
        half = MOST_IN_A_ROW
        while half * 2 < count:
            half *= 2
        given = [value for value in invariants if b.array(value) is None]
        parts: list[Scanned] = []
        for begin, end in ((0, half), (half, count)):
            cut = [_cut(b, value, begin, end) for value in sequences]
            part = self._called(b, end - begin, cut, states, given)
            parts.append(part)
            states = part.states
        results = [
            b.call("concatenate", b.tuple([first, second]), axis=0)
            for first, second in zip(parts[0].results, parts[1].results, strict=True)
        ]
        return Scanned(results, states)

    def _in_a_row(self, b: GraphBuilder, count: int, sequences: Values, states: Values, invariants: Values) -> Scanned:
        stacked: list[list[SSAValue]] = []
        for index in range(count):
            elements = [b.call("take", value, b.constant(index, "int32"), axis=0) for value in sequences]
            states, results = self.step(b, elements, states, invariants)
            stacked.append(list(results))
        return Scanned([b.call("stack", b.tuple(rows), axis=0) for rows in zip(*stacked, strict=True)], states)

    def _called(self, b: GraphBuilder, count: int, sequences: Values, states: Values, given: Values) -> Scanned:
        """Calls the function of `count` steps, which is built if there is none yet."""
        found = self.functions.get(count)
        if found is None:
            inner = self._function(sequences, states)
            body = self.steps(inner.b, count, inner.sequences, inner.states, inner.invariants)
            result = inner.b.tuple([*body.results, *body.states])
            name = self._finish(inner.b, result)
            found = self.functions[count] = (name, result.type, len(body.results))
        name, type_, results = found
        call = b.insert(ir.CallGlobalOp(name, [*sequences, *states, *given], type_))
        parts = b.tuple_parts(call)
        return Scanned(parts[:results], parts[results:])

    def _function(self, sequences: Values, states: Values) -> _Function:
        """Begins a function of sequences, states and invariants."""
        b = GraphBuilder()
        b.location, b.functions = self.builder.location, self.builder.functions
        own = [[b.typed_parameter(f"{kind}{at}", value.type) for at, value in enumerate(values)] for kind, values in (
            ("sequence", sequences), ("state", states), ("given", self.given))]  # fmt: skip
        given = iter(own[2])
        invariants: list[SSAValue] = []
        for value in self.invariants:
            array = self.builder.array(value)
            invariants.append(next(given) if array is None else b.array_constant(array))
        return _Function(b, own[0], own[1], invariants, own[2])

    def _finish(self, b: GraphBuilder, result: SSAValue, name: str | None = None) -> str:
        name = name or f"scan_{len(self.builder.functions)}"
        self.builder.functions.append(b.finish_function(name, result))
        return name

    def open(self, b: GraphBuilder, sequences: Values, states: Values) -> Scanned:
        """Creates a loop in halves over an unknown number of steps."""

        def step(within: GraphBuilder, number: SSAValue, states: Values) -> Iteration:
            elements = [within.call("take", value, number, axis=0) for value in sequences]
            invariants: list[SSAValue] = []
            for value in self.invariants:
                array = self.builder.array(value)
                invariants.append(value if array is None else within.array_constant(array))
            after, results = self.step(within, elements, states, invariants)
            return Iteration(None, after, results)

        # The types of results follow from a step that is not kept.
        probe = GraphBuilder(b)
        rows = step(probe, probe.integers(0), states).rows
        empty = [self._no_rows(b, sequences[0], row) for row in rows]
        loop = DividedLoop(b, step, [state.type for state in states], empty)
        last, results = loop.run(states, b.size(sequences[0], 0))
        return Scanned(results, last)

    @staticmethod
    def _no_rows(b: GraphBuilder, sequence: SSAValue, row: SSAValue) -> SSAValue:
        """Returns no rows like this one, whose axes of unknown size are those of the sequence's elements."""
        type_ = row.type
        assert isinstance(type_, TensorType)
        sizes = [b.size(sequence, 1 + axis) if size < 0 else size for axis, size in enumerate(type_.get_shape())]
        if all(isinstance(size, int) for size in sizes):
            return b.constant(np.zeros((0, *type_.get_shape())), b.dtype(row))
        return b.call("dyn.zeros", b.sizes_tensor([0, *sizes]), dtype=b.dtype(row))


@dataclass(frozen=True)
class _Function:
    """A function that is being built, and its parameters."""

    b: GraphBuilder
    sequences: Values
    states: Values
    invariants: Values
    given: Values
    """The invariants that are parameters."""


def _cut(b: GraphBuilder, value: SSAValue, begin: int, end: int) -> SSAValue:
    return b.call("strided_slice", value, begin=[begin], end=[end], strides=[1], axes=[0])
