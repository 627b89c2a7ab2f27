"""Passes made of functions of a PrimFunc, and those of TVM that are: `BindTarget(target)`.

@tir.transform.prim_func_pass(opt_level=1)
def renamed(func, mod, ctx):
    return func.with_attr("global_symbol", "f")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ...dialects.tir.node import stmt as st
from ...dialects.tir.node.expr import Call, Expr
from ...dialects.tir.node.functor import ir_transform, post_order_visit
from ...passes.pass_info import PassInfo
from ..ir.module import IRModule
from ..ir.named_passes import registered_pass
from ..ir.prim_func import PrimFunc
from ..ir.transform import Decorated, ModulePass, Pass, PassContext, decorate_pass

ENTRY = "tir.is_entry_func"


class PrimFuncPass(Pass):
    """A pass made of a function of a PrimFunc (`prim_func_pass`), run on each PrimFunc of a module."""

    def __init__(self, function: Callable[[PrimFunc, IRModule, PassContext], PrimFunc], info: PassInfo):
        self.pass_func = function
        self.info = info

    def transform(self, mod: IRModule, context: PassContext, *, owned: bool) -> IRModule:
        changed: dict[str, PrimFunc] = {}
        for variable, function in mod.functions.items():
            if not isinstance(function, PrimFunc):
                continue
            new = self.pass_func(function, mod, context)
            if not isinstance(cast("object", new), PrimFunc):
                raise TypeError(f"the pass {self.info.name} must return a tir.PrimFunc, not {new!r}")
            if new is not function:
                changed[variable.name_hint] = new
        if not changed:
            return mod
        result = IRModule.of_op(mod.copy_op(), mod)
        for name, function in changed.items():
            result.update_func(name, function)
        return result


def prim_func_pass(
    pass_func: Callable[..., Any] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Decorated:
    """Makes a pass of a function `(func, mod, ctx) -> func`, or of a class with `transform_function`.

    The pass runs on every PrimFunc of a module.
    """
    return decorate_pass(pass_func, opt_level, name, required, "transform_function", PrimFuncPass)


def _pass(name: str, function: Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:
    return PrimFuncPass(lambda func, _, __: function(func), PassInfo(0, name))


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:
    """Returns the pass that applies a function to each PrimFunc."""
    return _pass("Apply", ftransform)


def Filter(fcond: Callable[[PrimFunc], bool]) -> ModulePass:
    """Returns the pass that keeps the PrimFuncs for which a condition holds."""

    def kept(mod: IRModule, _: PassContext) -> IRModule:
        functions: Mapping[Any, Any] = mod.functions
        return IRModule({var: f for var, f in functions.items() if not isinstance(f, PrimFunc) or fcond(f)})

    return ModulePass(kept, PassInfo(0, "Filter"))


def BindTarget(target: Any) -> PrimFuncPass:
    """Returns the pass that says for which target each PrimFunc is, as a text, unless it says so already."""
    text = str(target)
    return _pass("BindTarget", lambda f: f if "target" in f.attrs else f.with_attr("target", text))


def AnnotateEntryFunc() -> ModulePass:
    """Returns the pass that marks the entry of a module.

    It is the only PrimFunc, or the only one with a name of its own.
    """

    def annotated(mod: IRModule, _: PassContext) -> IRModule:
        functions = {var: f for var, f in mod.functions.items() if isinstance(f, PrimFunc)}
        named = {var: f for var, f in functions.items() if "global_symbol" in f.attrs}
        entries = functions if len(functions) == 1 else named
        if len(entries) != 1:
            return mod
        result = IRModule.of_op(mod.copy_op(), mod)
        for var, f in entries.items():
            result.update_func(var.name_hint, f.with_attr(ENTRY, True))
        return result

    return ModulePass(annotated, PassInfo(0, "AnnotateEntryFunc"))


def _rewritten(name: str, kind: str, change: Callable[[Any], st.Stmt | None]) -> PrimFuncPass:
    """Returns the pass that replaces statements of a kind; None leaves one alone."""

    def rewrite(function: PrimFunc) -> PrimFunc:
        found: list[object] = []
        post_order_visit(
            function.body,
            lambda node: found.append(node) if type(node).__name__ == kind and change(node) is not None else None,
        )
        if not found:
            return function
        return function.with_body(ir_transform(function.body, None, change, [f"tir.{kind}"]))

    return _pass(name, rewrite)


def _calls(value: Expr, intrinsic: str) -> bool:
    return isinstance(value, Call) and value.intrinsic == intrinsic


def SkipAssert() -> PrimFuncPass:
    """Returns the pass that removes assertions."""
    return _rewritten("SkipAssert", "AssertStmt", lambda node: node.body)


def RemoveAssume() -> PrimFuncPass:
    """Returns the pass that removes `T.assume`."""
    return _rewritten("RemoveAssume", "Evaluate", lambda node: st.Evaluate(0) if _calls(node.value, "assume") else None)


def RemoveStoreUndef() -> PrimFuncPass:
    """Returns the pass that removes stores of `T.undef()`."""
    return _rewritten(
        "RemoveStoreUndef", "BufferStore", lambda node: st.Evaluate(0) if _calls(node.value, "undef") else None
    )


def ConvertForLoopsToSerial() -> PrimFuncPass:
    """Returns the pass that makes parallel loops serial."""

    def serial(node: st.For) -> st.Stmt | None:
        if node.kind != st.ForKind.PARALLEL:
            return None
        return st.For(
            node.loop_var, node.min, node.extent, st.ForKind.SERIAL, node.body, None, node.annotations, span=node
        )

    return _rewritten("ConvertForLoopsToSerial", "For", serial)


def StorageFlatten(cache_line_size: int, create_bound_attribute: bool = False) -> ModulePass:
    """Returns the pass that makes buffers flat: FlattenBuffer, by its older name.

    Both arguments exist for TVM's signature. What `te.schedule.SchedulePostProcToPrimFunc` returns is flat already.
    """
    return ModulePass(lambda mod, _: registered_pass("FlattenBuffer", {})(mod), PassInfo(0, "StorageFlatten"))


__all__ = [
    "AnnotateEntryFunc", "Apply", "BindTarget", "ConvertForLoopsToSerial", "Filter", "PrimFuncPass", "RemoveAssume",
    "RemoveStoreUndef", "SkipAssert", "StorageFlatten", "prim_func_pass",
]  # fmt: skip
