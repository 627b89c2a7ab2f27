"""Implements `call-operator-functions`: operators that TIR functions compute become calls of these.

    my.scaled(%x, k=3f)   →   call_tir(@scale, %x, 3f)

Such operators are defined by files and extensions (`dialects/relay/own_operators.py`). The functions are added to the module, and marked
where their accesses are not provably inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.relay import ir as relay
from ....dialects.relay.emit import Emitter
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.own_operators import callee_of
from ....dialects.relay.types import tensor_leaves
from ....passes.relay.functional.infer_type import ensure_types
from ....support.edit import erase_op, insert_op_before
from ....support.text import take_name
from ....support.walk import walk_ops


@dataclass(frozen=True)
class CallOperatorFunctions(ModulePass):
    """Replaces operators that TIR functions compute by calls of these."""

    name = "call-operator-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [each for each in walk_ops(op) if isinstance(each, OperatorOp) and each.OPERATOR.functions]
        if not found:
            return
        ensure_types(op)
        symbols = {
            name.data: each for each in op.ops if isinstance(name := each.properties.get("sym_name"), StringAttr)
        }
        for each in found:
            _call(each, op, symbols)


def _call(op: OperatorOp, module: ModuleOp, symbols: dict[str, Operation]) -> None:
    operator = op.OPERATOR
    types = [leaf for value in op.args for leaf in tensor_leaves(value.type)]
    callee, attributes = callee_of(operator.name, operator.functions, op.attrs(), types)
    name = _declared(callee.function, module, symbols)
    make = Emitter(op)
    values = [make.constant(array, array.dtype.name) for array in attributes]
    call = relay.CallTirOp.create(
        operands=[*op.args, *values], properties={"callee": SymbolRefAttr(name)}, result_types=[op.result.type]
    )
    call.location = op.location
    insert_op_before(call, op)
    op.result.replace_all_uses_with(call.result)
    erase_op(op)


def _declared(function: Operation, module: ModuleOp, symbols: dict[str, Operation]) -> str:
    """Returns the name of a function in a module, which gets it where it has none that is equal."""
    from ...te.mark_open_bounds import mark

    copy = function.clone()
    assert isinstance(copy, tir.PrimFuncOp)
    mark(copy)
    wanted = copy.sym_name.data
    known = symbols.get(wanted)
    if known is not None and (known.is_structurally_equivalent(copy) or known.is_structurally_equivalent(function)):
        return wanted
    copy.sym_name = StringAttr(take_name(wanted, set(symbols)))
    copy.location = function.location
    module.body.block.add_op(copy)
    symbols[copy.sym_name.data] = copy
    return copy.sym_name.data
