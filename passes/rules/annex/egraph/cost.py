"""Costs of ops: `mode=saturate` takes the form of a program with the least."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xdsl.dialects.builtin import TensorType, TupleType, VectorType
from xdsl.ir import Attribute, Operation
from xdsl.traits import ConstantLike, IsTerminator, is_side_effect_free

from .....dialects.relay.operator import OperatorOp, OpPattern
from .....dialects.tir.scalar_ops import ROWS

_STRUCTURE = 0.01
"""Of an op that computes nothing, such as a constant or a tuple; more than nothing, so that fewer are better."""

_SCALAR = {
    name.rpartition(".")[2]: row.cost for row in ROWS for name in (row.key, row.mlir_float, row.mlir_signed, row.mlir_unsigned)
} | {"cast": 2.0, "ceildivsi": 16.0, "ceildivui": 16.0, "expm1": 32.0, "fpowi": 32.0, "cbrt": 32.0}  # fmt: skip
"""Scalar ops by the last part of their name, in additions; an op that is not named is one."""
_NOT_MOVED = ("relay.let", "relay.call_tir", "tir.let", "tir.buffer_get", "tir.buffer_region", "tir.comm_reducer")
"""Ops without effects whose place in the program means something."""


def is_free(op: Operation) -> bool:
    """Returns whether an op only computes one value from others, so that it can move anywhere after them."""
    if len(op.results) != 1 or op.regions or op.has_trait(IsTerminator) or op.name in _NOT_MOVED:
        return False
    # xDSL does not call arith's divisions pure, as they are undefined for some operands.
    return is_side_effect_free(op) or op.name.startswith("arith.")


def cost(op: Operation) -> float:
    """Returns the cost of an op in scalar additions: its computation, and elements read and written."""
    result = op.results[0].type
    if isinstance(op, OperatorOp):
        return _operator_cost(op, result)
    if op.has_trait(ConstantLike) or op.name.startswith("relay."):
        return _STRUCTURE
    return _SCALAR.get(op.name.rpartition(".")[2], 1.0) * max(elements(result), 1)


def total_cost(ops: Iterable[Operation]) -> float:
    """Sums the costs of the ops of a program that may be rewritten and are needed; each counts once."""
    return sum(cost(op) for op in ops if is_free(op) and any(result.uses for result in op.results))


def _operator_cost(op: OperatorOp, result: Attribute) -> float:
    moved = elements(result) + sum(elements(operand.type) for operand in op.operands)
    if op.OPERATOR.pattern is OpPattern.OUT_ELEMWISE_FUSABLE and len(op.operands) > 1:
        # A matrix or filter: each element of the result is a sum over as many elements of the second operand as one output takes.
        weight = op.operands[1].type
        dims = weight.get_shape() if isinstance(weight, TensorType) else (1,)
        depth = elements(weight) / max(dims[-2] if len(dims) == 3 else dims[0], 1)
        return 2 * elements(result) * max(depth, 1) + moved
    return elements(result) + moved


def elements(type: Attribute) -> float:
    """Counts the elements of a value: 1 for each unknown dimension, and for a scalar."""
    if isinstance(type, TupleType):
        return sum(map(elements, type.types.data))
    if isinstance(type, TensorType | VectorType):
        return float(math.prod(max(dim, 1) for dim in type.get_shape()))
    return 1.0
