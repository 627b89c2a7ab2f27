"""Builds loops that a condition ends, whose states keep their types: a function that calls itself.

let %loop = fn (%number: int32, %x: Tensor[(3), float32]) {
  if (less(%number, 10)) { %loop(… the states after an iteration …) } else { (%number, %x) }
}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Region, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.types import FuncType, tuple_of
from .graph_builder import GraphBuilder

Condition: TypeAlias = "Callable[[GraphBuilder, Sequence[SSAValue]], SSAValue]"
"""Creates the condition of an iteration, of rank 0, from the states."""

Body: TypeAlias = "Callable[[GraphBuilder, Sequence[SSAValue]], Sequence[SSAValue]]"
"""Creates an iteration; returns the states after it."""


def while_loop(b: GraphBuilder, condition: Condition, body: Body, states: Sequence[SSAValue]) -> list[SSAValue]:
    """Runs iterations while the condition holds; returns the last states.

    Each iteration must return states of the types that it takes.
    """
    types = [each.type for each in states]
    result = tuple_of(types)
    signature = FuncType.get(types, result)
    function = GraphBuilder(b)
    itself = function.block.insert_arg(signature, 0)
    params = [function.typed_parameter(f"p{place}", type) for place, type in enumerate(types)]
    runs = condition(function, params)
    then, done = GraphBuilder(function), GraphBuilder(function)
    again = then.insert(ir.CallOp(itself, list(body(then, params)), result))
    regions = Region(then.finish(again)), Region(done.finish(done.tuple(params)))
    end = function.insert(ir.IfOp(runs, *regions, result))
    made = ir.FnOp(function.names, Region(function.finish(end)), signature, ret_type=result, self_name="loop")
    named = b.let("loop", b.insert(made))
    return b.tuple_parts(b.insert(ir.CallOp(named, list(states), result)))
