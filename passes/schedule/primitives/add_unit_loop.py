"""add_unit_loop: puts a loop of one iteration around a block or loop."""

from __future__ import annotations

from xdsl.ir import Operation

from ....dialects import tir
from ....support.edit import builder_before
from ..engine.errors import describe, refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import name_value, nest


@primitive
def add_unit_loop(state: State, block_or_loop: Operation) -> Operation:
    """Puts a loop of extent 1 directly around a block or loop.

    for i in range(8):                  for i in range(8):
        with T.block("B"): …     →          for u in range(1):
                                                with T.block("B"): …
    """
    if not isinstance(block_or_loop, tir.ForOp | tir.BlockOp):
        raise refuse(
            block_or_loop, f"add_unit_loop: {describe(block_or_loop)} is the whole function", "give a block in it"
        )
    builder = builder_before(block_or_loop)
    like = block_or_loop.loop_var.type if isinstance(block_or_loop, tir.ForOp) else tir.types.I32
    zero, one = (builder.insert(tir.ConstOp.int(k, like)).result for k in (0, 1))
    loop = tir.ForOp("u", zero, one)
    loop.location = block_or_loop.location
    name_value(loop)
    nest([loop], block_or_loop, [block_or_loop])
    return loop
