"""pad_einsum: a contraction over extents that are multiples of given numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr
from ....dialects.arith.expr import floordiv, free_vars, logical_and, lt, substitute
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.types import I1
from ....support.diagnostics import MirError
from ....support.edit import builder_before
from ....support.text import counted
from ....support.walk import walk_ops
from ..analysis.access import extents_of, index_type
from ..analysis.block_kind import axis_kinds, set_block, why_not_complete, why_not_reduction
from ..analysis.region_cover import why_not_all_written
from ..analysis.structure import (
    child_blocks,
    child_under,
    is_inside,
    loops_above,
    read_regions,
    scope_of,
    uses_in,
    write_regions,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .blockize import require_only
from .cache_read_write import retarget
from .common.loops import require_block, require_countable
from .common.new_blocks import elementwise_block, new_buffer


@primitive
def pad_einsum(state: State, block: tir.BlockOp, padding: Sequence[int]) -> None:
    """Rounds the extents of a block's axes up to multiples of `padding`, one number for each axis.

    Inputs are copied to buffers padded with zeros, the output is copied out of a padded one.

    for i, j, k in T.grid(100, 64, 64):          for i0, i1 in T.grid(112, 64): with T.block("A_pad"): …
        with T.block("C"): …              →      for i, j, k in T.grid(112, 64, 64): with T.block("C"): …
                                                 for i0, i1 in T.grid(100, 64): with T.block("C_pad"): …
    sch.pad_einsum(C, [16, 1, 1])
    """
    block = require_block(block, "pad_einsum")
    name = block.block_name.data
    axes = list(block.iter_vars)
    if len(padding) != len(axes):
        raise refuse(
            block,
            f"pad_einsum: block '{name}' has {counted(len(axes), 'axis')}, but padding has {counted(len(padding), 'number')}",
            f"give a number for each axis: {', '.join(name.data for name in block.iter_names.data)}",
        )
    for label, factor in zip(block.iter_names.data, padding, strict=True):
        if factor < 1:
            raise refuse(
                block,
                f"pad_einsum: axis '{label.data}' of block '{name}' cannot be padded to a multiple of {factor}",
                "give a positive number; 1 leaves an axis as it is",
            )
    if why_not_complete(block) is not None and (reason := why_not_reduction(block)) is not None:
        raise refuse(
            block,
            f"pad_einsum: block '{name}' is neither a complete nor a reduction block: {reason}",
            "pad a block that computes each element once, or sums with T.init()",
        )
    if block.predicate is not None:
        raise refuse(block, f"pad_einsum: block '{name}' has a predicate (T.where)", "pad before splitting")
    loops = loops_above(block)
    variables = {loop.loop_var: loop for loop in loops}
    analyzer = Analyzer()
    grown: dict[SSAValue, Expr] = {}
    for axis, binding, low, extent, factor, label in zip(
        axes, block.bindings, block.dom_mins, block.dom_extents, padding, block.iter_names.data, strict=True
    ):
        old = analyzer.expr(extent)
        new = analyzer.simplify(floordiv(old + (factor - 1), Expr((), factor)).scaled(factor))
        if new == old:
            continue
        require_countable(block, "pad_einsum", f"the extent of axis '{label.data}'", new.value, axis.type)
        loop = variables.get(binding)
        if loop is None or analyzer.expr(low).value != 0 or not analyzer.can_prove_equal(loop.extent, extent):
            raise refuse(
                block,
                f"pad_einsum: axis '{label.data}' of block '{name}' is not bound to a loop of its own",
                "pad before splitting",
            )
        _require_own_loop(block, loop, label.data)
        grown[axis] = new
    if not grown:
        return
    _check_reduction(block, grown)
    _check_outputs(block, grown, analyzer)
    _check_accesses(block, grown, analyzer)
    _require_whole_outputs(block)
    scope = scope_of(block)
    anchor = child_under(scope, block)
    after = anchor.next_op
    plans: list[tuple[SSAValue, list[Expr], bool]] = []
    written = {r.buffer for r in write_regions(block)}
    for region in (*read_regions(block), *write_regions(block)):
        extents = extents_of(region.buffer, analyzer)
        padded: list[Expr] = []
        for low, size, extent in zip(region.mins, region.extents, extents, strict=True):
            e = analyzer.expr(low)
            if not grown.keys() & _values(e):
                padded.append(extent)
            elif low in grown and analyzer.expr(size).value == 1:
                padded.append(grown[low])
            else:
                raise _not_alone(block, region.buffer)
        if padded != extents and all(region.buffer is not known for known, _, _ in plans):
            plans.append((region.buffer, padded, region.buffer in written))
    for buffer, _, is_output in plans:
        for use in uses_in(buffer, scope):
            if (
                use.block is not None
                and use.block is not block
                and is_inside(use.block, anchor)
                and (is_output or use.writes)
            ):
                raise refuse(
                    use.block,
                    f"pad_einsum: block '{use.block.block_name.data}' uses '{tir.buffer_name(buffer)}' in the loops of block '{name}', which are between the padded copies",
                    "give each block loops of its own",
                )
    for buffer, padded, is_output in plans:
        assert isinstance(buffer.type, tir.BufferType)
        wanted = state.fresh_buffer_name(scope, f"{tir.buffer_name(buffer)}_pad")
        copy = new_buffer(state, scope, wanted, padded, buffer.type.dtype, buffer.type.scope.data, index_type(buffer))
        if is_output:
            retarget(block, buffer, copy)
            _crop(state, scope, after, copy, buffer, analyzer)
        else:
            _pad(state, scope, anchor, buffer, copy, padded, analyzer)
            retarget(block, buffer, copy)
    _grow(block, grown, variables, analyzer)


def _require_own_loop(block: tir.BlockOp, loop: tir.ForOp, label: str) -> None:
    """Raises unless `loop` drives only an axis of `block`: other things in it would run too often."""
    name, var = block.block_name.data, loop.var_name.data
    other = next((b for b in child_blocks(loop) if b is not block), None)
    if other is not None:
        raise refuse(
            loop,
            f"pad_einsum: loop '{var}' of axis '{label}' of block '{name}' holds block '{other.block_name.data}', too, which would run more often",
            "give each block loops of its own, or 1 for this axis",
        )
    driven = sum(any(a.payload is loop.loop_var for a in free_vars(Analyzer().expr(b))) for b in block.bindings)
    if driven > 1:
        raise refuse(
            loop,
            f"pad_einsum: loop '{var}' drives {counted(driven, 'axis')} of block '{name}', and must drive '{label}' alone",
            "pad before splitting",
        )
    around = loop.parent_op()
    assert around is not None
    require_only(block, around, "pad_einsum")


def _check_outputs(block: tir.BlockOp, grown: dict[SSAValue, Expr], analyzer: Analyzer) -> None:
    """Raises unless what is added along spatial axes is stored to elements of its own.

    for i, j in T.grid(7, 1): B[vi, 0] = A[vi, vj]     # with j up to 4, B[vi, 0] would be the last zero
    """
    for axis, label, kind in zip(block.iter_vars, block.iter_names.data, axis_kinds(block), strict=True):
        for region in write_regions(block):
            if kind == "S" and axis in grown and not any(axis in _values(analyzer.expr(low)) for low in region.mins):
                raise refuse(
                    block,
                    f"pad_einsum: axis '{label.data}' is padded, but does not index '{tir.buffer_name(region.buffer)}': what is"
                    " added would be stored over its elements",
                    "give 1 for this axis",
                )


def _require_whole_outputs(block: tir.BlockOp) -> None:
    """Raises unless a block writes all of its outputs: a padded one is copied back whole."""
    for buffer in dict.fromkeys(r.buffer for r in write_regions(block)):
        reason = why_not_all_written(block, buffer)
        if reason is not None:
            raise refuse(
                block,
                f"pad_einsum: block '{block.block_name.data}' is not known to write all of '{tir.buffer_name(buffer)}': {reason}",
                "only an output that is written whole can be copied out of a padded one",
            )


def _check_accesses(block: tir.BlockOp, grown: dict[SSAValue, Expr], analyzer: Analyzer) -> None:
    """Raises unless padded axes index alone, also in inner blocks.

    with T.block("o"): T.writes(B[0, vo])    # vo in range(2), of which the block within makes B[vo // 2, vo % 2]
    """
    values: dict[Atom, Expr] = {}
    for op in walk_ops(block):
        if isinstance(op, tir.BlockOp) and op is not block:
            for axis, binding in zip(op.iter_vars, op.bindings, strict=True):
                if (atom := analyzer.expr(axis).atom) is not None:
                    values[atom] = substitute(analyzer.expr(binding), values)
        elif isinstance(op, AccessOp):
            for index in op.indices:
                e = substitute(analyzer.expr(index), values)
                if any(axis in _values(e) and e != analyzer.expr(axis) for axis in grown):
                    raise _not_alone(block, op.buffer)


def _not_alone(block: tir.BlockOp, buffer: SSAValue) -> MirError:
    return refuse(
        block,
        f"pad_einsum: '{tir.buffer_name(buffer)}' is not indexed by the padded axis alone in some dimension",
        "only axes that index on their own can be padded",
    )


def _values(e: Expr) -> set[object]:
    return {a.payload for a in free_vars(e)}


def _check_reduction(block: tir.BlockOp, grown: dict[SSAValue, Expr]) -> None:
    """Zeros may be added to a reduction only when it is a sum of products of the padded inputs."""
    reduced = {
        v: n.data
        for v, n, kind in zip(block.iter_vars, block.iter_names.data, axis_kinds(block), strict=True)
        if kind == "R" and v in grown
    }
    if not reduced:
        return
    label = list(reduced.values())
    for op in walk_ops(block):
        if isinstance(op, tir.StoreOp) and not isinstance(op.parent_op(), tir.InitOp):
            value = op.value.owner
            sides = (value.lhs.owner, value.rhs.owner) if isinstance(value, tir.AddOp) else ()
            if not any(isinstance(side, tir.MulOp) for side in sides):
                raise refuse(
                    op,
                    f"pad_einsum: reduction axis '{label[0]}' is padded, but the block is not a sum of products: zeros would change it",
                    "give 1 for reduction axes",
                )
            factors = [load for side in sides if isinstance(side, tir.MulOp) for load in _loads(side)]
            for axis, name in reduced.items():
                if not factors or any(axis not in load.indices for load in factors):
                    raise refuse(
                        op,
                        f"pad_einsum: reduction axis '{name}' is padded, but does not index every factor: what is added would not be 0 times 0",
                        "give 1 for reduction axes",
                    )


def _loads(product: tir.MulOp) -> list[tir.LoadOp]:
    """Returns the loads that the factors of a product are computed from."""
    found: list[tir.LoadOp] = []
    pending = list(product.operands)
    while pending:
        op = pending.pop().owner
        if isinstance(op, tir.LoadOp):
            found.append(op)
        elif isinstance(op, tir.MulOp | tir.CastOp):
            pending += op.operands
    return found


def _pad(
    state: State,
    scope: tir.BlockOp | tir.PrimFuncOp,
    anchor: Operation | None,
    source: SSAValue,
    target: SSAValue,
    extents: list[Expr],
    analyzer: Analyzer,
) -> None:
    """Creates `target[v…] = source[v…]` inside of the source, 0 around it."""
    inside = extents_of(source, analyzer)
    source_type = source.type
    assert isinstance(source_type, tir.BufferType)

    def value(builder: Builder, axes: Sequence[SSAValue]) -> SSAValue:
        fresh = Analyzer()
        parts = [lt(fresh.expr(v), e) for v, e, p in zip(axes, inside, extents, strict=True) if e != p]
        condition = fresh.to_ssa(logical_and(*parts), builder, I1)
        regions: list[Region] = []
        for load in (True, False):
            body = Block()
            op = tir.LoadOp(source, axes) if load else zero_of(source_type.dtype)
            body.add_ops([op, tir.YieldOp(op.results[0])])
            regions.append(Region(body))
        return builder.insert(tir.IfThenElseOp(condition, regions[0], regions[1], source_type.dtype)).result

    elementwise_block(
        state, scope, anchor, tir.buffer_name(target), target, extents, value,
        analyzer=analyzer, type_=index_type(source), loop_prefix="i",
    )  # fmt: skip


def zero_of(dtype: Attribute) -> tir.ConstOp:
    """Returns the number 0 of a dtype."""
    return tir.ConstOp.int(0, dtype) if isinstance(dtype, tir.types.IntegerType) else tir.ConstOp.float(0.0, dtype)


def _crop(
    state: State,
    scope: tir.BlockOp | tir.PrimFuncOp,
    anchor: Operation | None,
    source: SSAValue,
    target: SSAValue,
    analyzer: Analyzer,
) -> None:
    """Creates `target[v…] = source[v…]` over the target's extents."""
    elementwise_block(
        state, scope, anchor, tir.buffer_name(source), target, extents_of(target, analyzer),
        lambda builder, axes: builder.insert(tir.LoadOp(source, axes)).result,
        analyzer=analyzer, type_=index_type(target), loop_prefix="i",
    )  # fmt: skip


def _grow(
    block: tir.BlockOp, grown: dict[SSAValue, Expr], loops: dict[SSAValue, tir.ForOp], analyzer: Analyzer
) -> None:
    """Gives axes, and the loops that drive them, their new extents."""
    builder = builder_before(block)
    extents = list(block.dom_extents)
    for k, (axis, binding) in enumerate(zip(block.iter_vars, block.bindings, strict=True)):
        if axis not in grown:
            continue
        extents[k] = analyzer.to_ssa(grown[axis], builder, axis.type)
        loop = loops[binding]
        new = analyzer.to_ssa(grown[axis], builder_before(loop), binding.type)
        loop.operands[1] = new
    set_block(block, dom_extents=extents)
