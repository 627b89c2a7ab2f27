"""Groups the items of a file into parts that can be read apart from each other, and reads a part.

Items are in one part where one names what another defines, or nearly so, since a message may suggest that name. What is said of a part depends on its
text alone, so that an edit costs reading the part that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation

from ..parser import parse_items
from ..parser.items import Item, ParseContext, in_order, symbol_of
from ..support.diagnostics import Diagnostic, MirError, Sources
from ..support.garbage import no_collection
from ..support.text import nearest
from ..support.verify import find_errors
from .names import BRACED
from .nests import Nests, change_of, nests_of, split_nests

NAME = "<part>"
"""The file in the locations of a part."""
_WORDS = re.compile(r"@?[A-Za-z_]\w*")
_GLOBALS = re.compile(r'@(?:[A-Za-z_]\w*|")')
_CALLED = re.compile(r"(?<![\w.@])[A-Za-z_]\w*(?=\()")
_DOTTED = re.compile(r"(?<![\w.%@$])[A-Za-z_]\w*(?:\.\w+)+(?=\()")
_OPERATOR = re.compile(r"\s*operator\s+([\w.]+)")
_TARGET = re.compile(r"@[\w.]+\([ \t]*([A-Za-z_]\w*)")
_DEFINED = re.compile(r"^[ \t]*(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_HEAD = re.compile(r'\s*(?:fast\s+)?(?:def|rewrite|ruleset)\s+@([A-Za-z_]\w*|")')
# What all of Relay's items share: weights and metadata that any of them may refer to.
_SHARED = "#shared"


@dataclass(frozen=True)
class Mentions:
    """The names that an item defines and mentions; `unsure` mentions may be mistyped."""

    defined: frozenset[str]
    mentioned: frozenset[str]
    unsure: frozenset[str]


@lru_cache(maxsize=4096)
def mentions_of(format: str, kind: str, text: str) -> Mentions:
    """Returns the names of an item, without `@`. Too many only make parts larger."""
    words = frozenset(word.lstrip("@") for word in _WORDS.findall(text))
    if format in BRACED:
        mentioned = frozenset([*(word[1:] for word in _GLOBALS.findall(text)), *_DOTTED.findall(text)])
        if format == "definitions":
            name = _OPERATOR.match(text)
            return Mentions(frozenset([name[1]] if name else []), mentioned, frozenset())
        if kind.startswith("#["):
            shared = frozenset[str]() if kind == "#[version]" else frozenset([_SHARED])
            return Mentions(shared, frozenset(), frozenset())
        if kind in ("type", "extern"):
            return Mentions(words, words, frozenset())
        head = _HEAD.match(text)
        defined = frozenset([head[1]]) if head else frozenset(["main"] if format == "relay" else [])
        types = frozenset(word for word in words if word[0].isupper())
        unsure = frozenset(word for word in mentioned if "." not in word)
        return Mentions(defined, mentioned | types | {_SHARED}, unsure)
    unsure = frozenset((*_CALLED.findall(text), *_TARGET.findall(text)))
    return Mentions(frozenset(_DEFINED.findall(text)), words, unsure)


def defined_by(item: Item) -> frozenset[str]:
    """Returns the names that an item defines."""
    return mentions_of(item.format, item.kind, item.text).defined


def groups(items: Sequence[Item]) -> list[list[int]]:
    """Returns the indices of the items of each part, in the order of the file."""
    names = [mentions_of(item.format, item.kind, item.text) for item in items]
    definers: dict[str, list[int]] = {}
    for index, each in enumerate(names):
        for name in each.defined:
            definers.setdefault(name, []).append(index)
    parent = list(range(len(items)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(index: int, others: Iterable[int]) -> None:
        for other in others:
            parent[root(other)] = root(index)

    for index, each in enumerate(names):
        for name in each.defined | each.mentioned:
            if name in definers:
                join(index, definers[name])
        for name in each.unsure - definers.keys():
            near = nearest(name, definers)
            if near is not None:
                join(index, definers[near])
    found: dict[int, list[int]] = {}
    for index in range(len(items)):
        found.setdefault(root(index), []).append(index)
    return list(found.values())


@dataclass(frozen=True)
class OpsByOffset:
    """The ops of an item and the arguments of their blocks, by offset in the item's text."""

    starts: list[int]
    ops: dict[int, list[Operation]]
    arguments: dict[int, BlockArgument]


@dataclass(eq=False)
class Part:
    """A part: its items one after the other, from line 1, their ops, and what is wrong with them."""

    items: list[Item]
    text: str
    ops: list[list[Operation]] = field(default_factory=list[list[Operation]])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    by_offset: dict[int, OpsByOffset] = field(default_factory=dict[int, "OpsByOffset"])
    """For the items that were asked for: their ops by where they begin."""
    failure: Exception | None = None
    """What no rule of the input explains: a bug, which is logged."""
    nests: Nests | None = None
    """The loop nests of a part that is one prim_func, where they can be read apart from each other."""

    @property
    def has_errors(self) -> bool:
        """Returns whether the part is not well-formed, so that its types may be missing."""
        return self.failure is not None or any(each.severity == "error" for each in self.diagnostics)

    @property
    def lasts(self) -> bool:
        """Returns whether the text alone determines what was found: a side file may change, too."""
        return not any(item.kind == "#[constants]" for item in self.items)


def laid_out(items: Sequence[Item]) -> Part:
    """Returns the part of these items, not yet read."""
    placed: list[Item] = []
    texts: list[str] = []
    line = 1
    for item in items:
        placed.append(replace(item, file=NAME, line=line))
        texts.append(item.text)
        line += item.text.count("\n") + 1
    return Part(placed, "\n".join(texts))


def read_part(part: Part, directory: Path | None, before: Part | None = None) -> None:
    """Reads and verifies a part and applies its schedules; notes all errors.

    Of a prim_func only the loop nests that differ from those of the part `before` are read, whose ops then become this part's.
    """
    sources = Sources()
    sources.add(NAME, part.text)
    with sources.reading(), no_collection():
        try:
            if not _read_change(part, before):
                sources.warnings.clear()
                _read_all(part, directory)
        except MirError as error:
            part.diagnostics += error.diagnostics
        except Exception as error:
            part.failure = error
    part.diagnostics += sources.warnings


def _read_all(part: Part, directory: Path | None) -> None:
    module = ModuleOp([])
    _parse(part, part.items, module, directory)
    if is_prim_func(part) and not Sources.current().warnings:
        part.nests = nests_of(part.items[0], part.ops[0], split_nests(part.items[0].text))
    _check_functions(module, part.nests)
    scripts = [op for op in module.ops if op.name == "schedule.script"]
    if scripts:
        _check_schedules(module, scripts)


def _read_change(part: Part, before: Part | None) -> bool:
    """Reads the nests that changed; returns False where the function must be read as a whole."""
    nests = None if before is None else before.nests
    if before is None or nests is None or not is_prim_func(part):
        return False
    item = part.items[0]
    change = change_of(nests, item.text)
    if change is None:
        return False
    _parse(part, [replace(item, text=change.reduced)], ModuleOp([]), None)
    if Sources.current().warnings:
        return False
    # Its ops become those of this part.
    before.nests = None
    part.nests = change.merge(item, part.ops[0])
    if part.nests is None:
        return False
    before.ops = [[]]
    before.by_offset.clear()
    part.nests.op.detach()
    part.ops = [[part.nests.op]]
    _check_functions(ModuleOp([part.nests.op]), part.nests)
    return True


def is_prim_func(part: Part) -> bool:
    """Returns whether a part is one prim_func."""
    return [item.kind for item in part.items] == ["T.prim_func"]


def _parse(part: Part, items: list[Item], module: ModuleOp, directory: Path | None) -> None:
    """Reads items into a module. Raises MirError for what breaks rules of the text or of ops."""
    context = ParseContext(NAME, module, None if directory is None else str(directory))
    part.ops = parse_items(items, context)
    if context.errors:
        raise MirError(in_order(context.errors))
    module.body.block.add_ops([op for ops in part.ops for op in ops])
    errors = find_errors(module)
    if errors:
        raise MirError(errors)


def _check_functions(module: ModuleOp, nests: Nests | None) -> None:
    """Raises MirError for what breaks a rule of functions."""
    from ..dialects.tir.verify import check_module

    if any(op.name == "tir.prim_func" for op in module.ops):
        check_module(module, nests=None if nests is None else nests.facts)


def _check_schedules(module: ModuleOp, scripts: Sequence[Operation]) -> None:
    """Raises the refusal of a primitive. Scripts of functions that are not yet TIR are left out."""
    from xdsl.context import Context

    from ..passes.schedule.apply_schedule import ApplySchedule

    later = {symbol_of(op) for op in module.ops if op.name not in ("tir.prim_func", "schedule.script")}
    # The pass replaces functions; those of the part stay as they were read.
    work = ModuleOp([op.clone() for op in module.ops if op.name in ("tir.prim_func", "te.func", "relay.func")])
    work.body.block.add_ops([script.clone() for script in scripts if _target(script) not in later])
    ApplySchedule().apply(Context(), work)


def _target(script: Operation) -> str | None:
    from ..dialects.schedule import ScriptOp

    assert isinstance(script, ScriptOp)
    return None if script.target is None else script.target.root_reference.data
