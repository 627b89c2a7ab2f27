"""Stored rules: their ops as JSON in an index, so that no text is parsed when a rule is needed.

A rule `rewrite @a { exp(%x) => %x }` is its own properties and a list of ops, each `[name, properties, operands, result types]`:

    [{"sym_name":"a",…},[["any",{"capture":"x"},[],[0]],["match",{"names":["relay.exp"],…},[0],[0]],["replace",{…},[1,0],[]]]]

Operands are numbered as the results before them.
"""

from __future__ import annotations

import json
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects import rule as ir
from ....dialects.relay.operator import from_attribute, to_attribute

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
    """The text of a rule in an index."""
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
    """The rule of such a text, each of its ops at `location`."""
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
