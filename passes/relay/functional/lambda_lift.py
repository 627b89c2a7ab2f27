"""`lambda-lift`: makes local functions global, with captured values as arguments.

As TVM's LambdaLift (Johnsson, "Lambda Lifting", 1985): a local function that uses nothing from outside becomes a global
function. One that does becomes a global function (`Closure=1`) that takes those values and returns the local function.
Kernels (`Primitive=1`) stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....support.edit import erase_op, insert_op_before
from ..common.function_attributes import has_flag, is_primitive
from ..common.generics import type_variables
from ..common.rewriting import free_values, fresh_names, functions_of, inner_first, replace, returned, take_leaves_in
from .infer_type import ensure_types

CLOSURE = "Closure"
"""The attribute of a global function that only makes a local one."""


@dataclass(frozen=True)
class LambdaLift(ModulePass):
    """Make local functions global, with what they capture as arguments."""

    name = "lambda-lift"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        names = fresh_names(op)
        for function in functions_of(op).values():
            if is_primitive(function):
                continue
            for inner in inner_first(function):
                if isinstance(inner, ir.FnOp) and not is_primitive(inner) and not _is_lifted(function, inner):
                    _Lifting(op, inner, names.fresh("lifted_name")).run(before=function)


def _is_lifted(function: ir.FuncOp, inner: ir.FnOp) -> bool:
    """Returns whether the local function is the result of a closure's global function."""
    return has_flag(function, CLOSURE) and returned(function.body.block) is inner.result


@dataclass
class _Lifting:
    module: ModuleOp
    function: ir.FnOp
    name: str

    def run(self, before: ir.FuncOp) -> None:
        """Puts the global function before another, and its use in the place of the local one."""
        take_leaves_in(self.function)
        captured = free_values(self.function)
        if captured:
            self._lift_closure(captured, before)
        else:
            self._lift(before)

    def _lift(self, before: ir.FuncOp) -> None:
        """A function of nothing but its parameters: calls of it become calls of the global one."""
        function = self.function
        if function.self_name is not None:
            self._replace_uses(function.body.block.args[0])
            function.body.block.erase_arg(function.body.block.args[0])
        self._replace_uses(function.result)
        own = [p.data for p in function.type_params.data]
        types = self._all_types(function)
        lifted = ir.FuncOp(
            self.name,
            [name.data for name in function.param_names.data],
            [],
            ret_type=function.ret_type,
            type_params=[*(name for name in type_variables(types) if name not in own), *own],
            attrs=function.attrs.data,
            body=function.detach_region(function.body),
        )
        self._insert(lifted, before)
        erase_op(function)

    def _lift_closure(self, captured: list[SSAValue], before: ir.FuncOp) -> None:
        """Makes a global function of the captured values that returns the local function."""
        function, where = self.function, self.function.location
        types = [value.type for value in captured]
        call = ir.CallGlobalOp(self.name, captured, function.result.type)
        call.location = where
        insert_op_before(call, function)
        function.result.replace_all_uses_with(call.result)
        call.result.name_hint = function.result.name_hint
        body = Block(arg_types=types)
        inside = dict(zip(captured, body.args, strict=True))
        for op in inner_first(function):
            if any(operand in inside for operand in op.operands):
                op.operands = [inside.get(operand, operand) for operand in op.operands]
        function.detach()
        self._recall(list(body.args))
        end = ir.ReturnOp(function.result)
        end.location = where
        body.add_ops([function, end])
        lifted = ir.FuncOp(
            self.name,
            [_name_of(value, number) for number, value in enumerate(captured)],
            [],
            ret_type=function.result.type,
            type_params=type_variables([*types, *self._all_types(function)]),
            attrs={CLOSURE: IntegerAttr(1, i64)},
            body=Region(body),
        )
        self._insert(lifted, before)

    def _recall(self, captured: list[SSAValue]) -> None:
        """A function that calls itself gets itself from the global one."""
        function = self.function
        if function.self_name is None:
            return
        body = function.body.block
        own = body.args[0]
        if own.first_use is not None:
            call = ir.CallGlobalOp(self.name, captured, function.result.type)
            call.location = function.location
            first = body.first_op
            assert first is not None
            insert_op_before(call, first)
            own.replace_all_uses_with(call.result)
        body.erase_arg(own)
        del function.properties["self_name"]

    def _replace_uses(self, value: SSAValue) -> None:
        """Calls of the local function become calls by name, other uses name it."""
        for use in list(value.uses):
            user = use.operation
            if isinstance(user, ir.CallOp) and use.index == 0:
                call = ir.CallGlobalOp(self.name, list(user.arguments), user.result.type)
                call.properties |= {"type_args": user.type_args, "attrs": user.attrs}
                call.location = user.location
                insert_op_before(call, user)
                replace(user, call.result)
            else:
                ref = ir.GlobalRefOp(self.name, value.type)
                ref.location = self.function.location
                insert_op_before(ref, user)
                user.operands[use.index] = ref.result

    def _all_types(self, function: ir.FnOp) -> list[Attribute]:
        return [*(param.type for param in function.params), function.ret_type, *_result_types(function)]

    def _insert(self, lifted: ir.FuncOp, before: ir.FuncOp) -> None:
        lifted.location = self.function.location
        insert_op_before(lifted, before)


def _result_types(function: ir.FnOp) -> list[Attribute]:
    return [result.type for op in inner_first(function) if op is not function for result in op.results]


def _name_of(value: SSAValue, number: int) -> str:
    """A parameter's name for a captured value: that which it had in the text."""
    owner = value.owner
    if isinstance(owner, ir.LetOp):
        return owner.var_name.data
    if isinstance(owner, Block):
        around = owner.parent_op()
        if isinstance(around, ir.FuncOp | ir.FnOp) and value in around.params:
            return around.param_names.data[list(around.params).index(value)].data
    return f"captured{number or ''}"
