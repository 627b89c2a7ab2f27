"""Builds loops of an unknown number of iterations that collect a row of each.

They are a function that calls itself for each half:

    let %steps = fn (%first: int64, %count: int64, %h: Tensor[(8), float32]) {
      if (less(%count, 1i64)) { (%h, zeros of no rows) }
      else if (equal(%count, 1i64)) { … one iteration … (%h1, expand_dims(%y, axis=0)) }
      else { let %a = %steps(%first, %half, %h); let %b = %steps(%first + %half, %count - %half, %a.0);
             (%b.0, concatenate((%a.1, %b.1))) }
    }

A row is copied as often as the number of iterations can be halved, and so deep are the calls. A function that calls itself for each
iteration, with the rows so far as an argument, would copy all of them in each.

A loop that a condition ends calls %steps for 1, 1, 2, 4, … iterations: those after its end are not run, and cost a call for each half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Region, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.types import FuncType, tuple_of
from .graph_builder import GraphBuilder


@dataclass(frozen=True)
class Iteration:
    """An iteration: whether another one follows (None: it does), the states, and rows of the results."""

    condition: SSAValue | None
    states: Sequence[SSAValue]
    rows: Sequence[SSAValue]


Step: TypeAlias = "Callable[[GraphBuilder, SSAValue, Sequence[SSAValue]], Iteration]"
"""Creates an iteration from its number (int64) and the states."""


@dataclass(frozen=True)
class DividedLoop:
    """A loop whose states have these types in every iteration.

    `no_rows` are the results of no iteration: Tensor[(0, 8), float32] for rows of 8 elements. A loop that is `conditional` ends where an
    iteration says so.
    """

    builder: GraphBuilder
    step: Step
    types: Sequence[Attribute]
    no_rows: Sequence[SSAValue]
    conditional: bool = False

    def run(
        self, states: Sequence[SSAValue], count: SSAValue | None, condition: SSAValue | None = None
    ) -> tuple[list[SSAValue], list[SSAValue]]:
        """Creates the loop of at most `count` iterations; returns the last states, and the rows of all."""
        b = self.builder
        steps = self._steps()
        zero = b.integers(0)
        if not self.conditional:
            assert count is not None
            found = b.insert(ir.CallOp(steps, [zero, count, *states], tuple_of(self._results)))
        else:
            runs = b.constant(True, "bool") if condition is None else condition
            function = self._doubling(steps, count)
            result = tuple_of([*self.types, *self._whole])
            found = b.insert(ir.CallOp(function, [zero, b.integers(1), runs, *states, *self.no_rows], result))
        parts = b.tuple_parts(found)
        return parts[: len(self.types)], parts[len(self.types) :]

    @property
    def _whole(self) -> list[Attribute]:
        """The types of the results, of any number of rows."""
        found: list[Attribute] = []
        for each in self.no_rows:
            type = cast("TensorType[Attribute]", each.type)
            found.append(TensorType(type.element_type, [DYNAMIC_INDEX, *type.get_shape()[1:]]))
        return found

    @property
    def _results(self) -> list[Attribute]:
        return [*self._flag, *self.types, *self._whole]

    @property
    def _flag(self) -> list[Attribute]:
        return [self.builder.constant(True, "bool").type] if self.conditional else []

    def _steps(self) -> SSAValue:
        """Defines the function of a number of iterations from a first one on."""
        scalar = self.builder.integers(0).type
        f, itself, (first, count, *given) = self._function([scalar, scalar, *self._flag, *self.types], self._results)
        flags, states = given[: len(self._flag)], given[len(self._flag) :]
        result = tuple_of(self._results)
        then, none = GraphBuilder(f), GraphBuilder(f)
        one, more = GraphBuilder(then), GraphBuilder(then)
        iteration = self.step(one, first, states)
        after: list[SSAValue] = []
        if self.conditional:
            holds = iteration.condition
            after = [one.constant(True, "bool") if holds is None else holds]
        rows = [one.call("expand_dims", each, axis=0) for each in iteration.rows]
        single = one.tuple([*after, *iteration.states, *rows])
        half = more.call("right_shift", count, more.integers(1))
        kept = len(self._flag) + len(self.types)
        left = more.tuple_parts(more.insert(ir.CallOp(itself, [first, half, *given], result)))
        rest = [more.call("add", first, half), more.call("subtract", count, half)]
        right = more.tuple_parts(more.insert(ir.CallOp(itself, [*rest, *left[:kept]], result)))
        joined = [
            more.call("concatenate", more.tuple([a, b]), axis=0) for a, b in zip(left[kept:], right[kept:], strict=True)
        ]
        both = more.tuple([*right[:kept], *joined])
        is_one = then.call("equal", count, then.integers(1))
        some = then.insert(ir.IfOp(is_one, Region(one.finish(single)), Region(more.finish(both)), result))
        runs = f.call("greater", count, f.integers(0))
        for flag in flags:
            runs = f.call("logical_and", runs, flag)
        nothing = none.tuple([*given, *(self._of_no_iteration(none, runs, each) for each in self.no_rows)])
        end = f.insert(ir.IfOp(runs, Region(then.finish(some)), Region(none.finish(nothing)), result))
        return self._named("steps", f, end, [scalar, scalar, *self._flag, *self.types], result)

    @staticmethod
    def _of_no_iteration(b: GraphBuilder, runs: SSAValue, no_rows: SSAValue) -> SSAValue:
        """Returns rows of a number that the type does not say: 0 where `runs` does not hold.

        Where `runs` is found to hold they are like the result of the other branch, so that both agree in type.
        """
        sizes = b.shape_tensor(no_rows)
        one = b.call("add", sizes, b.integers([1, *[0] * (b.rank(no_rows) - 1)]))
        return b.call("dyn.zeros", b.call("where", runs, one, sizes), dtype=b.dtype(no_rows))

    def _doubling(self, steps: SSAValue, count: SSAValue | None) -> SSAValue:
        """Defines the function that runs 1, 1, 2, 4, … iterations until the condition does not hold."""
        scalar = self.builder.integers(0).type
        types = [scalar, scalar, *self._flag, *self.types, *self._whole]
        results = [*self.types, *self._whole]
        f, itself, (first, size, flag, *given) = self._function(types, results)
        states, held = given[: len(self.types)], given[len(self.types) :]
        wanted = size
        runs = flag
        if count is not None:
            left = f.call("subtract", count, first)
            wanted = f.call("minimum", size, left)
            runs = f.call("logical_and", flag, f.call("greater", left, f.integers(0)))
        then, done = GraphBuilder(f), GraphBuilder(f)
        found = then.insert(ir.CallOp(steps, [first, wanted, flag, *states], tuple_of(self._results)))
        holds, *parts = then.tuple_parts(found)
        joined = [
            then.call("concatenate", then.tuple([a, b]), axis=0)
            for a, b in zip(held, parts[len(states) :], strict=True)
        ]
        following = then.call("add", first, wanted)
        # The first iteration, and then as many as there were before.
        arguments = [
            following,
            then.call("maximum", following, then.integers(1)),
            holds,
            *parts[: len(states)],
            *joined,
        ]
        again = then.insert(ir.CallOp(itself, arguments, tuple_of(results)))
        regions = Region(then.finish(again)), Region(done.finish(done.tuple(given)))
        end = f.insert(ir.IfOp(runs, *regions, tuple_of(results)))
        return self._named("loop", f, end, types, tuple_of(results))

    def _function(
        self, types: Sequence[Attribute], results: Sequence[Attribute]
    ) -> tuple[GraphBuilder, SSAValue, list[SSAValue]]:
        """Begins a function that may call itself; returns its builder, itself and its parameters."""
        f = GraphBuilder(self.builder)
        itself = f.block.insert_arg(FuncType.get(types, tuple_of(results)), 0)
        return f, itself, [f.typed_parameter(f"p{place}", type) for place, type in enumerate(types)]

    def _named(
        self, name: str, f: GraphBuilder, end: SSAValue, types: Sequence[Attribute], result: Attribute
    ) -> SSAValue:
        """Ends a function, which `let` names."""
        signature = FuncType.get(types, result)
        made = ir.FnOp(f.names, Region(f.finish(end)), signature, ret_type=result, self_name=name)
        return self.builder.let(name, self.builder.insert(made))
