"""`eta-expand`: wraps constructors and global functions that are values in local functions.

    map(Some, %xs)   ->   map(fn (%x) { Some(%x) }, %xs)

As TVM's EtaExpand (the name is of lambda calculus: `f` as `fn (x) { f(x) }`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.types import FuncType
from ....support.edit import insert_op_before
from ....support.walk import walk_ops
from ..common.rewriting import replace
from .infer_type import ensure_types


@dataclass(frozen=True)
class EtaExpand(ModulePass):
    """Make local functions of constructors and of global functions that are used as values."""

    name = "eta-expand"

    expand_constructor: bool = False
    """Expand constructors, `Cons`."""
    expand_global_var: bool = False
    """Expand global functions, `@f`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        for inner in list(walk_ops(op)):
            match inner:
                case ir.ConstructorRefOp() if self.expand_constructor:
                    _expand(inner)
                case ir.GlobalRefOp() if self.expand_global_var:
                    _expand(inner)
                case _:
                    pass


def _expand(op: ir.ConstructorRefOp | ir.GlobalRefOp) -> None:
    values = [use for use in op.result.uses if not (isinstance(use.operation, ir.CallOp) and use.index == 0)]
    if not values:
        return  # `(@f)(%x)` is a call already.
    type = op.result.type
    assert isinstance(type, FuncType)  # As every name of a function is typed.
    body = Block(arg_types=type.inputs.data)
    call: ir.ConstructOp | ir.CallGlobalOp
    if isinstance(op, ir.ConstructorRefOp):
        call = ir.ConstructOp(op.type_name.data, op.constructor.data, body.args, type.output)
    else:
        call = ir.CallGlobalOp(op.symbol.root_reference.data, body.args, type.output)
    end = ir.ReturnOp(call.result)
    body.add_ops([call, end])
    function = ir.FnOp(
        [_name(number) for number in range(len(body.args))],
        Region(body),
        type,
        ret_type=type.output,
        type_params=[p.data for p in type.type_params.data],
    )
    made: list[Operation] = [call, end, function]
    for new in made:
        new.location = op.location
    insert_op_before(function, op)
    if len(values) == sum(1 for _ in op.result.uses):
        replace(op, function.result)
        return
    for use in values:
        use.operation.operands[use.index] = function.result


def _name(number: int) -> str:
    return f"eta_expand_param{number or ''}"
