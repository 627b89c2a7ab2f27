"""The pass `lower-match-buffer`: a buffer that is matched to a region of another is replaced by it.

    B = T.match_buffer(A[8:16, 0:4], (8, 4))
    B[i, j] = 0                                   →     A[8 + i, j] = 0

Accesses are shifted by the region's start; its symbolic strides and offset become those of the source. A parameter with strides that
are those of a longer compact buffer is accessed as that one, so that what follows sees whole rows in its memory:

    A = T.match_buffer(a, (4, 8), strides=(32, 1))      A = T.match_buffer(a, (4, 8), strides=(32, 1))
                                                        A_memory = T.decl_buffer((4, 32), data=A.data)
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.tir.buffer import BufferOp, buffer_name
from ....dialects.tir.types import I64, element_of, lanes_of, with_lanes_of
from ....support.diagnostics import error_at
from ....support.edit import builder_before, erase_op, insert_op_after, replace_all_uses_with
from ..buffers.strides import memory_extents, strides_of
from ..rewriting import erase_if_dead, ops_of, set_indices


def lower_match(match: tir.MatchBufferOp) -> None:
    """Replaces one matched buffer by the buffer of its region."""
    assert match.source is not None
    region = match.source.owner
    assert isinstance(region, tir.BufferRegionOp)
    source, analyzer = region.buffer, Analyzer()
    builder = builder_before(match)
    strides = strides_of(analyzer, source)
    owner = source.owner
    offset = (
        analyzer.expr(owner.elem_offset)
        if isinstance(owner, BufferOp) and owner.elem_offset is not None
        else Expr((), 0)
    )
    for low, stride in zip(region.mins, strides, strict=True):
        offset = offset + analyzer.expr(low) * stride
    dropped = dropped_dimensions(match, region)
    for extent in region.extents[:dropped]:
        if not analyzer.can_prove_equal(extent, 1):
            raise error_at(
                match,
                f"'{match.var_name.data}' drops a dimension of '{buffer_name(source)}' whose extent is not 1",
                "match as many dimensions as the region has",
            )
    bound = _bind_strides(match, strides[dropped:], analyzer)
    if match.elem_offset is not None:
        bound[match.elem_offset] = offset
    for variable, value in bound.items():
        _substitute(variable, value, analyzer, builder)
    for use in list(match.result.uses):
        _retarget(use.operation, use.index, match, region, dropped, offset, strides, analyzer)
    erase_op(match)
    erase_if_dead(region.result)
    for variable in bound:
        owner = variable.owner
        if isinstance(owner, tir.VarOp) and not variable.uses:
            erase_op(owner)


def dropped_dimensions(match: tir.MatchBufferOp, region: tir.BufferRegionOp) -> int:
    """Returns how many leading dimensions of the region the matched buffer drops; MirError if it has more."""
    dropped = len(region.mins) - match.result.type.rank
    if dropped < 0:
        raise error_at(
            match,
            f"'{match.var_name.data}' has more dimensions than the region of '{buffer_name(region.buffer)}' that it matches",
            "match as many dimensions as the region has, or fewer",
        )
    return dropped


def _bind_strides(match: tir.MatchBufferOp, strides: list[Expr], analyzer: Analyzer) -> dict[SSAValue, Expr]:
    """Binds the symbolic strides of a match to the source's; raises MirError for a stride that differs."""
    bound: dict[SSAValue, Expr] = {}
    for dim, (stride, value) in enumerate(zip(match.stride_values() or (), strides, strict=False)):
        is_new = isinstance(stride, SSAValue) and isinstance(stride.owner, tir.VarOp) and stride not in bound
        if isinstance(stride, SSAValue) and is_new:
            bound[stride] = value
            continue
        known = bound.get(stride) if isinstance(stride, SSAValue) else None
        given = analyzer.expr(stride) if known is None else known
        if not analyzer.can_prove_equal(given, value):
            raise error_at(
                match,
                f"stride {dim} of '{match.var_name.data}' is {given!r}, but that of the region that it matches is {value!r}",
                "a matched buffer has its source's strides; name each by a variable of its own to take them",
            )
    return bound


def _substitute(variable: SSAValue, value: Expr, analyzer: Analyzer, builder: Builder) -> None:
    """Replaces a symbolic variable by the value that the match bound it to."""
    if isinstance(variable.owner, tir.VarOp) and variable.uses:
        replace_all_uses_with(variable, analyzer.to_ssa(value, builder, variable.type))


def _cast(builder: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    return value if value.type == type else builder.insert(tir.CastOp(value, type)).result


def _retarget(
    op: Operation,
    position: int,
    match: tir.MatchBufferOp,
    region: tir.BufferRegionOp,
    dropped: int,
    offset: Expr,
    strides: list[Expr],
    analyzer: Analyzer,
) -> None:
    builder = builder_before(op)
    source = region.buffer
    starts = list(region.mins)

    def shifted(indices: list[SSAValue]) -> list[SSAValue]:
        moved = starts[:dropped]
        for start, index in zip(starts[dropped:], indices, strict=True):
            if start.type != element_of(index.type):
                wide = I64 if I64 in (start.type, element_of(index.type)) else element_of(index.type)
                start = _cast(builder, start, wide)
                index = _cast(builder, index, with_lanes_of(wide, index.type))
            if analyzer.expr(start).value == 0:
                moved.append(index)
                continue
            if (lanes := lanes_of(index.type)) > 1:
                start = builder.insert(tir.BroadcastOp(start, lanes)).result
            moved.append(builder.insert(tir.AddOp(start, index)).result)
        return moved

    match op:
        case tir.LoadOp() | tir.StoreOp():
            set_indices(op, shifted(list(op.indices)), source)
        case tir.BufferRegionOp():
            ones = list(region.extents)[:dropped]
            mins, extents = shifted(list(op.mins)), [*ones, *op.extents]
            new = builder.insert(tir.BufferRegionOp(source, mins, extents))
            replace_all_uses_with(op.result, new.result)
            erase_op(op)
        case tir.BufferGetOp() if op.field.data == "elem_offset":
            replace_all_uses_with(op.result, analyzer.to_ssa(offset, builder, op.result.type))
            erase_op(op)
        case tir.BufferGetOp() if op.field.data == "strides" and op.dim is not None:
            value = strides[dropped + op.dim.value.data]
            replace_all_uses_with(op.result, analyzer.to_ssa(value, builder, op.result.type))
            erase_op(op)
        case tir.BufferGetOp() if op.field.data == "shape" and op.dim is not None:
            extent = match.extents()[op.dim.value.data]
            replace_all_uses_with(op.result, analyzer.to_ssa(analyzer.expr(extent), builder, op.result.type))
            erase_op(op)
        case tir.BufferGetOp():
            op.operands[position] = source
        case _:
            raise error_at(
                op,
                f"the matched buffer '{match.var_name.data}' is used whole by '{op.name}'",
                "access its elements, or match the whole source",
            )


def access_memory(match: tir.MatchBufferOp) -> None:
    """Redirects accesses of a parameter with strides to the longer compact buffer that contains it."""
    type = match.result.type
    extents = memory_extents(match.result) if match.stride_dims.data and match.elem_offset is None else None
    accesses = list(match.result.uses)
    kinds = tir.LoadOp | tir.StoreOp | tir.BufferRegionOp
    if extents is None or not all(isinstance(use.operation, kinds) for use in accesses):
        return
    name = f"{match.var_name.data}_memory"
    data = tir.BufferGetOp(match.result, "data", tir.HandleType.get(type.dtype))
    memory = tir.BufferType.get(extents, type.dtype, type.scope.data)
    view = tir.DeclBufferOp(name, memory, source=data.result)
    for op in (view, data):
        op.location = match.location
        insert_op_after(op, match)
    view.result.name_hint = name if name.isidentifier() else None
    for use in accesses:
        use.operation.operands[use.index] = view.result


@dataclass(frozen=True)
class LowerMatchBuffer(ModulePass):
    """Replaces buffers matched to regions by the buffers of these regions."""

    name = "lower-match-buffer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers every match of a region in the module, outer ones first."""
        for match in ops_of(op, tir.MatchBufferOp):
            if match.source is not None and isinstance(match.source.owner, tir.BufferRegionOp):
                lower_match(match)
        for match in ops_of(op, tir.MatchBufferOp):
            access_memory(match)
