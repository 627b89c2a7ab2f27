"""Primitives that change nothing: blocks by name, loops around a block, producers, marks of the trace."""

from __future__ import annotations

from xdsl.ir import Operation

from ....dialects import tir
from ..analysis.structure import Scope, buffers_written, child_blocks, consumers, loops_above, producers
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State


@primitive
def get_block(state: State, name: str, func_name: str | None = None) -> Operation:
    """Returns the block of that name; `"root"` is the function itself, as TVM's root block.

    with T.block("C"): …   →   sch.get_block("C")
    """
    function = state.function(func_name)
    table = state.named(function)
    found = table.get(name, [])
    if len(found) == 1:
        return found[0]
    if not found and name == "root":
        return function
    if found:
        raise refuse(
            found[1],
            f"function '{function.sym_name.data}' has {len(found)} blocks named '{name}'",
            "give each its own name",
        )
    known = ", ".join(f"'{n}'" for n, blocks in table.items() if blocks) or "none"
    raise refuse(function, f"function '{function.sym_name.data}' has no block '{name}'", f"its blocks are {known}")


@primitive
def get_loops(state: State, block: Operation) -> list[Operation]:
    """Returns the loops around a block inside its scope, outermost first.

    for i, j in T.grid(8, 8): with T.block("C"): …   →   [i, j]
    """
    return list(loops_above(block)) if isinstance(block, tir.BlockOp) else []


@primitive
def get_child_blocks(state: State, block_or_loop: Operation) -> list[Operation]:
    """Returns the blocks inside a block or loop that are in no other block inside it, in order."""
    return list(child_blocks(block_or_loop))


@primitive
def get_producers(state: State, block: tir.BlockOp) -> list[Operation]:
    """Returns the blocks of the same scope that write what `block` reads, in order."""
    return list(producers(block))


@primitive
def get_consumers(state: State, block: tir.BlockOp) -> list[Operation]:
    """Returns the blocks of the same scope that read what `block` writes, in order."""
    return list(consumers(block))


@primitive
def get_output_blocks(state: State, scope_block: Scope) -> list[Operation]:
    """Returns the blocks directly in a scope that write a buffer which the scope does not allocate itself."""
    own = {op.result for op in scope_block.body.block.ops if isinstance(op, tir.AllocBufferOp)}
    found: list[Operation] = []
    for block in child_blocks(scope_block):
        if any(b not in own for b in buffers_written(block)):
            found.append(block)
    return found


@primitive
def work_on(state: State, func_name: str) -> None:
    """Names of blocks refer to this function from now on.

    sch.work_on("f")
    sch.get_block("C")   →   the block C of function f
    """
    state.function(func_name)
    state.focus = func_name


@primitive
def enter_postproc(state: State) -> None:
    """Marks where postprocessing begins in the trace: what follows is left out by `remove_postproc=True`."""
