"""Recursive path orders: an order of ops makes each right side smaller than its left one.

As in Dershowitz, "Orderings for Term-Rewriting Systems" (1982). The order of ops is searched for. Programs are taken as the trees
that they unfold to, in which a rewrite replaces every copy of what it replaces. Constants are less than everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from xdsl.ir import SSAValue

from .....dialects import rule as ir
from .....dialects.rule.levels import level_of
from .terms import op_names, patterns, results, roots

_MOST_STEPS, _MOST_CASES = 20_000, 64
"""How long an order is searched for, and how many choices of ops and of replacements a rule may have."""


@dataclass(frozen=True)
class _Apply:
    op: str
    args: tuple[_Term, ...]


_Term: TypeAlias = "SSAValue | _Apply"
_CONSTANT = _Apply("", ())
Precedence: TypeAlias = frozenset[tuple[str, str]]
"""Pairs of ops, the greater one first; transitive."""


class _TooMuch(Exception):
    """The search takes too long, or a rule has too many cases."""


def path_order(rules: Sequence[ir.RewriteOp]) -> Precedence | None:
    """An order of ops by whose path order every rule makes its roots smaller; None where none was found."""
    try:
        pairs = [pair for rule in rules for pair in _cases(rule)]
        return next(_Search(pairs).all_greater(pairs, frozenset()), None)
    except _TooMuch:
        return None


def _cases(rule: ir.RewriteOp) -> list[tuple[_Term, _Term]]:
    """Both sides of a rule for each choice that it leaves."""
    matches = patterns(rule)
    found: list[tuple[_Term, _Term]] = []
    for names in product(*(op_names(op) for op in matches)):
        choice = dict(zip(matches, names, strict=True))
        for root, value in zip(roots(rule), results(rule), strict=True):
            (left,) = _terms(root, choice, {})
            found += [(left, right) for right in _terms(value, choice, {})]
        if len(found) > _MOST_CASES:
            raise _TooMuch
    return list(dict.fromkeys(found))


def _terms(value: SSAValue, choice: Mapping[ir.MatchOp, str], known: dict[SSAValue, list[_Term]]) -> list[_Term]:
    """Returns the terms of a value; several if it depends on a condition."""
    if value in known:
        return known[value]
    match value.owner:
        case ir.AnyOp():
            made: list[_Term] = [value]
        case ir.SelectOp() as op:
            made = [*_terms(op.on_true, choice, known), *_terms(op.on_false, choice, known)]
        case (ir.MatchOp() | ir.BuildOp()) as op:
            captured = op.op.owner if isinstance(op, ir.BuildOp) and op.op is not None else op
            name = choice[captured] if isinstance(captured, ir.MatchOp) else op_names(op)[0]
            made = [_Apply(name, args) for args in product(*(_terms(arg, choice, known) for arg in op.args))]
        case _:
            made = [_CONSTANT]
    if len(made) > _MOST_CASES:
        raise _TooMuch
    known[value] = made
    return made


class _Search:
    def __init__(self, pairs: Sequence[tuple[_Term, _Term]]):
        self.steps = 0
        self.unordered: set[str] = set()
        """Ops whose arguments are compared as a multiset: any order of them may be matched, or any number."""
        counts: dict[str, int] = {}
        pending = [term for pair in pairs for term in pair]
        while pending:
            term = pending.pop()
            if isinstance(term, SSAValue):
                continue
            runs = any(isinstance(arg, SSAValue) and arg.type == ir.RUN for arg in term.args)
            other = counts.setdefault(term.op, len(term.args)) != len(term.args)
            if runs or other or (term.op and level_of(term.op).is_commutative(term.op)):
                self.unordered.add(term.op)
            pending += term.args

    def all_greater(self, pairs: Sequence[tuple[_Term, _Term]], order: Precedence) -> Iterator[Precedence]:
        """Every extension of an order, as far as needed, by which the first of each pair is greater."""
        if not pairs:
            yield order
            return
        (a, b), *rest = pairs
        for extended in self.greater(a, b, order):
            yield from self.all_greater(rest, extended)

    def greater(self, a: _Term, b: _Term, order: Precedence) -> Iterator[Precedence]:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _TooMuch
        if isinstance(a, SSAValue) or a == _CONSTANT:
            return
        if b == _CONSTANT:
            yield order
            return
        for arg in a.args:
            if self.equal(arg, b):
                yield order
                return
            yield from self.greater(arg, b, order)
        if isinstance(b, SSAValue):
            return
        if a.op != b.op:
            extended = _with(order, a.op, b.op)
            if extended is not None:
                yield from self.all_greater([(a, arg) for arg in b.args], extended)
        elif a.op in self.unordered:
            yield from self.greater_multiset(list(a.args), list(b.args), order)
        else:
            place = next((k for k, (x, y) in enumerate(zip(a.args, b.args, strict=True)) if not self.equal(x, y)), None)
            if place is not None:
                rest: list[tuple[_Term, _Term]] = [(a, arg) for arg in b.args[place + 1 :]]
                yield from self.all_greater([(a.args[place], b.args[place]), *rest], order)

    def greater_multiset(self, a: list[_Term], b: list[_Term], order: Precedence) -> Iterator[Precedence]:
        """Without what both have, each of the second has a greater one in the first."""
        for each in list(b):
            same = next((other for other in a if self.equal(other, each)), None)
            if same is not None:
                a.remove(same)
                b.remove(each)
        if not a:
            return
        for greater in product(a, repeat=len(b)):
            yield from self.all_greater(list(zip(greater, b, strict=True)), order)

    def equal(self, a: _Term, b: _Term) -> bool:
        if isinstance(a, SSAValue) or isinstance(b, SSAValue):
            return a is b
        if a.op != b.op or len(a.args) != len(b.args):
            return False
        if a.op not in self.unordered:
            return all(map(self.equal, a.args, b.args))
        left = list(b.args)
        for each in a.args:
            same = next((other for other in left if self.equal(each, other)), None)
            if same is None:
                return False
            left.remove(same)
        return True


def _with(order: Precedence, greater: str, less: str) -> Precedence | None:
    """An order in which one op is greater than another, too; None where it is less already."""
    if (greater, less) in order:
        return order
    if (less, greater) in order or not greater or not less:
        return None
    above = [greater, *(a for a, b in order if b == greater)]
    below = [less, *(b for a, b in order if a == less)]
    return order | frozenset(product(above, below))


def order_text(order: Precedence) -> str:
    """An order as text: `multiply > add, negative > add`; without what follows from the rest."""
    direct = [(a, b) for a, b in order if not any((a, c) in order and (c, b) in order for _, c in order)]
    return ", ".join(sorted(f"{_short(a)} > {_short(b)}" for a, b in direct))


def _short(name: str) -> str:
    return level_of(name).spelled(name)
