"""The rule files that ship with the passes, read only as far as a program needs them.

Beside each file stands an index: the head of every rule, its place, and its ops as JSON. A rule is made of these and compiled when
a program has an op at which it may begin; rules were parsed and verified when the index was made. An index belongs to one text of the
file and one state of the code that reads it; where the one beside the file is of another, or damaged, one is made and kept in the
cache folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects import rule as ir
from ....dialects.relay.operator import from_attribute, to_attribute
from ....dialects.rule import RewriteOp
from ....support.cache import cache_folder, read_json, read_prebuilt, write_json
from ....support.diagnostics import MirError, Sources, file_loc, location_of, source_position
from .head import Candidate, Head, head_of
from .library import load_rules, select_rules
from .rewriter import RuleIndex

_PASSES = Path(__file__).parents[2]
_CODE = (
    "dialects/rule/ops.py", "dialects/rule/levels/imported.py", "dialects/rule/levels/relay.py", "parser/rules/build.py",
    "parser/rules/lexer.py", "parser/rules/reader.py", "parser/rules/rules.lark", "passes/rules/engine/head.py",
    "passes/rules/engine/shipped.py", "dialects/rule/levels/tir.py",
)  # fmt: skip
"""Files that decide how a rule is read and what an index holds."""


@cache
def shipped_rules(file: str, strict_math: bool = False) -> RuleIndex:
    """Returns the rules of a shipped file, such as "relay/algebra/simplify_expr.mir"; see `RuleIndex.of`."""
    return read_shipped(_PASSES / file, strict_math)


def read_shipped(path: Path, strict_math: bool = False) -> RuleIndex:
    """Reads the rules of a file that is known to be right, through the index beside it.

    If that is missing or outdated, through one in the cache folder, which is made if need be.
    """
    text = path.read_text(encoding="utf-8")
    digest = _digest(_code() + text.encode())
    name = f"rules-{path.stem}-{digest}.json"
    entries = _checked(read_prebuilt(path, digest)) or _checked(read_json(name))
    if entries is None:
        entries = _make_index(path)
        write_json(name, _stored(entries))
    return RuleIndex(tuple(_candidate(entry, path, text, strict_math) for entry in entries))


def prebuilt_index(path: Path) -> tuple[str, dict[str, Any]]:
    """Makes the index that is shipped beside a file of rules; returns its digest and content."""
    text = path.read_text(encoding="utf-8")
    return _digest(_code() + text.encode()), _stored(_make_index(path))


def _stored(entries: list[Any]) -> dict[str, Any]:
    return {"rules": entries, "check": _check(entries)}


@cache
def _code() -> bytes:
    return b"".join((_PASSES.parent / name).read_bytes() for name in _CODE)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _check(entries: Sequence[Any]) -> str:
    return _digest(json.dumps(entries, separators=(",", ":")).encode())


def _checked(stored: Any) -> list[Any] | None:
    """The entries of an index as it was read; None where it is damaged."""
    try:
        entries = stored["rules"]
        if stored["check"] != _check(entries):
            return None
        for name, benefit, roots, operands, depth, line, column, ops in entries:
            texts = [name, ops, *roots, *(each for some in operands for each in some)]
            if not all(isinstance(each, str) for each in texts):
                return None
            if not all(isinstance(each, int) for each in (benefit, depth, line, column)):
                return None
    except (TypeError, ValueError, KeyError):
        return None
    return cast("list[Any]", entries)


def _make_index(path: Path) -> list[Any]:
    """Reads and verifies all rules of a file."""
    try:
        rules = select_rules(load_rules(path))
    except MirError as error:
        raise _damaged(path) from error
    entries: list[Any] = []
    for rule in rules:
        head, position = head_of(rule), source_position(location_of(rule))
        if position is None:
            raise _damaged(path)
        operands = [sorted(names) for names in head.operand_names]
        place = position[1], position[2]
        entries.append([head.name, head.benefit, list(head.root_names), operands, head.depth, *place, encoded(rule)])
    return entries


def _candidate(entry: Sequence[Any], path: Path, text: str, strict_math: bool) -> Candidate:
    name, benefit, roots, operands, depth, line, column, ops = entry
    head = Head(name, benefit, tuple(roots), tuple(frozenset(names) for names in operands), depth)

    def load() -> RewriteOp:
        Sources.current().add(str(path), text)
        rule = decoded(ops, file_loc(str(path), line, column))
        if head_of(rule) != head:
            raise RuntimeError(f"the index of {path.name} in {cache_folder()} is of another file: delete it")
        return rule

    return Candidate(head, load, strict_math)


def _damaged(path: Path) -> RuntimeError:
    return RuntimeError(f"the rule file {path.name} that ships with mirstack is damaged")


_OPS = {
    op.name.removeprefix("rule."): op
    for op in (
        ir.AnyOp, ir.LiteralOp, ir.MatchOp, ir.AttrOp, ir.DataOp, ir.ComputeOp, ir.WhereOp, ir.BuildOp, ir.ConstantOp, ir.FoldOp,
        ir.SelectOp, ir.ReplaceOp,
    )
}  # fmt: skip
_TYPES = (ir.VALUE, ir.RUN, ir.ATTR, ir.ATTRS, ir.OPERATION)
_SEGMENTS = "operandSegmentSizes", "resultSegmentSizes"


def encoded(rule: ir.RewriteOp) -> str:
    """Encodes a rule as JSON: properties, and ops as `[name, properties, operands, result types]`.

    `rewrite @a { exp(%x) => %x }`, with operands numbered as the results before them:

        [{"sym_name":"a",…},[["any",{"capture":"x"},[],[0]],["match",{"names":["relay.exp"],…},[0],[0]],["replace",{…},[1,0],[]]]]
    """
    numbers: dict[SSAValue, int] = {}
    ops: list[Any] = []
    for op in rule.body.block.ops:
        operands = [numbers[operand] for operand in op.operands]
        types = [_TYPES.index(result.type) for result in op.results]  # pyright: ignore[reportArgumentType]
        ops.append([op.name.removeprefix("rule."), _plain(op.properties), operands, types])
        for result in op.results:
            numbers[result] = len(numbers)
    return json.dumps([_plain(rule.properties), ops], separators=(",", ":"))


def decoded(text: str, location: LocationAttr) -> ir.RewriteOp:
    """Decodes a rule, each of its ops at `location`."""
    properties, ops = json.loads(text)
    values: list[SSAValue] = []
    block = Block()
    numbers: list[list[int]]
    for name, given, *numbers in ops:
        op = _OPS[name].create(
            operands=[values[number] for number in numbers[0]],
            result_types=[_TYPES[number] for number in numbers[1]],
            properties=_attributes(given),
        )
        op.location = location
        block.add_op(op)
        values += op.results
    rule = ir.RewriteOp.create(properties=_attributes(properties), regions=[Region(block)])
    rule.location = location
    return rule


def _plain(properties: dict[str, Attribute]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in properties.items():
        if isinstance(value, UnitAttr):
            found[name] = None
        elif name in _SEGMENTS:
            sizes: Any = value
            found[name] = list(sizes.get_values())
        else:
            found[name] = from_attribute(value)
            assert to_attribute(found[name]) == value
    return found


def _attributes(properties: dict[str, Any]) -> dict[str, Attribute]:
    return {
        name: UnitAttr()
        if name == "fast"
        else DenseArrayBase.from_list(i32, value)
        if name in _SEGMENTS
        else to_attribute(value)
        for name, value in properties.items()
    }
