"""`inline`: calls of global functions that ask for it (`Inline=1`) become what those functions compute.

As TVM's Inline: functions that may come to call themselves are left as they are; one for another compiler (`Compiler=…`) or one
that is a kernel (`Primitive=1`) becomes a local function at the call; where such a function is a value it becomes a local
function, too. What nothing names any more is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.relay import ir
from ...dialects.relay.types import FuncType
from ...support.diagnostics import error_at
from ...support.walk import walk_ops
from .attributes import has_flag, is_primitive
from .call_graph import called_by, components
from .generics import substitute_types, type_arguments
from .rewriting import copy_body, functions_of, place_leaves, replace

MOST_OPS = 1_000_000
"""A module does not grow by more ops than this: a chain of functions that call the next one twice doubles at each step."""


@dataclass(frozen=True)
class Inline(ModulePass):
    """Put the bodies of functions marked Inline=1 in the place of their calls."""

    name = "inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = functions_of(op)
        marked = {name for name, function in functions.items() if has_flag(function, "Inline")}
        inliner = _Inliner({})
        order = list(components(functions))
        for component in order:
            # Callees come first, so that what is put in a place has nothing left to be inlined.
            for name in component.names:
                inliner.run(functions[name])
            if not component.is_recursive and component.names[0] in marked:
                inliner.add(functions[component.names[0]])
        self._drop(op, set(inliner.functions) - {"main"})

    def _drop(self, module: ModuleOp, names: set[str]) -> None:
        for function in functions_of(module).values():
            if function.sym_name.data not in names:
                names.difference_update(called_by(function))
        for name, function in functions_of(module).items():
            if name in names:
                function.detach()
                function.erase()


class _Inliner:
    def __init__(self, functions: dict[str, ir.FuncOp]):
        self.functions = functions
        self._sizes: dict[str, int] = {}
        self._copied = 0

    def add(self, function: ir.FuncOp) -> None:
        """From now on this function is inlined."""
        self.functions[function.sym_name.data] = function
        self._sizes[function.sym_name.data] = sum(1 for _ in walk_ops(function))

    def run(self, function: ir.FuncOp) -> None:
        """Inlines in a function."""
        for op in list(walk_ops(function)):
            match op:
                case ir.CallGlobalOp():
                    callee = self.functions.get(op.callee.root_reference.data)
                    if callee is not None:
                        self._inline(op, callee)
                case ir.GlobalRefOp():
                    callee = self.functions.get(op.symbol.root_reference.data)
                    if callee is not None:
                        self._count(op, callee)
                        replace(op, _local_copy(callee, op, op.result.type).result)
                case _:
                    pass

    def _count(self, op: Operation, callee: ir.FuncOp) -> None:
        name = callee.sym_name.data
        self._copied += self._sizes[name]
        if self._copied > MOST_OPS:
            raise error_at(
                op,
                f"inlining @{name} here makes more than {MOST_OPS} ops",
                "functions that call others more than once grow with each step; take Inline=1 from one of them",
            )

    def _inline(self, call: ir.CallGlobalOp, callee: ir.FuncOp) -> None:
        self._count(call, callee)
        if is_primitive(callee) or "Compiler" in callee.attrs.data:
            function = _local_copy(callee, call, FuncType.get([a.type for a in call.arguments], call.result.type))
            made = ir.CallOp(function, list(call.arguments), call.result.type)
            made.location = call.location
            Rewriter.insert_op(made, InsertPoint.before(call))
            replace(call, made.result)
            return
        types = type_arguments(callee.function_type(), [a.type for a in call.arguments], call.result.type, call)
        before = call.prev_op
        value = copy_body(callee.body.block, call.arguments, call)
        copied: list[Operation] = []
        op = call.parent_block().first_op if before is None else before.next_op  # type: ignore[union-attr]
        while op is not None and op is not call:
            copied.append(op)
            op = op.next_op
        substitute_types(copied, types)
        users = [use.operation for use in call.result.uses]
        replace(call, value)
        for user in users:
            place_leaves(user)


def _local_copy(function: ir.FuncOp, before: Operation, type: Attribute) -> ir.FnOp:
    """The function as a local one before an op; `type` is that of the value, concrete where the function is generic."""
    types: dict[str, Attribute] = {}
    if isinstance(type, FuncType) and not type.type_params.data:
        types = type_arguments(function.function_type(), type.inputs.data, type.output, before)
    body = Block(arg_types=[param.type for param in function.params])
    for new, old in zip(body.args, function.body.block.args, strict=True):
        new.location = old.location
    values: dict[SSAValue, SSAValue] = dict(zip(function.params, body.args, strict=True))
    for op in function.body.block.ops:
        body.add_op(op.clone(values))
    made = ir.FnOp(
        [name.data for name in function.param_names.data],
        Region(body),
        function.function_type(),
        ret_type=function.ret_type,
        type_params=[] if types else [p.data for p in function.type_params.data],
        attrs=function.attrs.data,
    )
    made.location = function.location
    substitute_types([made], types)
    Rewriter.insert_op(made, InsertPoint.before(before))
    if types:
        made.result._type = type  # pyright: ignore[reportPrivateUsage]
    return made
