"""Analyses of expressions, with TVM's names: variables, operators, walks, types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...passes.pass_info import EXPLAINED, camel_case, explanation
from ...support.arguments import integer
from ...support.diagnostics import Diagnostic, MirError, MirValueError
from ...support.public_names import public_names
from ...support.trace import listening
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.op import Op
from ..ir.structural import structural_equal, structural_hash
from ..no_attribute import no_attribute
from . import ty
from .call_graph import CallGraph
from .export import export_function
from .expr import Call, Constant, Function, RelayExpr, Tuple, Var
from .fc_transpose import transposed_parameters
from .feature import Feature, detect_feature
from .graph import binders, free_vars, parts, post_order
from .match_cases import unmatched_cases
from .normal_forms import check_basic_block_normal_form

if TYPE_CHECKING:
    from ..ir.transform import Pass


def post_order_visit(expr: RelayExpr, fvisit: Callable[[Node], object]) -> None:
    """Calls `fvisit` on every node once, after its parts; also on parameters and on called operators."""
    seen: set[Node] = set()
    for node in post_order(expr):
        extra: Sequence[Node] = binders(node)
        if isinstance(node, Call) and isinstance(node.op, Op):
            extra = (node.op,)
        for other in (*extra, node):
            if other not in seen:
                seen.add(other)
                fvisit(other)


def bound_vars(expr: RelayExpr) -> list[Var]:
    """The variables that the expression binds: parameters, lets, patterns."""
    return list(dict.fromkeys(variable for node in post_order(expr) for variable in binders(node)))


def all_vars(expr: RelayExpr) -> list[Var]:
    """Every variable that the expression uses or binds."""
    found: dict[Var, None] = {}
    for node in post_order(expr):
        found.update(dict.fromkeys(binders(node)))
        if isinstance(node, Var):
            found[node] = None
    return list(found)


def _types_in(expr: RelayExpr | ty.Type) -> tuple[dict[ty.TypeVar, None], dict[ty.TypeVar, None]]:
    """The type variables that are used, and those that a function or a function's type binds."""
    used: dict[ty.TypeVar, None] = {}
    bound: dict[ty.TypeVar, None] = {}
    pending: list[ty.Type | None] = []
    if isinstance(expr, ty.Type):
        pending.append(expr)
    else:
        for node in post_order(expr):
            pending += [variable.type_annotation for variable in binders(node)]
            if isinstance(node, Var):
                pending.append(node.type_annotation)
            elif isinstance(node, Call):
                pending += node.written_type_args
            elif isinstance(node, Function):
                pending.append(node.ret_type)
                bound.update(dict.fromkeys(node.type_params))
    while pending:
        match pending.pop():
            case ty.TypeVar() as variable:
                used[variable] = None
            case ty.TupleType() as tuple_type:
                pending += reversed(tuple_type.fields)
            case ty.FuncType() as function:
                bound.update(dict.fromkeys(function.type_params))
                pending += [function.ret_type, *reversed(function.arg_types)]
            case ty.TypeCall() as call:
                pending += reversed(call.args)
            case ty.RefType() as ref:
                pending.append(ref.value)
            case _:
                pass
    return used, bound


def free_type_vars(expr: RelayExpr | ty.Type, mod: IRModule | None = None) -> list[ty.TypeVar]:
    """The type variables that no function around them declares."""
    used, bound = _types_in(expr)
    return [variable for variable in used if variable not in bound]


def bound_type_vars(expr: RelayExpr | ty.Type, mod: IRModule | None = None) -> list[ty.TypeVar]:
    """The type variables that functions declare."""
    return list(_types_in(expr)[1])


def all_type_vars(expr: RelayExpr | ty.Type, mod: IRModule | None = None) -> list[ty.TypeVar]:
    """Every type variable."""
    used, bound = _types_in(expr)
    return list({**used, **bound})


def list_op_freqs(mod: IRModule) -> dict[str, int]:
    """Counts the calls of each operator in a module's functions, by name."""
    counts: Counter[str] = Counter()
    for function in mod.relay_functions.values():
        for node in post_order(function):
            if isinstance(node, Call) and isinstance(node.op, Op):
                counts[node.op.name] += 1
    return dict(counts)


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """Counts the operators between dequantize and quantize, by name: those that integers could compute."""
    counts: Counter[str] = Counter()
    for function in mod.relay_functions.values():
        users: dict[Node, bool] = {}
        for node in post_order(function):
            if not isinstance(node, Call) or not isinstance(node.op, Op):
                continue
            sources = [users.get(part, False) for part in parts(node)]
            name = node.op.name
            users[node] = name == "qnn.dequantize" or (any(sources) and name != "qnn.quantize")
            if users[node] and name != "qnn.dequantize":
                counts[name] += 1
    return dict(counts)


extract_fake_quantized_ops = list_fake_quantized_op_freqs


def extract_fused_functions(mod: IRModule) -> dict[str, Function]:
    """Returns the kernels that fusing `main` at level 3 makes, each once, by structural hash."""
    from ..ir.named_passes import make_pass

    fused = mod
    for each in (make_pass("SimplifyInference"), _fuse_ops()):
        fused = each(fused)
    found: dict[str, Function] = {}
    for node in post_order(fused.relay_function("main")):
        if isinstance(node, Function) and int(node.attrs.get("Primitive", 0)):
            found.setdefault(str(structural_hash(node)), node)
    return found


def _fuse_ops() -> Pass:
    from ..ir.named_passes import pass_constructor

    fuse = pass_constructor("FuseOps")
    assert fuse is not None
    return fuse(3)


def extract_intermediate_expr(mod: IRModule | RelayExpr, expr_id: int) -> IRModule:
    """Returns a module whose `main` is one call; calls are counted from 0 in program order.

    Raises MirValueError where there are fewer.
    """
    from ..ir.named_passes import make_pass

    root = mod.relay_function("main") if isinstance(mod, IRModule) else mod
    calls = [node for node in post_order(root) if isinstance(node, Call)]
    number = integer(expr_id, "expr_id", 0)
    if number >= len(calls):
        raise MirValueError(Diagnostic(f"there are {len(calls)} calls, and none of number {number}"))
    return make_pass("InferType")(IRModule.from_expr(calls[number]))


extract_intermdeiate_expr = extract_intermediate_expr
"""TVM's spelling."""


def all_ops(expr: RelayExpr) -> list[Op]:
    """The operators that the expression calls, each once."""
    calls = (node for node in post_order(expr) if isinstance(node, Call))
    return list(dict.fromkeys(call.op for call in calls if isinstance(call.op, Op)))


def all_constants(expr: RelayExpr) -> list[Constant]:
    """The constants of the expression."""
    return [node for node in post_order(expr) if isinstance(node, Constant)]


def all_dtypes(expr: RelayExpr) -> set[str]:
    """Returns the dtypes of the tensors in the expression.

    Raises ValueError if types are not known yet (`transform.InferType`).
    """
    found: set[str] = set()
    pending: list[ty.Type] = [node.checked_type for node in post_order(expr) if isinstance(node, RelayExpr)]
    while pending:
        match pending.pop():
            case ty.TensorType() as tensor:
                found.add(tensor.dtype)
            case ty.TupleType() as tuple_type:
                pending += tuple_type.fields
            case ty.FuncType() as function:
                pending += [function.ret_type, *function.arg_types]
            case ty.RefType() as ref:
                pending.append(ref.value)
            case _:
                pass
    return found


def check_constant(expr: RelayExpr) -> bool:
    """Returns whether the expression is a constant, or a tuple of such."""
    return all(isinstance(node, Constant | Tuple) for node in post_order(expr))


def check_kind(t: ty.Type, mod: IRModule | None = None) -> ty.TypeKind:
    """Returns the kind of a type: `Type` for that of a value, `AdtHandle` for a data type's name."""
    return t.kind if isinstance(t, ty.TypeVar | ty.GlobalTypeVar) else ty.TypeKind.Type


def well_formed(expr: RelayExpr | IRModule) -> bool:
    """Returns whether each variable is bound once, around all its uses."""
    functions = expr.relay_functions.values() if isinstance(expr, IRModule) else [expr]
    try:
        for function in functions:
            whole = function if isinstance(function, Function) else Function(free_vars(function), function)
            export_function("main", whole)
    except MirError:
        return False
    return True


def count_layers(expr: RelayExpr, valid_ops: Sequence[str]) -> int:
    """The most calls of these operators on any path through the expression."""
    depth: dict[Node, int] = {}
    for node in post_order(expr):
        own = int(isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in valid_ops)
        depth[node] = own + max((depth.get(part, 0) for part in parts(node)), default=0)
    return depth[expr]


def get_total_mac_number(expr: RelayExpr) -> int:
    """Multiply-accumulates of the dense and convolution calls of an expression whose types are known."""
    total = 0
    for node in post_order(expr):
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in _MACS:
            total += _MACS[node.op.name](node)
    return total


def _tensor_shape(node: RelayExpr) -> tuple[int, ...]:
    type = node.checked_type
    return type.concrete_shape if isinstance(type, ty.TensorType) else ()


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def _contraction_macs(node: Call) -> int:
    """Counts a dense or convolution: each element of the result takes as many as a filter has elements.

    Shapes: dense (N,O) of weight (O,I): N·O·I; conv2d (N,O,H,W) of weight (O,I,kh,kw): N·O·H·W·I·kh·kw.
    """
    weight = _tensor_shape(node.args[1])
    return _product(_tensor_shape(node)) * _product(weight[1:])


def _batch_matmul_macs(node: Call) -> int:
    inner = _tensor_shape(node.args[0])[1 if node.attrs is not None and node.attrs.transpose_a else 2]
    return _product(_tensor_shape(node)) * inner


_MACS: dict[str, Callable[[Call], int]] = {
    "nn.dense": _contraction_macs,
    "nn.conv2d": _contraction_macs,
    "nn.batch_matmul": _batch_matmul_macs,
}


def explain(mod: IRModule, module_pass: Pass) -> list[Diagnostic]:
    """Returns why a pass leaves parts of a module alone, with places: for `FuseOps`, calls not fused.

    Raises MirError for a pass without such remarks.
    """
    remarks: list[Diagnostic] = []
    topics = {camel_case(name): explanation(name) for name in EXPLAINED}
    topic = topics.get(module_pass.info.name)
    if topic is None:
        raise MirError(
            Diagnostic(f"{module_pass.info.name} does not tell what it leaves alone; {', '.join(topics)} do")
        )
    with listening([topic], remarks.append):
        module_pass(mod)
    return remarks


def alpha_equal(lhs: RelayExpr | ty.Type, rhs: RelayExpr | ty.Type) -> bool:
    """Returns whether two expressions are equal up to the names of bound variables."""
    return structural_equal(lhs, rhs)


def search_fc_transpose(expr: RelayExpr) -> list[str]:
    """Returns the names of the variables that dense layers take transposed, `nn.dense(x, transpose(w))`."""
    return [variable.name_hint for variable in transposed_parameters(expr)]


__all__ = [
    "CallGraph",
    "Feature",
    "all_constants",
    "all_dtypes",
    "all_ops",
    "all_type_vars",
    "all_vars",
    "alpha_equal",
    "bound_type_vars",
    "bound_vars",
    "check_basic_block_normal_form",
    "check_constant",
    "check_kind",
    "count_layers",
    "detect_feature",
    "explain",
    "extract_fake_quantized_ops",
    "extract_fused_functions",
    "extract_intermdeiate_expr",
    "extract_intermediate_expr",
    "free_type_vars",
    "free_vars",
    "get_total_mac_number",
    "list_fake_quantized_op_freqs",
    "list_op_freqs",
    "post_order_visit",
    "search_fc_transpose",
    "unmatched_cases",
    "well_formed",
]  # fmt: skip


if not TYPE_CHECKING:
    # Checkers of types report such a name themselves.
    def __getattr__(name: str) -> object:
        raise no_attribute("relay.analysis", name, globals())


__dir__ = public_names(__name__)
