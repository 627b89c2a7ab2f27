"""omit_padding: skips iterations of a loop in which a sum of products multiplies by padding alone."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import TRUE, free_vars, ge, logical_and
from ....dialects.tir.types import I1
from ....support.edit import builder_at_end, move_to_end
from ..analysis.access import Box, reads_of, relaxed
from ..analysis.block_kind import analyzer_for, bind_axes
from ..analysis.structure import all_loops_above, child_blocks, is_inside, loops_above
from ..engine.errors import ScheduleError, refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block, require_loop, require_own_values
from .decompose_padding import choice_of, inside_of

NAME = "omit_padding"
SUM = "it must be C[…] = C[…] + A[…] * B[…], its T.init decomposed"


@primitive
def omit_padding(state: State, block: tir.BlockOp, loop: tir.ForOp) -> None:
    """Skips the iterations of `loop` in which a sum of products reads only zeros of a padded buffer.

    for i, k in T.grid(8, 5):          for i in range(8):
        with T.block("C_update"):          for k in range(5):
            C[vi] = C[vi]         →            if i + k >= 2 and i + k < 10:
                + P[vi + vk] * W[vk]               with T.block("C_update"): …

    sch.omit_padding(C_update, k)

    The padded buffer is computed by an earlier block as `P[v] = T.if_then_else(2 <= v and v < 10, A[v - 2], 0)`. Zero times infinity
    or NaN counts as zero.
    """
    block, loop = require_block(block, NAME), require_loop(loop, NAME)
    condition, analyzer = _condition(block, loop)
    body = loop.body.block
    inner = Block()
    move_to_end(list(body.ops), inner)
    builder = builder_at_end(body, loop.location)
    branch = tir.IfOp(analyzer.to_ssa(condition, builder, I1), Region(inner))
    branch.location = loop.location
    builder.insert(branch)


def _condition(block: tir.BlockOp, loop: tir.ForOp) -> tuple[Expr, Analyzer]:
    """Returns the condition of iterations that read more than padding, as far as it depends on the loop."""
    name, under = block.block_name.data, loop.var_name.data
    if child_blocks(loop) != [block]:
        raise refuse(
            loop,
            f"{NAME}: loop '{under}' does not hold block '{name}' alone",
            f"give a loop around block '{name}' that holds nothing else",
        )
    require_own_values(block, NAME)
    analyzer = analyzer_for([*all_loops_above(loop), loop])
    inner = [each for each in loops_above(block) if each is not loop and is_inside(each, loop)]
    for each in inner:
        analyzer.bind(each.loop_var, each.min, each.extent)
    bind_axes(analyzer, block)
    factors = _factors(block)
    variable = analyzer.expr(loop.loop_var).atom
    parts: list[Expr] = []
    found = False
    for box in reads_of(block, analyzer):
        bounds = padding_of(box.buffer) if box.buffer in factors else {}
        found = found or bool(bounds)
        covered = relaxed(box, block, inner, analyzer)
        parts += [] if covered is None else _meets(covered, bounds, analyzer)
    if not found:
        raise refuse(
            block,
            f"{NAME}: block '{name}' reads no buffer that a block before it pads with zeros",
            "a padded buffer is made by P[…] = T.if_then_else(condition, value, 0)",
        )
    condition = logical_and(*(p for p in parts if variable in free_vars(p)))
    if condition == TRUE:
        raise refuse(
            loop,
            f"{NAME}: no iteration of loop '{under}' is known to read padding alone",
            "choose a loop over the window, outside of those over what the window is moved by",
        )
    return condition, analyzer


def _meets(box: Box, bounds: dict[int, tuple[Expr, Expr]], analyzer: Analyzer) -> list[Expr]:
    """Conditions without which a box is padding alone."""
    found: list[Expr] = []
    for place, (low, high) in bounds.items():
        start, stop = box.dims[place]
        conditions = (analyzer.simplify(ge(stop, low)), analyzer.simplify(ge(high, start)))
        found += [c for c in conditions if not analyzer.can_prove(c)]
    return found


def _factors(block: tir.BlockOp) -> set[SSAValue]:
    """Returns the buffers whose elements are multiplied in a block that adds products up."""
    name = block.block_name.data
    stores = [op for op in block.body.block.ops if isinstance(op, tir.StoreOp)]
    whole = block.find(tir.InitOp) is None and len(stores) == 1 and stores[0].predicate is None
    total = stores[0].value.owner if whole else None
    if not isinstance(total, tir.AddOp):
        raise refuse(block, f"{NAME}: block '{name}' is not a sum of products", SUM)
    store, sides = stores[0], [_plain(total.lhs), _plain(total.rhs)]
    analyzer = Analyzer()
    places = [analyzer.expr(i) for i in store.indices]
    old = [
        s
        for s in sides
        if isinstance(s, tir.LoadOp) and s.buffer is store.buffer and [analyzer.expr(i) for i in s.indices] == places
    ]
    products = [s for s in sides if isinstance(s, tir.MulOp)]
    if len(old) != 1 or len(products) != 1:
        raise refuse(block, f"{NAME}: block '{name}' is not a sum of products", SUM)
    factors = [_plain(products[0].lhs), _plain(products[0].rhs)]
    return {f.buffer for f in factors if isinstance(f, tir.LoadOp) and f.buffer is not store.buffer}


def _plain(value: SSAValue) -> object:
    """Returns the op that computes a value, seen through casts."""
    owner = value.owner
    while isinstance(owner, tir.CastOp):
        owner = owner.value.owner
    return owner


def padding_of(buffer: SSAValue) -> dict[int, tuple[Expr, Expr]]:
    """Returns, for each dimension padded with zeros, the least and the greatest index inside the padding.

    The result is empty for a buffer that is not written so by one block, wherever it is.
    """
    uses = [use.operation for use in buffer.uses]
    makers = {op.parent_op() for op in uses if isinstance(op, tir.StoreOp)}
    maker = makers.pop() if len(makers) == 1 else None
    known = isinstance(buffer.owner, tir.AllocBufferOp) and all(
        isinstance(op, tir.StoreOp | tir.LoadOp | tir.BufferRegionOp) for op in uses
    )
    if not known or not isinstance(maker, tir.BlockOp):
        return {}
    stores = [op for op in maker.body.block.ops if isinstance(op, tir.StoreOp)]
    chosen = stores[0].value.owner if len(stores) == 1 else None
    if not isinstance(chosen, tir.IfThenElseOp | tir.SelectOp):
        return {}
    analyzer = analyzer_for(all_loops_above(maker))
    try:
        store, condition, padding = choice_of(maker)
        bounds = inside_of(maker, condition, analyzer) if _is_zero(padding) else {}
    except ScheduleError:
        return {}
    places = {axis: k for k, axis in enumerate(store.indices)}
    return {places[axis]: bounds[k] for k, axis in enumerate(maker.iter_vars) if k in bounds and axis in places}


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, tir.ConstOp):
        return False
    constant = owner.value
    return isinstance(constant, FloatAttr | IntegerAttr) and constant.value.data == 0
