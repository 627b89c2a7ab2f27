"""Takes the other branch of an `if` where fixed shapes do not fit the operators of one.

    def @main(%x: Tensor[(1, 3), float32], %c: bool) {                 def @main(%x: Tensor[(1, 3), float32], %c: bool) {
      if (%c) { nn.relu(%x) } else { squeeze(%x, axis=[1]) }    ->       guarded(nn.relu(%x), %c)
    }                                                                  }

An open program stops with an error in such a branch, where it is taken; so does this one, by `passes/relay/common/guards.py`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.infer import infer_types
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.text import is_known
from ....support.diagnostics import MirError
from ....support.edit import erase_op
from ..common.guards import guarded
from ..common.rewriting import move_body, returned


def infer_fitting(module: ModuleOp) -> None:
    """Infers all types again; an `if` with type errors in one branch becomes the other.

    Raises:
        MirError: for type errors outside of such branches.
    """
    while True:
        try:
            infer_types(module, fresh=True)
        except MirError:
            unfit: dict[ir.IfOp, bool] = {}
            for function in module.ops:
                if isinstance(function, ir.FuncOp):
                    _fails(function.body.block, unfit)
            if not unfit:
                raise
            # The types of what follows an `if` are inferred next.
            for op, holds in unfit.items():
                _take(op, holds)
        else:
            return


def _fails(block: Block, unfit: dict[ir.IfOp, bool]) -> bool:
    """Returns whether an op of the block has a type error; adds each `if` of which one branch has.

    `unfit` maps an `if` to the condition of its other branch.
    The result of an op with an error is not known, nor that of an op that uses it.
    """
    fails = False
    for op in block.ops:
        if isinstance(op, ir.IfOp):
            inner: dict[ir.IfOp, bool] = {}
            then, other = (_fails(region.block, inner) for region in (op.then_region, op.else_region))
            left = op.else_region if then else op.then_region
            if then != other and is_known(returned(left.block).type):
                unfit[op] = other
            else:
                unfit |= inner
                fails |= (then and other) or (not inner and _is_wrong(op))
        else:
            inside = [_fails(each, unfit) for region in op.regions for each in region.blocks]
            # The result of a call is not known where the function has errors of its own.
            fails |= any(inside) or (isinstance(op, OperatorOp) and _is_wrong(op))
    return fails


def _is_wrong(op: Operation) -> bool:
    return not all(is_known(each.type) for each in op.results) and all(is_known(each.type) for each in op.operands)


def _take(op: ir.IfOp, holds: bool) -> None:
    """Replaces an `if` by the branch that is taken where the condition is `holds`."""
    result = move_body((op.then_region if holds else op.else_region).block, (), op)
    op.result.replace_all_uses_with(_guarded(Emitter(op), result, op.condition, holds))
    erase_op(op)


def _guarded(make: Emitter, value: SSAValue, condition: SSAValue, holds: bool) -> SSAValue:
    """Returns a value whose tensors are guarded."""
    match value.type:
        case TensorType():
            return guarded(make, value, condition, holds)
        case TupleType():
            fields = (make.field(value, index) for index in range(len(value.type.types.data)))
            return make.tuple([_guarded(make, each, condition, holds) for each in fields])
        case _:
            return value
