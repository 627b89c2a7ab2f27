"""Prints a module function by function, with the ops that stand on each line.

Each level has its own printer, which notes where statements begin; an op inside of a statement is on the statement's line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from ...dialects import relay, schedule, te, tir
from ...support.diagnostics import MirError
from ..targets import ElidingPrinter

MOST_COLUMNS = 2000
"""What is longer in a line is only counted: the page is for reading."""


@dataclass(frozen=True)
class Text:
    """The text of a top-level op, and its ops by line, from 0."""

    name: str
    level: str
    lines: list[str]
    ops: dict[int, list[Operation]]


def texts_of(module: ModuleOp, is_shown: Callable[[Operation], bool] = lambda op: True) -> Iterator[Text]:
    """Yields the text of each op of a module that is shown, in order, each in the format of its level."""
    of_relay = _relay_texts(module)
    callees = _callees(module)
    for op in filter(is_shown, module.ops):
        text, lines_of, level = _printed(op, of_relay, callees)
        yield Text(_name_of(op), level, shortened(text), _spread(op, lines_of))


def shortened(text: str) -> list[str]:
    """Returns the lines of a text, each with at most `MOST_COLUMNS` characters."""
    return [
        line if len(line) <= MOST_COLUMNS else f"{line[:MOST_COLUMNS]} … ({len(line)} characters)"
        for line in text.split("\n")
    ]


def _printed(
    op: Operation, of_relay: Mapping[Operation, tuple[str, dict[Operation, int]]], callees: dict[str, str]
) -> tuple[str, dict[Operation, int], str]:
    """Returns text, lines and level; of what its level has no text for, MLIR's form."""
    try:
        match op:
            case relay.FuncOp() | relay.TypeDataOp() if op in of_relay:
                return *of_relay[op], "relay"
            case te.FuncOp():
                from ...parser.te.printer import marked_function

                return *marked_function(op), "te"
            case tir.PrimFuncOp():
                from ...parser.tvmscript.printer import FunctionPrinter

                printer = FunctionPrinter(op, callees)
                return printer.print(""), printer.lines_of, "tir"
            case schedule.ScriptOp():
                from ...parser.schedule.printer import marked_script

                return *marked_script(op), "schedule"
            case _ if op.name.startswith("rule."):
                from ...parser import print_mir

                return print_mir(ModuleOp([op.clone()])).rstrip("\n"), {op: 0}, "rule"
            case _:
                pass
    except MirError:
        pass
    return _mlir_text(op)


def _relay_texts(module: ModuleOp) -> dict[Operation, tuple[str, dict[Operation, int]]]:
    """Returns the texts of Relay's functions, which share numbers; none where an op has no text."""
    if not any(isinstance(op, relay.FuncOp | relay.TypeDataOp) for op in module.ops):
        return {}
    from ...parser.relay.printer import marked_items

    try:
        return {op: (text, lines) for op, text, lines in marked_items(module)}
    except MirError:
        return {}


def _callees(module: ModuleOp) -> dict[str, str]:
    """Returns the names of TIR's functions that are in a class, with the class."""
    from ...parser.tvmscript.printer import module_of

    functions = [op for op in module.ops if isinstance(op, tir.PrimFuncOp)]
    return {op.sym_name.data: f"{name}.{op.sym_name.data}" for op in functions if (name := module_of(op)) is not None}


def _mlir_text(op: Operation) -> tuple[str, dict[Operation, int], str]:
    """Returns the text in MLIR's form, without large arrays."""
    stream = _CountingStream()
    printer = _MarkingPrinter(stream)
    printer.print_op(op)
    return stream.getvalue(), printer.lines_of, op.name.partition(".")[0]


class _CountingStream(StringIO):
    """A text that knows how many lines it has."""

    def __init__(self) -> None:
        super().__init__()
        self.line = 0

    def write(self, s: str, /) -> int:
        self.line += s.count("\n")
        return super().write(s)


class _MarkingPrinter(ElidingPrinter):
    """Prints MLIR's form, and notes the line of each op."""

    def __init__(self, stream: _CountingStream):
        super().__init__(stream=stream)
        self.counting = stream
        self.lines_of: dict[Operation, int] = {}

    def print_op(self, op: Operation) -> None:
        self.lines_of[op] = self.counting.line
        super().print_op(op)


def _name_of(op: Operation) -> str:
    """Returns the name by which a person knows a top-level op."""
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    return name.data if isinstance(name, StringAttr) else op.name


def _spread(root: Operation, lines_of: Mapping[Operation, int]) -> dict[int, list[Operation]]:
    """Returns all ops by line.

    One without a line of its own is on that of the next one in its block that has one; after the last of them, on the line of the op
    around the block.
    """
    found: dict[int, list[Operation]] = {lines_of.get(root, 0): [root]}
    pending = [(block, lines_of.get(root, 0)) for region in root.regions for block in region.blocks]
    while pending:
        block, around = pending.pop()
        line = around
        placed: list[tuple[Operation, int]] = []
        for op in reversed(list(block.ops)):
            line = lines_of.get(op, line)
            placed.append((op, line))
        for op, line in reversed(placed):
            found.setdefault(line, []).append(op)
            pending += [(inner, line) for region in op.regions for inner in region.blocks]
    return found
