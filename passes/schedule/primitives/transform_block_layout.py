"""transform_block_layout: a block gets other axes, and loops that run over them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, symbol
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import ONE, ZERO, Atom, as_expr, free_vars
from ....dialects.arith.iter_map import IterMapLevel, IterMapResult, inverse_affine_iter_map
from ....dialects.arith.iter_map import IterRange as IterRange
from ....support.edit import builder_at_end, builder_before, erase_op
from ....support.text import counted
from ...tir.rewriting import erase_dead
from ..analysis.access import declare_access
from ..analysis.block_kind import why_init_repeats
from ..analysis.structure import loops_above, scope_of
from ..engine.errors import describe, refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.block_axes import Axis, axes_of, bind_long_axes, make_block, move_body, replace_variables
from .common.loops import carry_values, name_value, require_block, require_countable, require_own_values
from .reorder import only_child_loop

IndexMap = Callable[..., Sequence[object]]


@primitive
def transform_block_layout(state: State, block: tir.BlockOp, index_map: IndexMap) -> None:
    """Replaces a block's axes by `index_map` of them, and its loops by one for each new axis.

    for i, j in T.grid(8, 4):                       for ax0 in range(32):
        with T.block("B"):                              with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])  →          v0 = T.axis.spatial(32, ax0)
            B[vi, vj] = A[vi, vj] * 2                       B[v0 // 4, v0 % 4] = A[v0 // 4, v0 % 4] * 2

    sch.transform_block_layout(B, lambda i, j: (i * 4 + j,))

    The map is one-to-one, no new axis mixes spatial and reduction axes, and the block is all that its loops hold, each
    driving one axis.
    """
    block = require_block(block, "transform_block_layout")
    name = block.block_name.data
    loops = _own_loops(block)
    require_own_values(block, "transform_block_layout")
    reason = None if block.find(tir.InitOp) is None else why_init_repeats(block)
    if reason is not None:
        raise refuse(
            block,
            f"transform_block_layout: T.init() of block '{name}' cannot run in another order: {reason}",
            "each instance of the spatial axes must have an element of its own",
        )
    analyzer = Analyzer()
    old = axes_of(block, analyzer)
    bind_long_axes(analyzer, block)
    symbols = _symbols(block, index_map)
    results = [_index(block, item) for item in index_map(*symbols)]
    extents: list[int] = []
    for axis in old:
        extent = analyzer.simplify(axis.extent).value
        if extent is None or axis.min != ZERO:
            raise refuse(
                block,
                f"transform_block_layout: axis '{axis.name}' of block '{name}' has no constant domain that begins at 0",
                "only axes with T.axis.…(number, …) can be laid out again",
            )
        extents.append(extent)
    ranges: dict[Value, tuple[Value, Value]] = {s: (0, e) for s, e in zip(symbols, extents, strict=True)}
    inner = Analyzer()
    for variable, extent in zip(symbols, extents, strict=True):
        inner.bind(variable, 0, extent)
    found = inner.detect_iter_map(results, ranges, 1, IterMapLevel.BIJECTIVE)
    reason = _why_not_onto(found, results) if found else found.errors[0]
    if reason is not None:
        raise refuse(
            block,
            f"transform_block_layout: the map is not one-to-one on the axes of block '{name}': {reason}",
            "each new index takes whole digits of the axes, as i // 16 and i % 16 do",
        )
    kinds = [_kind(block, number, result, symbols, old) for number, result in enumerate(results)]
    sizes = [inner.const_int_bound(result).max_value + 1 for result in results]
    place = loops[0] if loops else block
    type_ = old[0].type if old else tir.types.I32
    for number, size in enumerate(sizes):
        require_countable(block, "transform_block_layout", f"the extent of new axis {number}", size, type_)
    carry_values(block)
    builder = builder_before(place, block.location)
    bounds = [tuple(builder.insert(tir.ConstOp.int(value, type_)).result for value in (0, size)) for size in sizes]
    new_loops: list[tir.ForOp] = []
    for number, (low, extent) in enumerate(bounds):
        loop = tir.ForOp(f"ax{number}", low, extent)
        loop.location = loops[number].location if number < len(loops) else block.location
        name_value(loop)
        (builder if not new_loops else builder_at_end(new_loops[-1].body.block, loop.location)).insert(loop)
        new_loops.append(loop)
    inside = builder_at_end(new_loops[-1].body.block, block.location) if new_loops else builder
    made_with = Analyzer()
    axes = [
        Axis(f"v{k}", kind, ZERO, as_expr(size), made_with.expr(loop.loop_var), type_)
        for k, (kind, size, loop) in enumerate(zip(kinds, sizes, new_loops, strict=True))
    ]
    new, _ = make_block(inside, name, axes, made_with, annotations=block.annotations)
    new.location = block.location
    move_body(block, new)
    _replace_axes(block, new, found, symbols, extents, sizes, results)
    state.forward(block, new)
    for loop in loops:
        state.gone(loop, f"transform_block_layout gave block '{name}' other loops")
    erase_op(place)
    declare_access(new)


def _why_not_onto(found: IterMapResult, results: Sequence[Expr]) -> str | None:
    """Returns why the new indices skip values from 0 on, where the block would run new instances."""
    for result, index in zip(results, found.indices, strict=True):
        if index.base != ZERO:
            return f"{result!r} begins at {index.base!r}, not at 0"
        if index.args and index.args[0].scale != ONE:
            return f"{result!r} leaves out values: it counts in steps of {index.args[0].scale!r}"
    return None


def _replace_axes(
    old: tir.BlockOp,
    new: tir.BlockOp,
    found: IterMapResult,
    symbols: Sequence[Expr],
    extents: Sequence[int],
    sizes: Sequence[int],
    results: Sequence[Expr],
) -> None:
    """Replaces the old axes in the moved body by the inverse of the map."""
    analyzer = Analyzer()
    outputs = [analyzer.expr(variable) for variable in new.iter_vars]
    for variable, size in zip(new.iter_vars, sizes, strict=True):
        if size != 1:
            analyzer.bind(variable, 0, size)
    atoms: dict[Atom, IterRange] = {}
    for variable, extent in zip(symbols, extents, strict=True):
        assert variable.atom is not None
        atoms[variable.atom] = IterRange(ZERO, as_expr(extent))
    inverse = inverse_affine_iter_map(analyzer, found, atoms, outputs)
    values: dict[SSAValue, Expr] = {}
    for axis, variable in zip(old.iter_vars, symbols, strict=True):
        assert variable.atom is not None
        # An axis of one value that the map hands on stays an index, though its value is known.
        values[axis] = outputs[results.index(variable)] if variable in results else inverse[variable.atom]
    replace_variables(new, values, analyzer)
    erase_dead(new)


def _own_loops(block: tir.BlockOp) -> list[tir.ForOp]:
    """Returns the loops around a block; raises unless each holds only the block and drives one axis."""
    name = block.block_name.data
    if block.predicate is not None:
        raise refuse(
            block,
            f"transform_block_layout: block '{name}' runs under a condition (T.where)",
            "transform the block before its loops are split",
        )
    loops = loops_above(block)
    parent: Operation | None = block.parent_op()
    for loop in reversed(loops):
        if parent is not loop:
            raise refuse(
                block, f"transform_block_layout: {describe(parent or block)} stands among the loops of block '{name}'"
            )
        parent = loop.parent_op()
    for outer, inner in zip(loops, [*loops, block][1:], strict=True):
        alone = only_child_loop(outer) is inner if isinstance(inner, tir.ForOp) else _holds_only(outer, inner)
        if not alone:
            raise refuse(outer, f"transform_block_layout: loop '{outer.var_name.data}' holds more than block '{name}'")
        if outer.kind.data != "serial" or outer.annotations.data:
            raise refuse(
                outer,
                f"transform_block_layout: loop '{outer.var_name.data}' is {outer.kind.data} or annotated, which new loops would not be",
                "transform the block first",
            )
    if parent is not scope_of(block):
        raise refuse(block, f"transform_block_layout: the loops of block '{name}' stand under a branch")
    analyzer = Analyzer()
    driven = [analyzer.expr(b) for b in block.bindings if analyzer.expr(b).value is None]
    variables = [analyzer.expr(loop.loop_var) for loop in loops]
    unused = [
        v for v, loop in zip(variables, loops, strict=True) if v not in driven and analyzer.expr(loop.extent).value != 1
    ]
    if any(d not in variables for d in driven) or len(set(driven)) != len(driven) or unused:
        raise refuse(
            block,
            f"transform_block_layout: the loops of block '{name}' do not drive one axis each",
            "transform the block before its loops are split or fused",
        )
    ranges = {loop.loop_var: (loop.min, loop.extent) for loop in loops}
    for label, binding, low, extent in zip(
        block.iter_names.data, block.bindings, block.dom_mins, block.dom_extents, strict=True
    ):
        first, count = ranges.get(binding, (binding, 1))
        if not (analyzer.can_prove_equal(first, low) and analyzer.can_prove_equal(count, extent)):
            raise refuse(
                block,
                f"transform_block_layout: the loops of block '{name}' run over a part of axis '{label.data}' only, and new ones would run over all of it",
                "transform the block before its loops are partitioned",
            )
    return loops


def _holds_only(loop: tir.ForOp, block: tir.BlockOp) -> bool:
    return all(op is block or (op.results and not op.regions) for op in loop.body.block.ops)


def _symbols(block: tir.BlockOp, index_map: IndexMap) -> list[Expr]:
    names = [name.data for name in block.iter_names.data]
    parameters = inspect.signature(index_map).parameters.values()
    if all(p.kind is not p.VAR_POSITIONAL for p in parameters) and len(parameters) != len(names):
        raise refuse(
            block,
            f"transform_block_layout: the map takes {counted(len(parameters), 'index')}, but block '{block.block_name.data}' has {counted(len(names), 'axis')}",
        )
    return [symbol(name) for name in names]


def _index(block: tir.BlockOp, item: object) -> Expr:
    if not isinstance(item, Expr | int):
        raise refuse(block, f"transform_block_layout: the map gives {item!r}, which is not an index")
    return as_expr(item)


def _kind(block: tir.BlockOp, number: int, result: Expr, symbols: Sequence[Expr], old: Sequence[Axis]) -> str:
    """Returns the kind of a new axis: that of the axes that it is made of."""
    used = free_vars(result)
    kinds = {axis.kind for variable, axis in zip(symbols, old, strict=True) if variable.atom in used}
    if len(kinds) > 1:
        raise refuse(
            block,
            f"transform_block_layout: new axis {number} of block '{block.block_name.data}' mixes axes of the kinds {' and '.join(sorted(kinds))}",
            "make each new axis of spatial axes or of reduction axes",
        )
    return kinds.pop() if kinds else "S"
