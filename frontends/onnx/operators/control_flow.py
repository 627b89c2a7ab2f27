"""Converts ONNX operators: control flow.

`If` becomes Relay's `if`. `Loop` and `Scan` are unrolled where the number of iterations is known and small; otherwise they are a local
function that calls itself, or one in halves (`divided_loop.py`) where results of all iterations are collected:

    let %loop = fn (%i: int64, %c: bool, %a: Tensor[(8, 3), float32]) {
      if (%c) { … %loop(add(%i, 1i64), %c1, %a1) } else { (%a) }
    };
    %loop(0i64, True, %a0)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Region, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.types import FuncType, tuple_of
from ....passes.relay.common import guards
from ...common.divided_loop import DividedLoop, Iteration
from ...common.graph_builder import GraphBuilder
from ..node import Misfit, Node, RanksDiffer, Refused, only_tensors
from ..open_sequences import Body, Step, TensorLoop, no_rows, with_equal_structure
from ..registry import operator
from ..values import EmptyOptional, OpenSequence, SequenceValue, Value

MOST_UNROLLED = 512
"""Nodes that an unrolled loop comes to at most; a loop of sequences may come to `MOST_OF_SEQUENCES`."""

MOST_OF_SEQUENCES = 16384

# If ----------------------------------------------------------------------------------------------------------------


@operator("If")
def if_(node: Node) -> Sequence[Value | None]:
    """Converts `If` to Relay's `if`, or to one branch where the condition is known."""
    builder = node.builder
    branches = [node.attributes["then_branch"], node.attributes["else_branch"]]
    known = builder.array(node[0])
    if known is not None:
        return node.importer.subgraph(branches[0 if known.reshape(-1)[0] else 1])
    condition = builder.reshape(node[0], [])
    inner = [GraphBuilder(builder) for _ in branches]
    found = _branches(node, branches, inner)
    if isinstance(found, bool):
        values = node.importer.subgraph(branches[0 if found else 1])
        return _restored(values, [guarded(builder, each, condition, found) for each in _flat(values)[0]])
    values = found
    with_equal_structure(inner, values)
    flat = [_flat(each) for each in values]
    if flat[0][1] != flat[1][1]:
        raise node.refuse(
            "one branch returns another kind of value than the other: a tensor, a sequence of some length, or an optional",
            "what kind of value there is must not depend on a condition that is computed at run time",
        )
    tensors = [found for found, _ in flat]
    if not tensors[0]:
        return values[0]
    return _restored(values[0], merge(builder, condition, inner, tensors))


def _branches(node: Node, graphs: Sequence[Any], builders: Sequence[GraphBuilder]) -> list[list[Value]] | bool:
    """Returns the outputs of both branches.

    Returns the condition of one branch where types do not fit the operators of the other, in which the program would stop.
    """
    model = node.importer.model
    values: list[list[Value]] = []
    unfit: list[Misfit] = []
    holds = True
    refused = len(model.refused)
    for graph, within in zip(graphs, builders, strict=True):
        try:
            values.append(node.importer.subgraph(graph, (), within))
        except Misfit as error:
            unfit.append(error)
            holds = graph is graphs[1]
    if not unfit:
        return values
    if not values:
        raise unfit[0]
    del model.refused[refused:]
    return holds


def merge(
    builder: GraphBuilder, condition: SSAValue, branches: Sequence[GraphBuilder], values: Sequence[list[SSAValue]]
) -> list[SSAValue]:
    """Creates Relay's `if` of two unfinished branches whose results may be of other sizes.

    Raises RanksDiffer where they are of other ranks, and Refused where they are of other dtypes.
    """
    for place in range(len(values[0])):
        _agree(condition, branches, values, place)
    return choose(builder, condition, branches, values)


def choose(
    builder: GraphBuilder, condition: SSAValue, branches: Sequence[GraphBuilder], values: Sequence[Sequence[SSAValue]]
) -> list[SSAValue]:
    """Creates Relay's `if` of two finished branches; returns its results, one for each value of a branch."""
    single = len(values[0]) == 1
    ends = [found[0] if single else within.tuple(found) for within, found in zip(branches, values, strict=True)]
    types = [_common(then.type, other.type) for then, other in zip(*values, strict=True)]
    regions = [Region(within.finish(end)) for within, end in zip(branches, ends, strict=True)]
    result = builder.insert(ir.IfOp(condition, regions[0], regions[1], types[0] if single else tuple_of(types)))
    results = [result] if single else builder.tuple_parts(result)
    for found, then, other in zip(results, *values, strict=True):
        sizes = builder.extents(then)
        if sizes == builder.extents(other):
            builder.sized(found, sizes)
    return results


def _agree(
    condition: SSAValue,
    branches: Sequence[GraphBuilder],
    values: Sequence[list[SSAValue]],
    place: int,
) -> None:
    """Opens the dimensions of a result that have other numbers in each branch.

    The branch that is taken reshapes it to the shape that it has: to a type with `?`, which the condition keeps from being folded.
    """
    then, other = (branch.type_shape(found[place]) for branch, found in zip(branches, values, strict=True))
    if len(then) != len(other):
        raise RanksDiffer(f"output {place} has rank {len(then)} in one branch and rank {len(other)} in the other")
    if branches[0].dtype(values[0][place]) != branches[1].dtype(values[1][place]):
        raise Refused(f"output {place} has different dtypes in the branches")
    if all(a == b or DYNAMIC_INDEX in (a, b) for a, b in zip(then, other, strict=True)):
        return
    for taken, within, found in zip((True, False), branches, values, strict=True):
        shape = within.shape_tensor(found[place])
        found[place] = guards.opened(within, found[place], condition, taken, shape)


def guarded(builder: GraphBuilder, value: SSAValue, condition: SSAValue, holds: bool) -> SSAValue:
    """Returns a value of the same type; the program stops with an error where `condition` is not `holds`."""
    found = guards.guarded(builder, value, condition, holds, builder.shape_tensor(value))
    builder.sized(found, builder.extents(value))
    return found


def _common(then: Attribute, other: Attribute) -> Attribute:
    assert isinstance(then, TensorType) and isinstance(other, TensorType)
    sizes = [a if a == b else DYNAMIC_INDEX for a, b in zip(then.get_shape(), other.get_shape(), strict=True)]
    return TensorType(then.element_type, sizes)


def _flat(values: Sequence[Value]) -> tuple[list[SSAValue], list[int | None]]:
    """Returns the tensors of values, and what each value is.

    That is the length of a sequence, -1 of an empty optional, -2 and less of an open sequence, None of a tensor.
    """
    tensors: list[SSAValue] = []
    structure: list[int | None] = []
    for value in values:
        match value:
            case SequenceValue():
                tensors += value.items
                structure.append(len(value.items))
            case OpenSequence():
                tensors += [value.rows, *value.appended]
                structure.append(-2 - len(value.appended))
            case EmptyOptional():
                structure.append(-1)
            case _:
                tensors.append(value)
                structure.append(None)
    return tensors, structure


def _restored(values: Sequence[Value], tensors: Sequence[SSAValue]) -> list[Value]:
    """Returns values of the structure of others, made of these tensors."""
    left = list(tensors)
    found: list[Value] = []
    for value in values:
        match value:
            case SequenceValue():
                found.append(SequenceValue(tuple(left[: len(value.items)]), value.dtype))
                del left[: len(value.items)]
            case OpenSequence():
                count = 1 + len(value.appended)
                found.append(OpenSequence(left[0], tuple(left[1:count])))
                del left[:count]
            case EmptyOptional():
                found.append(value)
            case _:
                found.append(left.pop(0))
    return found


# Loops -------------------------------------------------------------------------------------------------------------


@operator("Loop")
def loop(node: Node) -> Sequence[Value | None]:
    """Converts `Loop`, for all opsets."""
    builder = node.builder
    graph = node.attributes["body"]
    carried: list[Value] = [_given(node, place) for place in range(2, len(node.inputs))]

    def body(within: GraphBuilder, number: SSAValue, values: Sequence[Value]) -> Step:
        ranks = [len(each.type.tensor_type.shape.dim) for each in graph.input[:2]]
        first = within.reshape(number, [1] * ranks[0])
        holds = within.reshape(within.constant(True, "bool"), [1] * ranks[1])
        found = node.importer.subgraph(graph, [first, holds, *values], within)
        count = len(carried)
        condition = within.reshape(only_tensors(found[:1])[0], [])
        return Step(condition, found[1 : 1 + count], only_tensors(found[1 + count :]))

    trips = None if not node.has(0) else builder.call("cast", builder.reshape(node[0], []), dtype="int64")
    start = None if not node.has(1) else builder.reshape(node[1], [])
    return run_loop(node, trips, start, carried, body, len(graph.node))


def _given(node: Node, place: int) -> Value:
    value = node.inputs[place]
    if value is None:
        raise node.refuse(f"input {place} is missing")
    return value


def run_loop(
    node: Node, trips: SSAValue | None, start: SSAValue | None, carried: Sequence[Value], body: Body, nodes: int
) -> list[Value]:
    """Runs `body` while its condition holds, at most `trips` times.

    The loop is unrolled, or a function that calls itself.
    Returns the carried values and the scans, stacked along axis 0. `nodes` is the number of nodes of the body.
    """
    builder = node.builder
    count = None if trips is None else builder.array(trips)
    holds = None if start is None else builder.array(start)
    if holds is not None and not holds:
        count = np.zeros(())
    sequences = any(not isinstance(each, SSAValue) for each in carried)
    most = MOST_OF_SEQUENCES if sequences else MOST_UNROLLED
    if count is not None and max(int(count), 0) * nodes <= most and (start is None or holds is not None):
        found = _unrolled(builder, int(count), carried, body)
        if found is not None:
            return found
    if sequences:
        tensors = TensorLoop(node, carried, body)
        return tensors.restore(_recursive(node, trips, start, tensors.states, tensors.body))
    return _recursive(node, trips, start, only_tensors(carried), body)


def _unrolled(builder: GraphBuilder, count: int, carried: Sequence[Value], body: Body) -> list[Value] | None:
    """Returns the values that `count` iterations compute; None where the condition is computed."""
    values = list(carried)
    scans: list[list[SSAValue]] = []
    for number in range(count):
        step = body(builder, builder.integers(number), values)
        holds = None if step.condition is None else builder.array(step.condition)
        if step.condition is not None and holds is None:
            return None
        values = step.carried
        scans.append(step.scans)
        if holds is not None and not holds:
            break
    if not scans:
        # An iteration that is not run tells the types of the scans.
        step = body(GraphBuilder(builder), builder.integers(0), values)
        if any(DYNAMIC_INDEX in builder.type_shape(each) for each in step.scans):
            return None
        return [*values, *(no_rows(builder, each) for each in step.scans)]
    return [*values, *(_stack(builder, parts) for parts in zip(*scans, strict=True))]


def _stack(builder: GraphBuilder, parts: Sequence[SSAValue]) -> SSAValue:
    rows = [builder.call("expand_dims", each, axis=0) for each in parts]
    return rows[0] if len(rows) == 1 else builder.call("concatenate", builder.tuple(rows), axis=0)


def _recursive(
    node: Node, trips: SSAValue | None, start: SSAValue | None, carried: Sequence[SSAValue], body: Body
) -> list[Value]:
    """Creates a function that calls itself: for each iteration, or for halves where results are collected."""
    builder = node.builder
    types, first = _settled(node, carried, body, trips)
    if first.scans or any(DYNAMIC_INDEX in cast("TensorType[Attribute]", each).get_shape() for each in types):
        return _divided(builder, trips, start, carried, body, types, first)
    zero = builder.integers(0)
    result = tuple_of(types)
    scalar, flag = builder.integers(0).type, builder.constant(True, "bool").type
    signature = FuncType.get([scalar, flag, *types], result)

    function = GraphBuilder(builder)
    itself = function.block.insert_arg(signature, 0)
    params = [function.typed_parameter(f"p{place}", type) for place, type in enumerate([scalar, flag, *types])]
    number, condition, *values = params
    then, other = GraphBuilder(function), GraphBuilder(function)
    step = body(then, number, values)
    following = then.call("add", number, then.integers(1))
    again = _runs(then, following, trips, step.condition)
    call = then.insert(ir.CallOp(itself, [following, again, *only_tensors(step.carried)], result))
    end = function.insert(
        ir.IfOp(condition, Region(then.finish(call)), Region(other.finish(other.tuple(values))), result)
    )
    made = ir.FnOp(function.names, Region(function.finish(end)), signature, ret_type=result, self_name="loop")
    named = builder.let("loop", builder.insert(made))
    runs = _runs(builder, zero, trips, start)
    found = builder.insert(ir.CallOp(named, [zero, runs, *carried], result))
    return list(builder.tuple_parts(found))


def _divided(
    builder: GraphBuilder,
    trips: SSAValue | None,
    start: SSAValue | None,
    carried: Sequence[SSAValue],
    body: Body,
    types: Sequence[Attribute],
    first: Step,
) -> list[Value]:
    """Creates a loop in halves, of states of these types, whose iterations are like the first one."""

    def step(within: GraphBuilder, number: SSAValue, values: Sequence[SSAValue]) -> Iteration:
        found = body(within, number, values)
        return Iteration(found.condition, only_tensors(found.carried), found.scans)

    empty = [no_rows(builder, each) for each in first.scans]
    ends = trips is None or not all(_always(builder, each) for each in (start, first.condition))
    loop = DividedLoop(builder, step, types, empty, conditional=ends)
    return [*itertools.chain(*loop.run(carried, trips, start))]


def _always(builder: GraphBuilder, condition: SSAValue | None) -> bool:
    """Returns whether a condition is known to hold."""
    known = None if condition is None else builder.array(condition)
    return condition is None or (known is not None and bool(known.all()))


def _runs(builder: GraphBuilder, number: SSAValue, trips: SSAValue | None, condition: SSAValue | None) -> SSAValue:
    """Returns whether an iteration is run."""
    if trips is None:
        return builder.constant(True, "bool") if condition is None else condition
    left = builder.call("less", number, trips)
    return left if condition is None else builder.call("logical_and", left, condition)


def _settled(
    node: Node, carried: Sequence[SSAValue], body: Body, trips: SSAValue | None
) -> tuple[list[Attribute], Step]:
    """Returns the types that carried values have in every iteration, and an iteration.

    A dimension that an iteration changes is `?`.
    """
    builder = node.builder
    types = [cast("TensorType[Attribute]", each.type) for each in carried]
    # Each round opens a dimension, or is the last one.
    while True:
        trial = GraphBuilder(builder)
        values = [trial.typed_parameter("", each) for each in types]
        number = trial.typed_parameter("", builder.integers(0).type)
        step = body(trial, number, values)
        found = [cast("TensorType[Attribute]", each.type) for each in only_tensors(step.carried)]
        for before, after in zip(types, found, strict=True):
            if len(before.get_shape()) != len(after.get_shape()) or before.element_type != after.element_type:
                raise node.refuse("an iteration changes the rank or the dtype of a value that it carries")
        common = [_common(before, after) for before, after in zip(types, found, strict=True)]
        if common == types:
            if any(DYNAMIC_INDEX in builder.type_shape(each) for each in step.scans):
                # Computed before the loop: only its shape is used.
                step = body(builder, builder.integers(0), carried)
            return list(types), step
        types = cast("list[TensorType[Attribute]]", common)


# Scan --------------------------------------------------------------------------------------------------------------


@operator("Scan", since=9)
def scan(node: Node) -> Sequence[Value | None]:
    """Converts `Scan` to a loop over slices of its inputs, along any axis and in either direction."""
    graph, count = node.attributes["body"], int(node.attr("num_scan_inputs"))
    states = node.tensors()[: len(node.inputs) - count]
    outputs = len(graph.output) - len(states)
    return _scan(
        node,
        states,
        node.tensors()[len(states) :],
        node.ints("scan_input_axes", [0] * count) or [0] * count,
        node.ints("scan_input_directions", [0] * count) or [0] * count,
        node.ints("scan_output_axes", [0] * outputs) or [0] * outputs,
        node.ints("scan_output_directions", [0] * outputs) or [0] * outputs,
    )


@operator("Scan", since=8)
def scan_of_batches(node: Node) -> Sequence[Value | None]:
    """Converts `Scan` of opset 8, each element of the batch (axis 0) by itself."""
    builder, graph, count = node.builder, node.attributes["body"], int(node.attr("num_scan_inputs"))
    if node.has(0):
        raise node.refuse("sequence_lens, lengths that differ in a batch, is not supported")
    inputs = [node[place] for place in range(1, len(node.inputs))]
    batch = builder.extents(inputs[0])[0]
    if not isinstance(batch, int):
        raise node.refuse("the size of the batch must be known, not open")
    directions = node.ints("directions", [0] * count) or [0] * count
    states = len(inputs) - count
    outputs = [0] * (len(graph.output) - states)
    found: list[list[SSAValue]] = []
    for element in range(batch):
        parts = [builder.call("take", each, builder.integers(element), axis=0) for each in inputs]
        each = _scan(node, parts[:states], parts[states:], [0] * count, directions, outputs, outputs)
        found.append(only_tensors(each))
    return [_stack(builder, parts) for parts in zip(*found, strict=True)]


def _scan(
    node: Node,
    states: Sequence[SSAValue],
    inputs: Sequence[SSAValue],
    axes: Sequence[int],
    directions: Sequence[int],
    output_axes: Sequence[int],
    output_directions: Sequence[int],
) -> list[Value]:
    builder, graph = node.builder, node.attributes["body"]
    axes = [axis % builder.rank(each) for axis, each in zip(axes, inputs, strict=True)]
    length = builder.extents(inputs[0])[axes[0]]
    trips = builder.size(inputs[0], axes[0])
    # Before the loop, so that each iteration takes a slice by its number.
    ordered = [
        builder.call("reverse", each, axis=axis) if backward else each
        for each, axis, backward in zip(inputs, axes, directions, strict=True)
    ]

    def body(within: GraphBuilder, number: SSAValue, values: Sequence[Value]) -> Step:
        slices = [within.call("take", each, number, axis=axis) for each, axis in zip(ordered, axes, strict=True)]
        found = node.importer.subgraph(graph, [*values, *slices], within)
        return Step(None, found[: len(states)], only_tensors(found[len(states) :]))

    found = run_loop(
        node, trips if not isinstance(length, int) else builder.integers(length), None, states, body, len(graph.node)
    )
    results: list[Value] = found[: len(states)]
    for each, axis, backward in zip(only_tensors(found[len(states) :]), output_axes, output_directions, strict=True):
        rank = builder.rank(each)
        value = builder.call("reverse", each, axis=0) if backward else each
        if axis % rank:
            order = list(range(1, rank))
            order.insert(axis % rank, 0)
            value = builder.call("transpose", value, axes=order)
        results.append(value)
    return results
