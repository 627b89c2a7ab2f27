"""`lower-relay-to-te`: every Primitive function becomes a TE function, its calls `call_tir`.

An operator that stands outside of any Primitive function becomes a kernel of its own. Functions that compute the same
become one kernel: they are compared by structure, constants by value.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.relay import ir as relay
from ...dialects.relay.operator import OperatorOp
from ...passes.relay.fuse_ops import is_primitive, outline

MOST_NAMED = 6
"""A kernel's name lists at most this many operators."""


@dataclass(frozen=True)
class LowerRelayToTE(ModulePass):
    """Lower Primitive functions and lone operators to TE functions that call_tir calls."""

    name = "lower-relay-to-te"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = _Kernels(op)
        for function in list(op.ops):
            if isinstance(function, relay.FuncOp) and not is_primitive(function):
                _lower_body(function.body.block, kernels)


class _Kernels:
    """The kernels of one module, by structure."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.by_structure: dict[Hashable, str] = {}
        self.names = {name.data for op in module.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}

    def kernel(self, function: relay.FnOp) -> str:
        """The name of the TE function that computes what the Primitive function does."""
        key = structure(function)
        name = self.by_structure.get(key)
        if name is None:
            name = self.by_structure[key] = self._fresh_name(function)
            from .te_kernel import te_function

            self.module.body.block.add_op(te_function(function, name))
        return name

    def _fresh_name(self, function: relay.FnOp) -> str:
        operators = [op.OPERATOR.name.replace(".", "_") for op in function.body.block.ops if isinstance(op, OperatorOp)]
        shown = operators[:MOST_NAMED]
        base = "_".join(["fused", *shown, *(["etc"] if len(operators) > MOST_NAMED else [])])
        name, count = base, 0
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        return name


def _lower_body(body: Block, kernels: _Kernels) -> None:
    pending = [body]
    while pending:
        for op in list(pending.pop().ops):
            match op:
                case OperatorOp():
                    _lower_call(outline([op]), kernels)
                case relay.CallOp() if isinstance(fn := op.callee.owner, relay.FnOp) and is_primitive(fn):
                    _lower_call(op, kernels)
                case relay.FnOp() if is_primitive(op):
                    pass
                case _:
                    pending += [block for region in op.regions for block in region.blocks]


def _lower_call(call: relay.CallOp, kernels: _Kernels) -> None:
    """Replaces a call of a Primitive function by the call of its kernel."""
    function = call.callee.owner
    assert isinstance(function, relay.FnOp)
    lowered = relay.CallTirOp(kernels.kernel(function), call.arguments, call.result.type)
    lowered.location = call.location
    Rewriter.insert_op(lowered, InsertPoint.before(call))
    call.result.replace_all_uses_with(lowered.result)
    call.detach()
    call.erase()
    if not function.result.uses:
        function.detach()
        function.erase()


def structure(function: relay.FnOp) -> Hashable:
    """What two functions that compute the same have in common: types, and ops with their attributes and operands by number."""
    block = function.body.block
    numbers: dict[SSAValue, int] = {value: number for number, value in enumerate(block.args)}
    ops: list[Hashable] = []
    for op in block.ops:
        attributes = tuple(sorted((*op.attributes.items(), *op.properties.items()), key=lambda item: item[0]))
        ops.append((op.name, tuple(numbers[v] for v in op.operands), attributes, tuple(r.type for r in op.results)))
        for result in op.results:
            numbers[result] = len(numbers)
    return (tuple(value.type for value in block.args), tuple(ops))
