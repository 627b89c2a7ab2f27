"""Reads a prim_func again where some of its loop nests changed, and keeps the ops of the others.

A function's statements are split at the lines that are indented as its body is. Where the text of two versions differs in loop nests
alone, the function is read with blank lines in place of the nests that did not change, which nothing after them can name; then the ops of the new
nests replace those of the old ones. Whatever else changes, the function is read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ..dialects.tir.stmt import ForOp, PrimFuncOp
from ..dialects.tir.verify import NestFacts
from ..parser.items import Item
from ..support.diagnostics import source_position
from ..support.walk import walk_ops

_HEAD_END = re.compile(r":[ \t]*(?:#.*)?$")
_FOR = re.compile(r"for\b.*:[ \t]*$")
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
    return Change(before, chunks, first, last) if changed and all(each.is_nest for each in changed) else None


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

    @property
    def reduced(self) -> str:
        """Returns the new text with blank lines in place of nests that need not be read again."""
        end = len(self.chunks) - self.last
        texts: list[str] = []
        for number, chunk in enumerate(self.chunks):
            # The statement after a change shows where an unfinished one ends; the function's last one may be read in another way than those before.
            read = not chunk.is_nest or self.first <= number <= end or number == len(self.chunks) - 1
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
        new = made[self.first : end]
        if pairs is None or not all(each and isinstance(each[-1], ForOp) for each in new):
            return None
        if not _uses_only([each for ops_ in new for each in ops_], {value for value, _ in pairs}):
            return None
        return self._put(op, new, pairs)

    def _put(self, op: PrimFuncOp, new: list[list[Operation]], pairs: list[tuple[SSAValue, SSAValue]]) -> Nests:
        before = self.before
        old_end = len(before.chunks) - self.last
        block = before.op.body.block
        after = before.ops[old_end:]
        following = next((ops[0] for ops in after if ops), None)
        for each in reversed([each for ops in before.ops[self.first : old_end] for each in ops]):
            before.facts.pop(each, None)
            each.detach()
            each.erase()
        moved = [each for ops in new for each in ops]
        for each in moved:
            each.detach()
        # What is left of the function that was read for its nests uses nothing any more.
        op.drop_all_references()
        for value, own in pairs:
            value.replace_all_uses_with(own)
        if following is None:
            block.add_ops(moved)
        else:
            block.insert_ops_before(moved, following)
        if self.last and (lines := self.chunks[-self.last].line - before.chunks[-self.last].line):
            below = [each for ops in after for each in ops]
            _move(below, lines)
            for each in below:
                if (facts := before.facts.get(each)) is not None and (facts.diagnostics or facts.uncovered):
                    # Its messages have places.
                    del before.facts[each]
        return Nests(before.op, self.chunks, [*before.ops[: self.first], *new, *after], before.facts)


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
