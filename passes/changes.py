"""Changes of ops by a pass, for `--trace`: names for remarks, comparison of modules before and after.

A pass that reports why it changes something has `tells: ClassVar[bool] = True`, and reports to `support.trace.tracer`. For
every other pass the ops before are compared with those after: added and removed ops are matched by the places in the
source that both have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.traits import ConstantLike, IsTerminator

from ..support.graph import DisjointSets
from ..support.trace import Tracer, tracer
from ..support.walk import walk_ops

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

_MOST_NAMES = 8
"""Of more ops in one place, the rest are counted."""


def op_name(op: Operation) -> str:
    """Returns an op as a person calls it: an operator of Relay by its name, a function as `@main`."""
    symbol = op.properties.get("sym_name")
    return f"@{symbol.data}" if isinstance(symbol, StringAttr) else op.name.removeprefix("relay.")


def value_name(value: SSAValue) -> str:
    """Returns a value's name for messages: a parameter as `%x`, otherwise the op that computes it."""
    if isinstance(value.owner, Operation):
        return "a constant" if value.owner.has_trait(ConstantLike) else f"what {op_name(value.owner)} gives"
    around = value.owner.parent_op()
    names = None if around is None else around.properties.get("param_names")
    if isinstance(value, BlockArgument) and isinstance(names, ArrayAttr):
        # A local function that has a name of its own has that as its first argument.
        index = value.index - (len(value.owner.args) - len(names.data))
        if 0 <= index < len(names.data) and isinstance(name := names.data[index], StringAttr):
            return f"%{name.data}"
    return "an argument" if value.name_hint is None else f"%{value.name_hint}"


def op_names(ops: Iterable[Operation]) -> str:
    """Returns the names of several ops: `multiply, add`; constants and ends of blocks go without saying."""
    return _listed(op_name(op) for op in ops if not _is_silent(op))


def tell_rewrite(trace: Tracer, how: str, old: Iterable[Operation], new: str, *notes: tuple[str, LocationAttr]) -> None:
    """Reports that `new` replaced ops, at the first of them that has a location."""
    ops = [op for op in old if not _is_silent(op)]
    where = next((op for op in ops if not isinstance(op.location, UnknownLoc)), None)
    trace(where, f"{how}{op_names(ops)} → {new}", *notes)


@contextmanager
def telling_changes(module_pass: ModulePass, module: Operation) -> Generator[None]:
    """Reports the changes of a pass that runs inside on `module`, if it is traced and reports none itself."""
    trace = None if getattr(module_pass, "tells", False) else tracer(module_pass.name)
    if trace is None:
        yield
        return
    with comparing(trace, module):
        yield


@contextmanager
def comparing(trace: Tracer, root: Operation) -> Generator[None]:
    """Reports to `trace` the changes of the ops of `root` while inside. Linear in the number of ops."""
    before = {op: _Seen.of(op) for op in walk_ops(root)}
    yield
    after = dict.fromkeys(walk_ops(root))
    groups = _Groups()
    for op, seen in before.items():
        if op not in after and (seen.parent is None or seen.parent is root or seen.parent in after):
            groups.place(seen.location).gone.append(seen)
    for op in after:
        if op not in before:
            around = op.parent_op()
            if around is None or around is root or around in before:
                groups.place(op.location).new.append(op)
    for group in groups.all():
        group.tell(trace)
    for op in after:
        if op in before:
            before[op].tell_difference(trace, op)


@dataclass(frozen=True)
class _Seen:
    """An op as it was."""

    name: str
    silent: bool
    location: LocationAttr
    parent: Operation | None
    attributes: Mapping[str, Attribute]
    types: tuple[Attribute, ...]

    @staticmethod
    def of(op: Operation) -> _Seen:
        attributes = {**op.attributes, **op.properties}
        return _Seen(op_name(op), _is_silent(op), op.location, op.parent_op(), attributes, tuple(op.result_types))

    def tell_difference(self, trace: Tracer, op: Operation) -> None:
        """Tells what an op that stayed has other attributes or types."""
        if self.silent:
            return
        now = {**op.attributes, **op.properties}
        names = [name for name in (*self.attributes, *now) if self.attributes.get(name) != now.get(name)]
        if names:
            trace(op, f"{self.name} has another {', '.join(dict.fromkeys(names))}")
        elif self.types != tuple(op.result_types):
            from ..dialects.relay.text import type_text

            old, new = (", ".join(map(type_text, types)) for types in (self.types, op.result_types))
            trace(op, f"{self.name} gives {new}, and gave {old}")


@dataclass
class _Group:
    """The added and removed ops at places of the source that belong together."""

    gone: list[_Seen] = field(default_factory=list[_Seen])
    new: list[Operation] = field(default_factory=list[Operation])

    def tell(self, trace: Tracer) -> None:
        gone = [seen for seen in self.gone if not seen.silent]
        new = [op for op in self.new if not _is_silent(op)]
        if len(gone) == len(new) == 1 and gone[0].name == op_name(new[0]):
            gone[0].tell_difference(trace, new[0])
        elif gone:
            names = op_names(new) or ("a constant" if self.new else "nothing")
            trace(gone[0].location, f"{_listed(seen.name for seen in gone)} → {names}")
        elif new:
            trace(new[0].location, f"new: {op_names(new)}")


class _Groups:
    """Groups by place; a location of several places joins theirs."""

    def __init__(self) -> None:
        self.sets = DisjointSets[Attribute]()
        self.entries: list[tuple[Attribute, _Group]] = []

    def place(self, location: LocationAttr) -> _Group:
        """Returns the group of an op's location."""
        places = _places(location)
        for place in places[1:]:
            self.sets.join(place, places[0])
        group = _Group()
        self.entries.append((places[0], group))
        return group

    def all(self) -> Iterable[_Group]:
        """Yields the groups, in the order of what went and came first."""
        joined: dict[Attribute, _Group] = {}
        for place, entry in self.entries:
            group = joined.setdefault(self.sets.find(place), _Group())
            group.gone += entry.gone
            group.new += entry.new
        return joined.values()


def _places(location: LocationAttr) -> list[Attribute]:
    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr) and location.locations.data:
        return list(location.locations.data)
    return [location]


def _is_silent(op: Operation) -> bool:
    return op.has_trait(ConstantLike) or op.has_trait(IsTerminator)


def _listed(names: Iterable[str]) -> str:
    counts = Counter(names)
    shown = [name if count == 1 else f"{count} {name}" for name, count in counts.items()]
    rest = len(shown) - _MOST_NAMES
    return ", ".join(shown if rest <= 0 else [*shown[:_MOST_NAMES], f"{rest} more"])
