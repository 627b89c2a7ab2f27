"""transform_layout: the elements of a buffer are laid out in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ....dialects import tir
from ....dialects.arith import INF, Analyzer, Expr, symbol
from ....dialects.arith.expr import Atom, as_expr, free_vars, substitute
from ....dialects.tir.buffer import AccessOp
from ....support.edit import builder_before
from ....support.text import counted
from ...tir.rewriting import erase_if_dead, set_indices
from ..analysis.access import accesses_of, declare_access
from ..analysis.block_kind import analyzer_for, bind_axes
from ..analysis.layout_map import LayoutMap, call_with_symbols, layout_map
from ..analysis.structure import all_loops_above, blocks_above, function_of, is_inside, scope_of
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block, require_countable
from .layout_padding import PadValue, assume, described, pad_value_of, row_major_writer, write_behind, write_in_order
from .set_axis_separator import separate
from .set_scope import chosen_buffer, retype

IndexMap = Callable[..., Sequence[object]]


class AxisSeparator:
    """A separator of groups of dimensions between the indices of a map (`IndexMap.AXIS_SEPARATOR`)."""

    def __repr__(self) -> str:
        return "AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()


@primitive
def transform_layout(
    state: State,
    block: tir.BlockOp,
    buffer: str | tuple[str, int],
    index_map: IndexMap,
    pad_value: object = None,
    assume_injective_transform: bool = False,
) -> None:
    """Stores element (i, j, …) of a buffer at `index_map(i, j, …)`; all accesses follow.

    B = T.alloc_buffer((128, 128))             B = T.alloc_buffer((8, 128, 16))
    B[vi, vj] = …                       →      B[vi // 16, vj, vi % 16] = …

    sch.transform_layout(block, "B", lambda i, j: [i // 16, j, i % 16])

    Where the new layout has more elements, `pad_value` (a number, or a function of the new indices) says what they hold:
    the block that writes the buffer element by element writes them too (`T.if_then_else(i == 8 and 2 <= j, 0, …)`),
    otherwise a block after the last writer does; of a buffer that is only read it is assumed. Keyword-only parameters of
    a map take the last indices: `lambda *indices, k: [*indices, k // 4, k % 4]`.

    `IndexMap.AXIS_SEPARATOR` between indices divides the dimensions into groups, as set_axis_separator does.
    """
    block = require_block(block, "transform_layout")
    target = chosen_buffer(block, buffer, "transform_layout")
    name = tir.buffer_name(target)
    type_ = target.type
    assert isinstance(type_, tir.BufferType)
    owner = target.owner
    if isinstance(owner, tir.BufferOp) and (owner.stride_dims.data or owner.source is not None):
        raise refuse(target, f"transform_layout: buffer '{name}' has strides, or lies in another buffer's memory")
    symbols, results, separators = _evaluate(block, index_map, type_.rank)
    if results == symbols:
        separate(function_of(block), target, separators)
        return
    whole = _kept_whole(block, name, type_, symbols, results)
    extents = {s: d.value.data for s, d in zip(symbols, type_.shape.data, strict=True) if isinstance(d, IntegerAttr)}
    analyzer = Analyzer()
    for variable, extent in extents.items():
        analyzer.bind(variable, 0, extent)
    new_shape: list[int] = []
    for k, e in enumerate(results):
        if e in whole:
            continue
        bound = analyzer.const_int_bound(e)
        if bound.min_value != 0 or bound.max_value >= INF:
            raise refuse(
                block,
                f"transform_layout: index {k} of the new layout runs from {bound.min_value} to {bound.max_value}",
                "every new index must run from 0",
            )
        require_countable(
            block, "transform_layout", f"the extent of new dimension {k}", bound.max_value + 1, _dim_type(type_)
        )
        new_shape.append(bound.max_value + 1)
    layout = (
        _padded(target, extents, [e for e in results if e not in whole], new_shape)
        if not assume_injective_transform
        else None
    )
    padding = _padding(target, layout, pad_value, len(results)) if layout is not None else None
    accesses = accesses_of(target, "transform_layout")
    known = iter(new_shape)
    dims = [tir.types.DYNAMIC if e in whole else IntegerAttr(next(known), _dim_type(type_)) for e in results]
    new_type = tir.BufferType(ArrayAttr(dims), type_.dtype, type_.scope)
    writes = any(isinstance(op, tir.StoreOp) for op in accesses)
    writer = row_major_writer(accesses, target) if padding is not None and writes else None
    target = _retyped(target, new_type)
    # Blocks may declare what no access of theirs touches.
    regions = (use.operation for use in target.uses)
    touched = {
        each: None
        for region in regions
        if isinstance(region, tir.BufferRegionOp) and isinstance(each := scope_of(region), tir.BlockOp)
    }
    around = [] if writer is None else [writer.block, *reversed(blocks_above(writer.block))]
    for each in around:
        touched.pop(each, None)
    for access in accesses:
        if writer is None or not is_inside(access, writer.block):
            _follow(access, symbols, results, touched)
    # From inside out: what a block declares is made of what those in it do.
    for each in sorted(touched, key=lambda block: -len(blocks_above(block))):
        declare_access(each)
    if layout is not None and padding is not None:
        names = [f"axis{k}" for k in range(len(results))]
        if writer is not None:
            write_in_order(state, writer, layout, padding, names)
            for each in around[1:]:
                declare_access(each)
        elif writes:
            write_behind(state, accesses, target, layout, padding, names)
        else:
            assume(state, target, layout, padding, names)
    if separators:
        separate(function_of(block), target, separators)


def _padded(target: SSAValue, extents: dict[Expr, int], results: Sequence[Expr], shape: list[int]) -> LayoutMap:
    """Returns the map of dimensions of constant extents; puts the new extents into `shape`."""
    found = layout_map(extents, results)
    if isinstance(found, str):
        raise refuse(
            target,
            f"transform_layout: the layout of '{tir.buffer_name(target)}' cannot be shown to keep all elements apart: {found}",
            "make it of whole digits of the indices, as i // 16 and i % 16 are",
        )
    shape[:] = found.shape
    return found


def _padding(target: SSAValue, layout: LayoutMap, given: object, rank: int) -> PadValue | None:
    """Returns the padding's value, None without padding. Raises if the layout pads and no value is given."""
    value = None if given is None else pad_value_of(target, given, rank)
    if not layout.pads:
        return None
    name, type_ = tir.buffer_name(target), target.type
    assert isinstance(type_, tir.BufferType)
    if len(layout.symbols) != len(type_.shape.data):
        raise refuse(
            target,
            f"transform_layout: '{name}' is padded, and has dimensions of symbolic extent",
            "let the dimensions of constant extent divide evenly",
        )
    if value is None:
        indices = [symbol(f"axis{k}") for k in range(rank)]
        elements = prod(type_.static_shape or ())
        raise refuse(
            target,
            f"transform_layout: the new layout of '{name}' has {counted(prod(layout.shape), 'element')} for {elements}: it is padded where {described(layout.padding(indices))}",
            "say by pad_value what padding holds, or pad the buffer to a multiple first (pad_einsum)",
        )
    return value


def _kept_whole(
    block: tir.BlockOp, name: str, type_: tir.BufferType, symbols: Sequence[Expr], results: Sequence[Expr]
) -> list[Expr]:
    """Returns the variables of symbolic dimensions.

    Raises unless each is an index of the new layout by itself, in the old order.
    """
    kept = [s for s, dim in zip(symbols, type_.shape.data, strict=True) if not isinstance(dim, IntegerAttr)]
    atoms = {s.atom for s in kept}
    if [e for e in results if any(v in atoms for v in free_vars(e))] != kept:
        raise refuse(
            block,
            f"transform_layout: buffer '{name}' has a symbolic shape",
            "a dimension of symbolic extent must be one of the new indices by itself, in the old order",
        )
    return kept


def _evaluate(block: tir.BlockOp, index_map: IndexMap, rank: int) -> tuple[list[Expr], list[Expr], list[int]]:
    """Returns the variables of a map, what it makes of them, and before which of these a separator stands."""
    called = call_with_symbols(index_map, rank)
    if isinstance(called, str):
        raise refuse(
            block,
            f"transform_layout: the map takes {counted(int(called), 'index')}, but the buffer has {counted(rank, 'dimension')}",
        )
    symbols, made = called
    results: list[Expr] = []
    separators: list[int] = []
    for item in cast("Sequence[object]", made if isinstance(made, list | tuple) else [made]):
        if isinstance(item, AxisSeparator):
            separators.append(len(results))
        elif isinstance(item, Expr | int):
            results.append(as_expr(item))
        else:
            raise refuse(block, f"transform_layout: the map gives {item!r}, which is not an index")
    return symbols, results, separators


def _dim_type(type_: tir.BufferType) -> tir.types.IntegerType:
    first = next((d for d in type_.shape.data if isinstance(d, IntegerAttr)), None)
    found = getattr(first, "type", None)
    return found if isinstance(found, tir.types.IntegerType) else tir.types.I32


def _retyped(buffer: SSAValue, type_: tir.BufferType) -> SSAValue:
    if isinstance(buffer, BlockArgument):
        return Rewriter.replace_value_with_new_type(buffer, type_)
    return retype(buffer, type_)


def _follow(
    access: AccessOp, symbols: Sequence[Expr], results: Sequence[Expr], touched: dict[tir.BlockOp, None]
) -> None:
    """Rewrites one access to the new layout."""
    analyzer = analyzer_for(all_loops_above(access))
    around = blocks_above(access)
    for each in around:
        bind_axes(analyzer, each)
    touched.update(dict.fromkeys(reversed(around)))
    values: dict[Atom, Expr] = {}
    for variable, index in zip(symbols, access.indices, strict=True):
        values[analyzer.variable(variable)] = analyzer.expr(index)
    builder = builder_before(access)
    type_ = access.indices[0].type if access.indices else tir.types.I32
    new = [analyzer.to_ssa(analyzer.simplify(substitute(e, values)), builder, type_) for e in results]
    before = list(access.indices)
    set_indices(access, new)
    erase_if_dead(*before)
