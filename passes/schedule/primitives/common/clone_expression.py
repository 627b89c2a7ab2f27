"""Expressions built again elsewhere, with other values for some of what they are made of."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint

from .....dialects import tir
from ...analysis.structure import is_inside


def clone_value(value: SSAValue, values: Mapping[SSAValue, SSAValue], builder: Builder, inside: Operation) -> SSAValue:
    """Clones the expression of `value`, whose ops are in `inside`, with other values for some leaves."""
    made: dict[SSAValue, SSAValue] = dict(values)
    return _clone(value, made, builder, inside)


def _clone(value: SSAValue, made: dict[SSAValue, SSAValue], builder: Builder, inside: Operation) -> SSAValue:
    known = made.get(value)
    if known is not None:
        return known
    if not isinstance(value, OpResult) or not is_inside(value.op, inside):
        return value
    op = value.op
    operands = [_clone(o, made, builder, inside) for o in op.operands]
    regions: list[Region] = []
    for region in op.regions:
        block = Block()
        inner = Builder(InsertPoint.at_end(block))
        inner.operation_insertion_handler = builder.operation_insertion_handler
        local = dict(made)
        last = region.block.last_op
        for each in region.block.ops:
            if each is last:
                inner.insert(tir.YieldOp(*(_clone(v, local, inner, inside) for v in each.operands)))
        regions.append(Region(block))
    new = type(op).create(
        operands=operands,
        result_types=[r.type for r in op.results],
        properties=op.properties,
        attributes=op.attributes,
        regions=regions,
    )
    builder.insert(new)
    new.location = op.location
    made[value] = new.results[0]
    return new.results[0]
