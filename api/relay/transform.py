"""`mirstack.relay.transform`: passes on Relay by TVM's names, and functions of expressions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from ...dialects.relay.operator import get_operator
from ...passes.pass_info import PassInfo
from ...support.arguments import items
from ...support.diagnostics import Diagnostic, MirError, MirValueError
from ..ir.layout_config import LayoutConfig
from ..ir.module import IRModule
from ..ir.named_passes import make_pass, pass_constructor, pass_names
from ..ir.node import Node
from ..ir.op import Op
from ..ir.op_attrs import is_given
from ..ir.sequential import Sequential
from ..ir.transform import FunctionPass, ModulePass, Pass, PassContext, function_pass, module_pass
from ..no_attribute import no_attribute
from .analysis import free_vars
from .dataflow_pattern import DFPattern, partition
from .export import node_types
from .expr import Call, Function, GlobalVar, RelayExpr, Tuple, TupleGetItem, Var
from .fc_transpose import turn_module
from .graph import parts, post_order, rebuild, substitute
from .ty import TensorType, TupleType, Type

Skip = Callable[[RelayExpr], bool]
"""Whether an expression is to stay as it is."""


def merge_equal(function: Function, fskip: Skip) -> Function:
    """Merges each call of an operator, and each field of a tuple, with an equal one before it.

    Operators without arguments and those with an effect stay, as do those for which `fskip` is true; it is called on expressions
    whose arguments are merged already. Linear in the number of nodes.
    """
    new: dict[Node, Node] = {}
    known: dict[Hashable, RelayExpr] = {}
    for node in post_order(function):
        if not isinstance(node, RelayExpr):
            new[node] = node
            continue
        made = rebuild(node, lambda part: new.get(part, part))
        key = _key(made)
        new[node] = made if key is None or fskip(made) else known.setdefault(key, made)
    result = new[function]
    assert isinstance(result, Function)
    return result


def _key(node: RelayExpr) -> Hashable | None:
    """Equal for expressions that compute the same; None for one that is not merged."""
    match node:
        case Call() if isinstance(node.op, Op) and node.args:
            operator = get_operator(node.op.name)
            if operator is None or operator.stateful:
                return None
            return (operator.name, tuple(map(id, node.args)), repr(node.attrs and sorted(node.attrs.items())))
        case TupleGetItem():
            return (id(node.tuple_value), node.index)
        case _:
            return None


_FOLDERS = (
    "passes.relay.",
    "passes.rules.",
    "passes.common.",
    "lowering.relay.",
    "passes.tir.blocks.fuse_tir",
)


PatternEntry = tuple[str, DFPattern] | tuple[str, DFPattern, Callable[[Any], bool]]
"""A name, a pattern, and, if it is there, what a match (its root) has to be."""


def MergeComposite(pattern_table: Sequence[PatternEntry]) -> FunctionPass:
    """Returns a pass that outlines the patterns' matches into functions with the attribute `Composite`.

    The attribute is the pattern's name. Patterns are tried in order; the body of such a function is left as it is.
    """

    def merge(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        result: RelayExpr = function
        for name, pattern, *checks in pattern_table:
            result = partition(pattern, result, {"Composite": name}, *checks)
        assert isinstance(result, Function)
        return result

    return FunctionPass(merge, PassInfo(0, "MergeComposite"))


def FoldScaleAxis() -> Sequential:
    """Folds channel scales into weights: backward, for a normalization after a convolution, then forward."""
    return Sequential([make_pass("BackwardFoldScaleAxis"), make_pass("ForwardFoldScaleAxis")], name="FoldScaleAxis")


def BatchingOps() -> Sequential:
    """Merges convolutions, dense layers and batched products of one input, each kind into one call.

    The passes run from level 4 on.
    """
    kinds = ("CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul")
    return Sequential([make_pass(kind) for kind in kinds], name="BatchingOps")


def EliminateCommonSubexpr(fskip: Skip | None = None) -> Pass:
    """Returns a pass that merges equal calls of operators, except those for which `fskip` is true.

    Calls are equal if their attributes are equal and their arguments the same.
    """
    if fskip is None:
        return make_pass("EliminateCommonSubexpr")

    def merge(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return merge_equal(function, fskip)

    return FunctionPass(merge, PassInfo(3, "EliminateCommonSubexpr", ("InferType",)))


_LEGALIZATIONS = {
    "FTVMLegalize": "Legalize",
    "FTVMQnnLegalize": "QnnLegalize",
    "FTVMQnnCanonicalize": "QnnCanonicalizeOps",
}


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:
    """The pass that brings operators into the form that kernels are written for.

    Where a program registered functions under the name (`ir.register_op_attr`), these replace the calls of their operators.
    Otherwise the name is that under which TVM's operators have their rules: `FTVMLegalize`, and for quantized operators
    `FTVMQnnLegalize` and `FTVMQnnCanonicalize`. Raises MirError for another one.
    """
    if is_given(legalize_map_attr_name):
        from .user_rules import legalize

        return ModulePass(lambda mod, ctx: legalize(mod, legalize_map_attr_name), PassInfo(1, "Legalize"))
    name = _LEGALIZATIONS.get(legalize_map_attr_name)
    if name is None:
        message = f"no operator has rules under the name '{legalize_map_attr_name}'"
        raise MirValueError(Diagnostic(message).with_note(f"there are rules under {', '.join(_LEGALIZATIONS)}"))
    return make_pass(name)


def AlterOpLayout(cpu: str = "") -> Pass:
    """The pass that brings operators into blocked layouts.

    Functions that a program registered under `FTVMAlterOpLayout` choose the layouts of their operators. Where there are none,
    convolutions and dense layers get blocks of the vectors of `cpu`.
    """
    own = pass_constructor("AlterOpLayout")
    assert own is not None
    plain = own(cpu)

    def alter(mod: IRModule, ctx: PassContext) -> IRModule:
        if not is_given("FTVMAlterOpLayout"):
            return plain(mod)
        from .user_rules import alter_layouts

        return alter_layouts(mod)

    return ModulePass(alter, plain.info)


def Defunctionalization(func: Function, mod: IRModule) -> Function:
    """Returns the function without functions as values, which become data.

    The data types, and the functions that apply them, are added to `mod`, whose functions it may call. As a pass on modules:
    `mirstack.transform.Defunctionalization()`.
    """
    name = _unused_name(mod)
    work = IRModule.of_op(mod.copy_op())
    work[name] = func
    work = make_pass("Defunctionalization")(work)
    result = work.relay_function(name)
    for data in work.type_definitions.values():
        if data.header.name_hint not in {known.name_hint for known in mod.get_global_type_vars()}:
            mod.add_type_def(data)
    mod.update({var: function for var, function in work.functions.items() if var.name_hint != name})
    return result


def gradient(expr: Function | GlobalVar, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """Returns the function of `expr`'s result and, in a tuple, the gradients of its parameters.

    `mode`: "first_order" takes functions of operators and tuples alone, and no module. "higher_order" also takes local
    functions, references, and calls of functions of `mod`: their known parts are computed first (`PartialEvaluate`), which
    must leave operators and tuples. The result holds neither in both cases.

    Raises:
        MirError: for an operator without a gradient, and for control flow that depends on the contents of tensors.
    """
    if mode not in ("first_order", "higher_order"):
        raise MirValueError(
            Diagnostic(f"gradient has no mode '{mode}'").with_note('it is "first_order" or "higher_order"')
        )
    if mode == "first_order" and mod is not None:
        note = "FirstOrderGradient() is the pass on modules"
        raise MirError(Diagnostic("gradient in mode first_order takes no module").with_note(note))
    if isinstance(expr, GlobalVar):
        if mod is None:
            note = "gradient(expr, mod) takes the module"
            raise MirError(Diagnostic(f"@{expr.name_hint} is a name of a function in a module").with_note(note))
        expr = mod.relay_function(expr.name_hint)
    passes = ["InferType"]
    if mode == "higher_order":
        passes += ["PartialEvaluate", "DeadCodeElimination", "ToGraphNormalForm"]
    name = "main" if mod is None else _unused_name(mod)
    work = IRModule() if mod is None else IRModule.of_op(mod.copy_op())
    work[name] = expr
    for each in passes:
        work = make_pass(each)(work)
    # The other functions are not asked for.
    return make_pass("FirstOrderGradient")(IRModule({name: work.relay_function(name)})).relay_function(name)


def InferTypeLocal(expr: RelayExpr) -> Type:
    """Infers and stores the types of an expression and all its parts; free variables must be annotated.

    Raises MirError if a type cannot be inferred.
    """
    found = node_types(expr)
    for node, type in found.items():
        if isinstance(node, RelayExpr):
            node.known_type = type
    if isinstance(expr, Function):
        expr.known_type = make_pass("InferType")(IRModule({"main": expr}))["main"].known_type
    return expr.checked_type


def FoldConstantExpr(expr: RelayExpr, mod: IRModule, fold_qnn: bool = False) -> RelayExpr:
    """`FoldConstant` of one expression, which may call functions of `mod`."""
    fold = pass_constructor("FoldConstant")
    assert fold is not None
    return _on_expression(expr, fold(fold_qnn), mod)


def ToANormalFormExpr(e: RelayExpr) -> RelayExpr:
    """`ToANormalForm` of one expression."""
    return _on_expression(e, make_pass("ToANormalForm"), IRModule())


def AnnotateSpans() -> ModulePass:
    """Returns a pass that sets every expression's span to its place in the module's text."""
    from .text import parse

    return ModulePass(lambda mod, ctx: parse(mod.astext(), "GeneratedSource"), PassInfo(0, "AnnotateSpans"))


@function_pass(opt_level=1)
class ChangeBatch:
    """Gives functions another batch size: `data` says of parameters which dimension is the batch."""

    def __init__(self, data: Mapping[Var, int], batch_size: int = 16):
        self.data, self.batch_size = dict(data), batch_size

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Returns the function with these parameters resized.

        Raises MirError for a parameter that is not a tensor of that rank.
        """
        new: dict[Var, Var] = {param: self._resized(param) for param in func.params if param in self.data}
        params = [new.get(param, param) for param in func.params]
        return Function(params, substitute(func.body, new), None, func.type_params, func.attrs)

    def _resized(self, param: Var) -> Var:
        type, dimension = param.type_annotation, self.data[param]
        if not isinstance(type, TensorType) or not -len(type.shape) <= dimension < len(type.shape):
            raise MirError(Diagnostic(f"%{param.name_hint} has no dimension {dimension} to be a batch", param.location))
        shape = list(type.shape)
        shape[dimension] = self.batch_size
        return Var(param.name_hint, TensorType(shape, type.dtype), param.span)


def SimplifyFCTranspose(target_weight_name: Sequence[str]) -> ModulePass:
    """Returns a pass by which dense layers of `main` take these weights as parameters `NAME.T`."""
    names = items(target_weight_name, "target_weight_name", "names of parameters", str)
    return ModulePass(lambda mod, ctx: turn_module(mod, names), PassInfo(0, "SimplifyFCTranspose"))


def _unused_name(mod: IRModule) -> str:
    names = {var.name_hint for var in mod.get_global_vars()}
    return next(name for number in range(len(names) + 1) if (name := f"expression_{number}") not in names)


def _on_expression(expr: RelayExpr, each: Pass, mod: IRModule) -> RelayExpr:
    """An expression after a pass on a module that holds it beside the functions of `mod`."""
    name = _unused_name(mod)
    variables = free_vars(expr)
    whole = expr if isinstance(expr, Function) and not variables else Function(variables, expr)
    work = IRModule.of_op(mod.copy_op())
    work[name] = whole
    result = each(work).relay_function(name)
    return result if whole is expr else substitute(result.body, dict(zip(result.params, variables, strict=True)))


__all__ = [
    "AlterOpLayout", "AnnotateSpans", "BatchingOps", "ChangeBatch", "Defunctionalization", "EliminateCommonSubexpr", "FoldConstantExpr",
    "FoldScaleAxis", "FunctionPass", "InferTypeLocal", "LayoutConfig", "Legalize", "MergeComposite", "ModulePass", "PassContext", "Sequential",
    "SimplifyFCTranspose", "ToANormalFormExpr", "function_pass", "gradient", "module_pass", "recast",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "build_config":
        from .build_module import build_config

        return build_config
    found = pass_constructor(name) if name in pass_names(_FOLDERS) else None
    if found is None:
        raise no_attribute("relay.transform", name, pass_names(_FOLDERS), "pass")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "build_config", *pass_names(_FOLDERS)})


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
            raise MirValueError(Diagnostic(f"recast: there is no operator '{name}'"))
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
    made = Call(call.op, args, attrs, call.written_type_args, call.span)
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
