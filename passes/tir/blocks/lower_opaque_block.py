"""The pass `lower-opaque-block`: blocks without iteration variables are replaced by their bodies.

    with T.block(""):                                   B = T.decl_buffer((16,))
        T.where(i < 10)                        →        if i < 10:
        B = T.alloc_buffer((16,)); B[i] = A[i]              B[i] = A[i]

Allocations become declarations. Iterations of a vectorized or unrolled loop that a predicate surely excludes are cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i1
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind
from ....dialects.arith.expr import Atom, conjuncts, free_vars, logical_and
from ....dialects.interned import i32_array, integer
from ....dialects.tir.operators import as_const
from ....dialects.tir.stmt import RegionsOp
from ....support.diagnostics import error_at
from ....support.edit import (
    block_of_ops,
    builder_before,
    erase_op,
    move_before,
    move_to_end,
    replace_all_uses_with,
)
from ....support.op_kinds import Kinds
from ....support.walk import enclosing, post_order
from ..rewriting import erase_if_dead, only_statement

_REGIONS = Kinds(RegionsOp)


def inline_block(block: tir.BlockOp) -> None:
    """Replaces a block by its body, under a branch where the block has a predicate."""
    if block.iter_vars:
        raise error_at(
            block,
            f"block '{block.block_name.data}' still has iteration variables",
            "run convert-blocks-to-opaque before lower-opaque-block",
        )
    body = block.body.block
    for op in [op for op in body.ops if _REGIONS[type(op)]]:
        regions = tuple(op.operands)
        erase_op(op)
        for region in regions:
            erase_if_dead(region)
    if block.predicate is not None:
        inner = block_of_ops(body.ops)
        builder_before(block).insert(tir.IfOp(block.predicate, inner))
    else:
        move_before(body.ops, block)
    erase_op(block)


def lower_allocation(alloc: tir.AllocBufferOp) -> None:
    """Replaces `T.alloc_buffer` by `T.decl_buffer`, which lives until the end of the region.

    With strides, it declares a view of memory that holds the strided elements.
    """
    sizes = _strided_sizes(alloc)
    builder = builder_before(alloc)
    operands = list(alloc.operands)
    properties = {**alloc.properties, "implicit": integer(0, i1)}
    if sizes is not None:
        extents = [builder.insert(tir.ConstOp.int(size)) for size in sizes]
        type_ = alloc.result.type
        memory = builder.insert(tir.AllocateOp(alloc.var_name.data, extents, type_.dtype, type_.scope.data))
        operands.insert(0, memory.result)
        segments = i32_array(1, len(alloc.shape), len(alloc.strides), int(alloc.elem_offset is not None), 0)
        properties["operandSegmentSizes"] = segments
    new = tir.DeclBufferOp.create(operands=operands, properties=properties, result_types=[alloc.result.type])
    builder.insert(new)
    new.result.name_hint = alloc.result.name_hint
    replace_all_uses_with(alloc.result, new.result)
    erase_op(alloc)


def _strided_sizes(alloc: tir.AllocBufferOp) -> list[int] | None:
    """Returns extents of memory whose rows have the buffer's constant strides; None if there are none.

    Shape (2, 3) with strides (8, 1) needs (2, 8).
    """
    strides, shape = alloc.stride_values(), alloc.result.type.static_shape
    if strides is None or not shape or alloc.source is not None:
        return None
    steps = [stride for stride in strides if isinstance(stride, int)]
    if len(steps) != len(shape) or steps[-1] != 1 or any(a % b for a, b in pairwise(steps)):
        return None
    return [shape[0], *(a // b for a, b in pairwise(steps))]


def lower_annotations(loop: tir.ForOp) -> None:
    """Pragmas of a loop as attributes of its variable; a loop bound to a thread as a launch of it."""
    if loop.kind.data == "thread_binding" and loop.thread is not None and loop.var is None:
        _launch(loop, loop.thread.data)
        return
    pragmas = {
        key: value
        for key, value in loop.annotations.data.items()
        if key.startswith("pragma_") and isinstance(value, IntegerAttr | StringAttr)
    }
    if not pragmas:
        return
    _scope_of(loop)
    builder = builder_before(loop)
    variable = loop.var
    if variable is None:
        variable = builder.insert(tir.VarOp(loop.var_name.data, loop.loop_var.type)).result
    for key, value in pragmas.items():
        attr = tir.AttrOp(variable, key, builder.insert(tir.ConstOp(value)).result)
        builder.insert(attr)
    loop.operands = [loop.min, loop.extent, variable]
    loop.annotations = DictionaryAttr({k: v for k, v in loop.annotations.data.items() if k not in pragmas})


def _scope_of(op: Operation) -> None:
    """Puts an op that is to be in the scope of others into a region of its own, unless it ends its region."""
    if op.next_op is None:
        return
    scope = builder_before(op).insert(tir.ScopeOp())
    move_to_end([op], scope.body.block)


def _launch(loop: tir.ForOp, thread: str) -> None:
    """Replaces `for i in T.thread_binding(…)` by `i = T.launch_thread(…)` and the body."""
    _scope_of(loop)
    builder = builder_before(loop)
    launch = builder.insert(tir.LaunchThreadOp(loop.var_name.data, thread, loop.extent))
    value = launch.result
    low = as_const(loop.min)
    if low is None or low.value != 0:
        value = builder.insert(tir.AddOp(value, loop.min)).result
    replace_all_uses_with(loop.loop_var, value)
    move_before(loop.body.block.ops, loop)
    erase_op(loop)


def shorten(loop: tir.ForOp) -> None:
    """Shortens a vectorized or unrolled loop whose last iterations a branch excludes: no mask is needed.

    for i in T.vectorized(16):                 for i in T.vectorized(12):
        if i < 12: B[i] = A[i]         →           B[i] = A[i]
    """
    extent, low = as_const(loop.extent), as_const(loop.min)
    if loop.kind.data not in ("vectorized", "unrolled") or extent is None or low is None or low.value != 0:
        return
    branch: Operation = loop
    while isinstance(branch, tir.ForOp):
        inside = only_statement(branch.body.block)
        if inside is None:
            return
        branch = inside
    if not isinstance(branch, tir.IfOp) or branch.else_region.blocks:
        return
    ranges = {each: as_const(each.extent) for each in enclosing(branch) if isinstance(each, tir.ForOp)}
    analyzer = Analyzer()
    variables: set[Atom] = set()
    for each, size in ranges.items():
        begin = as_const(each.min)
        if size is not None and begin is not None and begin.value == 0 and each is not loop:
            analyzer.bind(each.loop_var, each.min, each.extent)
            variables.update(free_vars(analyzer.expr(each.loop_var)))
    parts = conjuncts(analyzer.expr(branch.condition))
    atom = analyzer.expr(loop.loop_var).atom
    assert atom is not None
    iterations = min(
        (_trip_count(part, atom, variables) or int(extent.value) for part in parts), default=int(extent.value)
    )
    if not 1 <= iterations < extent.value:
        return
    size = builder_before(loop).insert(tir.ConstOp.int(iterations, loop.loop_var.type)).result
    loop.operands = [loop.min, size, *loop.operands[2:]]
    analyzer.bind(loop.loop_var, loop.min, size)
    left = [part for part in parts if analyzer.simplify(part).value != 1]
    condition = branch.condition
    if left:
        branch.operands[0] = analyzer.to_ssa(logical_and(*left), builder_before(branch), condition.type)
    else:
        move_before(branch.then_region.block.ops, branch)
        erase_op(branch)
    erase_if_dead(condition)


def _trip_count(condition: Expr, loop: Atom, others: set[Atom]) -> int | None:
    """Returns the trip count to which a condition `a * variable + … <= number` limits a loop, or None.

    The variables `others` are known to be 0 or more.
    """
    atom = condition.atom
    if atom is None or atom.kind is not Kind.GE:
        return None
    bound = atom.operands[0]
    step = -bound.coefficient(loop)
    if step <= 0 or any(factor > 0 or (v is not loop and v not in others) for v, factor in bound.terms):
        return None
    return bound.const // step + 1


def inline_unit_loop(loop: tir.ForOp) -> bool:
    """Replaces a loop of one iteration by its body; returns whether it did.

    A loop with an annotation or bound to a thread stays.
    """
    extent = loop.extent.owner
    if not isinstance(extent, tir.ConstOp) or not isinstance(extent.value, IntegerAttr) or extent.value.value.data != 1:
        return False
    if loop.kind.data == "thread_binding" or loop.annotations.data:
        return False
    replace_all_uses_with(loop.loop_var, loop.min)
    move_before(loop.body.block.ops, loop)
    erase_op(loop)
    return True


@dataclass(frozen=True)
class LowerOpaqueBlock(ModulePass):
    """Removes blocks and loops of one iteration.

    Predicates become branches, allocations declarations, loops bound to threads launches.
    """

    name = "lower-opaque-block"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers every block of the module."""
        loops: list[tir.ForOp] = []
        for inner in post_order(op):
            if type(inner) is tir.BlockOp:
                inline_block(inner)
            elif type(inner) is tir.AllocBufferOp:
                lower_allocation(inner)
            elif type(inner) is tir.ForOp:
                shorten(inner)
                if not inline_unit_loop(inner):
                    loops.append(inner)
        # What follows a loop is known when no block is left.
        for loop in loops:
            lower_annotations(loop)
