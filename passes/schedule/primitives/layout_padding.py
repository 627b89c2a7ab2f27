"""The padding of a new layout in transform_layout: which block writes it, or that it is assumed.

As TVM's `layout_transformation.cc` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import as_expr, free_vars, substitute
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.types import I1, type_to_dtype
from ....support.edit import builder_at_end, builder_before, erase_op, move_before, move_to_end
from ....support.walk import enclosing, walk_ops
from ...tir.rewriting import erase_dead, set_indices
from ..analysis.access import declare_access, index_type
from ..analysis.block_kind import set_block
from ..analysis.layout_map import Comparison, LayoutMap, call_with_symbols
from ..analysis.structure import Scope, body_of, child_under, const_int, is_inside, loops_above, scope_of
from ..engine.errors import refuse
from ..engine.state import State
from .common.block_axes import axes_of, axis_over, bind_long_axes, make_block, move_body, replace_variables
from .common.clone_expression import clone_value
from .common.loops import name_value


@dataclass(frozen=True)
class PadValue:
    """The value of padding: a number, or an expression of the new indices, which `symbols` represent."""

    value: Expr | int | float
    symbols: Sequence[Expr]

    def build(self, builder: Builder, indices: Sequence[SSAValue], dtype: Attribute) -> SSAValue:
        """Returns the value at an element of the new layout."""
        if isinstance(dtype, AnyFloat):
            assert not isinstance(self.value, Expr)
            return builder.insert(tir.ConstOp.float(float(self.value), dtype)).result
        analyzer = Analyzer()
        # A number has no symbols.
        pairs = zip(self.symbols, indices, strict=False)
        atoms = {s.atom: analyzer.expr(i) for s, i in pairs if s.atom is not None}
        assert not isinstance(self.value, float)
        return analyzer.to_ssa(substitute(as_expr(self.value), atoms), builder, dtype)


def pad_value_of(buffer: SSAValue, given: object, rank: int) -> PadValue:
    """Returns the padding's value for a buffer; raises when it is not a value of its dtype."""
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    name, dtype = tir.buffer_name(buffer), type_to_dtype(type_.dtype)
    symbols: Sequence[Expr] = ()
    if callable(given):
        called = call_with_symbols(given, rank)
        if isinstance(called, str):
            raise refuse(
                buffer,
                f"transform_layout: pad_value takes {called} indices, but the new layout of '{name}' has {rank} dimensions",
                "it takes one for each new index",
            )
        symbols, given = called
        if isinstance(given, list | tuple) and len(given) == 1:  # pyright: ignore[reportUnknownArgumentType]
            given = given[0]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(given, Expr) and given.value is not None:
        given = given.value
    if isinstance(given, Expr):
        if any(atom not in [s.atom for s in symbols] for atom in free_vars(given)):
            raise refuse(
                buffer,
                f"transform_layout: pad_value {given!r} uses other values than the new indices",
                "compute it of its parameters and numbers",
            )
        if type_.dtype != index_type(buffer):
            raise refuse(
                buffer,
                f"transform_layout: pad_value {given!r} is of the dtype of indices, {type_to_dtype(index_type(buffer))}, but '{name}' is of {dtype}",
                "give a number",
            )
        return PadValue(given, symbols)
    if isinstance(given, int | float) and isinstance(type_.dtype, AnyFloat):
        return PadValue(float(given), symbols)
    fits = isinstance(given, int) and isinstance(type_.dtype, tir.types.IntegerType) and _holds(type_.dtype, given)
    if not fits:
        raise refuse(
            buffer,
            f"transform_layout: pad_value {given!r} is not of dtype {dtype}, which the elements of '{name}' are",
            "give a number of that dtype",
        )
    assert isinstance(given, int)
    return PadValue(int(given), symbols)


def _holds(type_: tir.types.IntegerType, value: int) -> bool:
    bits = type_.width.data
    signed = not type_to_dtype(type_).startswith(("uint", "bool"))
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return low <= value < high


def described(padding: Sequence[Sequence[Comparison]]) -> str:
    """Returns the place of padding as a program's condition."""
    parts = [" and ".join(f"{e!r} {sign} {n}" for sign, e, n in each) for each in padding]
    return " or ".join(parts)


def _condition(builder: Builder, padding: Sequence[Sequence[Comparison]], type_: Attribute) -> SSAValue:
    """Builds the condition under which an element is padding."""
    analyzer = Analyzer()

    def compare(sign: str, e: Expr, n: int) -> SSAValue:
        value, number = analyzer.to_ssa(e, builder, type_), analyzer.to_ssa(as_expr(n), builder, type_)
        match sign:
            case "==":
                return builder.insert(tir.EqOp(value, number)).result
            case "<":
                return builder.insert(tir.LtOp(value, number)).result
            case _:
                return builder.insert(tir.LeOp(number, value)).result

    either: SSAValue | None = None
    for alternative in padding:
        both: SSAValue | None = None
        for comparison in alternative:
            each = compare(*comparison)
            both = each if both is None else builder.insert(tir.AndOp(both, each)).result
        assert both is not None
        either = both if either is None else builder.insert(tir.OrOp(either, both)).result
    assert either is not None
    return either


# The block that writes the buffer


@dataclass(frozen=True)
class Writer:
    """A block that writes a buffer in row-major order: `loops` over its dimensions, indexed by `axes`."""

    block: tir.BlockOp
    loops: Sequence[tir.ForOp]
    axes: Sequence[int]
    store: tir.StoreOp


def row_major_writer(accesses: Sequence[AccessOp], buffer: SSAValue) -> Writer | None:
    """Returns a buffer's only writer if it stores one element per iteration in order; otherwise None."""
    stores = [op for op in accesses if isinstance(op, tir.StoreOp)]
    block = next((each for each in enclosing(stores[0]) if isinstance(each, tir.BlockOp)), None)
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    if block is None or block.predicate is not None or type_.static_shape is None:
        return None
    inner = [op for op in walk_ops(block) if isinstance(op, tir.StoreOp)]
    updates = [op for op in inner if op.parent is block.body.block and op.predicate is None]
    whole = all(op.parent is block.body.block or isinstance(op.parent_op(), tir.InitOp) for op in inner)
    if set(inner) != set(stores) or len(updates) != 1 or not whole:
        return None
    others = (tir.ForOp, tir.BlockOp, tir.IfOp, tir.WhileOp, tir.EvaluateOp)
    if any(isinstance(op, others) and op is not block for op in walk_ops(block)):
        return None
    variables = list(block.iter_vars)
    places = list(updates[0].indices)
    own = [op for op in accesses if is_inside(op, block)]
    if any(i not in variables for i in places) or any(list(op.indices) != places for op in own):
        return None
    axes = [variables.index(place) for place in places]
    spatial = [k for k, kind in enumerate(block.iter_types.data) if kind.data == "S"]
    loops = loops_above(block)
    if sorted(axes) != spatial or len(loops) < len(axes):
        return None
    for loop, axis, extent in zip(loops, axes, type_.static_shape, strict=False):
        plain = loop.kind.data == "serial" and not loop.annotations.data and const_int(loop.min) == 0
        if not plain or const_int(loop.extent) != extent or const_int(block.dom_extents[axis]) != extent:
            return None
        if block.bindings[axis] is not loop.loop_var or len(list(loop.loop_var.uses)) != 1:
            return None
    below: Operation = block
    for loop in reversed(loops):
        if any(op is not below and not (op.results and not op.regions) for op in body_of(loop).ops):
            return None
        below = loop
    if below.parent_op() is not scope_of(block):
        return None
    return Writer(block, loops[: len(axes)], axes, updates[0])


def write_in_order(
    state: State, writer: Writer, layout: LayoutMap, pad_value: PadValue, index_names: Sequence[str]
) -> None:
    """Extends the block that writes the buffer, already of the new type, over the new layout's padding."""
    old, store = writer.block, writer.store
    target = store.buffer
    type_ = index_type(target)
    first, last = writer.loops[0], writer.loops[-1]
    builder = builder_before(first, old.location)
    loops = _loops(builder, layout.shape, index_names, type_)
    for loop in loops:
        loop.location = first.location
    below = [op for op in body_of(last).ops if op is not old]
    inside = builder_at_end(loops[-1].body.block, old.location)
    chain = next((op for op in below if isinstance(op, tir.ForOp)), None)
    move_to_end(below, loops[-1].body.block)
    if chain is not None:
        inside = builder_before(old, old.location)
    fresh = Analyzer()
    axes = [axis_over(loop, f"v_{name}", "S", fresh) for name, loop in zip(index_names, loops, strict=True)]
    kept = [k for k in range(len(old.iter_vars)) if k not in writer.axes]
    known = axes_of(old, fresh)
    new, values = make_block(
        inside, old.block_name.data, [*axes, *(known[k] for k in kept)], fresh, annotations=old.annotations
    )
    new.location = old.location
    indices = list(new.iter_vars[: len(axes)])
    _guard(store, layout, pad_value, indices)
    move_body(old, new)
    for op in list(walk_ops(new)):
        if isinstance(op, AccessOp) and op.buffer is target:
            set_indices(op, indices)
    analyzer = Analyzer()
    bind_long_axes(analyzer, new)
    inverse = layout.inverse([analyzer.expr(v) for v in indices])
    moved = {old.iter_vars[axis]: e for axis, e in zip(writer.axes, inverse, strict=True)}
    moved.update({old.iter_vars[k]: values[known[k].atom] for k in kept})
    replace_variables(new, moved, analyzer)
    erase_dead(new)
    state.forward(old, new)
    for loop in writer.loops:
        state.gone(loop, f"transform_layout gave block '{new.block_name.data}' other loops")
    erase_op(old)
    erase_op(first)
    declare_access(new)


def _guard(store: tir.StoreOp, layout: LayoutMap, pad_value: PadValue, indices: Sequence[SSAValue]) -> None:
    """Stores the padding where it is, otherwise the value, which only then is computed."""
    builder = builder_before(store)
    where = layout.padding([Analyzer().expr(v) for v in indices])
    condition = _condition(builder, where, indices[0].type)
    dtype = store.value.type
    sides = [Block(), Block()]
    inner = [builder_at_end(side, store.location) for side in sides]
    block = store.parent_op()
    assert block is not None
    values = [pad_value.build(inner[0], indices, dtype), clone_value(store.value, {}, inner[1], block)]
    for each, value in zip(inner, values, strict=True):
        each.insert(tir.YieldOp(value))
    choice = builder.insert(tir.IfThenElseOp(condition, Region(sides[0]), Region(sides[1]), dtype)).result
    place = len(store.operands) - 1
    assert store.operands[place] is store.value
    store.operands[place] = choice


# Blocks of their own


def write_behind(
    state: State,
    accesses: Sequence[AccessOp],
    buffer: SSAValue,
    layout: LayoutMap,
    pad_value: PadValue,
    names: Sequence[str],
) -> None:
    """Writes the padding by a block after the last writer of the buffer."""
    scope = _home(buffer)
    writers = {child_under(scope, op) for op in accesses if isinstance(op, tir.StoreOp)}
    # The scope is walked only when there are several.
    last = next(iter(writers)) if len(writers) == 1 else [op for op in body_of(scope).ops if op in writers][-1]
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    block, loops, inside = _nest(
        state, scope, last.next_op, f"buffer_{tir.buffer_name(buffer)}_padding", buffer, layout, names
    )
    variables = [loop.loop_var for loop in loops]
    condition = _condition(
        builder_before(block), layout.padding([Analyzer().expr(v) for v in variables]), variables[0].type
    )
    set_block(block, predicate=condition)
    value = pad_value.build(inside, block.iter_vars, type_.dtype)
    inside.insert(tir.StoreOp(value, buffer, list(block.iter_vars)))
    declare_access(block)
    state.added(block)


def assume(state: State, buffer: SSAValue, layout: LayoutMap, pad_value: PadValue, names: Sequence[str]) -> None:
    """Inserts a block before all others that assumes the padding's value of a buffer that is only read."""
    scope = _home(buffer)
    anchor = next((op for op in body_of(scope).ops if not isinstance(op, tir.BufferOp) and not op.results), None)
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    block, _, inside = _nest(
        state, scope, anchor, f"buffer_{tir.buffer_name(buffer)}_assumption", buffer, layout, names
    )
    axes = list(block.iter_vars)
    condition = _condition(inside, layout.padding([Analyzer().expr(v) for v in axes]), axes[0].type)
    elsewhere = inside.insert(tir.NotOp(condition)).result
    load = inside.insert(tir.LoadOp(buffer, axes)).result
    known = inside.insert(tir.EqOp(load, pad_value.build(inside, axes, type_.dtype))).result
    fact = inside.insert(tir.OrOp(elsewhere, known)).result
    call = inside.insert(tir.CallOp("assume", [fact], I1))
    assert call.result is not None
    inside.insert(tir.EvaluateOp(call.result))
    declare_access(block)
    state.added(block)


def _home(buffer: SSAValue) -> Scope:
    """Returns the block or function that a buffer belongs to."""
    owner = buffer.owner if isinstance(buffer.owner, Operation) else buffer.owner.first_op
    assert owner is not None
    return scope_of(owner)


def _loops(
    builder: Builder, shape: Sequence[int], names: Sequence[str], type_: tir.types.IntegerType
) -> list[tir.ForOp]:
    """Returns a nest of empty loops."""
    loops: list[tir.ForOp] = []
    for name, extent in zip(names, shape, strict=True):
        start, stop = (builder.insert(tir.ConstOp.int(n, type_)).result for n in (0, extent))
        loop = tir.ForOp(name, start, stop)
        name_value(loop)
        builder.insert(loop)
        loops.append(loop)
        builder = builder_at_end(loop.body.block, loop.location)
    return loops


def _nest(
    state: State,
    scope: Scope,
    anchor: Operation | None,
    name: str,
    buffer: SSAValue,
    layout: LayoutMap,
    names: Sequence[str],
) -> tuple[tir.BlockOp, list[tir.ForOp], Builder]:
    """Creates loops over a layout before `anchor` in a scope, and a block in them for a builder to fill."""
    type_ = index_type(buffer)
    holder = Block()
    loops = _loops(builder_at_end(holder, scope.location), layout.shape, names, type_)
    fresh = Analyzer()
    axes = [axis_over(loop, f"v_{name}", "S", fresh) for name, loop in zip(names, loops, strict=True)]
    inside = builder_at_end(loops[-1].body.block, scope.location)
    block, _ = make_block(inside, state.fresh_block_name(scope, name), axes, fresh)
    block.location = scope.location
    if anchor is None:
        move_to_end(holder.ops, body_of(scope))
    else:
        move_before(holder.ops, anchor)
    return block, loops, builder_at_end(block.body.block, scope.location)
