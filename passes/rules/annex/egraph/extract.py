"""The cheapest form of a block out of an e-graph.

The cost of a class is that of its cheapest tree, found as shortest paths are (Knuth, "A Generalization of Dijkstra's Algorithm",
1977). What is placed once costs nothing where it is needed again: then another op of a class may be the cheapest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from xdsl.ir import Operation, SSAValue

from .....support.edit import insert_op_before
from .cost import cost
from .egraph import EGraph


@dataclass(frozen=True)
class Need:
    """An op that stays in place, and the values that it and its regions take from rewritable ops."""

    anchor: Operation
    values: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Plan:
    """The ops to place before each anchor, by class and in order; `cost` is the sum of their costs."""

    steps: tuple[tuple[Operation, SSAValue, Operation], ...]
    cost: int


def scaled_cost(op: Operation) -> int:
    """Costs as integers, as those of trees in which much is shared are greater than any float."""
    return max(round(100 * cost(op)), 1)


class Costs:
    """The cheapest op of each class whose leaves are available so far."""

    def __init__(self, graph: EGraph, kept: set[Operation]):
        self.graph, self.kept = graph, kept
        self.best: dict[SSAValue, tuple[int, bool]] = {}
        """What a class costs, and whether its op is new: of two that cost the same, the one that was there is taken."""
        self.ops: dict[SSAValue, Operation | None] = {}
        self._queue: list[tuple[int, int, SSAValue]] = []
        self._number = 0
        for ops in graph.nodes.values():
            for op in ops:
                if not op.operands:
                    self._offer(graph.find(op.results[0]), op)

    def give(self, values: Iterable[SSAValue]) -> None:
        """From here on some values are there for nothing."""
        for value in values:
            self._lower(self.graph.find(value), (0, False), None)
        self._settle()

    def choose(self, root: SSAValue, placed: set[SSAValue]) -> Operation | None:
        """Returns the op of a class to take, given the classes placed already; None if a value costs nothing."""
        found = self.ops[root]
        if found is None:
            return None
        # An operand that is not there is cheaper than the class itself, so that choices never go round in a circle.
        least = self._price(found, placed) or self.best[root]
        for op in self.graph.nodes[root]:
            price = self._price(op, placed)
            if price is not None and price < least:
                found, least = op, price
        return found

    def _price(self, op: Operation, placed: Container[SSAValue]) -> tuple[int, bool] | None:
        total = scaled_cost(op)
        for operand in op.operands:
            root = self.graph.find(operand)
            if root not in placed:
                inner = self.best.get(root)
                if inner is None:
                    return None
                total += inner[0]
        return total, op not in self.kept

    def _settle(self) -> None:
        while self._queue:
            total, _, root = heappop(self._queue)
            if total == self.best[root][0]:
                for op in self.graph.users.get(root, ()):
                    self._offer(self.graph.find(op.results[0]), op)

    def _offer(self, root: SSAValue, op: Operation) -> None:
        price = self._price(op, ())
        if price is not None:
            self._lower(root, price, op)

    def _lower(self, root: SSAValue, new: tuple[int, bool], op: Operation | None) -> None:
        old = self.best.get(root)
        if old is not None and old <= new:
            return
        self.best[root], self.ops[root] = new, op
        if old is None or new[0] < old[0]:
            self._number += 1
            heappush(self._queue, (new[0], self._number, root))


def plan(graph: EGraph, needs: Sequence[Need], kept: set[Operation]) -> Plan:
    """Plans the cheapest form; each op comes before the first anchor that needs it, after its operands."""
    costs = Costs(graph, kept)
    later = {result for need in needs for result in need.anchor.results}
    costs.give([value for values in graph.leaves.values() for value in values if value not in later])
    placed: set[SSAValue] = set()
    steps: list[tuple[Operation, SSAValue, Operation]] = []
    total = 0
    for need in needs:
        pending = [graph.find(value) for value in reversed(need.values)]
        while pending:
            root = pending[-1]
            op = None if root in placed else costs.choose(root, placed)
            if op is None:
                pending.pop()
                continue
            missing = [
                inner
                for operand in reversed(op.operands)
                if (inner := graph.find(operand)) not in placed and costs.ops[inner] is not None
            ]
            if missing:
                pending += missing
                continue
            steps.append((need.anchor, root, op))
            total += scaled_cost(op)
            placed.add(root)
        costs.give([result for result in need.anchor.results if result in graph.parent])
    return Plan(tuple(steps), total)


def carry_out(graph: EGraph, made: Plan, needs: Sequence[Need]) -> None:
    """Puts the ops of a plan into the block, and replaces the anchors' operands by their results."""
    later = {result for need in needs for result in need.anchor.results}
    places: dict[SSAValue, SSAValue] = {}
    for root, values in graph.leaves.items():
        outside = next((value for value in values if value not in later), None)
        if outside is not None:
            places[root] = outside
    replaced: dict[SSAValue, SSAValue] = {}
    steps = deque(made.steps)
    for need in needs:
        while steps and steps[0][0] is need.anchor:
            _, root, op = steps.popleft()
            copy = op.clone()
            copy.operands = [places[graph.find(operand)] for operand in op.operands]
            copy.results[0].name_hint = op.results[0].name_hint
            copy.location = op.location
            insert_op_before(copy, need.anchor)
            places[root] = copy.results[0]
        replaced.update((value, places[graph.find(value)]) for value in need.values)
        for result in need.anchor.results:
            if result in graph.parent:
                places.setdefault(graph.find(result), result)
    users = dict.fromkeys(use.operation for value in replaced for use in value.uses)
    for user in users:
        user.operands = [replaced.get(operand, operand) for operand in user.operands]


def cost_of_kept(needs: Sequence[Need], kept: set[Operation]) -> int:
    """Returns the cost of a block as it is, on the scale of a plan."""
    pending = [value for need in needs for value in need.values]
    seen: set[Operation] = set()
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner in kept and owner not in seen:
            seen.add(owner)
            pending += owner.operands
    return sum(map(scaled_cost, seen))
