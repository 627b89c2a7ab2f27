"""`inline`: replaces calls of global functions that are marked `Inline=1` by their bodies.

    def @f(%a, Inline=1) { exp(%a) }  def @main(%x) { @f(%x) }   ->   def @main(%x) { exp(%x) }

As TVM's Inline: functions that may come to call themselves are left as they are; one for another compiler (`Compiler=…`) or one
that is a kernel (`Primitive=1`) becomes a local function at the call; where such a function is a value it becomes a local
function, too. Functions that nothing names any more are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.types import FuncType
from ....support.diagnostics import error_at
from ....support.edit import erase_op, insert_op_before, set_type
from ....support.trace import Tracer, tracer
from ....support.walk import walk_ops
from ...changes import op_name
from ..common.call_graph import called_by, components
from ..common.function_attributes import has_flag, is_primitive
from ..common.generics import substitute_types, type_arguments
from ..common.rewriting import copy_body, functions_of, move_body, place_leaves, replace
from .infer_type import ensure_types

MOST_OPS = 1_000_000
"""A module does not grow by more ops than this: a chain of functions that call the next one twice doubles at each step."""


@dataclass(frozen=True)
class Inline(ModulePass):
    """Put the bodies of functions marked Inline=1 in the place of their calls."""

    name = "inline"
    tells: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        functions = functions_of(op)
        marked = {name for name, function in functions.items() if has_flag(function, "Inline")}
        inliner = _Inliner(functions, tracer(self.name))
        order = list(components(functions))
        for component in order:
            # Callees come first, so that what is copied has nothing left to be inlined.
            is_inlined = not component.is_recursive and component.names[0] in marked
            if is_inlined:
                inliner.add(functions[component.names[0]])
            for name in component.names:
                if name not in inliner.moved:
                    inliner.run(functions[name])
        self._drop(op, set(inliner.functions) - {"main"}, inliner.trace)

    def _drop(self, module: ModuleOp, names: set[str], trace: Tracer | None) -> None:
        for function in functions_of(module).values():
            if function.sym_name.data not in names:
                names.difference_update(called_by(function))
        for name, function in functions_of(module).items():
            if name in names:
                if trace is not None:
                    trace(function, f"{op_name(function)} goes: nothing names it any more")
                erase_op(function)


class _Inliner:
    def __init__(self, functions: Mapping[str, ir.FuncOp], trace: Tracer | None):
        self.trace = trace
        self.functions: dict[str, ir.FuncOp] = {}
        self.moved: set[str] = set()
        """Functions with one call and no other use: their bodies go there, and are gone through there."""
        references = [op for function in functions.values() for op in _references(function)]
        self._uses = Counter(map(_referred, references))
        self._calls = Counter(_referred(op) for op in references if isinstance(op, ir.CallGlobalOp))
        self._copied = 0
        self._users: set[Operation] = set()

    def add(self, function: ir.FuncOp) -> None:
        """From now on this function is inlined."""
        name = function.sym_name.data
        self.functions[name] = function
        if self._uses[name] == self._calls[name] == 1 and name != "main" and not _stays_whole(function):
            self.moved.add(name)

    def run(self, function: ir.FuncOp) -> None:
        """Inlines in a function."""
        pending = [iter(list(_references(function)))]
        while pending:
            op = next(pending[-1], None)
            if op is None:
                pending.pop()
                continue
            callee = self.functions.get(_referred(op))
            if callee is None or callee is function:
                continue
            if self.trace is not None:
                self.trace(op, f"{op_name(callee)} is inlined", ("its definition", callee))
            if isinstance(op, ir.GlobalRefOp):
                self._count(op, callee)
                replace(op, _local_copy(callee, op, op.result.type).result)
            elif _stays_whole(callee):
                self._count(op, callee)
                _call_local_copy(op, callee)
            else:
                pending.append(iter(list(_references(*self._inline(op, callee)))))
        # A call may have become a constant, which is written where it is used.
        for user in self._users:
            if user.parent is not None:
                place_leaves(user)
        self._users.clear()

    def _count(self, op: Operation, callee: ir.FuncOp) -> None:
        name = callee.sym_name.data
        self._copied += sum(1 for _ in walk_ops(callee))
        if self._copied > MOST_OPS:
            raise error_at(
                op,
                f"inlining @{name} here makes more than {MOST_OPS} ops",
                "functions that call others more than once grow with each step; take Inline=1 from one of them",
            )

    def _inline(self, call: ir.CallGlobalOp, callee: ir.FuncOp) -> list[Operation]:
        """Replaces a call by the callee's body; returns the ops that must still be visited."""
        types = type_arguments(callee.function_type(), [a.type for a in call.arguments], call.result.type, call)
        moved = callee.sym_name.data in self.moved
        before = call.prev_op
        if moved:
            value = move_body(callee.body.block, call.arguments, call)
        else:
            self._count(call, callee)
            value = copy_body(callee.body.block, call.arguments, call)
        ops = _ops_between(before, call)
        substitute_types(ops, types)
        self._users |= {use.operation for use in call.result.uses}
        replace(call, value)
        return ops if moved else []


def _stays_whole(function: ir.FuncOp) -> bool:
    """Returns whether the function stays one piece: a kernel, or a function for another compiler."""
    return is_primitive(function) or "Compiler" in function.attrs.data


def _ops_between(before: Operation | None, end: Operation) -> list[Operation]:
    """Returns the ops of a block between `before` (or its start) and `end`."""
    found: list[Operation] = []
    op = end.prev_op
    while op is not None and op is not before:
        found.append(op)
        op = op.prev_op
    found.reverse()
    return found


def _references(*roots: Operation) -> Iterator[ir.CallGlobalOp | ir.GlobalRefOp]:
    """The ops inside that call or name global functions."""
    for root in roots:
        for op in walk_ops(root):
            if isinstance(op, ir.CallGlobalOp | ir.GlobalRefOp):
                yield op


def _referred(op: ir.CallGlobalOp | ir.GlobalRefOp) -> str:
    """The function that it calls or names."""
    return (op.callee if isinstance(op, ir.CallGlobalOp) else op.symbol).root_reference.data


def _call_local_copy(call: ir.CallGlobalOp, callee: ir.FuncOp) -> None:
    function = _local_copy(callee, call, FuncType.get([a.type for a in call.arguments], call.result.type))
    made = ir.CallOp(function, list(call.arguments), call.result.type)
    made.location = call.location
    insert_op_before(made, call)
    replace(call, made.result)


def _local_copy(function: ir.FuncOp, before: Operation, type: Attribute) -> ir.FnOp:
    """Copies a function as a local one to before an op.

    `type` is that of the value, concrete where the function is generic.
    """
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
    insert_op_before(made, before)
    if types:
        set_type(made.result, type)
    return made
