"""The steps of a match: each closes over the slots that it reads and writes, and the next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from xdsl.ir import Operation, SSAValue

from ....dialects import rule as ir
from ....dialects.rule.functions import NoMatch
from ....dialects.rule.levels import Level
from ....support.operands import operands_of
from .values import is_filled_with, truth

Slots: TypeAlias = list[Any]
Step: TypeAlias = Callable[[Slots], bool]
Reader: TypeAlias = Callable[[Slots], Any]


def copy(slot: int, source: int, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        slots[slot] = slots[source]
        return k(slots)

    return step


def literal(slot: int, source: int, wanted: float, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        value = slots[source]
        if not is_filled_with(value, wanted):
            return False
        slots[slot] = value
        return k(slots)

    return step


def defined_by(slot: int, source: int, names: frozenset[str], k: Step) -> Step:
    def step(slots: Slots) -> bool:
        value = slots[source]
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name not in names:
            return False
        slots[slot] = value
        return k(slots)

    return step


class Classes(Protocol):
    """Values that are known to be equal: matching looks through them all (see `saturate`)."""

    def find(self, value: SSAValue) -> SSAValue:
        """The same value for all that are equal."""
        ...

    def members(self, value: SSAValue) -> Sequence[SSAValue]:
        """All values that are equal to one."""
        ...

    def preferred(self, value: SSAValue) -> SSAValue:
        """The one of all equal values that conditions are to see."""
        ...


def preferred(slot: int, source: int, classes: Classes, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        value = slots[source]
        slots[slot] = classes.preferred(value) if isinstance(value, SSAValue) else value
        return k(slots)

    return step


def same_class(slot: int, source: int, classes: Classes, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        return classes.find(slots[slot]) is classes.find(slots[source]) and k(slots)

    return step


def some_literal(slot: int, source: int, wanted: float, classes: Classes, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        for value in classes.members(slots[source]):
            if is_filled_with(value, wanted):
                slots[slot] = value
                return k(slots)
        return False

    return step


def some_defined_by(slot: int, source: int, names: frozenset[str], classes: Classes, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        for value in classes.members(slots[source]):
            owner = value.owner
            if isinstance(owner, Operation) and owner.name in names:
                slots[slot] = value
                if k(slots):
                    return True
        return False

    return step


def attribute(level: Level, slot: int, name: str, check: Callable[[Slots, Any], bool], k: Step) -> Step:
    def step(slots: Slots) -> bool:
        try:
            value = level.attribute(slots[slot].owner, name)
        except KeyError:
            return False
        return check(slots, value) and k(slots)

    return step


def rest_of(rest: int, slot: int, level: Level, named: frozenset[str], k: Step) -> Step:
    def step(slots: Slots) -> bool:
        written = level.attributes(slots[slot].owner)
        slots[rest] = {name: value for name, value in written.items() if name not in named}
        return k(slots)

    return step


def which_op(which: int, slot: int, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        slots[which] = slots[slot].owner.name
        return k(slots)

    return step


def arguments(slot: int, actual: Sequence[int], runs: Sequence[bool], commutative: bool, k: Step) -> Step:
    if any(runs):

        def with_runs(slots: Slots) -> bool:
            operands = tuple(slots[slot].owner.operands)
            for split in _splits(operands, runs):
                for place, value in zip(actual, split, strict=True):
                    slots[place] = value
                if k(slots):
                    return True
            return False

        return with_runs
    count = len(actual)

    def step(slots: Slots) -> bool:
        operands = operands_of(slots[slot].owner)
        if len(operands) != count:
            return False
        for place, value in zip(actual, operands, strict=True):
            slots[place] = value
        return k(slots)

    if not commutative:
        return step
    first, second = actual

    def either(slots: Slots) -> bool:
        if step(slots):
            return True
        a, b = operands_of(slots[slot].owner)
        if a is b:
            return False
        slots[first], slots[second] = b, a
        return k(slots)

    return either


def _splits(operands: Sequence[SSAValue], runs: Sequence[bool]) -> Iterator[list[Any]]:
    """Iterates over the ways to distribute operands to patterns of which some take any number."""
    if not runs:
        if not operands:
            yield []
        return
    fixed = sum(not run for run in runs)
    if not runs[0]:
        if operands:
            for rest in _splits(operands[1:], runs[1:]):
                yield [operands[0], *rest]
        return
    if not any(runs[1:]):
        # The last run takes what the others leave.
        lengths: Iterator[int] | range = range(len(operands) - fixed, len(operands) - fixed + 1)
    else:
        lengths = range(len(operands) - fixed + 1)
    for length in lengths:
        if length >= 0:
            for rest in _splits(operands[length:], runs[1:]):
                yield [tuple(operands[:length]), *rest]


def other_root(slot: int, start: int, path: Sequence[frozenset[str]], taken: Sequence[int], k: Step) -> Step:
    def step(slots: Slots) -> bool:
        block = slots[taken[0]].owner.parent
        found: list[SSAValue] = [slots[start]]
        for names in path:
            users = {use.operation for value in found for use in value.uses if use.operation.name in names}
            found = [user.results[0] for user in users if user.parent is block]
        others = [slots[place] for place in taken]
        for value in found:
            if not any(value is other for other in others):
                slots[slot] = value
                if k(slots):
                    return True
        return False

    return step


def where(op: ir.WhereOp, read: Reader, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        try:
            holds = truth(read(slots), op)
        except (NoMatch, KeyError):
            return False
        return holds and k(slots)

    return step


def bind(slot: int, compute: Reader, k: Step) -> Step:
    def step(slots: Slots) -> bool:
        try:
            slots[slot] = compute(slots)
        except (NoMatch, KeyError):
            return False
        return k(slots)

    return step
