"""Functions that LLVM's code generators call by themselves, and that the process's libraries may lack."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .jit import CompiledModule

LIBCALLS = {
    # f32 to bf16, to nearest even: processors without bf16 hold it as f32 where it goes from block to block. libgcc has it from
    # version 13 on. The name, and how it passes its numbers, are those of the psABI supplement for bf16.
    "__truncsfbf2": """
define bfloat @__truncsfbf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %last = and i32 %upper, 1
  %half = add i32 %last, 32767
  %sum = add i32 %bits, %half
  %nearest = lshr i32 %sum, 16
  %quiet = or i32 %upper, 64
  %nan = fcmp uno float %x, %x
  %kept = select i1 %nan, i32 %quiet, i32 %nearest
  %cut = trunc i32 %kept to i16
  %result = bitcast i16 %cut to bfloat
  ret bfloat %result
}
""",
}
"""LLVM IR by name."""


@lru_cache
def _compiled(name: str) -> CompiledModule:
    from .jit import compile_ir

    return compile_ir(LIBCALLS[name], opt_level=1)


def libcall_address(name: str) -> int | None:
    """Where our function of this name lies, compiled when first asked for; None where we have none."""
    return _compiled(name).address(name) if name in LIBCALLS else None
