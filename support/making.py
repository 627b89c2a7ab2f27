"""Making and placing ops without what xDSL does for callers that it knows nothing of: lowering makes tens of thousands.

These functions write the fields that `Operation.create`, `Block.add_op` and `Block.insert_op_after` write, in the same way. What is
left out: default values of properties, and the walk up to see that an op is not put inside of itself, which an op without
regions cannot be. `tests/support/test_making.py` holds them to xDSL's own.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, SSAValues, Use

OpT = TypeVar("OpT", bound=Operation)


def make_op(
    kind: type[OpT],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: dict[str, Attribute],
    location: LocationAttr,
) -> OpT:
    """An op of these parts, without regions and successors. `properties` becomes the op's own, and has all that the op needs."""
    op = kind.__new__(kind)
    fill_op(op, operands, result_types, properties, location)
    return op


def fill_op(
    op: Operation,
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: dict[str, Attribute],
    location: LocationAttr,
) -> None:
    """Gives a new op its parts."""
    if operands:
        uses: list[Use] = []
        for index, operand in enumerate(operands):
            first = operand.first_use
            use = Use(op, index, None, first)
            if first is not None:
                first._prev_use = use
            operand.first_use = use
            uses.append(use)
        op._operands = SSAValues(operands)
        op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(type, op, index) for index, type in enumerate(result_types)])
    op.properties = properties
    op.attributes = {}
    op.location = location


def append_op(block: Block, op: Operation) -> None:
    """Puts an op that stands nowhere and has no regions at the end of a block."""
    assert op.parent is None and not op.regions
    last = block._last_op
    op.parent = block
    if last is None:
        block._first_op = op
    else:
        op._prev_op = last
        last._next_op = op
    block._last_op = op


def put_after(op: Operation, place: Operation) -> None:
    """Puts an op that stands nowhere and has no regions after `place`, in its block."""
    block, following = place.parent, place._next_op
    assert op.parent is None and not op.regions and block is not None
    op.parent = block
    op._prev_op, op._next_op = place, following
    place._next_op = op
    if following is None:
        block._last_op = op
    else:
        following._prev_op = op


def put_before(op: Operation, place: Operation) -> None:
    """Puts an op that stands nowhere and has no regions before `place`, in its block."""
    block, before = place.parent, place._prev_op
    assert op.parent is None and not op.regions and block is not None
    op.parent = block
    op._prev_op, op._next_op = before, place
    place._prev_op = op
    if before is None:
        block._first_op = op
    else:
        before._next_op = op


__all__ = ["append_op", "fill_op", "make_op", "put_after", "put_before"]
