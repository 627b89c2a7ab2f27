"""Reads a prim_func again where some of its loop nests changed, and keeps the ops of the others.

A function's statements are split at the lines that are indented as its body is. Where the text of two versions differs in loop nests
alone, the function is read with blank lines in place of the nests that did not change, which nothing after them can name; then the ops of the new
nests replace those of the old ones. Where definitions between the nests change, such as that of an allocated buffer, the nests that mention one of their names
are read as well. Whatever else changes, the function is read as a whole.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import Pure

from ..dialects.tir.buffer import AllocBufferOp
from ..dialects.tir.stmt import ForOp, PrimFuncOp
from ..dialects.tir.verify import NestFacts
from ..parser.items import Item
from ..support.diagnostics import source_position
from ..support.walk import walk_ops

_HEAD_END = re.compile(r":[ \t]*(?:#.*)?$")
_FOR = re.compile(r"for\b.*:[ \t]*$")
_DEFINITION = re.compile(r"(?!T\b)(\w+)[ \t]*(?:,[ \t]*\w+[ \t]*)*(?::[^=\n]*)?(?:=|$)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_NEVER_SPLIT = re.compile(r'"""|\'\'\'|\\\n')


@dataclass(frozen=True)
class Chunk:
    """Adjacent lines of an item: a loop nest, or any other statement with what is written below it."""

    text: str
    line: int
    """The number of its first line, from 1."""
    is_nest: bool

    @property
    def end(self) -> int:
        """Returns the number of the line after its last one."""
        return self.line + self.text.count("\n") + 1


def split_nests(text: str) -> list[Chunk] | None:
    """Returns the chunks of a prim_func's text, its head first; None where lines do not show them."""
    if _NEVER_SPLIT.search(text):
        return None
    lines = text.split("\n")
    head = next((k for k, line in enumerate(lines) if line.startswith("def ")), None)
    if head is None:
        return None
    while head < len(lines) and not _HEAD_END.search(lines[head]):
        head += 1
    body = next((k for k in range(head + 1, len(lines)) if lines[k].strip() and lines[k].lstrip()[0] != "#"), None)
    if body is None:
        return None
    indent = lines[body][: len(lines[body]) - len(lines[body].lstrip(" "))]
    if not indent or "\t" in text:
        return None
    starts = [0]
    for k in range(body, len(lines)):
        line = lines[k]
        if line.startswith(indent) and line[len(indent) :][:1] not in ("", " ", "#"):
            starts.append(k)
    chunks: list[Chunk] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        is_nest = start > 0 and _FOR.match(lines[start].lstrip(" ")) is not None
        chunks.append(Chunk("\n".join(lines[start:end]), start + 1, is_nest))
    return chunks


@dataclass
class Nests:
    """A prim_func that was read without an error of an op, by the chunks of its text."""

    op: PrimFuncOp
    chunks: list[Chunk]
    ops: list[list[Operation]]
    """The ops of the function's body that each chunk made."""
    facts: dict[Operation, NestFacts] = field(default_factory=dict[Operation, NestFacts])


def nests_of(item: Item, ops: Sequence[Operation], chunks: list[Chunk] | None) -> Nests | None:
    """Returns the nests of an item that was read; None where it has none that can be read apart."""
    if chunks is None or len(ops) != 1 or not isinstance(ops[0], PrimFuncOp):
        return None
    made = _by_chunk(ops[0], chunks, item)
    if made is None:
        return None
    whole = all(
        not chunk.is_nest or (each and isinstance(each[-1], ForOp)) for chunk, each in zip(chunks, made, strict=True)
    )
    return Nests(ops[0], chunks, made) if whole else None


def _by_chunk(op: PrimFuncOp, chunks: Sequence[Chunk], item: Item) -> list[list[Operation]] | None:
    made: list[list[Operation]] = [[] for _ in chunks]
    index = 0
    for each in op.body.block.ops:
        position = source_position(each.location)
        if position is None or (line := position[1] - item.line + 1) < chunks[index].line:
            return None
        while index + 1 < len(chunks) and line >= chunks[index + 1].line:
            index += 1
        made[index].append(each)
    return made


def change_of(before: Nests, text: str) -> Change | None:
    """Returns what changed in a function; None where that is more than loop nests."""
    chunks = split_nests(text)
    if chunks is None:
        return None
    pairs = [(a.text, b.text) for a, b in zip(before.chunks, chunks, strict=False)]
    first = sum(1 for _ in takewhile(_are_equal, pairs))
    pairs = [(a.text, b.text) for a, b in zip(reversed(before.chunks[first:]), reversed(chunks[first:]), strict=False)]
    last = sum(1 for _ in takewhile(_are_equal, pairs))
    changed = [*before.chunks[first : len(before.chunks) - last], *chunks[first : len(chunks) - last]]
    names: set[str] = set()
    for each in changed:
        if not each.is_nest:
            defined = _defined(each) if first else None
            if defined is None:
                return None
            names |= defined
    also: set[int] = set()
    for number in [*range(first), *range(len(chunks) - last, len(chunks))] if names else ():
        if not names.isdisjoint(_WORD.findall(chunks[number].text)):
            if not chunks[number].is_nest:
                return None
            also.add(number)
    return Change(before, chunks, first, last, frozenset(also)) if changed else None


def _defined(chunk: Chunk) -> set[str] | None:
    """Returns the names that a statement may define; None where it may mean something to all that follow."""
    match = _DEFINITION.match(chunk.text.lstrip(" "))
    return set(_WORD.findall(match[0])) if match and not keyword.iskeyword(match[1]) else None


def _are_equal(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


@dataclass(frozen=True)
class Change:
    """The chunks of a new text, and which of them differ from those of the nests that were read before."""

    before: Nests
    chunks: list[Chunk]
    first: int
    """How many chunks at the begin are as before."""
    last: int
    """How many chunks at the end are."""
    also: frozenset[int] = frozenset()
    """Other nests of the new text that are read again, since they name what changed."""

    def _replaced(self, number: int) -> bool:
        """Returns whether a chunk of the new text has new ops."""
        return self.first <= number < len(self.chunks) - self.last or number in self.also

    def _old(self, number: int) -> int:
        """Returns the number that an unchanged chunk had before."""
        return number if number < self.first else number + len(self.before.chunks) - len(self.chunks)

    @property
    def reduced(self) -> str:
        """Returns the new text with blank lines in place of nests that need not be read again."""
        end = len(self.chunks) - self.last
        texts: list[str] = []
        for number, chunk in enumerate(self.chunks):
            # The statement after a change shows where an unfinished one ends; the function's last one may be read in another way than those before.
            last = number in (end, len(self.chunks) - 1)
            read = not chunk.is_nest or last or self._replaced(number)
            texts.append(chunk.text if read else "\n" * chunk.text.count("\n"))
        return "\n".join(texts)

    def merge(self, item: Item, ops: Sequence[Operation]) -> Nests | None:
        """Puts the new nests, which were read of the reduced text, in place of the old ones.

        None, and nothing is changed, where more than nests changed.
        """
        before, end = self.before, len(self.chunks) - self.last
        if len(ops) != 1 or not isinstance(op := ops[0], PrimFuncOp) or op.properties != before.op.properties:
            return None
        made = _by_chunk(op, self.chunks, item)
        if made is None:
            return None
        kept = _seen_by_all(self.chunks, made, self.first, end)
        stood = _seen_by_all(before.chunks, before.ops, self.first, len(before.chunks) - self.last)
        pairs = _same_values(op.body.block, before.op.body.block, kept, stood)
        new = {number: made[number] for number in range(len(self.chunks)) if self._replaced(number)}
        gone = [before.ops[number] for number in range(self.first, len(before.chunks) - self.last)]
        statements = [ops for number, ops in new.items() if not self.chunks[number].is_nest]
        statements += [
            before.ops[number]
            for number in range(self.first, len(before.chunks) - self.last)
            if not before.chunks[number].is_nest
        ]
        gone += [before.ops[self._old(number)] for number in self.also]
        if pairs is None or not all(_only_defines(ops) for ops in statements):
            return None
        if not all(ops and isinstance(ops[-1], ForOp) for number, ops in new.items() if self.chunks[number].is_nest):
            return None
        if not _uses_only([each for ops_ in new.values() for each in ops_], {value for value, _ in pairs}):
            return None
        erased = {each for ops in gone for op in ops for each in walk_ops(op)}
        if any(use.operation not in erased for each in erased for result in each.results for use in result.uses):
            return None
        return self._put(op, new, gone, pairs)

    def _put(
        self,
        op: PrimFuncOp,
        new: dict[int, list[Operation]],
        gone: list[list[Operation]],
        pairs: list[tuple[SSAValue, SSAValue]],
    ) -> Nests:
        before = self.before
        block = before.op.body.block
        old = [each for ops in gone for each in ops]
        for each in old:
            before.facts.pop(each, None)
            each.detach()
            # Statements may be used by nests that go as well.
            each.drop_all_references()
        for each in old:
            each.erase(safe_erase=False, drop_references=False)
        for ops in new.values():
            for each in ops:
                each.detach()
        # What is left of the function that was read for its nests uses nothing any more.
        op.drop_all_references()
        for value, own in pairs:
            value.replace_all_uses_with(own)
        made = [new[k] if k in new else before.ops[self._old(k)] for k in range(len(self.chunks))]
        following: Operation | None = None
        for number in reversed(range(len(self.chunks))):
            if number in new:
                if following is None:
                    block.add_ops(made[number])
                else:
                    block.insert_ops_before(made[number], following)
            following = made[number][0] if made[number] else following
        if self.last and (lines := self.chunks[-self.last].line - before.chunks[-self.last].line):
            below = range(len(self.chunks) - self.last, len(self.chunks))
            moved = [each for number in below if number not in new for each in made[number]]
            _move(moved, lines)
            for each in moved:
                if (facts := before.facts.get(each)) is not None and (facts.diagnostics or facts.uncovered):
                    # Its messages have places.
                    del before.facts[each]
        return Nests(before.op, self.chunks, made, before.facts)


def _only_defines(ops: Sequence[Operation]) -> bool:
    """Returns whether the ops of a statement mean nothing to what does not use their results."""
    return bool(ops) and all(isinstance(op, AllocBufferOp) or op.has_trait(Pure) for op in ops)


def _seen_by_all(chunks: Sequence[Chunk], ops: Sequence[list[Operation]], first: int, end: int) -> list[Operation]:
    """Returns the ops of all chunks but nests and those from `first` to `end`: every nest may use them."""
    numbers = [*range(first), *range(end, len(chunks))]
    return [each for number in numbers if not chunks[number].is_nest for each in ops[number]]


def _same_values(
    new: Block, old: Block, made: Sequence[Operation], stood: Sequence[Operation]
) -> list[tuple[SSAValue, SSAValue]] | None:
    """Returns the values that all nests see, of both functions; None where these are not the same ones."""
    if len(made) != len(stood) or [a.type for a in new.args] != [a.type for a in old.args]:
        return None
    pairs: list[tuple[SSAValue, SSAValue]] = list(zip(new.args, old.args, strict=True))
    for op, other in zip(made, stood, strict=True):
        types = [result.type for result in op.results] == [result.type for result in other.results]
        if not types or type(op) is not type(other) or op.properties != other.properties:
            return None
        pairs += zip(op.results, other.results, strict=True)
    return pairs


def _uses_only(ops: Sequence[Operation], values: set[SSAValue]) -> bool:
    """Returns whether ops use nothing but these values and what they define themselves."""
    inside = [each for op in ops for each in walk_ops(op)]
    values = values | {result for op in inside for result in op.results} | set(_arguments(inside))
    return all(operand in values for op in inside for operand in op.operands)


def _arguments(ops: Iterable[Operation]) -> Iterator[BlockArgument]:
    return (a for op in ops for region in op.regions for block in region.blocks for a in block.args)


def _move(ops: Iterable[Operation], lines: int) -> None:
    """Adds a number of lines to the locations of ops and all inside them."""
    known: dict[Attribute, LocationAttr] = {}

    def moved(location: LocationAttr) -> LocationAttr:
        if not isinstance(location, FileLineColLoc):
            return location
        if location not in known:
            known[location] = FileLineColLoc(location.filename, IntAttr(location.line.data + lines), location.column)
        return known[location]

    for op in ops:
        for each in walk_ops(op):
            each.location = moved(each.location)
            for argument in _arguments([each]):
                argument.location = moved(argument.location)
