"""Calls, branches and loops.

A `while` that counts from 0 to a number is a scan: operands that each iteration reads a row of are sequences, operands that each writes a
row of are results, which are stacked. Any other `while` is a function that calls itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects.array import numpy_dtype
from ....dialects.relay import ir
from ....dialects.relay.types import tuple_of
from ....support.walk import walk_ops
from ...common.graph_builder import GraphBuilder
from ...common.refusal import Refused
from ...common.scan import scan
from ...common.while_loop import while_loop
from ..importer import Frame, callee, named_operator
from ..node import HloNode
from ..registry import operator


@operator("func.call")
def call(node: HloNode) -> list[Any]:
    """Inlines the body of a function."""
    return node.frame.importer.call(node.frame, callee(node, "callee"), node.given)


@operator("composite")
def composite(node: HloNode) -> list[Any]:
    """Inlines what an operator of a library, that is not converted whole, is composed of."""
    return node.frame.importer.call(node.frame, callee(node, "decomposition"), node.given)


_NO_EFFECT = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")


@operator("custom_call")
def custom_call(node: HloNode) -> list[Any]:
    """Leaves out assertions about shapes and annotations. Raises Refused for other functions of XLA."""
    name = named_operator(node)
    if name == "shape_assertion":
        return []
    if name in _NO_EFFECT:
        return list(node.given)
    raise Refused("a function of XLA's library, which is not here")


@operator("sdy.sharding_constraint")
def sharding_constraint(node: HloNode) -> list[Any]:
    """Returns its operand: there is one device here."""
    return list(node.given)


# Branches ----------------------------------------------------------------------------------------------------------


@operator("case")
def case(node: HloNode) -> list[SSAValue]:
    """Runs the branch of a number; of one that is out of range the last branch."""
    index = node.operands[0]
    return _chosen(node.frame, index, list(node.op.regions), 0)


def _chosen(frame: Frame, index: SSAValue, branches: Sequence[Region], first: int) -> list[SSAValue]:
    """Runs the branch of a number; `first` is the number of the first branch."""
    if len(branches) == 1:
        return _inlined(frame, frame.builder, branches[0].block)
    b = frame.builder

    def rest(builder: GraphBuilder) -> list[SSAValue]:
        return _chosen(Frame(frame.importer, builder, frame), index, branches[1:], first + 1)

    condition = b.call("equal", index, b.constant(first, b.dtype(index)))
    return _either(frame, condition, lambda builder: _inlined(frame, builder, branches[0].block), rest)


@operator("if")
def branch(node: HloNode) -> list[SSAValue]:
    """Runs one of two branches."""
    then, other = (region.block for region in node.op.regions)
    frame = node.frame
    return _either(
        frame,
        node.operands[0],
        lambda builder: _inlined(frame, builder, then),
        lambda builder: _inlined(frame, builder, other),
    )


def _either(frame: Frame, condition: SSAValue, *branches: Callable[[GraphBuilder], list[SSAValue]]) -> list[SSAValue]:
    """Creates a branch: `branches` build what it returns where the condition holds, and where it does not."""
    b = frame.builder
    builders = [GraphBuilder(b) for _ in branches]
    results = [build(builder) for build, builder in zip(branches, builders, strict=True)]
    types = [[each.type for each in values] for values in results]
    if types[0] != types[1]:
        raise Refused("its branches return other shapes")
    then, other = (builder.finish(builder.tuple(values)) for builder, values in zip(builders, results, strict=True))
    frame.importer.forget(builders)
    return b.tuple_parts(b.insert(ir.IfOp(condition, Region(then), Region(other), tuple_of(types[0]))))


def _inlined(outer: Frame, builder: GraphBuilder, block: Block, arguments: Sequence[SSAValue] = ()) -> list[SSAValue]:
    """Converts the block of a region, which sees the values around it; returns its results as tensors."""
    frame = Frame(outer.importer, builder, outer)
    return [frame.tensor(each) for each in frame.run(block, arguments)]


# Loops -------------------------------------------------------------------------------------------------------------


@operator("while")
def while_(node: HloNode) -> list[SSAValue]:
    """Converts a counted loop to a scan, and any other one to a function that calls itself."""
    return CountedLoop.scanned(node) or _repeated(node)


def _repeated(node: HloNode) -> list[SSAValue]:
    condition, body = (region.block for region in node.op.regions)
    return while_loop(
        node.builder,
        lambda b, states: _inlined(node.frame, b, condition, states)[0],
        lambda b, states: _inlined(node.frame, b, body, states),
        node.operands,
    )


@dataclass
class Carried:
    """A value that a loop carries while its body is converted, and how the body uses it."""

    place: int
    value: SSAValue
    loop: CountedLoop
    element: SSAValue | None = None
    """The row of this iteration, where the value is known to be a sequence."""
    reads: set[bool] = field(default_factory=set[bool])
    """In which directions rows are read: True is backward."""
    is_tensor: bool = False
    """Whether the value is used as a whole."""

    def tensor(self, frame: Frame) -> SSAValue:
        """Returns the whole value."""
        self.is_tensor = True
        return self.value


@dataclass
class Written:
    """A carried value after its row of this iteration is written."""

    carried: Carried
    row: SSAValue
    backward: bool
    update: Callable[[], SSAValue]
    """Creates the whole value."""

    def tensor(self, frame: Frame) -> SSAValue:
        """Returns the whole value, updated."""
        self.carried.is_tensor = True
        return self.update()


@dataclass
class Roles:
    """The roles of the values that a counted loop carries besides its number, by their places."""

    sequences: dict[int, bool] = field(default_factory=dict[int, bool])
    """Read by rows alone: whether backward."""
    stacked: dict[int, bool] = field(default_factory=dict[int, bool])
    """Written by rows alone: whether backward."""
    fixed: list[int] = field(default_factory=list[int])
    """Returned as they are taken, and used as a whole."""
    states: list[int] = field(default_factory=list[int])
    """All others."""


class CountedLoop:
    """Converts a `while` whose number goes from 0 to a known one."""

    def __init__(self, node: HloNode, counter: int, count: int):
        self.node, self.counter, self.count = node, counter, count
        self.numbers: dict[SSAValue, tuple[int, int]] = {}
        """Of values a·i + b of the loop's number i: (a, b)."""
        self.body = node.op.regions[1].block
        self.outer = _captured(self.body)
        self.carried: list[Carried] = []
        self.states = node.operands
        self.shapes = [node.builder.static_shape(each) for each in self.states]

    @staticmethod
    def scanned(node: HloNode) -> list[SSAValue] | None:
        """Converts a loop to a scan; returns None where it is not one."""
        found = _counter(node)
        if found is None or found[1] < 1:
            return None
        return CountedLoop(node, *found).run()

    def run(self) -> list[SSAValue] | None:
        """Converts the loop; returns None where its number does not grow by 1."""
        node, b, states = self.node, self.node.builder, self.states
        tried = self._tried()
        if tried is None:
            return None
        roles, uses_number = tried
        dtype = b.dtype(states[self.counter])
        rows = [self._ordered(b, states[place], backward) for place, backward in roles.sequences.items()]
        if uses_number or not rows:
            rows.insert(0, b.array_constant(np.arange(self.count).astype(numpy_dtype(dtype))))
        outer = [node.frame.tensor(node.frame.lookup(each)) for each in self.outer]
        invariants = [*(states[place] for place in roles.fixed), *outer]
        scanned = scan(b, partial(self._step, roles), rows, [states[place] for place in roles.states], invariants)
        finals: dict[int, SSAValue] = dict(zip(roles.states, scanned.states, strict=True))
        for (place, backward), value in zip(roles.stacked.items(), scanned.results, strict=True):
            finals[place] = self._ordered(b, value, backward)
        finals[self.counter] = b.constant(self.count, dtype)
        return [finals.get(place, states[place]) for place in range(len(states))]

    def _tried(self) -> tuple[Roles, bool] | None:
        """Converts an iteration that is not kept; returns the roles, and whether the number is used.

        None where the number does not grow by 1.
        """
        node, trial = self.node, GraphBuilder(self.node.builder)
        number = trial.typed_parameter("", self.states[self.counter].type)
        results = self._iteration(trial, number, self.states, {}, [node.frame.lookup(each) for each in self.outer])
        after = results[self.counter]
        grows = isinstance(after, SSAValue) and self.numbers.get(after) == (1, 1)
        roles = self._roles(results)
        uses_number = grows and self._uses_number(trial, number, results, roles)
        node.frame.importer.forget([trial])
        _discard(trial)
        return (roles, uses_number) if grows else None

    def _roles(self, results: Sequence[Any]) -> Roles:
        """Returns the roles of carried values after an iteration, which notes how it uses them."""
        roles = Roles()
        for carried, result in zip(self.carried, results, strict=True):
            place = carried.place
            if place == self.counter:
                continue
            if result is carried and not carried.is_tensor and len(carried.reads) == 1:
                (roles.sequences[place],) = carried.reads
            elif result is carried:
                roles.fixed.append(place)
            elif isinstance(result, Written) and result.carried is carried and not (carried.is_tensor or carried.reads):
                roles.stacked[place] = result.backward
            else:
                roles.states.append(place)
        return roles

    def _uses_number(self, trial: GraphBuilder, number: SSAValue, results: Sequence[Any], roles: Roles) -> bool:
        """Returns whether an iteration computes with the loop's number, besides reading and writing rows."""
        if any(self.carried[place].reads for place in roles.fixed):
            return True
        kept = self._kept(trial, results, roles)
        trial.finish(trial.tuple([*kept[0], *kept[1]]))
        return number in (*kept[0], *kept[1]) or number.first_use is not None

    def _kept(self, b: GraphBuilder, results: Sequence[Any], roles: Roles) -> tuple[list[SSAValue], list[SSAValue]]:
        """Returns the states after an iteration, and the rows that it writes."""
        frame = Frame(self.node.frame.importer, b, None)
        return [frame.tensor(results[place]) for place in roles.states], [results[place].row for place in roles.stacked]

    def _step(
        self,
        roles: Roles,
        b: GraphBuilder,
        elements: Sequence[SSAValue],
        states: Sequence[SSAValue],
        invariants: Sequence[SSAValue],
    ) -> tuple[list[SSAValue], list[SSAValue]]:
        """Converts an iteration of the scan; the loop's number is the first element where the scan has it."""
        first = len(elements) - len(roles.sequences)
        rows = dict(zip(roles.sequences, elements[first:], strict=True))
        fixed, outer = invariants[: len(roles.fixed)], invariants[len(roles.fixed) :]
        number = elements[0] if first else b.constant(0, b.dtype(self.states[self.counter]))
        known = {**rows, **dict(zip(roles.states, states, strict=True)), **dict(zip(roles.fixed, fixed, strict=True))}
        full = [known.get(place, number) for place in range(len(self.states))]
        return self._kept(b, self._iteration(b, number, full, rows, outer), roles)

    def _iteration(
        self,
        b: GraphBuilder,
        number: SSAValue,
        states: Sequence[SSAValue],
        elements: dict[int, SSAValue],
        outer: Sequence[Any],
    ) -> list[Any]:
        """Converts the body; returns its results, carried values as they are."""
        frame = Frame(self.node.frame.importer, b, None)
        frame.loops = (*self.node.frame.loops, self)
        frame.values.update(zip(self.outer, outer, strict=True))
        self.numbers = {number: (1, 0)}
        self.carried = [
            Carried(place, number if place == self.counter else value, self, elements.get(place))
            for place, value in enumerate(states)
        ]
        return frame.run(self.body, self.carried)

    @staticmethod
    def _ordered(b: GraphBuilder, value: SSAValue, backward: bool) -> SSAValue:
        return b.call("reverse", value, axis=0) if backward else value

    # Rows ----------------------------------------------------------------------------------------------------------

    def direction(self, number: Any) -> bool | None:
        """Returns whether a place goes backward through all rows; None where it goes otherwise."""
        if isinstance(number, Carried):
            number = number.value
        return {(1, 0): False, (-1, self.count - 1): True}.get(self.numbers.get(number, (0, 0)))

    def follow(self, node: HloNode, result: SSAValue) -> None:
        """Notes a sum or difference of the loop's number and a constant."""
        parts: list[tuple[int, int]] = []
        for each in node.given:
            value = node.frame.narrow(each.value if isinstance(each, Carried) else each)
            known = node.builder.array(value)
            if value in self.numbers:
                parts.append(self.numbers[value])
            elif known is not None and known.size == 1:
                parts.append((0, int(known.reshape(-1)[0])))
            else:
                return
        sign = 1 if node.name == "add" else -1
        factor = parts[0][0] + sign * parts[1][0]
        if factor:
            self.numbers[result] = factor, parts[0][1] + sign * parts[1][1]


def row_read(node: HloNode, sizes: Sequence[int]) -> SSAValue | None:
    """Returns the row of a sequence that a slice of a loop's body takes; None where it is not one."""
    found = _at_row(node, node.given[1:], sizes)
    if found is None:
        return None
    carried, backward = found
    if carried.element is not None:
        return node.call("expand_dims", carried.element, axis=0)
    carried.reads.add(backward)
    # Ops of a trial are not kept: only the type counts.
    return node.builder.typed_parameter("", node.op.results[0].type)


def row_written(node: HloNode, whole: Callable[[HloNode], SSAValue]) -> Written | None:
    """Returns a carried value whose row a loop's body writes; None where it is not one.

    `whole` creates the update of the whole value.
    """
    update = node.given[1]
    if not isinstance(update, SSAValue):
        return None
    sizes = node.builder.static_shape(update)
    found = None if sizes is None else _at_row(node, node.given[2:], sizes)
    if found is None:
        return None
    carried, backward = found
    return Written(carried, node.call("squeeze", update, axis=[0]), backward, lambda: whole(node))


def _at_row(node: HloNode, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[Carried, bool] | None:
    """Returns the carried value whose row at the loop's number an op uses, and the direction."""
    carried = node.given[0]
    if not isinstance(carried, Carried) or not starts or not sizes or sizes[0] != 1:
        return None
    backward = carried.loop.direction(starts[0])
    own = carried.loop.shapes[carried.place]
    rest = [node.builder.array(each) if isinstance(each, SSAValue) else None for each in starts[1:]]
    whole = own and own[0] == carried.loop.count and list(own[1:]) == list(sizes[1:])
    if backward is None or not whole or any(each is None or each.any() for each in rest):
        return None
    return carried, backward


def _counter(node: HloNode) -> tuple[int, int] | None:
    """Returns which operand is a loop's number, and its end, where it goes from 0 to a known number."""
    block = node.op.regions[0].block
    ops = [each for each in block.ops if each.results]
    compared = HloNode(node.frame, ops[-1], ()) if ops else None
    if compared is None or compared.name != "compare" or compared.word("comparison_direction") != "LT" or len(ops) > 2:
        return None
    number, end = compared.op.operands
    places: dict[SSAValue, int] = {value: place for place, value in enumerate(block.args)}
    if number not in places:
        return None
    place = places[number]
    start = node.builder.array(node.operands[place])
    if end in places:
        limit = node.builder.array(node.operands[places[end]]) if _passes_on(node, places[end]) else None
    elif isinstance(end.owner, Operation) and end.owner.parent is block:
        index = HloNode(node.frame, end.owner, ()).int("index", -1)
        limit = node.frame.importer.read.arrays[index] if index >= 0 else None
    else:
        found = node.frame.lookup(end)
        limit = node.builder.array(found) if isinstance(found, SSAValue) else None
    if start is None or limit is None or start.ndim or limit.ndim or int(start) != 0:
        return None
    return place, int(limit)


def _passes_on(node: HloNode, place: int) -> bool:
    """Returns whether the body of a loop returns an operand as it takes it."""
    body = node.op.regions[1].block
    end = body.last_op
    return end is not None and end.operands[place] is body.args[place]


def _captured(block: Block) -> list[SSAValue]:
    """Returns the values around a block that its ops use."""
    ops = [op for outer in block.ops for op in walk_ops(outer)]
    inside: set[SSAValue] = set(block.args)
    for op in ops:
        inside.update(op.results)
        for region in op.regions:
            for each in region.blocks:
                inside.update(each.args)
    return list(dict.fromkeys(each for op in ops for each in op.operands if each not in inside))


def _discard(builder: GraphBuilder) -> None:
    """Removes the ops of a builder from the uses of other values."""
    for op in builder.block.ops:
        for each in walk_ops(op):
            each.drop_all_references()
