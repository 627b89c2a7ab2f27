"""Completes what is being typed: operators and their attributes, primitives, names, blocks and loops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from .analysis import Analysis, Place
from .calls import Around, call_around, kind_of_argument, primitive
from .hover import find_operator, operator_text, primitive_text
from .names import BRACED, Symbol, names_in, tokens_of
from .navigation import target_places
from .values import blocks_and_loops, type_words, value_of


@dataclass(frozen=True)
class Completion:
    """A text for what is from `start` to the cursor; `about` finds its description."""

    label: str
    kind: str
    start: int
    detail: str = ""
    text: str = ""
    about: tuple[str, str] | None = None

    @property
    def insert(self) -> str:
        """Returns the text that is inserted."""
        return self.text or self.label


_PREFIX = re.compile(r"[%@]?[\w.]*$")
_STRING = re.compile(r"""(["'])([^"'\n]*)$""")
_STAGE = re.compile(r"\w+\[[^\]\n]*\]\.(\w*)$")
_KEYWORDS = ("let", "fn", "if", "else", "match", "True", "False", "None")


def completions(analysis: Analysis, offset: int) -> list[Completion]:
    """Returns what may follow at an offset of the text."""
    text = analysis.text
    line_start = text.rfind("\n", 0, offset) + 1
    line = text[line_start:offset]
    place = analysis.place_at(offset)
    if place is None or _in_comment(line):
        return []
    inside = _Inside(analysis, place, offset, line)
    found = inside.braced() if place.item.format in BRACED else inside.python()
    return list({(each.label, each.kind): each for each in found}.values())


def _in_comment(line: str) -> bool:
    stripped = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
    return "//" in stripped if not stripped.lstrip().startswith("#") else True


def described(about: tuple[str, str]) -> str:
    """Returns the description of a completion, as Markdown."""
    kind, name = about
    if kind == "operator":
        operator = find_operator(name)
        return "" if operator is None else operator_text(operator)
    signature = primitive(name, kind == "te")
    return "" if signature is None else primitive_text(signature)


class _Inside:
    """A place in an item where something is typed."""

    def __init__(self, analysis: Analysis, place: Place, offset: int, line: str):
        self.analysis, self.place, self.offset, self.line = analysis, place, offset, line
        match = _PREFIX.search(line)
        self.prefix = match[0] if match else ""
        self.start = offset - len(self.prefix)
        self.inner = offset - analysis.start(place.item)

    def around(self) -> Around | None:
        """Returns the call that the place is in."""
        return call_around(tokens_of(self.place.item), self.inner - len(self.prefix))

    # Relay and rules ---------------------------------------------------------------------------------------------------

    def braced(self) -> Iterator[Completion]:
        """Yields what may follow in Relay and in rules."""
        if self.prefix.startswith("@"):
            yield from self.functions()
            return
        if not self.prefix.startswith("%"):
            if "." not in self.prefix:
                yield from self.attributes()
                for word in _KEYWORDS:
                    yield Completion(word, "keyword", self.start)
            yield from self.operators()
        if "." not in self.prefix:
            yield from self.visible()
        if not self.prefix:
            yield from self.functions()

    def functions(self) -> Iterator[Completion]:
        """Yields the functions of the file, as Relay writes them."""
        for place in self.analysis.places:
            for each in names_in(place.item).occurrences:
                if each.defines and each.symbol is None and place.item.format not in ("rules", "definitions"):
                    yield Completion(f"@{each.name.lstrip('@')}", "function", self.start, place.item.kind)

    def attributes(self) -> Iterator[Completion]:
        """Yields the attributes of the operator around that are not yet given."""
        around = self.around()
        operator = None if around is None else find_operator(around.name, self.place)
        if around is None or operator is None:
            return
        for spec in operator.attributes:
            if spec.name not in around.keywords:
                yield Completion(f"{spec.name}=", "property", self.start, f"{spec.text}: {spec.values}")

    def operators(self) -> Iterator[Completion]:
        """Yields all operators, or those of the namespace before the dot."""
        from ..dialects.relay.operator import all_operators

        space = self.prefix.rpartition(".")[0]
        for name, operator in all_operators().items():
            if not space or name.startswith(f"{space}."):
                yield Completion(name, "function", self.start, operator.signature, about=("operator", name))

    def visible(self) -> Iterator[Completion]:
        """Yields the names that are visible here, with their types."""
        for name, symbol in names_in(self.place.item, self.inner - len(self.prefix)).visible.items():
            yield Completion(name, "variable", self.start, self.type_of(symbol))

    def type_of(self, symbol: Symbol) -> str:
        """Returns the type of a name; its kind where that is not known."""
        value = value_of(self.place, symbol)
        return symbol.kind if value is None else type_words(value.type)

    # Python's form -----------------------------------------------------------------------------------------------------

    def python(self) -> Iterator[Completion]:
        """Yields what may follow in TVMScript, TE and schedules."""
        format = self.place.item.format
        string = _STRING.search(re.sub(r'"[^"\n]*"|\'[^\'\n]*\'', lambda m: " " * len(m[0]), self.line))
        if string is not None:
            if format == "schedule":
                yield from self.in_string(self.offset - len(string[2]), self.line[: string.start()])
            return
        stage = _STAGE.search(self.line)
        base, dot, _ = self.prefix.rpartition(".")
        if stage is not None:
            yield from self.te_primitives("stage", self.offset - len(stage[1]))
        elif base in ("T", "T.axis"):
            yield from self.constructs()
        elif dot and format == "schedule":
            yield from self.primitives(self.offset - len(self.prefix) + len(base) + 1)
        elif dot and format == "te" and base not in ("te", "tir"):
            yield from self.te_primitives("schedule", self.offset - len(self.prefix) + len(base) + 1)
        elif not dot:
            if format == "schedule":
                yield from self.in_schedule()
            yield from self.visible()

    def constructs(self) -> Iterator[Completion]:
        """Yields the constructs of TVMScript."""
        import_module("..parser.tvmscript.functions", __package__)
        from ..dialects.tir.intrinsics import KNOWN
        from ..dialects.tir.types import USUAL_DTYPES
        from ..parser.tvmscript.registry import construct

        for name in sorted({*KNOWN, *construct.names(), *USUAL_DTYPES}):
            if f"T.{name}".startswith(self.prefix.rpartition(".")[0] + "."):
                yield Completion(f"T.{name}", "function", self.start)

    def primitives(self, start: int) -> Iterator[Completion]:
        """Yields the primitives of schedules."""
        from ..dialects.schedule import signatures

        for name, signature in signatures().items():
            yield Completion(name, "method", start, f"{signature} -> {signature.result}", about=("tir", name))

    def te_primitives(self, owner: str, start: int) -> Iterator[Completion]:
        """Yields the primitives of TE's schedules or stages."""
        from ..dialects.schedule.signature_table import te_signatures

        for signature in te_signatures().values():
            if signature.owner == owner:
                detail = f"{signature} -> {signature.result}"
                yield Completion(signature.name, "method", start, detail, about=("te", signature.name))

    def targets(self) -> list[tuple[str, str]]:
        """Returns the blocks and loops of the function that the schedule is for."""
        return [each for place in target_places(self.analysis, self.place) for each in blocks_and_loops(place.ops)]

    def in_schedule(self) -> Iterator[Completion]:
        """Yields the parameters of the primitive around, and at a statement's begin the loops of each block."""
        around = self.around()
        signature = None if around is None or "." not in around.name else primitive(around.name)
        if around is not None and signature is not None:
            for parameter in signature.parameters:
                if parameter.name not in around.keywords and not parameter.variadic:
                    yield Completion(f"{parameter.name}=", "property", self.start, f"{parameter}: {parameter.kind}")
        loops: list[str] = []
        handle = next(iter(names_in(self.place.item).visible), "sch")
        for kind, name in self.targets():
            if kind == "loop":
                loops.append(name)
                yield Completion(name, "value", self.start, "a loop's name")
        if self.line.strip() == self.prefix:
            for block, names in self.loops_of_blocks():
                text = f'{", ".join(names)}{"," if len(names) == 1 else ""} = {handle}.get_loops({handle}.get_block("{block}"))'
                yield Completion(text, "snippet", self.start, f"the loops of block '{block}'")

    def loops_of_blocks(self) -> Iterator[tuple[str, list[str]]]:
        """Yields each block of the function with the names of its loops."""
        from ..dialects import tir
        from ..support.walk import walk_ops

        for place in target_places(self.analysis, self.place):
            for top in place.ops:
                for block in (op for op in walk_ops(top) if isinstance(op, tir.BlockOp)):
                    names: list[str] = []
                    around = block.parent_op()
                    while isinstance(around, tir.ForOp):
                        names.insert(0, around.var_name.data)
                        around = around.parent_op()
                    if names:
                        yield block.block_name.data, names

    def in_string(self, start: int, before: str) -> Iterator[Completion]:
        """Yields the blocks, buffers or functions that a string of a schedule may name."""
        if re.search(r"(func_name\s*=\s*|\.work_on\(\s*)$", before):
            for place in self.analysis.places:
                if place.item.format == "tvmscript":
                    for each in names_in(place.item).occurrences:
                        if each.defines and each.symbol is None:
                            yield Completion(each.name, "function", start)
            return
        kind = kind_of_argument(before) or ""
        if "block" in kind or re.search(r"\.get_block\((?:\s*name\s*=)?\s*$", before):
            for what, name in self.targets():
                if what == "block":
                    yield Completion(name, "value", start, "block")
        if "int" in kind:
            for place in target_places(self.analysis, self.place):
                for each in names_in(place.item).occurrences:
                    if each.defines and each.symbol is not None and each.symbol.kind == "buffer":
                        yield Completion(each.name, "value", start, self.type_in(place, each.symbol))

    def type_in(self, place: Place, symbol: Symbol) -> str:
        """Returns the type of a buffer of another item."""
        value = value_of(place, symbol)
        return symbol.kind if value is None else type_words(value.type)
