"""reindex, reindex_cache_read, reindex_cache_write: a block accesses a copy, indexed by its axes.

The block must access the old buffer at one place, `B[f(axes)]`, and accesses `B_new[g(axes)]` instead; a block of copies
moves the elements between the two, one for each value of the axes that f and g use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import ONE, TRUE, ZERO, Atom, as_expr, free_vars, substitute
from ....dialects.arith.int_set import FROM_DTYPE, relax
from ....dialects.arith.iter_map import IterMapLevel, IterSumExpr
from ....dialects.tir.buffer import AccessOp
from ....support.edit import builder_before
from ....support.text import counted
from ....support.walk import walk_ops
from ...tir.rewriting import set_indices, set_operands
from ..analysis.access import extents_of, index_type
from ..analysis.block_kind import analyzer_for, bind_axes, why_neither
from ..analysis.structure import (
    Scope,
    all_loops_above,
    buffers_written,
    child_under,
    is_inside,
    loops_above,
    scope_of,
    uses_in,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.block_axes import Axis, axes_of, bind_long_axes
from .common.loops import require_block, require_countable, require_own_values
from .common.new_blocks import elementwise_block, new_buffer
from .set_scope import chosen_buffer, read_buffer, require_scope, written_buffer

AxesMap = Callable[..., Sequence[object]]


@primitive
def reindex(state: State, block: tir.BlockOp, buffer: str | tuple[str, int]) -> Operation:
    """Replaces a block's accesses of a buffer by those of a copy that its axes index, in their order.

                                             for ax0, ax1 in T.grid(8, 4):
                                                 with T.block("A_reindex_reindex"): A_reindex[v0, v1] = A[v1, v0]
    for i, j in T.grid(8, 4):         →      for i, j in T.grid(8, 4):
        with T.block("B"): B = f(A[vj, vi])      with T.block("B"): B = f(A_reindex[vi, vj])

    sch.reindex(B, ("read", 0))

    Of a buffer that the block writes, the copy follows the block. Returns the block that copies.
    """
    block = require_block(block, "reindex")
    target = chosen_buffer(block, buffer, "reindex")
    written = target in buffers_written(block) if isinstance(buffer, str) else buffer[0] == "write"
    point = _point(block, target, "reindex")
    name = state.fresh_buffer_name(scope_of(block), f"{tir.buffer_name(target)}_reindex")
    assert isinstance(target.type, tir.BufferType)
    plan = _planned(block, target, point, point.axes, None, written, "reindex")
    return _apply(state, plan, name, name if written else f"{name}_reindex", target.type.scope.data)


@primitive
def reindex_cache_read(
    state: State, block: tir.BlockOp, read_buffer_index: int | str, storage_scope: str, index_map: AxesMap
) -> Operation:
    """Lets a block read a copy of a buffer in `storage_scope`, at `index_map` of its axes.

                                             for ax0, ax1 in T.grid(8, 4):
                                                 with T.block("A_local"): A_local[v1, v0] = A[v0, v1]
    for i, j in T.grid(8, 4):         →      for i, j in T.grid(8, 4):
        with T.block("B"): B = f(A[vi, vj])      with T.block("B"): B = f(A_local[vj, vi])

    sch.reindex_cache_read(B, 0, "local", lambda vi, vj: (vj, vi))
    """
    block = require_block(block, "reindex_cache_read")
    target = read_buffer(block, read_buffer_index, "reindex_cache_read")
    require_scope(block, storage_scope, "reindex_cache_read")
    return _cached(state, block, target, storage_scope, index_map, False, "reindex_cache_read")


@primitive
def reindex_cache_write(
    state: State, block: tir.BlockOp, write_buffer_index: int | str, storage_scope: str, index_map: AxesMap
) -> Operation:
    """Lets a block write a buffer in `storage_scope` at `index_map` of its axes, which is copied after it.

    for i, j in T.grid(8, 4):               for i, j in T.grid(8, 4):
        with T.block("B"): B[vi, vj] = …  →     with T.block("B"): B_local[vj, vi] = …
                                            for ax0, ax1 in T.grid(8, 4):
                                                with T.block("B_local"): B[v0, v1] = B_local[v1, v0]

    sch.reindex_cache_write(B, 0, "local", lambda vi, vj: (vj, vi))
    """
    block = require_block(block, "reindex_cache_write")
    target = written_buffer(block, write_buffer_index, "reindex_cache_write")
    require_scope(block, storage_scope, "reindex_cache_write")
    return _cached(state, block, target, storage_scope, index_map, True, "reindex_cache_write")


def _cached(
    state: State,
    block: tir.BlockOp,
    target: SSAValue,
    storage_scope: str,
    index_map: AxesMap,
    written: bool,
    primitive_name: str,
) -> Operation:
    point = _point(block, target, primitive_name)
    indices = _evaluated(block, index_map, primitive_name)
    used = free_vars(*point.place, *indices)
    axes = [a for a in axes_of(block, Analyzer()) if a.atom in used]
    plan = _planned(block, target, point, axes, indices, written, primitive_name)
    wanted = f"{tir.buffer_name(target)}_{storage_scope.replace('.', '_')}"
    name = state.fresh_buffer_name(scope_of(block), wanted)
    return _apply(state, plan, name, name, storage_scope)


def _evaluated(block: tir.BlockOp, index_map: AxesMap, primitive_name: str) -> list[Expr]:
    """Returns the new indices, in terms of the block's axes."""
    parameters = inspect.signature(index_map).parameters.values()
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    count = len(block.iter_vars)
    if not open_ended and len(parameters) != count:
        raise refuse(
            block,
            f"{primitive_name}: the map takes {counted(len(parameters), 'index')}, but block '{block.block_name.data}' has {counted(count, 'axis')}",
        )
    analyzer = Analyzer()
    found: list[Expr] = []
    given: object = index_map(*(analyzer.expr(v) for v in block.iter_vars))
    items = cast("Sequence[object]", given) if isinstance(given, list | tuple) else [given]
    for item in items:
        if not isinstance(item, Expr | int):
            raise refuse(block, f"{primitive_name}: the map gives {item!r}, which is not an index")
        found.append(as_expr(item))
    return found


@dataclass(frozen=True)
class _Point:
    """The one place at which a block accesses a buffer, and the axes that it uses, in the block's order."""

    place: list[Expr]
    axes: list[Axis]
    accesses: list[AccessOp]


@dataclass(frozen=True)
class _Plan:
    """The checked rewrite of a reindexing primitive."""

    block: tir.BlockOp
    target: SSAValue
    point: _Point
    axes: list[Axis]
    """The axes over which elements are copied."""
    indices: list[Expr]
    """The place in the new buffer."""
    shape: list[Expr]
    starts: list[Expr]
    extents: list[Expr]
    """Which values of the axes are copied; the starts may use loops around the copies."""
    written: bool
    holder: Scope | tir.ForOp
    analyzer: Analyzer


def _point(block: tir.BlockOp, target: SSAValue, primitive_name: str) -> _Point:
    """Returns the element of a buffer that a block accesses; raises unless the axes choose only one."""
    name, called = tir.buffer_name(target), block.block_name.data
    analyzer = Analyzer()
    bind_long_axes(analyzer, block)
    accesses: list[AccessOp] = []
    places: dict[tuple[Expr, ...], None] = {}
    for op in walk_ops(block):
        if target not in op.operands:
            continue
        if isinstance(op, AccessOp):
            accesses.append(op)
            places[tuple(analyzer.simplify(i) for i in op.indices)] = None
        elif not isinstance(op, tir.BufferRegionOp) or any(
            not isinstance(use.operation, tir.ReadsOp | tir.WritesOp) for use in op.result.uses
        ):
            raise refuse(op, f"{primitive_name}: block '{called}' uses '{name}' otherwise than by its elements")
    if len(places) != 1:
        raise refuse(
            block,
            f"{primitive_name}: block '{called}' accesses '{name}' at {len(places)} places, and must at exactly one",
        )
    (place,) = places
    axes = axes_of(block, Analyzer())
    known = {a.atom for a in axes}
    used = free_vars(*place)
    for atom in used:
        owner = atom.payload.owner if isinstance(atom.payload, SSAValue) else None
        if atom not in known and _is_inside_scope(owner, block):
            raise refuse(
                block,
                f"{primitive_name}: the place '{name}[{', '.join(map(repr, place))}]' in block '{called}' is not chosen by its axes alone",
                "blockize an inner block out, or bind an axis to what it uses",
            )
    return _Point(list(place), [a for a in axes if a.atom in used], accesses)


def _is_inside_scope(owner: Operation | Block | None, block: tir.BlockOp) -> bool:
    """Returns whether a value is defined by loops around a block or in it, not outside of its scope."""
    if isinstance(owner, Block):
        owner = owner.parent_op()
        if isinstance(owner, tir.PrimFuncOp):
            return False
    return (
        owner is not None and not isinstance(owner, tir.VarOp) and is_inside(owner, child_under(scope_of(block), block))
    )


def _planned(
    block: tir.BlockOp,
    target: SSAValue,
    point: _Point,
    axes: list[Axis],
    indices: list[Expr] | None,
    written: bool,
    primitive_name: str,
) -> _Plan:
    require_own_values(block, primitive_name)
    name, called = tir.buffer_name(target), block.block_name.data
    holder = _holder(block, target, written, primitive_name)
    if written:
        reasons = why_neither(block)
        if reasons is not None:
            raise refuse(
                block,
                f"{primitive_name}: block '{called}' is neither complete ({reasons[0]}) nor a reduction ({reasons[1]}), so that a copy may not stand for its output",
            )
        for axis in axes:
            if axis.kind != "S":
                raise refuse(
                    block,
                    f"{primitive_name}: the new indices of '{name}' use axis '{axis.name}', which is not a spatial axis",
                )
    elif target in buffers_written(block):
        raise refuse(
            block, f"{primitive_name}: block '{called}' writes '{name}' too: what it reads must be finished before"
        )
    if indices is None:
        indices = [a.symbol - a.min for a in axes] or [ZERO]
    analyzer = Analyzer()
    bind_axes(analyzer, block)
    shape = _shape(block, target, indices, analyzer, primitive_name)
    ranges: dict[Value, tuple[Value, Value]] = {a.symbol: (a.min, a.extent) for a in axes}
    for what, map_ in (("new", indices), *((("old", point.place),) if written else ())):
        found = analyzer.detect_iter_map(map_, ranges, TRUE, IterMapLevel.BIJECTIVE)
        if not found:
            raise refuse(
                block,
                f"{primitive_name}: the {what} indices [{', '.join(map(repr, map_))}] of '{name}' cannot be shown to keep its elements apart: {found.errors[0]}",
            )
    for number, (e, extent) in enumerate(zip(point.place, extents_of(target, analyzer), strict=True)):
        if not (analyzer.can_prove_ge0(e) and analyzer.can_prove_ge0(extent - 1 - e)):
            raise refuse(
                block,
                f"{primitive_name}: a copy over all axes would access '{name}' outside of it: index {number}, {e!r}, is not known to be from 0 to {extent - 1!r}",
                "split the block where its access is guarded",
            )
    outer = analyzer_for(all_loops_above(block))
    starts, extents = _turns(block, axes, holder, outer, written, primitive_name)
    return _Plan(block, target, point, axes, indices, shape, starts, extents, written, holder, outer)


def _shape(
    block: tir.BlockOp, target: SSAValue, indices: list[Expr], analyzer: Analyzer, primitive_name: str
) -> list[Expr]:
    """Returns the extent of each new index."""
    variables = {a.atom for a in axes_of(block, analyzer)}
    shape: list[Expr] = []
    for number, e in enumerate(indices):
        bound = analyzer.const_int_bound(e)
        if bound.min_value < 0:
            raise refuse(block, f"{primitive_name}: new index {number}, {e!r}, may be negative ({bound.min_value})")
        if bound.max_value < FROM_DTYPE:
            shape.append(as_expr(bound.max_value + 1))
            continue
        ends = relax(analyzer.simplify(e), variables, analyzer)
        if ends is None:
            raise refuse(block, f"{primitive_name}: how far new index {number}, {e!r}, reaches is not known")
        shape.append(analyzer.simplify(ends[1] + 1))
    for number, extent in enumerate(shape):
        what = f"the extent of new dimension {number}"
        require_countable(block, primitive_name, what, extent.value, index_type(target))
    return shape


def _holder(block: tir.BlockOp, target: SSAValue, written: bool, primitive_name: str) -> Scope | tir.ForOp:
    """Returns the scope or loop of the copies: the outermost without other users of the buffer in it.

    Reading, other writers of the buffer count; writing, all other blocks that use it.
    """
    scope = scope_of(block)
    name = tir.buffer_name(target)
    holder: Scope | tir.ForOp = scope
    nest = child_under(scope, block)
    others = [use for use in uses_in(target, scope) if use.block is not block and (use.writes or written)]
    for use in others:
        if use.block is None:
            raise refuse(block, f"{primitive_name}: '{name}' is used in {_called(scope)} outside of any block")
    inside = [use.block for use in others if use.block is not None and is_inside(use.block, nest)]
    for loop in loops_above(block):
        if any(is_inside(b, loop) for b in inside):
            holder = loop
    for loop in loops_above(block):
        if isinstance(holder, tir.ForOp) and is_inside(holder, loop) and loop.kind.data not in ("serial", "unrolled"):
            raise refuse(
                loop,
                f"{primitive_name}: the copies of '{name}' would stand in loop '{loop.var_name.data}', which is {loop.kind.data}: its iterations would share the new buffer",
                f"{primitive_name} first",
            )
    return holder


def _called(scope: Scope) -> str:
    return f"block '{scope.block_name.data}'" if isinstance(scope, tir.BlockOp) else f"function '{scope.sym_name.data}'"


def _turns(
    block: tir.BlockOp,
    axes: list[Axis],
    holder: Scope | tir.ForOp,
    analyzer: Analyzer,
    written: bool,
    primitive_name: str,
) -> tuple[list[Expr], list[Expr]]:
    """Returns (starts, extents) of the axes' values that are copied in each iteration of the holder.

    What is read may be copied whole. Of what is written, exactly that is copied which the block has then written.
    """
    if not written and not isinstance(holder, tir.ForOp):
        return [a.min for a in axes], [a.extent for a in axes]
    inner = [loop for loop in loops_above(block) if loop is not holder and is_inside(loop, holder)]
    iters: dict[Value, tuple[Value, Value]] = {loop.loop_var: (loop.min, loop.extent) for loop in inner}
    predicate = TRUE if block.predicate is None else analyzer.expr(block.predicate)
    found = analyzer.detect_iter_map([a.binding for a in axes], iters, predicate, IterMapLevel.SURJECTIVE)
    ends = [_run(total, analyzer) for total in found.indices] if found else []
    if found and all(end is not None for end in ends):
        known = [end for end in ends if end is not None]
        return [start for start, _ in known], [extent for _, extent in known]
    if written:
        raise refuse(
            block,
            f"{primitive_name}: which elements block '{block.block_name.data}' writes before they are copied is not known: {found.errors[0] if not found else 'an axis runs over no range of constant length'}",
        )
    return [a.min for a in axes], [a.extent for a in axes]


def _run(total: IterSumExpr, analyzer: Analyzer) -> tuple[Expr, Expr] | None:
    """Returns (start, extent) of the values of one index; None when they are not a run of known length."""
    if not total.args:
        return analyzer.simplify(total.base), ONE
    (split,) = total.args
    extent = analyzer.simplify(split.extent)
    if split.scale != ONE or (
        extent.terms and any(isinstance(a.payload, SSAValue) and _is_loop(a) for a in free_vars(extent))
    ):
        return None
    return analyzer.simplify(total.base), extent


def _is_loop(atom: Atom) -> bool:
    owner = atom.payload.owner if isinstance(atom.payload, SSAValue) else None
    return isinstance(owner, Block) and isinstance(owner.parent_op(), tir.ForOp)


# Application


def _apply(state: State, plan: _Plan, name: str, block_name: str, storage_scope: str) -> tir.BlockOp:
    """Makes the buffer and the copies, next to the block's loops, and has the block use the buffer."""
    block, target = plan.block, plan.target
    scope = scope_of(block)
    assert isinstance(target.type, tir.BufferType)
    buffer = new_buffer(state, scope, name, plan.shape, target.type.dtype, storage_scope, index_type(target))
    nest = child_under(plan.holder, block)
    anchor: Operation | None = nest.next_op if plan.written else nest
    type_ = plan.axes[0].type if plan.axes else index_type(target)

    def place(map_: Sequence[Expr], buffer_: SSAValue) -> Callable[[Builder, Sequence[SSAValue]], list[SSAValue]]:
        def build(builder: Builder, values: Sequence[SSAValue]) -> list[SSAValue]:
            fresh = Analyzer()
            atoms = {axis.atom: fresh.expr(v) + axis.min for axis, v in zip(plan.axes, values, strict=True)}
            return [fresh.to_ssa(substitute(e, atoms), builder, index_type(buffer_)) for e in map_]

        return build

    source, read_at = (
        (buffer, place(plan.indices, buffer)) if plan.written else (target, place(plan.point.place, target))
    )
    into, store_at = (
        (target, place(plan.point.place, target)) if plan.written else (buffer, place(plan.indices, buffer))
    )

    def value(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(tir.LoadOp(source, read_at(builder, values))).result

    starts = [start - axis.min for start, axis in zip(plan.starts, plan.axes, strict=True)]
    copies = elementwise_block(
        state,
        plan.holder,
        anchor,
        block_name,
        into,
        plan.extents,
        value,
        analyzer=plan.analyzer,
        type_=type_,
        starts=starts,
        domains=[axis.extent for axis in plan.axes],
        store_at=store_at,
    )
    _retarget(plan, buffer)
    return copies


def _retarget(plan: _Plan, buffer: SSAValue) -> None:
    """Replaces the block's accesses and declarations by those of the new buffer."""
    block, analyzer = plan.block, Analyzer()
    type_ = index_type(buffer)
    for op in plan.point.accesses:
        builder = builder_before(op)
        set_indices(op, [analyzer.to_ssa(e, builder, type_) for e in plan.indices], buffer)
    for use in list(plan.target.uses):
        region = use.operation
        if isinstance(region, tir.BufferRegionOp) and is_inside(region, block):
            builder = builder_before(region)
            mins = [analyzer.to_ssa(e, builder, type_) for e in plan.indices]
            ones = [builder.insert(tir.ConstOp.int(1, type_)).result for _ in mins]
            set_operands(region, [buffer], mins, ones)
