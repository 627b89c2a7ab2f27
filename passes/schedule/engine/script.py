"""Applies a script of the schedule dialect call by call; refusals are reported at the script's lines."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from ....dialects.schedule import (
    Argument,
    ComputeOp,
    ItemOp,
    Lambda,
    ListType,
    PrimitiveOp,
    Ref,
    ScriptOp,
    SliceOp,
    Splat,
)
from ....support.diagnostics import MirError, error_at
from ....support.text import counted
from .errors import located
from .index_maps import LambdaMap
from .primitive import find
from .random_variables import ComputedRV, Handle
from .schedule import Schedule


def run_script(script: ScriptOp, schedule: Schedule, given: Mapping[str, int] = MappingProxyType({})) -> None:
    """Applies a script to the schedule's module; `given` are the numbers that a rule's takes, by name.

    Raises MirError at the line of the call that is refused, with what the primitive said, the program as it was then with
    a caret, and what would be legal. The calls before have been applied by then.
    """
    _Runner(script, schedule, given).run()


Watch = Callable[[PrimitiveOp, ModuleOp], None]
"""Sees a call that changed something, and the module after it."""
_WATCH: ContextVar[Watch | None] = ContextVar("watch of scripts", default=None)


@contextmanager
def watching_calls(watch: Watch) -> Generator[None]:
    """While inside, `watch` sees the module after each call of a script that may change it."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


class _Runner:
    def __init__(self, script: ScriptOp, schedule: Schedule, given: Mapping[str, int]):
        self.script, self.schedule = script, schedule
        named = zip(script.body.block.args, script.parameters.data, strict=True)
        self.values: dict[SSAValue, Any] = {arg: given[name.data] for arg, name in named}

    def run(self) -> None:
        for op in self.script.body.block.ops:
            match op:
                case PrimitiveOp():
                    self.call(op)
                case ItemOp():
                    self.values[op.result] = self.item(op)
                case SliceOp():
                    self.values[op.result] = self.values[op.list][op.bounds]
                case ComputeOp():
                    self.values[op.result] = self.computed(op)
                case _:
                    raise error_at(op, f"'{op.name}' is not part of a schedule")

    def item(self, op: ItemOp) -> Any:
        """Returns one of a list."""
        items: list[Any] = self.values[op.list]
        index = op.index.value.data
        if not -len(items) <= index < len(items):
            raise error_at(
                self.place(op), f"the list has {counted(len(items), 'item')} here, so there is no item {index}"
            )
        return items[index]

    def computed(self, op: ComputeOp) -> ComputedRV:
        """Returns arithmetic on drawn numbers."""
        left, right = map(self.argument, op.arguments)
        try:
            return ComputedRV(op.op.data, left, right)
        except MirError as error:
            raise located(error, self.place(op)) from None

    def place(self, op: Operation) -> LocationAttr:
        """Returns the location of a call; the script's where it is not known."""
        return op.location if op.location != UNKNOWN_LOC else self.script.location

    def call(self, op: PrimitiveOp) -> None:
        """Applies one call, and binds its results."""
        arguments = {name: self.argument(value) for name, value in op.bound.items()}
        variadic = op.SIGNATURE.variadic
        positional: list[Any] = [] if variadic is None else arguments.pop(variadic.name, [])
        try:
            result = self.schedule.apply(op.SIGNATURE.name, positional, arguments)
        except MirError as error:
            raise located(error, self.place(op)) from None
        self.bind(op, cast("list[Any]", result) if isinstance(result, list) else [result])
        self.name(op)
        watch, primitive = _WATCH.get(), find(op.SIGNATURE.name)
        if watch is not None and primitive is not None and not primitive.only_looks:
            watch(op, self.schedule.module)

    def argument(self, value: Argument) -> Any:
        """Returns an argument as the schedule takes it."""
        match value:
            case Ref():
                return self.values[value.value]
            case Lambda():
                return LambdaMap(value)
            case str() | bool() | int() | float() | None:
                return value
            case dict():
                return {key: self.argument(item) for key, item in value.items()}
            case _:
                found: list[Any] = []
                for item in cast("Sequence[Argument]", value):
                    if isinstance(item, Splat):
                        found += self.values[item.value]
                    else:
                        found.append(self.argument(item))
                return found

    def bind(self, op: PrimitiveOp, results: list[Any]) -> None:
        """Gives the results to the names."""
        outs = list(op.outs)
        if op.SIGNATURE.element is None:
            self.values.update(zip(outs, results, strict=False))
            return
        rest = next((k for k, out in enumerate(outs) if isinstance(out.type, ListType)), None)
        fits = len(outs) - 1 <= len(results) if rest is not None else len(outs) in (0, len(results))
        if not fits:
            takes = "1 name takes" if len(outs) == 1 else f"{len(outs)} names take"
            given = counted(len(results), op.SIGNATURE.element)
            raise error_at(
                self.place(op),
                f"{op.SIGNATURE.name} gives {given} here, but {takes} them",
                "give one name for each, one name for the whole list, or let *rest take what is left",
            )
        if rest is None:
            self.values.update(zip(outs, results, strict=False))
            return
        behind = len(outs) - rest - 1
        end = len(results) - behind
        self.values.update(zip(outs[:rest], results, strict=False))
        self.values[outs[rest]] = results[rest:end]
        self.values.update(zip(outs[rest + 1 :], results[end:], strict=True))

    def name(self, op: PrimitiveOp) -> None:
        """Names the results' handles as the script does, for messages."""
        for out, name in zip(op.outs, op.result_names.data, strict=True):
            value = self.values[out]
            if isinstance(value, Handle):
                value.name = name.data
            else:
                for number, item in enumerate(value):
                    item.name = f"{name.data}[{number}]"
