"""`split-args`: splits a `concatenate` of more tensors than a kernel may take into several.

    concatenate((%a, %b, %c))   ->   concatenate((stop_fusion(concatenate((%a, %b))), %c))     // at most two arguments

As TVM's SplitArgs: each part is joined with the result of the one before, and kept from being fused with it by
`annotation.stop_fusion`. A tensor counts as one argument, and one of unknown sizes as one more for each of its dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.infer import infer_types
from ....dialects.relay.operator import OperatorOp, get_operator, is_operator, operator_class
from ....support.diagnostics import error_at
from ....support.edit import erase_op, insert_op_before, set_type
from ....support.walk import walk_ops
from ..common.rewriting import replace
from ..functional.infer_type import ensure_types


@dataclass(frozen=True)
class SplitArgs(ModulePass):
    """Split concatenations of many tensors, so that no kernel takes more arguments than max-function-args."""

    name = "split-args"

    max_function_args: int
    """The most arguments of a kernel, its results counted; 0 for any number."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.max_function_args < 0:
            raise error_at(op, f"max-function-args must be 0 or more, not {self.max_function_args}")
        if self.max_function_args == 0:
            return
        ensure_types(op)
        changed = False
        for inner in [i for i in walk_ops(op) if isinstance(i, OperatorOp) and is_operator(i, "concatenate")]:
            if isinstance(inner.args[0].owner, ir.TupleOp):
                changed |= self._split(inner, inner.args[0].owner)
        if changed:
            infer_types(op)

    def _split(self, op: OperatorOp, joined: ir.TupleOp) -> bool:
        """Splits a concatenation of `joined`, if it is of as many tensors as a kernel may take, or more."""
        most, count = self.max_function_args, len(joined.fields)
        if count + 1 < most:
            return False
        if count + 1 == most:
            # They just fit, when sizes are not counted: kept together, and apart from what makes them.
            _replace(op, joined, [joined.fields])
            return True
        costs = [_arguments(field.type) for field in joined.fields]
        limit = most - _arguments(op.result.type)
        if limit < 2 * max(costs):
            raise error_at(
                op,
                f"max-function-args={most} is too small for this concatenation",
                f"its result takes {_arguments(op.result.type)} of them, two of its tensors {2 * max(costs)}",
            )
        _replace(op, joined, _parts(joined.fields, costs, limit))
        return True


def _parts(fields: Sequence[SSAValue], costs: Sequence[int], limit: int) -> list[list[SSAValue]]:
    """Splits tensors into parts of at most `limit` arguments; all but the first also take the part before."""
    parts: list[list[SSAValue]] = [[]]
    taken = 0
    for field, cost in zip(fields, costs, strict=True):
        if taken + cost > limit:
            parts.append([])
            taken = max(costs)
        parts[-1].append(field)
        taken += cost
    return parts


def _replace(op: OperatorOp, joined: ir.TupleOp, parts: Sequence[Sequence[SSAValue]]) -> None:
    before: list[SSAValue] = []
    for part in parts:
        before = [_concatenation(op, [*before, *part])]
    set_type(before[0], op.result.type)
    replace(op, before[0])
    if joined.result.first_use is None:
        erase_op(joined)


def _concatenation(op: OperatorOp, part: Sequence[SSAValue]) -> SSAValue:
    """`op` of some tensors only, before it."""
    stop = get_operator("annotation.stop_fusion")
    assert stop is not None
    tuple_op = ir.TupleOp(part)
    fence = operator_class(stop)([tuple_op.result])
    join = operator_class(op.OPERATOR)([fence.result], op.given())
    made: list[Operation] = [tuple_op, fence, join]
    for new in made:
        new.location = op.location
        insert_op_before(new, op)
    return join.result


def _arguments(type: Attribute) -> int:
    """Counts the arguments that a tensor takes: itself, and its sizes where they are not known."""
    if isinstance(type, TensorType) and DYNAMIC_INDEX in type.get_shape():
        return 1 + type.get_num_dims()
    return 1
