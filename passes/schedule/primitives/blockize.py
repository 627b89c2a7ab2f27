"""blockize: loops and the block in them become one block, which other primitives treat as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free

from ....dialects import tir
from ....support.edit import move_before
from ....support.text import counted
from ..analysis.block_kind import axis_kinds
from ..analysis.structure import body_of, child_blocks, child_under, is_inside, loops_above, path_to, scope_of
from ..engine.errors import describe, refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.blockizing import OuterAxes, Part, part_under, wrap
from .common.loops import require_block


@primitive
def blockize(state: State, target: Operation | Sequence[Operation], preserve_unit_iters: bool = True) -> Operation:
    """Puts a block around a loop with one block in it, around a block, or around adjacent blocks.

    for i0, j0 in T.grid(8, 8):                 for i0, j0 in T.grid(8, 8):
        for i1, j1 in T.grid(16, 16):               with T.block("B_o"):
            with T.block("B"):                          vi_o, vj_o = T.axis.remap("SS", [i0, j0])
                vi = i0 * 16 + i1              →        for i1, j1 in T.grid(16, 16):
                vj = j0 * 16 + j1                           with T.block("B"):
                B[vi, vj] = …                                   vi_i, vj_i = T.axis.remap("SS", [i1, j1])
                                                                B[vi_o * 16 + vi_i, vj_o * 16 + vj_i] = …
    sch.blockize(i1)

    Loops of one iteration stay in the bindings unless `preserve_unit_iters` is False. Returns the new block.
    """
    if isinstance(target, Operation):
        part, nest = blockized_part(target, "blockize", preserve_unit_iters)
        outer = OuterAxes()
        outer.add(part)
        return wrap(state, [part], outer, f"{part.block.block_name.data}_o", [nest])
    blocks = [require_block(b, "blockize") for b in target]
    if not blocks:
        raise refuse(state.module, "blockize: no block is given", "give a loop, or the blocks to put together")
    return _together(state, list(dict.fromkeys(blocks)), preserve_unit_iters)


def blockized_part(target: Operation, primitive_name: str, preserve_unit_iters: bool) -> tuple[Part, Operation]:
    """Divides the only block in a loop, or the block itself, at `target`; raises if it is not alone there."""
    if isinstance(target, tir.BlockOp):
        return part_under(target, [], primitive_name, preserve_unit_iters), target
    if not isinstance(target, tir.ForOp):
        raise refuse(target, f"{primitive_name}: {describe(target)} is neither a loop nor a block inside the function")
    blocks = child_blocks(target)
    if len(blocks) != 1:
        names = ", ".join(f"'{b.block_name.data}'" for b in blocks) or "none"
        raise refuse(
            target,
            f"{primitive_name}: loop '{target.var_name.data}' holds {counted(len(blocks), 'block')} ({names}), and must hold exactly one",
            "blockize a loop further in, or give the blocks as a list",
        )
    (block,) = blocks
    parent = target.parent_op()
    assert parent is not None
    require_only(block, parent, primitive_name)
    loops = loops_above(block)
    return part_under(block, loops[loops.index(target) :], primitive_name, preserve_unit_iters), target


def require_only(block: tir.BlockOp, ancestor: Operation, primitive_name: str) -> None:
    """Raises unless loops with nothing else in them are all that is between `ancestor` and the block."""
    name = block.block_name.data
    path = path_to(block, ancestor)
    for op in path:
        if not isinstance(op, tir.ForOp | tir.BlockOp):
            raise refuse(
                op,
                f"{primitive_name}: '{op.name}' stands between the loops around block '{name}', which may be loops only",
            )
    for op in path:
        if isinstance(op, tir.ForOp):
            for other in body_of(op).ops:
                if other is not block and not isinstance(other, tir.ForOp) and not _is_pure(other):
                    raise refuse(
                        other,
                        f"{primitive_name}: loop '{op.var_name.data}' around block '{name}' holds another statement, '{other.name}'",
                    )


def _is_pure(op: Operation) -> bool:
    return bool(op.results) and (is_side_effect_free(op) or isinstance(op, tir.LoadOp))


def _together(state: State, blocks: list[tir.BlockOp], preserve_unit_iters: bool) -> Operation:
    """Returns one block around several."""
    scope = scope_of(blocks[0])
    for block in blocks:
        if scope_of(block) is not scope:
            raise refuse(
                block,
                f"blockize: block '{block.block_name.data}' is in {describe(scope_of(block))}, block '{blocks[0].block_name.data}' in {describe(scope)}",
                "the blocks must be in one scope",
            )
    common: Operation = scope
    for loop in reversed(loops_above(blocks[0])):
        if all(is_inside(b, loop) for b in blocks):
            common = loop
            break
    if len(blocks) == 1:
        parent = blocks[0].parent_op()
        assert parent is not None
        common = parent
    parts: list[Part] = []
    outer = OuterAxes()
    nests: dict[Operation, tir.BlockOp] = {}
    for block in blocks:
        nest = child_under(common, block)
        if nest in nests or (nest is not block and len(child_blocks(nest)) > 1):
            raise refuse(
                block,
                f"blockize: the loops around block '{block.block_name.data}' hold blocks besides it, inside of those that all the blocks share",
            )
        require_only(block, common, "blockize")
        nests[nest] = block
        above = loops_above(block)
        inner = [loop for loop in above if loop is not common and is_inside(loop, nest)]
        part = part_under(block, inner, "blockize", preserve_unit_iters)
        if parts and part.division.outer_predicate != parts[0].division.outer_predicate:
            raise refuse(
                block,
                f"blockize: blocks '{blocks[0].block_name.data}' and '{block.block_name.data}' do not run in the same iterations of the loops"
                " that they share, by their T.where",
                "put together blocks of one condition; loop_partition makes loops of which parts run always",
            )
        outer.add(part)
        parts.append(part)
        if block.find(tir.InitOp) is not None and "R" in axis_kinds(block):
            raise refuse(
                block,
                f"blockize: block '{block.block_name.data}' is a reduction with a T.init(), which several blocks in one cannot keep",
                "decompose_reduction first",
            )
    ordered = _adjacent(nests)
    name = "outer_" + "".join(f"{b.block_name.data}_" for b in blocks)
    return wrap(state, parts, outer, name, ordered)


def _adjacent(nests: dict[Operation, tir.BlockOp]) -> list[Operation]:
    """Returns the nests in order, with the values computed between them moved before them.

    Raises when another statement is between two of them.
    """
    following: dict[Operation, Operation | None] = {}
    between: dict[Operation, list[Operation]] = {}
    for nest in nests:
        op = nest.next_op
        passed: list[Operation] = []
        while op is not None and op not in nests and op.results and is_side_effect_free(op):
            passed.append(op)
            op = op.next_op
        following[nest] = op if op in nests else None
        between[nest] = passed if op in nests else []
    starts = [nest for nest in nests if nest not in following.values()]
    if len(starts) != 1:
        names = ", ".join(f"'{b.block_name.data}'" for b in nests.values())
        raise refuse(
            nests[starts[1]],
            f"blockize: the blocks {names} do not stand next to each other",
            "bring them together first (compute_at, reverse_compute_at)",
        )
    ordered: list[Operation] = []
    current: Operation | None = starts[0]
    while current is not None:
        ordered.append(current)
        current = following[current]
    for nest in ordered:
        move_before(between[nest], ordered[0])
    return ordered
