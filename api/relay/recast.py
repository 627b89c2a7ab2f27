"""`recast`: computes some operators of an expression in another dtype, between casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...dialects.relay.operator import get_operator
from ...support.diagnostics import Diagnostic, MirError
from ..ir.module import IRModule
from ..ir.named_passes import make_pass
from ..ir.node import Node
from ..ir.op import Op
from .analysis import free_vars
from .expr import Call, Function, RelayExpr, Tuple, TupleGetItem
from .graph import parts, post_order, rebuild, substitute
from .ty import TensorType, TupleType

E = TypeVar("E", RelayExpr, Function, IRModule)


def recast(
    expr: E, dtype: str, out_dtype: str, ops: Sequence[str] = ("nn.conv2d",), skip_layers: Sequence[int] = ()
) -> E:
    """Returns the expression with the operators `ops` computed in `dtype`.

    Their arguments are cast to it, their results have `out_dtype` if they have such an attribute, and are cast back to
    their former dtype. The casts are hard, of whatever values there are: this is for measuring, not for exact results.

    Args:
        expr: a function, an expression, or a module, of which `@main` is changed.
        skip_layers: which of these operators stay, numbered along the longest path of them from the front; negative numbers
            count from the last.

    Raises:
        MirError: for a name that is not an operator's, and if types cannot be inferred.
    """
    for name in ops:
        if get_operator(name) is None:
            raise MirError(Diagnostic(f"recast: there is no operator '{name}'"))
    if isinstance(expr, IRModule):
        typed = make_pass("InferType")(expr)
        result = IRModule.of_op(typed.copy_op())
        result["main"] = _recast(typed.relay_function("main"), dtype, out_dtype, ops, skip_layers)
        return result
    if isinstance(expr, Function):
        typed = make_pass("InferType")(IRModule.from_expr(expr))
        (function,) = typed.relay_functions.values()
        return _recast(function, dtype, out_dtype, ops, skip_layers)
    variables = free_vars(expr)
    function = make_pass("InferType")(IRModule.from_expr(Function(variables, expr))).relay_function("main")
    body = _recast(function, dtype, out_dtype, ops, skip_layers).body
    return substitute(body, dict(zip(function.params, variables, strict=True)))


def _recast(function: Function, dtype: str, out_dtype: str, ops: Sequence[str], skipped: Sequence[int]) -> Function:
    nodes = list(post_order(function))
    chosen: set[Node] = {
        node for node in nodes if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in ops
    }
    behind = _behind(nodes, chosen)
    count = max((behind[node] + 1 for node in chosen), default=0)
    skip = {layer % count if count else layer for layer in skipped}
    new: dict[Node, Node] = {}
    for node in nodes:
        made = rebuild(node, lambda part: new.get(part, part)) if isinstance(node, RelayExpr) else node
        if node in chosen and count - 1 - behind[node] not in skip:
            assert isinstance(made, Call) and isinstance(node, Call)
            made = _cast_call(node, made, dtype, out_dtype)
        new[node] = made
    result = new[function]
    assert isinstance(result, Function)
    return Function(result.params, result.body, None, result.type_params, result.attrs, result.span)


def _behind(nodes: Sequence[Node], chosen: set[Node]) -> dict[Node, int]:
    """For each node, the most of the chosen ones on a way from it to the result, itself left out."""
    behind = dict.fromkeys(nodes, 0)
    for node in reversed(nodes):
        for part in parts(node):
            if part in behind:
                behind[part] = max(behind[part], behind[node] + (node in chosen))
    return behind


def _cast_call(old: Call, call: Call, dtype: str, out_dtype: str) -> RelayExpr:
    assert isinstance(old.op, Op)
    operator = get_operator(old.op.name)
    assert operator is not None
    attrs = dict(call.attrs or {})
    if "out_dtype" in operator.specs:
        attrs["out_dtype"] = out_dtype
    args = [_cast_argument(before, arg, dtype) for before, arg in zip(old.args, call.args, strict=True)]
    made = Call(call.op, args, attrs, call.type_args, call.span)
    type = old.checked_type
    if not isinstance(type, TensorType):
        raise MirError(Diagnostic(f"recast: {old.op.name} gives no tensor to be cast back", old.location))
    return made.astype(type.dtype)


def _cast_argument(old: RelayExpr, new: RelayExpr, dtype: str) -> RelayExpr:
    """An argument in the dtype; of a tuple, each of its fields."""
    type = old.checked_type
    if isinstance(type, TupleType):
        count = len(type.fields)
        fields = new.fields if isinstance(new, Tuple) else [TupleGetItem(new, index) for index in range(count)]
        return Tuple([field.astype(dtype) for field in fields])
    return new.astype(dtype)
