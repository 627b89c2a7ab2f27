"""Splits a `.mir` file into top-level items, each in the text format of its level.

The splitter finds where items begin and end without running any grammar, in one pass. Each format is a module, imported
when the first item (or op) of the format is met, that keeps to this interface:

    class Format(Protocol):
        def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]: ...
        def owns(self, op: Operation) -> bool: ...
        def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]: ...

- `parse` gets every item of the format in the file at once, in order, and returns one list of top-level ops per item
  (empty for an item without an op: a `#[version]`, a `#[metadata]` section). Ops must not be attached to a block. Errors
  are reported with `context.report(...)`, after which parsing goes on with what is left; raising a `MirError` is the same
  for errors after which nothing is left to do. Text begins at `item.line`, column 1: an item that starts further right is
  padded with spaces, so that line and column of a token in `item.text` need only `item.line - 1` added to the line.
- Formats are parsed in the order of `FORMATS`; `context.symbols` then holds the ops of the formats before, by name.
- `owns` says whether the format prints this op of the module's top level.
- `print` gets the runs of consecutive owned ops of the module, in order, and returns one text per run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, Protocol

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..support.diagnostics import Diagnostic, MirError, error_at, file_loc, location_of

if TYPE_CHECKING:
    from ..dialects.relay.operator import Operator


@dataclass(frozen=True, slots=True)
class Item:
    """A top-level item: its format, its kind and its text.

    `kind` is the decorator's name ("T.prim_func") or the keyword ("def", "type", "#[metadata]").
    """

    format: str
    kind: str
    text: str
    file: str
    line: int
    indent: int = 0
    """The number of columns by which the text is indented in its file."""

    def location(self, line: int = 1, column: int = 1) -> LocationAttr:
        """The place of line `line` (from 1), column `column` of `text`."""
        return file_loc(self.file, self.line + line - 1, column + self.indent)


@dataclass
class ParseContext:
    """State that the items of one file share while they are parsed."""

    file: str
    module: ModuleOp
    """Receives module-level attributes; its ops are put in after every format has been parsed."""
    directory: str | None = None
    """Where side files are looked up; None forbids them."""
    symbols: dict[str, Operation] = field(default_factory=dict[str, Operation])
    """Top-level ops with a `sym_name` that were parsed so far."""
    captured: Mapping[str, object] = field(default_factory=dict[str, object])
    """Python values of names that the text does not define: the variables around a function that is read as text."""
    infers: bool = True
    """Whether types that are not written are found; errors are then reported."""
    nodes: Mapping[str, Sequence[object]] = field(default_factory=dict[str, "Sequence[object]"])
    """What `meta[KEY][i]` means besides the text's own metadata section."""
    errors: list[Diagnostic] = field(default_factory=list[Diagnostic])
    operators: dict[str, Operator] = field(default_factory=dict[str, "Operator"])
    """The operators that the file defines, by name."""
    failed: set[str] = field(default_factory=set[str])
    """Functions of items with errors: nothing more is said of a name that is missing for that reason."""

    def report(
        self, error: MirError | Diagnostic | VerifyException, where: Operation | SSAValue | LocationAttr | None = None
    ) -> None:
        """Notes an error and goes on; the file is refused at the end, with all its errors.

        What an attribute, an op of xDSL or a string refuses, such as a number that its type does not hold, has no place: that
        is `where`.
        """
        if isinstance(error, VerifyException):
            first = str(error).strip().partition("\n")[0]
            error = error_at(where, first[:1].lower() + first[1:])
        place = location_of(where)
        for each in error.diagnostics if isinstance(error, MirError) else (error,):
            self.errors.append(replace(each, location=place) if each.location == UNKNOWN_LOC else each)

    def report_item(self, error: MirError | VerifyException, item: Item) -> None:
        """Reports the error of an item in Python's form, whose functions are then missing."""
        self.report(error, item.location())
        self.failed.update(_DEFINED.findall(item.text))

    def error(self, where: Operation | SSAValue | LocationAttr | None, message: str, *notes: str) -> None:
        """`report` of an error at a place."""
        self.report(error_at(where, message, *notes))


_DEFINED = re.compile(r"^[ \t]*def[ \t]+(\w+)", re.MULTILINE)


class Format(Protocol):
    """A text format: see the head of this file."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]: ...

    def owns(self, op: Operation) -> bool: ...

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]: ...


FORMATS: dict[str, tuple[str, str]] = {
    "tvmscript": (".tvmscript", "FORMAT"),
    "te": (".te", "FORMAT"),
    "definitions": (".rules.definitions", "FORMAT"),
    "relay": (".relay", "FORMAT"),
    "rules": (".rules", "FORMAT"),
    "schedule": (".schedule", "FORMAT"),
    "target": (".target", "FORMAT"),
}
"""Format name → the module of this package and the name of the `Format` in it. Order: formats before may be referred to."""

DECORATORS: dict[str, str] = {
    "T.prim_func": "tvmscript",
    "I.ir_module": "tvmscript",
    "T.schedule": "schedule",
    "te.func": "te",
    "te.schedule": "te",
    "te.hybrid.script": "te",
}
"""Python items by decorator."""

KEYWORDS: dict[str, str] = {
    "def": "relay",
    "type": "relay",
    "extern": "relay",
    "fast": "rules",
    "operator": "definitions",
    "rewrite": "rules",
    "ruleset": "rules",
    "rule": "schedule",
    "optional": "schedule",
}
"""Items with braces by first word. Text that begins with anything else is a Relay expression."""

# Spellings of decorators in other versions of TVM and without the usual import.
_ALIASES = {
    "tvm.script.ir_module": "I.ir_module",
    "tvm.ir.ir_module": "I.ir_module",
    "tvm.script.ir.ir_module": "I.ir_module",
    "script.ir_module": "I.ir_module",
    "ir_module": "I.ir_module",
    "tvm.script.tir.prim_func": "T.prim_func",
    "tvm.script.tir": "T.prim_func",
    "script.tir.prim_func": "T.prim_func",
    "tir.prim_func": "T.prim_func",
    "prim_func": "T.prim_func",
    "tvm.te.hybrid.script": "te.hybrid.script",
    "hybrid.script": "te.hybrid.script",
}


def split_items(text: str, file: str, first_line: int, report: Callable[[MirError], None]) -> list[Item]:
    """Returns the top-level items of a file whose text begins at line `first_line`; linear in its length.

    Text that is not an item is reported, and skipped up to the next line that can begin one.
    """
    return _Splitter(text, file, first_line, report).split()


# Between items: blanks, comments of every format (`#[` begins an attribute of Relay), imports of TVM's Python.
_GAP = re.compile(r"(?:\s++|//[^\n]*+|#(?!\[)[^\n]*+|(?:from|import)[ \t][^\n]*+)++")
_BLOCK_COMMENT = re.compile(r"/\*|\*/")
_PYTHON_STATEMENT = re.compile(r"(?:for|while|if|elif|else|with|return|assert|pass|lambda|print|del|try)\b(?![ \t]*=)")
_DECORATOR = re.compile(r"@[ \t]*([A-Za-z_][\w.]*)")
# The trace of a schedule, as TVM prints it without a decorator.
_TRACE = re.compile(r"def[ \t]+\w+[ \t]*\([ \t]*\w+[ \t]*:[ \t]*(?:tvm\.)?tir\.Schedule\b")
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_ATTRIBUTE = re.compile(r"#\[\s*([A-Za-z_]\w*)")
# A string that is never closed ends with its line, so that the next quote of the line does not begin another search to its end.
_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+(?:"|(?=\\?\n|\\?\Z))'
# What a scan over Relay text stops at: strings and comments (passed over), braces, a line that begins another item.
_RELAY_STOP = re.compile(
    rf"{_STRING}|//[^\n]*|/\*|(?P<open>[{{\[(])|(?P<close>[}}\])])|(?P<end>;)"
    r"|\n(?=(?P<item>@[ \t]*(?:T|I|te|tvm|tir|script|hybrid)\b|def[ \t]+@|#\[|type[ \t]|extern[ \t]+type\b|(?:fast[ \t]+)?rewrite[ \t]+@|ruleset\b|operator[ \t]+\w|target[ \t]+\"|(?:optional[ \t]+)?rule[ \t]+(?:for|benefit)\b))"
)
_PYTHON_STOP = re.compile(
    rf'"""(?:[^"\\]|\\.|"(?!""))*+"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*+\'\'\'|{_STRING}'
    r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+(?:'|(?=\\?\n|\\?\Z))"
    r"|#[^\n]*|(?P<open>[\[({])|(?P<close>[\])}])|\n(?=(?P<line>[^\s#]|\#\[))",
    re.DOTALL,
)
_INTRINSIC = re.compile(r"(?:(?:tvm\.)?(?:T|tir)\.)?TensorIntrin\.register[ \t]*\(")
_TARGET = re.compile(r'target[ \t]+"')
_SCHEDULE_RULE = re.compile(r"(?:optional[ \t]+)?rule[ \t]+(?:for|benefit)\b")
_SCHEDULE = re.compile(r"^@[ \t]*T\.schedule\b", re.MULTILINE)
_RELAY_STOP_ITEM = re.compile(
    r"^(?:def[ \t]+@|@[ \t]*(?:T\.prim_func|I|te|tvm)\b|#\[|type[ \t]|(?:fast[ \t]+)?rewrite[ \t]+@|ruleset\b|operator[ \t]+\w|(?:optional[ \t]+)?rule[ \t]+for\b)",
    re.MULTILINE,
)
_RESTART = re.compile(
    r"\n(?=@|def[ \t]+@|#\[|type[ \t]|extern[ \t]+type\b|(?:fast[ \t]+)?rewrite[ \t]+@|ruleset\b|operator[ \t]+\w|target[ \t]+\"|(?:optional[ \t]+)?rule[ \t]+for\b)"
)


class _Splitter:
    def __init__(self, text: str, file: str, first_line: int, report: Callable[[MirError], None]):
        self.text, self.file, self.report = text, file, report
        self.items: list[Item] = []
        self.pos = 0
        # Line number and offset of the beginning of the line that `advance` last reached.
        self.line, self.line_start, self.counted = first_line, 0, 0

    def split(self) -> list[Item]:
        while self.skip_gap():
            try:
                self.item()
            except MirError as error:
                self.report(error)
                restart = _RESTART.search(self.text, self.pos)
                self.pos = restart.end() if restart else len(self.text)
        return self.items

    def skip_gap(self) -> bool:
        """Moves to the next item; whether there is one."""
        while True:
            if gap := _GAP.match(self.text, self.pos):
                self.pos = gap.end()
            if not self.text.startswith("/*", self.pos):
                return self.pos < len(self.text)
            try:
                self.pos = self.after_comment(self.pos)
            except MirError as error:
                self.report(error)
                return False

    def after_comment(self, start: int) -> int:
        """Returns the offset after the (nesting) block comment at `start`."""
        depth, pos = 0, start
        while mark := _BLOCK_COMMENT.search(self.text, pos):
            pos = mark.end()
            depth += 1 if mark[0] == "/*" else -1
            if depth == 0:
                return pos
        self.refuse(start, "this comment is never closed", "write '*/' where it ends")

    def advance(self, pos: int) -> None:
        """Counts lines up to `pos`, which never goes back."""
        newlines = self.text.count("\n", self.counted, pos)
        if newlines:
            self.line += newlines
            self.line_start = self.text.rindex("\n", self.counted, pos) + 1
        self.counted = pos

    def refuse(self, pos: int, message: str, *notes: str) -> NoReturn:
        line = self.line + self.text.count("\n", self.counted, pos)
        column = pos - self.text.rfind("\n", 0, pos)
        raise error_at(file_loc(self.file, line, column), message, *notes)

    def item(self) -> None:
        start = self.pos
        self.advance(start)
        if self.text[start] == "@" and (decorator := _DECORATOR.match(self.text, start)):
            name = _ALIASES.get(decorator[1], decorator[1])
            if name in DECORATORS:
                self.python_item(start, name)
                return
            if self.at_line_start(start) and self.decorates(decorator.end()):
                known = ", ".join(f"@{d}" for d in DECORATORS)
                self.pos = decorator.end()
                self.refuse(
                    start,
                    f"unknown decorator '@{decorator[1]}'",
                    f"an item in Python's form begins with one of {known}",
                )
        elif attribute := _ATTRIBUTE.match(self.text, start):
            self.attribute(start, attribute[1])
            return
        elif word := _WORD.match(self.text, start):
            if self.at_line_start(start) and _TRACE.match(self.text, start):
                self.python_item(start, "T.schedule", headed=True)
                return
            if self.at_line_start(start) and re.compile(r"def[ \t]+\w|class[ \t]+\w").match(self.text, start):
                self.pos = word.end()
                self.refuse(
                    start,
                    f"this '{word[0]}' has no decorator, so its format is not known",
                    "write @T.prim_func (TVMScript), @I.ir_module (a class of them), @te.func or @te.schedule above it; a Relay function is 'def @name(…)'",
                )
            if self.at_line_start(start) and (rule := _SCHEDULE_RULE.match(self.text, start)):
                self.schedule_rule(start, rule.end())
                return
            if self.at_line_start(start) and (called := _INTRINSIC.match(self.text, start)):
                self.add("schedule", "TensorIntrin", start, self.after_brackets(called.end() - 1))
                return
            if _TARGET.match(self.text, start):
                self.braced_item(start, "target", "target")
                return
            if word[0] in KEYWORDS and KEYWORDS[word[0]] != "schedule":
                self.braced_item(start, word[0], KEYWORDS[word[0]])
                return
        self.braced_item(start, "expr", "relay")

    def at_line_start(self, pos: int) -> bool:
        return pos == 0 or self.text[pos - 1] == "\n"

    def decorates(self, pos: int) -> bool:
        """Returns whether a function or class follows the decorator that ends at `pos`.

        The call `@f(%x)` of a Relay function is not a decorator.
        """
        return (
            re.compile(r"(?:\([^\n#]*\))?[ \t]*+(?:#[^\n]*+)?(?:\n[ \t]*+(?:#[^\n]*+)?)*\n(?:def|class|@)").match(
                self.text, pos
            )
            is not None
        )

    def add(self, format: str, kind: str, start: int, end: int) -> None:
        padding = " " * (start - self.line_start)
        self.items.append(Item(format, kind, padding + self.text[start:end], self.file, self.line))
        self.pos = end

    def python_item(self, start: int, decorator: str, headed: bool = False) -> None:
        """Adds an item in Python's form: decorators, a header and an indented body.

        It ends at the next line that begins at column 1 outside brackets. With `headed` the item begins with the header.
        """
        if not self.at_line_start(start):
            self.pos = start + 1
            self.refuse(start, "a decorator begins its line", "items in Python's form start at column 1")
        depth, pos, flat = 0, start, False
        while stop := _PYTHON_STOP.search(self.text, pos):
            pos = stop.end()
            if stop["open"]:
                depth += 1
            elif stop["close"]:
                depth = max(depth - 1, 0)
            elif stop["line"]:
                header = re.compile(r"def[ \t]+[A-Za-z_]|class\b").match(self.text, pos)
                begins_item = header or self.text[pos] == "@" or _RELAY_STOP.match(self.text, pos - 1)
                if not headed and depth == 0 and (header or not begins_item):
                    # A line that is neither is a header without its first word, which the item's format complains about.
                    headed = True
                elif not headed and self.text[pos] == "@" and depth == 0:
                    continue
                elif depth == 0 and not begins_item and (flat or self.continues(start, pos)):
                    # No item begins so: it is a body that was not indented, which the item's format complains about.
                    flat = True
                elif depth == 0 or _RELAY_STOP.match(self.text, pos - 1):
                    self.add(DECORATORS[decorator], decorator, start, pos)
                    return
        self.add(DECORATORS[decorator], decorator, start, len(self.text))

    def schedule_rule(self, start: int, pos: int) -> None:
        """Adds a schedule rule: its pattern and conditions, then @T.schedule and its function."""
        decorator = _SCHEDULE.search(self.text, pos)
        other = _RELAY_STOP_ITEM.search(self.text, pos)
        if decorator is None or (other is not None and other.start() < decorator.start()):
            self.pos = pos
            self.refuse(
                start,
                "this schedule rule has no schedule",
                "write @T.schedule and def name(sch): … in the lines after its pattern and conditions",
            )
        line, line_start = self.line, self.line_start
        self.advance(decorator.start())
        self.python_item(decorator.start(), "T.schedule")
        whole = self.text[start : self.pos]
        self.items[-1] = Item("schedule", "rule", " " * (start - line_start) + whole, self.file, line)

    def continues(self, start: int, pos: int) -> bool:
        """Returns whether a line at `pos` belongs to the Python item before it, though it is not indented."""
        return _PYTHON_STATEMENT.match(self.text, pos) is not None or self.text[start:pos].rstrip().endswith(":")

    def attribute(self, start: int, name: str) -> None:
        """`#[name = …]`; `#[metadata]` is followed by a JSON object in braces."""
        close = re.compile(rf"(?:{_STRING}|[^\]\"\n])*+\]").match(self.text, start)
        if close is None:
            self.pos = start + 2
            self.refuse(start, f"'#[{name}' is never closed", 'write it like #[version = "0.0.5"]')
        end = close.end()
        if name == "metadata":
            brace = re.compile(r"\s*\{").match(self.text, end)
            if brace is None:
                self.pos = end
                self.refuse(start, "#[metadata] is followed by a JSON object, '{ … }'")
            end = self.after_brackets(brace.end() - 1)
        self.add("relay", f"#[{name}]", start, end)

    def after_brackets(self, start: int) -> int:
        """Returns the offset after the bracket that closes the one at `start`, or where the next item begins."""
        depth, pos = 0, start
        while stop := _RELAY_STOP.search(self.text, pos):
            pos = stop.end()
            if stop[0] == "/*":
                pos = self.after_comment(stop.start())
            elif stop["open"]:
                depth += 1
            elif stop["close"]:
                depth -= 1
                if depth <= 0:
                    return pos
            elif stop["item"]:
                return pos
        return len(self.text)

    def braced_item(self, start: int, kind: str, format: str) -> None:
        """Adds an item in braces.

        A definition ends with its braces (or, having none, its line); an expression ends where the next item begins.
        """
        depth, pos = 0, start
        while stop := _RELAY_STOP.search(self.text, pos):
            pos = stop.end()
            if stop[0] == "/*":
                pos = self.after_comment(stop.start())
            elif stop["open"]:
                depth += 1
            elif stop["close"]:
                depth = max(depth - 1, 0)
                if depth == 0 and stop[0] == "}" and kind != "expr":
                    self.add(format, kind, start, pos)
                    return
            elif stop["item"] or (stop["end"] and depth == 0 and kind in ("type", "extern")):
                self.add(format, kind, start, pos)
                return
        self.add(format, kind, start, len(self.text))


def symbol_of(op: Operation) -> str | None:
    """The name of a top-level op, if it has one."""
    name = op.properties.get("sym_name") or op.attributes.get("sym_name")
    return getattr(name, "data", None)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics sorted by file, line and column."""
    from ..support.diagnostics import source_position

    return sorted(diagnostics, key=lambda d: source_position(d.location) or ("", 0, 0))
