"""Finds the values that no clause of a match takes: `unmatched_cases(match, mod)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import product

from ...support.arguments import check
from ..ir.module import IRModule
from .adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternWildcard


class _Fit(Enum):
    """Counts of a case's values that match a pattern: all, none, or some."""

    ALL = 0
    NONE = 1
    SOME = 2


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Returns patterns of the values that no clause of a match takes; none where it is complete.

    `mod` declares the data types. A case that some clause takes in part is split by constructors until a clause takes all of it or none.
    """
    check(match, "match", "a relay.Match", Match)

    def constructors(one: Constructor) -> Sequence[Constructor]:
        if mod is None:
            return [one]
        found = mod.get_type(one.belong_to.name_hint)[1:]
        return [each for each in found if isinstance(each, Constructor)]

    pending: list[Pattern] = [PatternWildcard()]
    missed: list[Pattern] = []
    while pending:
        case = pending.pop(0)
        for clause in match.clauses:
            fit = _fit(clause.lhs, case)
            if fit is not _Fit.NONE:
                if fit is _Fit.SOME:
                    pending += _split(clause.lhs, case, constructors)
                break
        else:
            missed.append(case)
    return missed


def _fit(pattern: Pattern, case: Pattern) -> _Fit:
    if not isinstance(pattern, PatternConstructor | PatternTuple):
        return _Fit.ALL
    if not isinstance(case, PatternConstructor | PatternTuple):
        return _Fit.SOME
    if _name(pattern) != _name(case):
        return _Fit.NONE
    fits = {_fit(one, other) for one, other in zip(pattern.patterns, case.patterns, strict=True)}
    return next((fit for fit in (_Fit.NONE, _Fit.SOME) if fit in fits), _Fit.ALL)


def _name(pattern: PatternConstructor | PatternTuple) -> str:
    """Returns the name of a pattern's constructor, "" of a tuple's."""
    return pattern.constructor.name_hint if isinstance(pattern, PatternConstructor) else ""


def _split(
    pattern: Pattern, case: Pattern, constructors: Callable[[Constructor], Sequence[Constructor]]
) -> list[Pattern]:
    """Returns the cases that a case consists of, so that one more level of the pattern is decided in each."""
    if not isinstance(pattern, PatternConstructor | PatternTuple):
        return [case]
    if isinstance(case, PatternConstructor | PatternTuple):
        choices = [
            _split(one, other, constructors) if _fit(one, other) is _Fit.SOME else [other]
            for one, other in zip(pattern.patterns, case.patterns, strict=True)
        ]
        fields = [list(each) for each in product(*choices)]
        if isinstance(case, PatternConstructor):
            return [PatternConstructor(case.constructor, each) for each in fields]
        return [PatternTuple(each) for each in fields]
    if isinstance(pattern, PatternTuple):
        return [PatternTuple([PatternWildcard() for _ in pattern.patterns])]
    return [PatternConstructor(each) for each in constructors(pattern.constructor)]
