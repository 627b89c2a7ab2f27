"""Implements `mark-open-bounds`: marks functions that may access elements outside of their buffers.

    def f(A: T.Buffer((8,), "float32"), n: T.int32): … A[n] …    →    the attribute mirstack.check_bounds = "@f"

The pipeline runs it first, when a module's functions are those that the user wrote: kernels made of Relay's operators are added
later, and stay inside by construction, except those with operators of one's own, which are marked when they are made (`mark`). The names are still the written ones, too, by which errors call the functions. Functions are
analyzed before schedules transform their loops: an access that is proven in bounds then stays so, and costs nothing at run time.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...dialects import te, tir
from ...passes.tir.buffers.check_open_bounds import CHECK_BOUNDS, is_marked, is_proven
from .create_prim_func import create_prim_func


@dataclass(frozen=True)
class MarkOpenBounds(ModulePass):
    """Marks TE and TIR functions whose accesses are not provably in bounds with `mirstack.check_bounds`.

    `check-open-bounds` then has these accesses checked when they happen; the attribute holds the name of the function for messages.
    A function that has the attribute already stays checked, or not checked, as it says.
    """

    name = "mark-open-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Marks the functions of the module that need it."""
        for function in op.ops:
            if isinstance(function, (te.FuncOp, tir.PrimFuncOp)):
                mark(function)


def mark(function: te.FuncOp | tir.PrimFuncOp) -> None:
    """Marks a function if it needs it."""
    marked = is_marked(function.attrs)
    if marked is None:
        marked = not is_proven(create_prim_func(function) if isinstance(function, te.FuncOp) else function)
    if marked and not isinstance(function.attrs.data.get(CHECK_BOUNDS), StringAttr):
        shown = StringAttr(f"@{function.sym_name.data}")
        function.attrs = DictionaryAttr({**function.attrs.data, CHECK_BOUNDS: shown})
