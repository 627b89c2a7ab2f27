"""Equality saturation: rules applied to an e-graph, which keeps every form of the program, and the cheapest form taken.

As in egg (Willsey et al., "egg: Fast and Extensible Equality Saturation", POPL 2021): classes of equal values in a union-find,
ops hash-consed by the classes of their operands, congruence restored by rebuilding after each round. The ops of the e-graph are
Relay ops themselves; those that a rule makes stand outside of the function until they are chosen.

The cost of an op is what it computes and moves: multiplications and additions, plus elements read and written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.relay import ConstantOp, FuncOp, TupleGetItemOp, TupleOp
from ...dialects.relay.operator import OperatorOp, OpPattern
from ...dialects.rule import RewriteOp
from ...dialects.rule.functions import NoMatch
from ...support.diagnostics import Diagnostic, MirError, error_at, warn_at
from .program import Match, Program, compile_rule

NODES, ROUNDS = 10_000, 30
"""How large an e-graph may grow, in ops, and how often all rules are applied to it."""


class EGraph:
    """Classes of equal values; implements what `program` asks of classes."""

    def __init__(self) -> None:
        self.parent: dict[SSAValue, SSAValue] = {}
        self.nodes: dict[SSAValue, list[Operation]] = {}
        """The ops of each class, by its representative."""
        self.leaves: dict[SSAValue, SSAValue] = {}
        """Classes that hold a value from outside, such as a parameter, which costs nothing."""
        self.known: dict[Any, SSAValue] = {}
        self.count = 0

    def find(self, value: SSAValue) -> SSAValue:
        """The representative of a value's class."""
        root = value
        while self.parent.get(root, root) is not root:
            root = self.parent[root]
        while value is not root:
            self.parent[value], value = root, self.parent.get(value, root)
        return root

    def members(self, value: SSAValue) -> list[SSAValue]:
        """The values of the ops that are equal to a value."""
        return [op.results[0] for op in self.nodes.get(self.find(value), ())]

    def add(self, op: Operation) -> SSAValue:
        """The class of an op: that of an equal one if there is one."""
        key = self._key(op)
        found = self.known.get(key)
        if found is not None:
            return self.find(found)
        value = op.results[0]
        self.known[key] = value
        self.parent[value] = value
        self.nodes[value] = [op]
        self.count += 1
        return value

    def union(self, a: SSAValue, b: SSAValue) -> bool:
        """Makes two classes one; whether they were two."""
        a, b = self.find(a), self.find(b)
        if a is b:
            return False
        for root in (a, b):
            if root not in self.parent:
                self.parent[root] = self.leaves[root] = root
        self.parent[b] = a
        leaf = self.leaves.pop(b, None)
        if leaf is not None:
            self.leaves.setdefault(a, leaf)
        self.nodes[a] = [*self.nodes.get(a, ()), *self.nodes.pop(b, ())]
        return True

    def rebuild(self) -> None:
        """Makes ops with equal operands equal, until none is left."""
        changed = True
        while changed:
            changed = False
            self.known = {}
            for ops in list(self.nodes.values()):
                for op in ops:
                    other = self.known.setdefault(self._key(op), op.results[0])
                    changed = self.union(other, op.results[0]) or changed
        for root, ops in self.nodes.items():
            self.nodes[root] = list({self._key(op): op for op in reversed(ops)}.values())[::-1]

    def _key(self, op: Operation) -> Any:
        operands = tuple(id(self.find(operand)) for operand in op.operands)
        return op.name, operands, tuple(op.properties.items()), tuple(op.attributes.items()), op.results[0].type


class _Matches:
    """Takes down all matches of a rule at an op."""

    def __init__(self) -> None:
        self.found: list[Match] = []

    def collect(self, match: Match) -> bool:
        """Keeps a match and refuses it, so that the next is looked for."""
        self.found.append(Match(match.roots, match.matched, list(match.slots)))
        return False


@dataclass(frozen=True)
class _Choice:
    cost: float
    op: Operation | None


def saturate(function: FuncOp, rules: Iterable[RewriteOp]) -> bool:
    """Rewrites a typed Relay function to the cheapest form that rules give; whether anything changed.

    Ops with effects, calls and nested functions stay as they are. A warning tells where a limit ended the search.

    Raises:
        MirError: for a rule with several roots, one that changes a type, or one whose conditions cannot be computed.
    """
    block = function.body.block
    graph = EGraph()
    matches = _Matches()
    programs: list[Program] = []
    for rule in rules:
        program = compile_rule(rule, matches.collect, graph)
        if len(program.roots) != 1:
            raise error_at(rule, f"rule @{program.name} has several roots, which mode=saturate has no place for")
        programs.append(program)
    free = [op for op in block.ops if _is_free(op)]
    for op in free:
        value = graph.add(op)
        if value is not op.results[0]:
            graph.union(value, op.results[0])
    by_root: dict[str, list[Program]] = {}
    for program in sorted(programs, key=lambda p: -p.rule.benefit.value.data):
        for name in program.root_names:
            by_root.setdefault(name, []).append(program)
    made: list[Operation] = []
    finished = False
    for _ in range(ROUNDS):
        if not _round(graph, by_root, matches, made):
            finished = True
            break
        if graph.count > NODES:
            break
    if not finished:
        warn_at(
            function,
            f"saturation stopped at {graph.count} ops: the cheapest form found so far is taken",
            f"it goes on for {ROUNDS} rounds or {NODES} ops at most",
        )
    changed = _extract(block, graph, free)
    for op in made:
        op.drop_all_references()
    for op in reversed(free):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
    return changed


def _is_free(op: Operation) -> bool:
    if isinstance(op, OperatorOp):
        return not op.OPERATOR.stateful
    return isinstance(op, ConstantOp | TupleOp | TupleGetItemOp)


def _round(graph: EGraph, by_root: dict[str, list[Program]], matches: _Matches, made: list[Operation]) -> bool:
    """Applies every rule at every op once; whether the e-graph grew or classes met."""
    found: list[tuple[Program, Match]] = []
    for ops in list(graph.nodes.values()):
        for op in ops:
            for program in by_root.get(op.name, ()):
                matches.found = []
                program.match(op)
                found += [(program, match) for match in matches.found]
    changed = False
    for program, match in found:
        if graph.count > NODES:
            break
        changed = _add(graph, program, match, made) or changed
    graph.rebuild()
    return changed


def _add(graph: EGraph, program: Program, match: Match, made: list[Operation]) -> bool:
    root = match.roots[0].results[0]
    before = graph.count
    try:
        for make, slot in zip(program.makers, program.made, strict=True):
            op = make(match.slots, root)
            if op is not None:
                made.append(op)
                match.slots[slot] = graph.add(op)
    except (NoMatch, KeyError):
        return graph.count > before
    value: SSAValue = match.slots[program.results[0]]
    if value.type != root.type:
        from ...dialects.rule.text import type_text

        raise MirError(
            Diagnostic(
                f"rule @{program.name} would change the type of a value from {type_text(root.type)} to {type_text(value.type)}",
                program.rule.location,
            ).with_note("this value", match.roots[0].location)
        )
    return graph.union(root, value) or graph.count > before


def _extract(block: Block, graph: EGraph, free: list[Operation]) -> bool:
    best = _cheapest(graph)
    kept = set(free)
    places: dict[SSAValue, SSAValue] = {}
    changed = False
    for anchor in [op for op in block.ops if op not in kept]:
        for user in anchor.walk():
            for index, operand in enumerate(user.operands):
                if graph.find(operand) in best:
                    new = _emit(graph.find(operand), graph, best, places, anchor)
                    changed = changed or new is not operand
                    user.operands[index] = new
    return changed


def _emit(
    wanted: SSAValue,
    graph: EGraph,
    best: dict[SSAValue, _Choice],
    places: dict[SSAValue, SSAValue],
    anchor: Operation,
) -> SSAValue:
    """The chosen op of a class, put before `anchor` with all that it needs."""
    pending = [wanted]
    while pending:
        current = pending[-1]
        if current in places:
            pending.pop()
            continue
        choice = best.get(current)
        if choice is None or choice.op is None:
            places[current] = graph.leaves.get(current, current)
            continue
        op = choice.op
        missing = [root for operand in op.operands if (root := graph.find(operand)) not in places]
        if missing:
            pending += missing
            continue
        operands = [places[graph.find(operand)] for operand in op.operands]
        copy = op.clone()
        copy.operands = operands
        copy.results[0].name_hint = op.results[0].name_hint
        copy.location = op.location
        Rewriter.insert_op(copy, InsertPoint.before(anchor))
        places[current] = copy.results[0]
    return places[wanted]


def _cheapest(graph: EGraph) -> dict[SSAValue, _Choice]:
    """The cheapest op of each class, by the cost of its whole tree: lowered until nothing changes."""
    best = {root: _Choice(0.0, None) for root in graph.leaves}
    changed = True
    while changed:
        changed = False
        for root, ops in graph.nodes.items():
            for op in ops:
                total = cost(op)
                for operand in op.operands:
                    inner = graph.find(operand)
                    if inner in best:
                        total += best[inner].cost
                    elif graph.nodes.get(inner):
                        total = math.inf
                if total < (best[root].cost if root in best else math.inf):
                    best[root] = _Choice(total, op)
                    changed = True
    return best


def cost(op: Operation) -> float:
    """What an op costs: multiplications and additions, and elements read and written."""
    result = op.results[0].type
    if not isinstance(op, OperatorOp):
        return 0.01
    moved = _elements(result) + sum(_elements(operand.type) for operand in op.operands)
    if op.OPERATOR.pattern is OpPattern.OUT_ELEMWISE_FUSABLE and len(op.operands) > 1:
        # A matrix or filter: each element of the result is a sum over what lies under one output of the second operand.
        weight = op.operands[1].type
        dims = weight.get_shape() if isinstance(weight, TensorType) else (1,)
        depth = _elements(weight) / max(dims[-2] if len(dims) == 3 else dims[0], 1)
        return 2 * _elements(result) * max(depth, 1) + moved
    return _elements(result) + moved


def _elements(type: Attribute) -> float:
    if isinstance(type, TupleType):
        return sum(map(_elements, type.types.data))
    return float(math.prod(max(dim, 1) for dim in type.get_shape())) if isinstance(type, TensorType) else 1.0
