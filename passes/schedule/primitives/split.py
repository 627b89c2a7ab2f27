"""split: one loop becomes several."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import TRUE, floordiv, lt
from ....support.edit import builder_before
from ..analysis.block_kind import simplify_blocks_under
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import const_before, name_value, nest, require_countable, require_loop, require_plain


@primitive
def split(
    state: State,
    loop: tir.ForOp,
    factors: Sequence[int | None],
    preserve_unit_iters: bool = True,
    disable_predication: bool = False,
) -> list[Operation]:
    """Splits a loop into nested loops of the extents `factors`, of which one may be None and is computed.

    Where the product of the factors is more than the loop's extent, the blocks inside get a predicate.

    for i in range(128):                    for i_0, i_1 in T.grid(32, 4):
        with T.block("B"):           →          with T.block("B"):
            vi = T.axis.spatial(128, i)             vi = T.axis.spatial(128, i_0 * 4 + i_1)

    The new loops start at 0; where the loop did not, its start is added where its variable was used.
    """
    loop = require_loop(loop, "split")
    require_plain(loop, "split", from_zero=False)
    name = loop.var_name.data
    open_places = [k for k, f in enumerate(factors) if f is None]
    if not factors:
        raise refuse(
            loop, f"split: loop '{name}' needs at least one factor", "give a number, or None, for each new loop"
        )
    if len(open_places) > 1:
        raise refuse(loop, f"split: {len(open_places)} factors of loop '{name}' are None", "leave one to be computed")
    known = [f for f in factors if f is not None]
    for factor in known:
        if type(factor) is not int or factor <= 0:
            raise refuse(loop, f"split: {factor!r} is not a factor of loop '{name}'", "a factor is a positive number")
    analyzer = Analyzer()
    extent = analyzer.expr(loop.extent)
    product = prod(known)
    if open_places:
        rest = analyzer.simplify(floordiv(extent + (product - 1), Expr((), product)))
    else:
        rest = Expr((), 1)
        if extent.value is not None and product < extent.value:
            raise refuse(
                loop,
                f"split: the factors {list(factors)} make {product} iterations, but loop '{name}' has {extent.value}",
                "the product must be at least the loop's extent; or give None for one factor",
            )
        if extent.value is None:
            raise refuse(loop, f"split: loop '{name}' has a symbolic extent", "give None for one factor")
    type_ = loop.loop_var.type
    require_countable(
        loop, "split", f"the iterations of loop '{name}'", max(product, (rest * product).value or 0), type_
    )
    sizes = [rest if f is None else Expr((), f) for f in factors]
    total = rest * product
    exact = analyzer.can_prove_equal(total, extent)
    builder = builder_before(loop)
    zero = const_before(loop, 0, loop.extent)
    loops: list[tir.ForOp] = []
    for k, size in enumerate(sizes):
        new = tir.ForOp(f"{name}_{k}", zero, analyzer.to_ssa(size, builder, type_))
        new.location = loop.location
        name_value(new)
        loops.append(new)
    nest(loops, loop, loop.body.block.ops)
    first = loops[-1].body.block.first_op
    combined = Expr((), 0)
    fresh = Analyzer()
    for new, size in zip(loops, sizes, strict=True):
        combined = combined * size + fresh.expr(new.loop_var)
    if loop.loop_var.uses and first is not None:
        place = combined + fresh.expr(loop.min)
        loop.loop_var.replace_all_uses_with(fresh.to_ssa(place, builder_before(first, loop.location), type_))
    guard = TRUE if exact or disable_predication else lt(combined, extent)
    # What used the loop's variable outside of blocks sees the computed value; bindings are written afresh.
    simplify_blocks_under(loops[-1], guard, preserve_unit_iters)
    _guard_statements(loops[-1], guard)
    state.erase(loop, f"loop '{name}' was split; use the loops that split returned")
    return list(loops)


def _guard_statements(loop: tir.ForOp, guard: Expr) -> None:
    """Statements in no block run under an `if` where the split runs past the loop's end."""
    if guard == TRUE:
        return
    from ....dialects.tir.types import I1
    from ....support.edit import block_of_ops

    statements = [op for op in loop.body.block.ops if isinstance(op, tir.StoreOp | tir.EvaluateOp | tir.IfOp)]
    if not statements or any(isinstance(op, tir.BlockOp | tir.ForOp) for op in loop.body.block.ops):
        return
    builder = builder_before(statements[0])
    condition = Analyzer().to_ssa(guard, builder, I1)
    ops = list(loop.body.block.ops)
    start = ops.index(statements[0])
    body = block_of_ops(ops[start:])
    branch = tir.IfOp(condition, body)
    branch.location = loop.location
    loop.body.block.add_op(branch)
