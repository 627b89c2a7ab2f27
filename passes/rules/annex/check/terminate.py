"""Termination of rules: by measures that they decrease, or because they have no cycle.

Rules are removed from the set while there is a measure that all of them decrease or keep and some decrease (as in the
rule-removal method for term rewriting; Lankford 1979, Geser 1990 for relative termination). Measures are sums over a program's ops:

- the number of ops of some kinds (what a rule makes against the root that it replaces), and
- the size of the program unfolded to a tree, in which an op of some kind counts double whatever is below it, so that a
  rule which moves such an op inward decreases it.

For the remaining rules a recursive path order is looked for (`path_order`), as rules need that spread one op over others.
Those that remain then must have no cycle of rules that enable each other: what one makes can be what the next one matches. Rules that
may alternate for ever are removed before, by the same measures applied to them alone, so that a cycle is blamed on its own rules only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from xdsl.ir import SSAValue

from .....dialects import rule as ir
from .....dialects.rule.levels import level_of
from .....support.diagnostics import Diagnostic
from .....support.graph import components
from .path_order import order_text, path_order
from .terms import condition_key, conditions, made_by, may_be, op_names, patterns, results, roots

Polynomial = dict[SSAValue | None, int]
"""Captures with their factors; None for the number alone."""

MAX_FACTOR = 1 << 20


def check_termination(
    rules: Sequence[ir.RewriteOp],
    loops: Callable[[Sequence[ir.RewriteOp]], bool] | None = None,
    reasons: dict[str, list[ir.RewriteOp]] | None = None,
) -> list[Diagnostic]:
    """A diagnostic for each cycle of rules.

    Where rules of a cycle have conditions, which may break it, `loops` (if given) decides by trying. `reasons` gets, for each
    reason why rules come to an end, those rules.
    """
    reasons = {} if reasons is None else reasons
    left = _undecided(list(rules), reasons)
    edges = {rule: [other for other in left if _enables(rule, other)] for rule in left}
    _take_apart(edges, reasons)
    found: list[Diagnostic] = []
    tried: dict[ir.RewriteOp, None] = {}
    while True:
        cycle = _cycle(edges)
        if cycle is None:
            if edges:
                some = [rule for rule in edges if rule not in tried]
                reasons.update({_NO_CYCLE: some} if some else {}, **({_TRIED: list(tried)} if tried else {}))
            return found
        cycle = _to_blame(edges, cycle)
        conditional = any(isinstance(op, ir.WhereOp) for rule in cycle for op in rule.body.block.ops)
        conditional = conditional or any(op.attr_names.data for rule in cycle for op in patterns(rule))
        if not conditional or loops is None or loops(cycle):
            found.append(_report(cycle))
            for rule in cycle:
                edges.pop(rule, None)
            _take_apart(edges, reasons)
        else:
            # The conditions break this cycle; others may go through its rules.
            edges[cycle[-1]].remove(cycle[0])
            tried.update(dict.fromkeys(cycle))


def _take_apart(edges: dict[ir.RewriteOp, list[ir.RewriteOp]], reasons: dict[str, list[ir.RewriteOp]]) -> None:
    """Removes rules that come to an end among those with which they may alternate for ever.

    So a rule that makes programs smaller is not part of the cycle of two others that make them larger and smaller alternately.
    """
    pending = _components(edges)
    while pending:
        component = pending.pop()
        left = _undecided(component, reasons)
        for rule in component:
            if rule not in left:
                edges.pop(rule)
        if len(left) < len(component):
            pending += _components({rule: [other for other in edges[rule] if other in left] for rule in left})
    for targets in edges.values():
        targets[:] = [rule for rule in targets if rule in edges]


def _components(edges: Mapping[ir.RewriteOp, Sequence[ir.RewriteOp]]) -> list[list[ir.RewriteOp]]:
    """Returns the strongly connected sets of rules, in order, without those of no cycle."""
    inside = {rule: [other for other in targets if other in edges] for rule, targets in edges.items()}
    place = {rule: number for number, rule in enumerate(edges)}
    found = [each for each in components(inside) if len(each) > 1 or each[0] in inside[each[0]]]
    return sorted((sorted(each, key=place.__getitem__) for each in found), key=lambda each: place[each[0]])


def _to_blame(
    edges: Mapping[ir.RewriteOp, Sequence[ir.RewriteOp]], cycle: Sequence[ir.RewriteOp]
) -> Sequence[ir.RewriteOp]:
    """Returns the rules of a cycle without which all others would come to an end.

    The whole cycle if there are none.
    """
    core = next(component for component in _components(edges) if cycle[0] in component)
    if len(core) > _MOST_TRIED:
        return cycle
    for rule in list(core):
        rest = [other for other in core if other is not rule]
        if rest and _undecided(rest, {}):
            core = rest
    first, *others = core
    for order in permutations(others) if len(core) <= _MOST_ORDERED else ():
        path = [first, *order]
        if all(b in edges[a] for a, b in zip(path, [*order, first], strict=True)):
            return path
    return cycle


_MOST_TRIED, _MOST_ORDERED = 30, 6
"""Of how many rules around a cycle it is worked out which are to blame, and how many of them are put in order."""


def _report(cycle: Sequence[ir.RewriteOp]) -> Diagnostic:
    names = " → ".join(f"@{rule.sym_name.data}" for rule in [*cycle, cycle[0]])
    if len(cycle) == 1:
        message = f"rule @{cycle[0].sym_name.data} does not come to an end: it applies to what it makes"
    else:
        message = f"rules do not come to an end: {names}"
    diagnostic = Diagnostic(message, cycle[0].location)
    for rule in cycle[1:]:
        diagnostic = diagnostic.with_note(f"@{rule.sym_name.data} undoes or continues it", rule.location)
    return diagnostic.with_note(
        "let a condition tell what is done, or leave out the direction that makes programs larger"
    )


def _undecided(rules: list[ir.RewriteOp], reasons: dict[str, list[ir.RewriteOp]]) -> list[ir.RewriteOp]:
    """The rules for which no measure was found; `reasons` gets the others by their measure."""
    names = sorted({name for rule in rules for op in patterns(rule) for name in op_names(op)})
    while rules:
        for reason, measure in _measures(rules, names):
            changes = {rule: measure(rule) for rule in rules}
            if all(change is not None for change in changes.values()) and any(changes.values()):
                reasons.setdefault(reason, []).extend(rule for rule in rules if changes[rule])
                rules = [rule for rule in rules if not changes[rule]]
                break
        else:
            order = path_order(rules)
            if order is None:
                return rules
            reasons[f"by a path order, {order_text(order)}"] = rules
            return []
    return rules


Measure = Callable[[ir.RewriteOp], bool | None]
"""Whether a rule decreases it; None if it may increase it."""

_NO_CYCLE = "as what one makes never leads back to it"
_TRIED = "on all programs that were tried, by their conditions"


def _measures(rules: Sequence[ir.RewriteOp], names: Sequence[str]) -> Iterator[tuple[str, Measure]]:
    """Measures, each with the words for it."""
    yield "by the size of programs", lambda rule: _tree_change(rule, {}, {})
    yield "as ops become others that weigh less", _layered(rules)
    for name in names:
        short = level_of(name).spelled(name)
        yield f"by the number of {short}", lambda rule, name=name: _node_change(rule, {name: 1})
    for name in names:
        short = level_of(name).spelled(name)
        yield f"as {short} moves inward", lambda rule, name=name: _tree_change(rule, {}, {name: 2})


def _layered(rules: Sequence[ir.RewriteOp]) -> Measure:
    """Ops weigh more than all that rules make of them, as far as they are not made of themselves."""
    made: dict[str, set[str]] = {}
    for rule in rules:
        new = {name for value in made_by(rule) if isinstance(value.owner, ir.BuildOp) for name in op_names(value.owner)}
        for root in roots(rule):
            if isinstance(root.owner, ir.MatchOp):
                for name in op_names(root.owner):
                    made.setdefault(name, set()).update(new)
    weights: dict[str, int] = {}
    most = 1 + max((len(list(made_by(rule))) for rule in rules), default=0)
    # A name's layer: one above all that it becomes; those on a cycle never get one.
    changed = True
    while changed:
        changed = False
        for name in {*made, *(n for ns in made.values() for n in ns)}:
            if name not in weights and all(n in weights for n in made.get(name, ())):
                weights[name] = 1 + most * max((weights[n] for n in made.get(name, ())), default=0)
                changed = True
    heaviest = most * max(weights.values(), default=1) + 1
    return lambda rule: _node_change(rule, weights, heaviest)


def _node_change(rule: ir.RewriteOp, weights: Mapping[str, int], other: int = 0) -> bool | None:
    """By the ops that a rule makes against the roots, which alone are sure to go."""
    gone = sum(
        min(weights.get(n, other) for n in op_names(r.owner)) for r in roots(rule) if isinstance(r.owner, ir.MatchOp)
    )
    new = sum(
        max(weights.get(name, other) for name in op_names(value.owner))
        for value in made_by(rule)
        if isinstance(value.owner, ir.BuildOp)
    )
    return None if new > gone else new < gone


def _tree_change(rule: ir.RewriteOp, weights: Mapping[str, int], factors: Mapping[str, int]) -> bool | None:
    strict = True
    for root, result in zip(roots(rule), results(rule), strict=True):
        old = _polynomial(root, weights, factors, {})
        for made in _alternatives(result):
            new = _polynomial(made, weights, factors, {})
            change = {key: old.get(key, 0) - new.get(key, 0) for key in {**old, **new}}
            # The least change is where each capture is a single op, of size 1.
            least = sum(change.values())
            if least < 0 or any(change[key] < 0 for key in change if key is not None) or max(new.values()) > MAX_FACTOR:
                return None
            strict = strict and least > 0
    return strict


def _alternatives(value: SSAValue) -> list[SSAValue]:
    op = value.owner
    return [*_alternatives(op.on_true), *_alternatives(op.on_false)] if isinstance(op, ir.SelectOp) else [value]


def _polynomial(
    value: SSAValue, weights: Mapping[str, int], factors: Mapping[str, int], known: dict[SSAValue, Polynomial]
) -> Polynomial:
    """Returns the size of the tree below a value; each op weighs at least 1 and has a factor."""
    if value in known:
        return known[value]
    op = value.owner
    if isinstance(op, ir.SelectOp):
        a, b = (_polynomial(v, weights, factors, known) for v in (op.on_true, op.on_false))
        result: Polynomial = {key: max(a.get(key, 0), b.get(key, 0)) for key in {**a, **b}}
    elif isinstance(op, ir.MatchOp | ir.BuildOp):
        names = op_names(op)
        bound = min if isinstance(op, ir.MatchOp) else max
        factor = bound([factors.get(name, 1) for name in names], default=1)
        result = {None: bound([weights.get(name, 1) for name in names], default=1)}
        for arg in op.args:
            for key, number in _polynomial(arg, weights, factors, known).items():
                result[key] = min(result.get(key, 0) + factor * number, MAX_FACTOR + 1)
    elif isinstance(op, ir.AnyOp):
        result = {value: 1}
    else:
        result = {None: 1}
    known[value] = result
    return result


def _enables(rule: ir.RewriteOp, other: ir.RewriteOp) -> bool:
    """Returns whether what `rule` makes can be part of what `other` matches."""
    for pattern in patterns(other):
        inner = pattern.result not in roots(other)
        for made in made_by(rule):
            if may_be(made, pattern.result) and (inner or _may_hold(rule, made, other, pattern)):
                return True
        if inner and any(may_be(result, pattern.result) for result in results(rule)):
            return True
    return False


def _may_hold(rule: ir.RewriteOp, made: SSAValue, other: ir.RewriteOp, pattern: ir.MatchOp) -> bool:
    """Returns whether the conditions of `other` may hold at what `rule` made under its own conditions.

    They may contradict each other on the same value.
    """
    op = made.owner
    if not isinstance(op, ir.BuildOp) or len(op.args) != len(pattern.args):
        return True
    given = {condition_key(condition, {}) for condition in conditions(rule)}
    orders = [list(op.args)]
    if len(orders[0]) == 2 and all(level_of(name).is_commutative(name) for name in op_names(pattern)):
        orders.append(orders[0][::-1])
    for order in orders:
        bound = {x: y for x, y in zip(pattern.args, order, strict=True) if isinstance(x.owner, ir.AnyOp)}
        wanted = [condition_key(condition, bound) for condition in conditions(other)]
        if not any(_opposite(key) in given for key in wanted):
            return True
    return False


def _opposite(key: Any) -> Any:
    return key[1] if key[0] == "not_" else ("not_", key)


def _cycle(edges: Mapping[ir.RewriteOp, Sequence[ir.RewriteOp]]) -> list[ir.RewriteOp] | None:
    """A shortest cycle from some rule back to itself."""
    for start in edges:
        before: dict[ir.RewriteOp, ir.RewriteOp] = {}
        queue = [start]
        for rule in queue:
            for target in edges[rule]:
                if target is start:
                    path = [rule]
                    while path[-1] is not start:
                        path.append(before[path[-1]])
                    return path[::-1]
                if target in edges and target not in before:
                    before[target] = rule
                    queue.append(target)
    return None
