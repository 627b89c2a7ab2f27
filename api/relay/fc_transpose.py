"""Finds parameters that dense layers transpose, and rewrites these to take them transposed."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.module import IRModule
from ..ir.op import Op
from .expr import Call, Function, RelayExpr, Var
from .graph import free_vars, post_order, rebuild
from .ty import TensorType

SUFFIX = ".T"
"""What the name of a parameter that is stored transposed ends with."""


def transposed_parameters(expr: RelayExpr) -> list[Var]:
    """Returns the variables `w` of all `nn.dense(x, transpose(w, axes=[1, 0]))`, in program order."""
    found: dict[Var, None] = {}
    for node in post_order(expr):
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "nn.dense":
            weight = _transposed(node.args[1])
            if weight is not None:
                found[weight] = None
    return list(found)


def _transposed(node: object) -> Var | None:
    """Returns the matrix that a node transposes, where it is a variable."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.name != "transpose":
        return None
    axes = None if node.attrs is None else node.attrs.axes
    arg = node.args[0]
    return arg if isinstance(arg, Var) and (not axes or tuple(axes) in ((1, 0), (-1, 0), (1, -2))) else None


def without_transposes(function: Function, names: Iterable[str]) -> Function:
    """Returns the function with these parameters taken transposed, as `NAME.T`, by dense layers.

    A parameter that is also used otherwise stays beside the new one.
    """
    wanted = frozenset(names)
    chosen = {w: _turned(w) for w in transposed_parameters(function) if w.name_hint in wanted}
    new: dict[object, RelayExpr] = {}
    for node in post_order(function):
        if not isinstance(node, RelayExpr):
            continue
        made = rebuild(node, lambda part: new.get(part, part))  # type: ignore[arg-type, return-value]
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "nn.dense":
            weight = _transposed(node.args[1])
            if weight in chosen:
                made = Call(node.op, [new[node.args[0]], chosen[weight]], node.attrs, None, node.span)
        new[node] = made
    body = new[function.body]
    used = set(free_vars(body))
    params: list[Var] = []
    for param in function.params:
        turned = chosen.get(param)
        if turned is None or param in used:
            params.append(param)
        if turned is not None:
            params.append(turned)
    return Function(params, body, None, function.type_params, function.attrs, function.span)


def _turned(weight: Var) -> Var:
    type = weight.type_annotation or weight.checked_type_
    turned = TensorType(type.shape[::-1], type.dtype) if isinstance(type, TensorType) else None
    return Var(f"{weight.name_hint}{SUFFIX}", turned, weight.span)


def turn_module(mod: IRModule, names: Iterable[str]) -> IRModule:
    """Returns the module with the parameters of `main` taken transposed."""
    result = IRModule.of_op(mod.copy_op(), mod)
    result["main"] = without_transposes(mod.relay_function("main"), names)
    return result
