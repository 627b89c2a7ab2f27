"""The pass `mark-open-bounds`: which functions that a person wrote may touch what lies outside of their buffers.

The lowering runs it first, when the functions of a module are those that were written: kernels made of Relay's operators follow, and
keep inside by themselves. The names are those that were written, too, by which errors shall call the functions. Functions are looked
at as they stand there, before schedules take their loops apart: what is proven of them then stays true, and costs nothing when they run.
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
    """Gives TE and TIR functions whose accesses are not provably inside the attribute `mirstack.check_bounds`, by which
    `check-open-bounds` has these accesses checked when they happen; it holds what messages call the function. A function that has
    the attribute stays checked, or not checked, as that says."""

    name = "mark-open-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Marks the functions of the module that need it."""
        for function in op.ops:
            if not isinstance(function, (te.FuncOp, tir.PrimFuncOp)):
                continue
            marked = is_marked(function.attrs)
            if marked is None:
                marked = not is_proven(create_prim_func(function) if isinstance(function, te.FuncOp) else function)
            if marked and not isinstance(function.attrs.data.get(CHECK_BOUNDS), StringAttr):
                shown = StringAttr(f"@{function.sym_name.data}")
                function.attrs = DictionaryAttr({**function.attrs.data, CHECK_BOUNDS: shown})
