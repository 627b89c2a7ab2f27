"""The pass `mark-open-bounds`: which functions that a person wrote may touch what lies outside of their buffers.

The lowering runs it first, when the functions of a module are those that were written: kernels made of Relay's operators follow, and
keep inside by themselves. Functions are looked at as they stand there, before schedules take their loops apart: what is proven of
them then stays true, and costs nothing when they run.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, ModuleOp
from xdsl.passes import ModulePass

from ...dialects import te, tir
from ...passes.tir.check_open_bounds import CHECK_BOUNDS, is_proven
from .create_prim_func import create_prim_func


@dataclass(frozen=True)
class MarkOpenBounds(ModulePass):
    """Gives TE and TIR functions whose accesses are not provably inside the attribute `mirstack.check_bounds`, by which
    `check-open-bounds` has these accesses checked when they happen. A function that has the attribute keeps it."""

    name = "mark-open-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Marks the functions of the module that need it."""
        for function in op.ops:
            if not isinstance(function, (te.FuncOp, tir.PrimFuncOp)) or CHECK_BOUNDS in function.attrs.data:
                continue
            if not is_proven(create_prim_func(function) if isinstance(function, te.FuncOp) else function):
                function.attrs = DictionaryAttr({**function.attrs.data, CHECK_BOUNDS: BoolAttr.from_bool(True)})
