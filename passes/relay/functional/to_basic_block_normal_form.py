"""`to-basic-block-normal-form`: binds values used in several blocks by `let` in their common block.

As TVM's ToBasicBlockNormalForm: after it each block is a graph of its own, whose values from outside are variables; values that
only one block needs keep no `let` that they did not have.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ..common.function_attributes import is_primitive
from ..common.rewriting import blocks_of, functions_of
from .to_a_normal_form import ATOMS, LetBinder


@dataclass(frozen=True)
class ToBasicBlockNormalForm(ModulePass):
    """Bind by a let what more than one block uses."""

    name = "to-basic-block-normal-form"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op).values():
            if is_primitive(function):
                continue
            binder = LetBinder(function)
            for block in blocks_of(function):
                for inner in list(block.ops):
                    if isinstance(inner, (*ATOMS, ir.ConstantOp)):
                        continue
                    if any(use.operation.parent is not block for use in inner.results[0].uses):
                        binder.bind(inner)
            binder.finish()
