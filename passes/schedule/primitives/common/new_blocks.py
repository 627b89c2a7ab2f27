"""New buffers, and new blocks that compute a buffer element by element in a nest of loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .....dialects import tir
from .....dialects.arith import Analyzer, Expr
from .....dialects.arith.expr import ZERO, maximum
from .....support.edit import builder_at_end, move_before, move_to_end
from ...analysis.access import declare_access, extents_of, index_type
from ...analysis.structure import Scope, body_of
from ...engine.state import State

Indices = Callable[[Builder, Sequence[SSAValue]], Sequence[SSAValue]]
Value = Callable[[Builder, Sequence[SSAValue]], SSAValue]


def elementwise_block(
    state: State,
    scope: Scope | tir.ForOp,
    anchor: Operation | None,
    name: str,
    target: SSAValue,
    extents: Sequence[Expr],
    value: Value,
    *,
    analyzer: Analyzer,
    type_: Attribute,
    starts: Sequence[Expr] | None = None,
    domains: Sequence[Expr] | None = None,
    store_at: Indices | None = None,
    loop_prefix: str = "ax",
    location: LocationAttr | None = None,
) -> tir.BlockOp:
    """Creates `for ax0, … in T.grid(extents): with T.block(name): target[v0, …] = value(v0, …)`.

    The nest is put before `anchor` in `scope`. Axis k runs over `domains[k]` values (the target's dimension k) and is bound to
    `starts[k] + ax<k>`; the target is stored to at the axes, or at `store_at` of them.
    """
    where = scope.location if location is None else location
    holder = Block()
    builder = builder_at_end(holder, where)
    zero = builder.insert(tir.ConstOp.int(0, type_)).result
    sizes = [analyzer.to_ssa(e, builder, type_) for e in extents]
    known = extents_of(target, analyzer) if domains is None else domains
    axis_extents = [analyzer.to_ssa(e, builder, type_) for e in known]
    inner = builder
    variables: list[SSAValue] = []
    for k, size in enumerate(sizes):
        loop = tir.ForOp(f"{loop_prefix}{k}", zero, size)
        loop.loop_var.name_hint = f"{loop_prefix}{k}"
        inner.insert(loop)
        variables.append(loop.loop_var)
        inner = builder_at_end(loop.body.block, where)
    bindings: list[SSAValue] = []
    for k, variable in enumerate(variables):
        start = Expr((), 0) if starts is None else starts[k]
        fresh = Analyzer()
        bindings.append(variable if start.value == 0 else fresh.to_ssa(start + fresh.expr(variable), inner, type_))
    names = [f"v{k}" for k in range(len(sizes))]
    body = Region(Block(arg_types=[type_] * len(sizes)))
    block = tir.BlockOp(
        state.fresh_block_name(scope, name),
        names,
        ["S"] * len(sizes),
        [zero] * len(sizes),
        axis_extents,
        bindings,
        body=body,
    )
    inner.insert(block)
    for k, argument in enumerate(body.block.args):
        argument.name_hint = names[k]
    inside = builder_at_end(body.block, where)
    stored = value(inside, list(body.block.args))
    axes = list(body.block.args)
    inside.insert(tir.StoreOp(stored, target, axes if store_at is None else store_at(inside, axes)))
    place = body_of(scope)
    if anchor is None:
        move_to_end(holder.ops, place)
    else:
        move_before(holder.ops, anchor)
    declare_access(block)
    state.added(block)
    return block


def new_buffer(
    state: State,
    scope: Scope,
    name: str,
    shape: Sequence[Expr],
    dtype: Attribute,
    storage_scope: str,
    index_type: tir.types.IntegerType,
) -> SSAValue:
    """Returns a buffer allocated at the head of `scope`; extents that are no constants are computed there."""
    dims: list[Attribute] = []
    holder = Block()
    builder = builder_at_end(holder, scope.location)
    kept: list[SSAValue] = []
    for size in shape:
        if size.value is not None:
            dims.append(IntegerAttr(size.value, index_type))
        else:
            dims.append(tir.types.DYNAMIC)
            # 2 * n - 1 elements, as far as the last one is from the first, are none where n is 0.
            least = maximum(size, ZERO) if size.const < 0 else size
            kept.append(Analyzer().to_ssa(least, builder, index_type))
    type_ = tir.BufferType(ArrayAttr(dims), dtype, StringAttr(storage_scope))
    buffer = state.allocate(scope, tir.AllocBufferOp(name, type_, shape=kept))
    assert isinstance(buffer.owner, Operation)
    move_before(holder.ops, buffer.owner)
    return buffer


def shadow_buffer(state: State, scope: Scope, source: SSAValue, storage_scope: str, analyzer: Analyzer) -> SSAValue:
    """Allocates a buffer of the same shape in another storage scope, at the head of `scope`."""
    assert isinstance(source.type, tir.BufferType)
    name = state.fresh_buffer_name(scope, f"{tir.buffer_name(source)}_{storage_scope.replace('.', '_')}")
    shape = extents_of(source, analyzer)
    return new_buffer(state, scope, name, shape, source.type.dtype, storage_scope, index_type(source))
