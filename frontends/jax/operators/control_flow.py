"""Calls, branches and loops.

A `while` that counts from 0 to a number is a scan: operands that each iteration reads a row of are sequences, operands that each writes a
row of are results, which are stacked. Any other `while` is a function that calls itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
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
    return _chosen(node, node.frame, index, list(node.op.regions), 0)


def _chosen(node: HloNode, frame: Frame, index: SSAValue, branches: Sequence[Region], first: int) -> list[SSAValue]:
    if len(branches) == 1:
        inner = Frame(frame.importer, frame.builder, frame)
        return [frame.tensor(each) for each in inner.run(branches[0].block, ())]
    b = frame.builder
    condition = b.call("equal", index, b.constant(first, b.dtype(index)))
    builders = [GraphBuilder(b) for _ in range(2)]
    parts: list[list[SSAValue]] = []
    for builder, rest in zip(builders, (branches[:1], branches[1:]), strict=True):
        inner = Frame(frame.importer, builder, frame)
        parts.append(_chosen(node, inner, index, rest, first + 1))
    return _joined(node, b, condition, builders, parts)


def _joined(
    node: HloNode,
    b: GraphBuilder,
    condition: SSAValue,
    builders: Sequence[GraphBuilder],
    parts: Sequence[Sequence[SSAValue]],
) -> list[SSAValue]:
    if [each.type for each in parts[0]] != [each.type for each in parts[1]]:
        raise Refused("its branches return other shapes")
    result = tuple_of([each.type for each in parts[0]])
    blocks = [builder.finish(builder.tuple(list(part))) for builder, part in zip(builders, parts, strict=True)]
    node.frame.importer.forget(builders)
    return b.tuple_parts(b.insert(ir.IfOp(condition, Region(blocks[0]), Region(blocks[1]), result)))


@operator("if")
def branch(node: HloNode) -> list[SSAValue]:
    """Runs one of two branches."""
    b = node.builder
    builders = [GraphBuilder(b) for _ in range(2)]
    parts: list[list[SSAValue]] = []
    for builder, region in zip(builders, node.op.regions, strict=True):
        inner = Frame(node.frame.importer, builder, node.frame)
        parts.append([inner.tensor(each) for each in inner.run(region.block, ())])
    return _joined(node, b, node.operands[0], builders, parts)


# Loops -------------------------------------------------------------------------------------------------------------


@operator("while")
def while_(node: HloNode) -> list[SSAValue]:
    """Converts a counted loop to a scan, and any other one to a function that calls itself."""
    return Counted.scanned(node) or _repeated(node)


def _repeated(node: HloNode) -> list[SSAValue]:
    condition, body = (region.block for region in node.op.regions)

    def run(block: Block, b: GraphBuilder, states: Sequence[SSAValue]) -> list[SSAValue]:
        frame = Frame(node.frame.importer, b, node.frame)
        return [frame.tensor(each) for each in frame.run(block, states)]

    return while_loop(
        node.builder,
        lambda b, states: run(condition, b, states)[0],
        lambda b, states: run(body, b, states),
        node.operands,
    )


@dataclass
class Row:
    """A row of a carried value, at a place that moves with the loop's number."""

    place: int
    backward: bool


@dataclass
class Carried:
    """A value that a loop carries while its body is converted, and how the body uses it."""

    place: int
    value: SSAValue
    loop: Counted
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


class Counted:
    """Converts a `while` whose number goes from 0 to a known one."""

    def __init__(self, node: HloNode, counter: int, count: int):
        self.node, self.counter, self.count = node, counter, count
        self.numbers: dict[SSAValue, tuple[int, int]] = {}
        """Of values a·i + b of the loop's number i: (a, b)."""
        body = node.op.regions[1].block
        self.body = body
        self.outer = _captured(body)
        self.carried: list[Carried] = []
        self.shapes = [node.builder.static_shape(each) for each in node.operands]

    @staticmethod
    def scanned(node: HloNode) -> list[SSAValue] | None:
        """Converts a loop to a scan; returns None where it is not one."""
        found = _counter(node)
        if found is None or found[1] < 1:
            return None
        return Counted(node, *found).run()

    def run(self) -> list[SSAValue] | None:
        """Converts the loop; returns None where its number does not grow by 1."""
        node, b, count = self.node, self.node.builder, self.count
        states = node.operands
        trial = GraphBuilder(b)
        number = trial.typed_parameter("", states[self.counter].type)
        results = self._iteration(trial, number, states, {}, [node.frame.lookup(each) for each in self.outer])
        after = results[self.counter]
        grows = isinstance(after, SSAValue) and self.numbers.get(after) == (1, 1)
        roles = [self._role(place, each) for place, each in enumerate(results)]
        uses_number = grows and self._uses(trial, number, results, roles)
        node.frame.importer.forget([trial])
        _discard(trial)
        if not grows:
            return None
        sequences = [
            place for place, role in enumerate(roles) if isinstance(role, Row) and not self._is_written(results, place)
        ]
        stacked = [place for place, role in enumerate(roles) if isinstance(role, Row) and place not in sequences]
        kept = [place for place, role in enumerate(roles) if role == "state"]
        fixed = [place for place, role in enumerate(roles) if role == "fixed"]
        directions = {place: role.backward for place, role in enumerate(roles) if isinstance(role, Row)}
        rows = [self._ordered(b, states[place], directions[place]) for place in sequences]
        dtype = b.dtype(states[self.counter])
        if uses_number or not rows:
            rows.insert(0, b.array_constant(np.arange(count).astype(numpy_dtype(dtype))))
        outer = [node.frame.tensor(node.frame.lookup(each)) for each in self.outer]

        def step(
            within: GraphBuilder, elements: Sequence[SSAValue], values: Sequence[SSAValue], given: Sequence[SSAValue]
        ) -> tuple[list[SSAValue], list[SSAValue]]:
            given_states: dict[int, SSAValue] = dict(zip(kept, values, strict=True))
            given_states.update(zip(fixed, given, strict=False))
            first = len(elements) - len(sequences)
            own = dict(zip(sequences, elements[first:], strict=True))
            number = elements[0] if first else within.constant(0, dtype)
            full = [given_states.get(place, own.get(place, number)) for place in range(len(states))]
            found = self._iteration(within, number, full, own, given[len(fixed) :])
            frame = Frame(node.frame.importer, within, None)
            return [frame.tensor(found[place]) for place in kept], [found[place].row for place in stacked]

        invariants = [*(states[place] for place in fixed), *outer]
        scanned = scan(b, step, rows, [states[place] for place in kept], invariants)
        finals: dict[int, SSAValue] = dict(zip(kept, scanned.states, strict=True))
        for place, value in zip(stacked, scanned.results, strict=True):
            finals[place] = self._ordered(b, value, directions[place])
        finals[self.counter] = b.constant(count, dtype)
        return [finals.get(place, states[place]) for place in range(len(states))]

    def _uses(self, trial: GraphBuilder, number: SSAValue, results: Sequence[Any], roles: Sequence[Row | str]) -> bool:
        """Returns whether an iteration computes with the loop's number, besides reading and writing rows."""
        if any(role == "fixed" and self.carried[place].reads for place, role in enumerate(roles)):
            return True
        frame = Frame(self.node.frame.importer, trial, None)
        kept = [
            each.row if isinstance(each, Written) and isinstance(role, Row) else frame.tensor(each)
            for each, role in zip(results, roles, strict=True)
            if role == "state" or (isinstance(role, Row) and isinstance(each, Written))
        ]
        trial.finish(trial.tuple(kept))
        return number in kept or any(True for _ in number.uses)

    @staticmethod
    def _is_written(results: Sequence[Any], place: int) -> bool:
        return isinstance(results[place], Written)

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

    def _role(self, place: int, result: Any) -> Row | str:
        carried = self.carried[place]
        if place == self.counter:
            return "counter"
        if result is carried:
            is_sequence = not carried.is_tensor and len(carried.reads) == 1
            return Row(place, next(iter(carried.reads))) if is_sequence else "fixed"
        is_own = isinstance(result, Written) and result.carried is carried
        if is_own and not carried.is_tensor and not carried.reads:
            return Row(place, result.backward)
        return "state"

    def _ordered(self, b: GraphBuilder, value: SSAValue, backward: bool) -> SSAValue:
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
    inside: set[SSAValue] = set(block.args)
    found: dict[SSAValue, None] = {}
    for op in _within(block):
        inside.update(op.results)
        for region in op.regions:
            for each in region.blocks:
                inside.update(each.args)
    for op in _within(block):
        found.update((each, None) for each in op.operands if each not in inside)
    return list(found)


def _within(block: Block) -> Iterator[Operation]:
    for op in block.ops:
        yield from walk_ops(op)


def _discard(builder: GraphBuilder) -> None:
    """Removes the ops of a builder from the uses of other values."""
    for op in builder.block.ops:
        for each in walk_ops(op):
            each.drop_all_references()
