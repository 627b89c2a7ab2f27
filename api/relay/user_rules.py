"""Applies rules that programs registered for operators: those of `Legalize` and `AlterOpLayout`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dialects.relay.operator import OperatorOp
from ...passes.relay.layout.layout_propagation import Change, LayoutRewriter
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import error_at
from ..ir.module import IRModule
from ..ir.named_passes import make_pass
from ..ir.node import Node
from ..ir.op import Op
from ..ir.op_attrs import op_attr
from ..ir.transform import infer_types
from .expr import Call, Function, RelayExpr, TupleWrapper, Var
from .graph import post_order, rebuild
from .ty import TensorType, Type, from_attribute

ALTER = "FTVMAlterOpLayout"
Rule = Callable[[Any, Call, Sequence[RelayExpr]], RelayExpr | None]
"""From the registered rule, a typed call and its new arguments to an expression, or None."""


def legalize(mod: IRModule, key: str) -> IRModule:
    """Returns the module with calls replaced by the results of the functions registered under `key`.

    They take the attributes, the arguments, and the types of these and of the result.
    """

    def rule(function: Any, call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
        types = [*(arg.checked_type for arg in call.args), call.checked_type]
        return _expression(call, function(call.attrs, list(args), types))

    return _rewritten(mod, key, rule)


def alter_layouts(mod: IRModule) -> IRModule:
    """Returns the module with operators in the layouts that functions registered for AlterOpLayout choose.

    They take the attributes, the arguments, tensors of the arguments' shapes and the result's type. A call of the same arguments in other
    layouts carries these on through the operators after it; any other expression replaces the call as it is.
    """

    def rule(function: Any, call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
        types = [arg.checked_type for arg in call.args]
        result = _expression(call, function(call.attrs, list(args), _tensors(types), call.checked_type))
        return None if _layout_change(call, result, args) is not None else result

    changed = _rewritten(mod, ALTER, rule)
    op = changed.copy_op()
    in_deep_stack(lambda: _UserLayouts().run(op))
    return infer_types(IRModule.of_op(op, changed))


class _UserLayouts(LayoutRewriter):
    """Asks the registered functions for layouts."""

    def change(self, op: OperatorOp) -> Change | None:
        function = op_attr(op.OPERATOR.name, ALTER)
        if function is None:
            return None
        types = [from_attribute(self.type_of(arg)) for arg in op.args]
        args = [Var(f"arg{number}", type) for number, type in enumerate(types)]
        call = Call(Op.get(op.OPERATOR.name), args, op.attrs())
        result = _expression(call, function(call.attrs, list(args), _tensors(types), from_attribute(op.result.type)))
        return _layout_change(call, result, args)


def _layout_change(call: Call, result: RelayExpr | None, args: Sequence[RelayExpr]) -> Change | None:
    """Returns the change of layouts that a rule's result is; None for any other expression."""
    if not isinstance(result, Call) or not isinstance(result.op, Op) or [*map(id, result.args)] != [*map(id, args)]:
        return None
    before, after = dict(call.attrs or {}), dict(result.attrs or {})
    changed = {name: value for name, value in after.items() if name not in before or before[name] != value}
    if not any("layout" in name for name in changed):
        return None
    return Change(changed, result.op.name)


def _tensors(types: Sequence[Type]) -> list[Any]:
    """Returns what TVM's rules call `tinfos`: a placeholder for each tensor."""
    from ..te import placeholder

    return [placeholder(type.concrete_shape, type.dtype) if isinstance(type, TensorType) else type for type in types]


def _expression(call: Call, result: Any) -> RelayExpr | None:
    """Returns what a rule returned. Raises MirError for what is not an expression."""
    if isinstance(result, TupleWrapper):
        result = result.tuple_value
    if result is not None and not isinstance(result, RelayExpr):
        raise error_at(call.location, f"the rule of {call.op.name} returns an expression or None, not {result!r}")
    return result


def _rewritten(mod: IRModule, key: str, rule: Rule) -> IRModule:
    typed = make_pass("InferType")(mod)
    result = IRModule.of_op(typed.copy_op(), typed)
    for variable, function in typed.relay_functions.items():
        if not int(function.attrs.get("SkipOptimization", 0)):
            result[variable] = _function(function, key, rule)
    return infer_types(result)


def _function(function: Function, key: str, rule: Rule) -> Function:
    new: dict[Node, Node] = {}
    for node in post_order(function):
        made = rebuild(node, lambda part: new.get(part, part)) if isinstance(node, RelayExpr) else node
        if isinstance(node, Call) and isinstance(node.op, Op):
            registered = op_attr(node.op.name, key)
            if registered is not None and isinstance(made, Call):
                made = rule(registered, node, made.args) or made
        new[node] = made
    found = new[function]
    assert isinstance(found, Function)
    return found
