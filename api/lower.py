"""`mirstack.lower`: a TE schedule as a module of one TIR function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass as XdslPass

from ..dialects.te.tensor import PlaceholderOp, Tensor
from ..dialects.tir import PrimFuncOp
from ..dialects.tir.node import IterVar, Var, describe, fail, items_of
from ..passes.pass_info import camel_case
from ..support.arguments import check, items
from ..support.diagnostics import Diagnostic, MirError
from .ir.module import IRModule
from .ir.named_passes import registered_pass
from .ir.prim_func import CLASS, CLASS_NAME, PrimFunc
from .ir.transform import Pass, PassContext


def lower(
    inp: Any,
    args: Sequence[Tensor | Var] | None = None,
    name: str = "main",
    binds: Mapping[Any, Any] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """Lowers a schedule to TIR with flat buffers, by the passes of `lowering.te.emit.legacy_passes`.

    Passes that the current `PassContext` disables are skipped; its settings count, `tir.disable_vectorize` and others.

    Args:
        inp: a schedule; a module or function of TIR goes through the passes only, its blocks become flat loops.
        args: the parameters in order: placeholders, scalars (`te.var`) and outputs.
        name: of the function.
        binds: no buffers can be bound here: None.
        simple_mode: skips passes that make the text hard to read (loop partitioning).

    Raises MirError if the schedule cannot be carried out, or a size is bound by no parameter.
    """
    from ..lowering.te.emit.legacy_passes import run_passes
    from ..lowering.te.emit.lower_schedule import lower_schedule
    from .te.schedule import Schedule, at_caller

    if binds:
        raise TypeError("lower takes no buffers to bind; a parameter gets a buffer of its own")
    check(name, "name", "the name of the function", str)
    if not name.isidentifier():
        raise MirError(Diagnostic(f"'{name}' cannot be the name of a function: it is not an identifier"))
    if isinstance(inp, Schedule):
        given: list[object] = items(args, "args", "tensors and te.var scalars")
        params: list[Tensor | Var] = []
        for arg in given:
            if not isinstance(arg, (Tensor, Var)) or isinstance(arg, IterVar):
                raise TypeError(
                    f"the parameters of a lowered function are tensors and te.var scalars, not {describe(arg)}"
                )
            params.append(arg)
        with at_caller():
            for number, param in enumerate(params):
                if any(param is other for other in params[:number]):
                    raise fail(
                        f"'{param.name}' is a parameter twice",
                        "each tensor and each te.var is listed once in `args`",
                    )
                if not isinstance(param, Tensor) or isinstance(param.op, PlaceholderOp):
                    continue
                if inp.data.stage_of(param.op) is None:
                    raise fail(
                        f"parameter '{param.op.name}' is computed by no stage of this schedule",
                        "a schedule has what its outputs are computed from: te.create_schedule(B.op)",
                    )
            function = lower_schedule(inp.data, params, name)
        function.attributes[CLASS] = StringAttr(CLASS_NAME)
        module = ModuleOp([function])
    elif isinstance(inp, PrimFunc):
        module = IRModule({name: inp}).op.clone()
    elif isinstance(inp, IRModule):
        module = inp.op.clone()
    else:
        raise TypeError(f"lower takes a schedule, an IRModule or a PrimFunc, not {describe(inp)}")
    context = PassContext.current()
    disabled = {passed.removeprefix("tir.") for passed in context.disabled_pass}
    if context.config.get("tir.disable_storage_rewrite"):
        disabled.add("StorageRewrite")

    def make(pass_name: str, options: dict[str, object]) -> XdslPass:
        if pass_name == "vectorize-loop" and context.config.get("tir.disable_vectorize"):
            options = {"enable_vectorize": False}
        made = registered_pass(camel_case(pass_name), options)
        return made.configured(context)

    own = _added(context.config.get("tir.add_lower_pass"))

    def at_phase(phase: int, module: ModuleOp) -> ModuleOp:
        for each in own.get(phase, ()):
            module = each(IRModule.of_op(module)).op
        return module

    module = run_passes(module, simple_mode=simple_mode, disabled=disabled, make=make, at_phase=at_phase)
    if context.config.get("tir.noalias") is False:
        for op in module.ops:
            if isinstance(op, PrimFuncOp):
                op.attrs = DictionaryAttr({key: value for key, value in op.attrs.data.items() if key != "tir.noalias"})
    return IRModule.of_op(module)


def _added(given: object) -> dict[int, list[Pass]]:
    """Returns the passes of the setting tir.add_lower_pass by phase. Raises MirError for another value."""
    found: dict[int, list[Pass]] = {}
    for pair in items_of(given) or ():
        parts = items_of(pair) or ()
        if len(parts) != 2 or not isinstance(parts[0], int) or not isinstance(parts[1], Pass):
            raise fail(
                f"tir.add_lower_pass holds pairs of a phase and a pass, not {describe(pair)}",
                'as in {"tir.add_lower_pass": [(1, tir.transform.prim_func_pass(…))]}',
            )
        found.setdefault(min(max(parts[0], 0), 3), []).append(parts[1])
    return found
