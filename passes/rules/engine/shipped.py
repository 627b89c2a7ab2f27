"""The rule files that ship with the passes, read only as far as a program needs them.

Beside each file stands an index: the head of every rule and where its text is. A rule is parsed and compiled when
a program has an op at which it may begin; rules were verified when the index was made. An index belongs to one text of the
file and one state of the code that reads it; where the one beside the file is of another, or damaged, one is made and kept in the
cache folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from ....dialects.rule import RewriteOp
from ....support.cache import cache_folder, read_json, read_prebuilt, write_json
from ....support.diagnostics import MirError, Sources, location_of, source_position
from .head import Candidate, Head, head_of
from .library import load_rules, select_rules
from .rewriter import RuleIndex

_PASSES = Path(__file__).parents[2]
_CODE = (
    "dialects/rule/ops.py", "dialects/rule/verify.py", "dialects/rule/levels/relay.py", "parser/rules/build.py",
    "parser/rules/lexer.py", "parser/rules/reader.py", "parser/rules/rules.lark", "passes/rules/engine/head.py",
    "passes/rules/engine/shipped.py",
)  # fmt: skip
"""What decides how a rule is read and what stands in an index."""

# What the search for a rule's end passes over, and stops at.
_BRACES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|(?P<open>\{)|(?P<close>\})')


@cache
def shipped_rules(file: str, strict_math: bool = False) -> RuleIndex:
    """The rules of a file beside the passes, such as "relay/algebra/simplify_expr.mir"; `strict_math` as for `RuleIndex.of`."""
    return read_shipped(_PASSES / file, strict_math)


def read_shipped(path: Path, strict_math: bool = False) -> RuleIndex:
    """The rules of a file that is known to be right; through the index beside it or in the cache folder, which is made if need be."""
    text = path.read_text(encoding="utf-8")
    digest = _digest(_code() + text.encode())
    name = f"rules-{path.stem}-{digest}.json"
    entries = _checked(read_prebuilt(path, digest), len(text)) or _checked(read_json(name), len(text))
    if entries is None:
        entries = _make_index(path, text)
        write_json(name, _stored(entries))
    return RuleIndex(tuple(_candidate(entry, path, text, strict_math) for entry in entries))


def prebuilt_index(path: Path) -> tuple[str, dict[str, Any]]:
    """What is shipped beside a file of rules: its digest, and its index."""
    text = path.read_text(encoding="utf-8")
    return _digest(_code() + text.encode()), _stored(_make_index(path, text))


def _stored(entries: list[Any]) -> dict[str, Any]:
    return {"rules": entries, "check": _check(entries)}


@cache
def _code() -> bytes:
    return b"".join((_PASSES.parent / name).read_bytes() for name in _CODE)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _check(entries: Sequence[Any]) -> str:
    return _digest(json.dumps(entries, separators=(",", ":")).encode())


def _checked(stored: Any, length: int) -> list[Any] | None:
    """The entries of an index as it was read; None where it is damaged."""
    try:
        entries = stored["rules"]
        if stored["check"] != _check(entries):
            return None
        for name, benefit, roots, operands, depth, level, start, end in entries:
            texts = [name, level, *roots, *(each for some in operands for each in some)]
            if not all(isinstance(each, str) for each in texts) or not 0 <= start < end <= length:
                return None
            if not isinstance(benefit, int) or not isinstance(depth, int):
                return None
    except (TypeError, ValueError, KeyError):
        return None
    return cast("list[Any]", entries)


def _make_index(path: Path, text: str) -> list[Any]:
    """Reads and verifies all rules of a file, and tells where each is."""
    try:
        rules = select_rules(load_rules(path))
    except MirError as error:
        raise _damaged(path) from error
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    entries: list[Any] = []
    for rule in rules:
        head, position = head_of(rule), source_position(location_of(rule))
        if position is None:
            raise _damaged(path)
        start = starts[position[1] - 1] + position[2] - 1
        operands = [sorted(names) for names in head.operand_names]
        roots, level = list(head.root_names), rule.level.data
        entries.append([head.name, head.benefit, roots, operands, head.depth, level, start, _end(text, start)])
    return entries


def _end(text: str, start: int) -> int:
    depth = 0
    for match in _BRACES.finditer(text, start):
        depth += (match["open"] is not None) - (match["close"] is not None)
        if match["close"] is not None and depth == 0:
            return match.end()
    return len(text)


def _candidate(entry: Sequence[Any], path: Path, text: str, strict_math: bool) -> Candidate:
    name, benefit, roots, operands, depth, level, start, end = entry
    head = Head(name, benefit, tuple(roots), tuple(frozenset(names) for names in operands), depth)

    def load() -> RewriteOp:
        rule = _read(path, text, level, start, end)
        if head_of(rule) != head:
            raise RuntimeError(f"the index of {path.name} in {cache_folder()} is of another file: delete it")
        return rule

    return Candidate(head, load, strict_math)


def _read(path: Path, text: str, level: str, start: int, end: int) -> RewriteOp:
    """One rule of a file, at its place."""
    from ....parser.items import Item
    from ....parser.rules import tree
    from ....parser.rules.build import build_item
    from ....parser.rules.reader import read_item
    from ....parser.source import Source

    Sources.current().add(str(path), text)
    line_start = text.rfind("\n", 0, start) + 1
    line = text.count("\n", 0, start) + 1
    source = Source(Item("rules", "rewrite", " " * (start - line_start) + text[start:end], str(path), line))
    try:
        item = read_item(source)
        assert isinstance(item, tree.Rewrite)
        rule = build_item(source, replace(item, header=replace(item.header, level=level)))
    except MirError as error:
        raise _damaged(path) from error
    assert isinstance(rule, RewriteOp)
    return rule


def _damaged(path: Path) -> RuntimeError:
    return RuntimeError(f"the rule file {path.name} that ships with mirstack is damaged")
