"""Writes the CHECK lines for an output.

    def @f(%x: …) {            // CHECK-LABEL: def @f(
      %0 = exp(%x) …;          // CHECK-SAME:  %x: …) {
      add(%0, %0) …            // CHECK-NEXT:    [[VAL_0:%[0-9]+]] = exp(%x) …;
    }                          // CHECK-NEXT:    add([[VAL_0]], [[VAL_0]]) …
                               // CHECK-NEXT:  }

Values whose names end in a number become variables, as these numbers depend on the ops before; other names are as they are. Times
and the folders of files become patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...support.text import FreshNames

_SPECIAL = re.compile(
    r"(?P<value>%[A-Za-z_]*\d+\b|%\w+_\d+\b)"
    r"|(?P<time>\b\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:ns|us|µs|ms|s)\b)"
    r"|(?P<open>\{\{|\[\[(?=\$?[#A-Za-z_ ]))"
)
_TIME = r"{{[0-9.e+-]+ ?(ns|us|µs|ms|s)}}"
# A function, rule or other item with a name, as it begins in the formats of .mir, in MLIR's and in LLVM's.
ITEM = re.compile(
    r"(?P<start>\s*(?:def @?|(?:fast )?rewrite @|ruleset @|\w+\.func (?:\w+ )?@|define [^@(]*@)(?P<name>[\w.$]+))"
)

ABOVE = ("@", "#[")
"""Beginnings of lines that belong to the item after them."""
_HEADER = "# from "


@dataclass
class Item:
    """The checks of one function of the output, by its name, or of lines that belong to none."""

    name: str | None
    lines: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Style:
    """The way in which checks are written and compared."""

    prefix: str
    comment: str = "//"
    full_lines: bool = False
    exact_blanks: bool = False
    folders: tuple[str, ...] = ()
    """Folders whose names depend on the machine, those of the test and of what it writes."""


def check_lines(output: str, style: Style) -> list[Item]:
    """Returns the checks of an output, item by item."""
    lines = output.rstrip("\n").split("\n")
    items = [Item(None)]
    variables = _Variables(style)
    follows = False
    for number, line in enumerate(lines):
        line = line.rstrip()
        if not line:
            if follows and (items[-1].name == "" or _goes_on(lines[number + 1 :])):
                items[-1].lines.append(_write(style, "-EMPTY", ""))
            continue
        begins = ITEM.match(line)
        if items[-1].name == "":
            items[-1].name = begins["name"] if begins else ""
        elif begins or (line.lstrip().startswith((*ABOVE, _HEADER)) and _begins(lines[number + 1 :])):
            items.append(Item(begins["name"] if begins else ""))
            variables.forget()
            follows = False
        head, rest = (line[: begins.end() + 1], line[begins.end() + 1 :]) if begins else ("", line)
        if begins and output.count(head.strip()) == 1 and not (_SPECIAL.search(head) or style.full_lines):
            items[-1].lines.append(_write(style, "-LABEL", head))
            if rest.strip():
                items[-1].lines.append(_write(style, "-SAME", variables.line(rest)))
        else:
            items[-1].lines.append(_write(style, "-NEXT" if follows else "", variables.line(line)))
        follows = True
    return [item for item in items if item.lines]


def _goes_on(rest: Sequence[str]) -> bool:
    """Tells whether the next line that is not empty belongs to the same item."""
    return any(line.strip() for line in rest) and not _begins(rest)


def _begins(rest: Sequence[str]) -> bool:
    """Tells whether an item begins with these lines, after those that belong to it and empty ones."""
    following = next((line for line in rest if line.strip() and not line.lstrip().startswith((*ABOVE, _HEADER))), "")
    return ITEM.match(following) is not None


def _write(style: Style, kind: str, text: str) -> str:
    head = f"{style.comment} {style.prefix}{kind}:"
    if not text:
        return head
    if style.full_lines and style.exact_blanks:
        return head + text
    return f"{head:{len(style.comment) + len(style.prefix) + 9}}{text}"


class _Variables:
    """Names of the values of an item, by which later lines refer to them."""

    def __init__(self, style: Style):
        self._folders = re.compile(
            "|".join(re.escape(each) for each in sorted(style.folders, key=len, reverse=True)) or r"(?!)"
        )
        self.forget()

    def forget(self) -> None:
        """Begins another item, whose values have names of their own."""
        self._names: dict[str, str] = {}
        self._fresh = FreshNames()

    def line(self, text: str) -> str:
        """Returns a line as the pattern that matches it."""
        return "".join(self._parts(text))

    def _parts(self, text: str) -> Iterator[str]:
        for number, between in enumerate(self._folders.split(text)):
            if number:
                yield "{{[^ ]*}}"
            at = 0
            for match in _SPECIAL.finditer(between):
                yield between[at : match.start()]
                at = match.end()
                if match["time"]:
                    yield _TIME
                elif match["open"]:
                    yield "{{" + re.escape(match["open"]) + "}}"
                else:
                    yield self._value(match["value"])
            yield between[at:]

    def _value(self, name: str) -> str:
        known = self._names.get(name)
        if known is not None:
            return f"[[{known}]]"
        bare = name.removeprefix("%")
        variable = self._fresh.fresh(f"VAL_{bare}" if bare.isdecimal() else bare.upper())
        self._names[name] = variable
        return f"[[{variable}:%{'[0-9]+' if bare.isdecimal() else '[A-Za-z0-9_]+'}]]"
