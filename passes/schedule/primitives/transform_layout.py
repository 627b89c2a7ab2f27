"""transform_layout: the elements of a buffer are laid out in another order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ....dialects import tir
from ....dialects.tir.analysis import INF, Analyzer, Expr, symbol
from ....dialects.tir.analysis.expr import Atom, as_expr, free_vars, substitute
from ....dialects.tir.buffer import AccessOp
from ....support.words import counted
from ...tir.rewriting import builder_before, erase_if_dead, set_indices
from ..access import declare_access
from ..blocks import analyzer_for, bind_axes
from ..errors import refuse
from ..primitive import primitive
from ..state import State
from ..structure import all_loops_above, function_of
from .loops import require_block, require_countable
from .set_axis_separator import separate
from .set_scope import chosen_buffer, retype

IndexMap = Callable[..., Sequence[object]]


class AxisSeparator:
    """What stands between the indices of a map where a group of dimensions ends (`IndexMap.AXIS_SEPARATOR`)."""

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

    `IndexMap.AXIS_SEPARATOR` between indices cuts the dimensions into groups, as set_axis_separator does.
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
    shape = list(extents.values())
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
    if not assume_injective_transform:
        found = analyzer.detect_iter_map(
            [e for e in results if e not in whole], {s: (0, e) for s, e in extents.items()}
        )
        if not found or prod(new_shape) < prod(shape):
            reason = found.errors[0] if not found else "two elements would share a place"
            raise refuse(
                target, f"transform_layout: the layout of '{name}' cannot be shown to keep all elements apart: {reason}"
            )
    if pad_value is not None and prod(new_shape) != prod(shape):
        raise refuse(
            target,
            f"transform_layout: the new layout of '{name}' has {counted(prod(new_shape), 'element')} for {prod(shape)}, and nothing writes the rest",
            "pad the buffer to a multiple first (pad_einsum)",
        )
    accesses = _accesses(target)
    known = iter(new_shape)
    dims = [tir.types.DYNAMIC if e in whole else IntegerAttr(next(known), _dim_type(type_)) for e in results]
    new_type = tir.BufferType(ArrayAttr(dims), type_.dtype, type_.scope)
    target = _retyped(target, new_type)
    touched: dict[tir.BlockOp, None] = {}
    for access in accesses:
        _follow(access, symbols, results, touched)
    for each in touched:
        declare_access(each)
    if separators:
        separate(function_of(block), target, separators)


def _kept_whole(
    block: tir.BlockOp, name: str, type_: tir.BufferType, symbols: Sequence[Expr], results: Sequence[Expr]
) -> list[Expr]:
    """The variables of the dimensions whose extents are symbolic. Each must be an index of the new layout by itself, in
    the old order."""
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
    """The variables of a map, what it makes of them, and before which of these a separator stands."""
    parameters = inspect.signature(index_map).parameters.values()
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not open_ended and len(parameters) != rank:
        raise refuse(
            block,
            f"transform_layout: the map takes {counted(len(parameters), 'index')}, but the buffer has {counted(rank, 'dimension')}",
        )
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    symbols = [symbol(names[k] if k < len(names) else f"i{k}") for k in range(rank)]
    results: list[Expr] = []
    separators: list[int] = []
    for item in index_map(*symbols):
        if isinstance(item, AxisSeparator):
            separators.append(len(results))
        elif isinstance(item, Expr | int):
            results.append(as_expr(item))
        else:
            raise refuse(block, f"transform_layout: the map gives {item!r}, which is no index")
    return symbols, results, separators


def _dim_type(type_: tir.BufferType) -> tir.types.IntegerType:
    first = next((d for d in type_.shape.data if isinstance(d, IntegerAttr)), None)
    found = getattr(first, "type", None)
    return found if isinstance(found, tir.types.IntegerType) else tir.types.I32


def _accesses(buffer: SSAValue) -> list[AccessOp]:
    """Every load and store of a buffer; raises when it is used in another way."""
    found: list[AccessOp] = []
    for use in list(buffer.uses):
        op = use.operation
        if isinstance(op, AccessOp):
            found.append(op)
        elif not isinstance(op, tir.BufferRegionOp) or any(
            isinstance(u.operation, tir.MatchBufferOp) for u in op.result.uses
        ):
            raise refuse(op, f"transform_layout: '{tir.buffer_name(buffer)}' is used otherwise than by its elements")
    return found


def _retyped(buffer: SSAValue, type_: tir.BufferType) -> SSAValue:
    if isinstance(buffer, BlockArgument):
        return Rewriter.replace_value_with_new_type(buffer, type_)
    return retype(buffer, type_)


def _follow(
    access: AccessOp, symbols: Sequence[Expr], results: Sequence[Expr], touched: dict[tir.BlockOp, None]
) -> None:
    """Has one access use the new layout."""
    analyzer = analyzer_for(all_loops_above(access))
    parent = access.parent_op()
    around: list[tir.BlockOp] = []
    while parent is not None:
        if isinstance(parent, tir.BlockOp):
            around.append(parent)
        parent = parent.parent_op()
    for each in reversed(around):
        bind_axes(analyzer, each)
    for each in around:
        touched[each] = None
    values: dict[Atom, Expr] = {}
    for variable, index in zip(symbols, access.indices, strict=True):
        atom = variable.atom
        assert atom is not None
        values[atom] = analyzer.expr(index)
    builder = builder_before(access)
    type_ = access.indices[0].type if access.indices else tir.types.I32
    new = [analyzer.to_ssa(analyzer.simplify(substitute(e, values)), builder, type_) for e in results]
    before = list(access.indices)
    set_indices(access, new)
    for value in before:
        erase_if_dead(value)
