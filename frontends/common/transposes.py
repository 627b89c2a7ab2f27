"""Finds transposes before products of matrices, which take an operand either way."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.relay.operator import OperatorOp


def transposed_operand(value: SSAValue) -> SSAValue | None:
    """Returns what a value is the transpose of, by its last two axes; None where it is not one."""
    owner = value.owner
    if not isinstance(owner, OperatorOp) or owner.OPERATOR.name != "transpose":
        return None
    axes = owner.attrs().axes
    rank = len(axes) if axes is not None else 2
    last = [*range(rank - 2), rank - 1, rank - 2]
    return owner.args[0] if axes is None or [axis % rank for axis in axes] == last else None
