"""tensorize: an intrinsic takes the place of the loops that compute what it does."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import ONE, ZERO, substitute
from ....dialects.tir.buffer import BufferOp
from ....support.edit import builder_at_end, builder_before
from ....support.walk import walk_ops
from ...tir.rewriting import erase_dead
from ..analysis.access import extents_of, index_type
from ..analysis.block_kind import analyzer_for, axis_kinds, bind_axes
from ..analysis.structure import all_loops_above, body_of
from ..analysis.tensorize_match import Matcher, Region
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from ..engine.tensor_intrinsics import TensorIntrin, find_intrinsic, parameter_buffers, statements
from .blockize import blockized_part
from .common.block_axes import axes_of
from .common.blockizing import OuterAxes, Part, inner_axes, wrap


@primitive
def tensorize(state: State, block_or_loop: Operation, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
    """Replaces loops, or a block's inside, that match an intrinsic's description by its implementation.

    for i0, j0 in T.grid(4, 4):                 for i0, j0 in T.grid(4, 4):
        for i1, j1 in T.grid(16, 16):               with T.block("C_o"):
            with T.block("C"):             →            A_1 = T.match_buffer(A[vi_o * 16:vi_o * 16 + 16, …], (16, 16))
                C[vi, vj] = A[vi, vj] * 2               C_1 = T.match_buffer(C[vi_o * 16:vi_o * 16 + 16, …], (16, 16))
                                                        T.call_extern("double_tile", C_1.data, A_1.data)
    sch.tensorize(i1, "double_tile")

    Loops become one block. An intrinsic is a pair of prim_funcs: see `TensorIntrin`.
    """
    intrinsic = find_intrinsic(state.module, tensor_intrin, block_or_loop)
    ops, _ = statements(intrinsic.desc)
    if isinstance(block_or_loop, tir.BlockOp):
        _tensorize_block(state, block_or_loop, intrinsic, ops)
        return
    part, nest = blockized_part(block_or_loop, "tensorize", preserve_unit_iters)
    outer = OuterAxes()
    outer.add(part)
    matcher = _matcher_of_part(part, outer, intrinsic)
    initializes = any(isinstance(inner, tir.InitOp) for op in ops for inner in walk_ops(op))
    has_init = part.block.find(tir.InitOp) is not None and "R" in axis_kinds(part.block)
    if has_init and not initializes:
        matcher.initialized_before.add(part.block)
    elif has_init:
        _require_whole(part, intrinsic)
    matcher.match([nest], ops, nest)
    regions = _regions(matcher, intrinsic, part.block)
    block = wrap(state, [part], outer, f"{part.block.block_name.data}_o", [nest])
    made = {axis.atom: Analyzer().expr(v) for axis, v in zip(outer.axes, block.iter_vars, strict=True)}
    starts = [(r.buffer, [substitute(e, made) for e in r.starts]) for r in regions]
    _implement(state, block, intrinsic, starts, keeps_init=not initializes)


def _tensorize_block(state: State, block: tir.BlockOp, intrinsic: TensorIntrin, ops: Sequence[Operation]) -> None:
    """Replaces the inside of a block by the implementation."""
    analyzer = analyzer_for(all_loops_above(block))
    bind_axes(analyzer, block)
    matcher = Matcher(intrinsic, analyzer, "tensorize")
    # The init of a block runs before its body: what is left is compared.
    matcher.match([op for op in body_of(block).ops if not isinstance(op, tir.InitOp)], ops, block)
    regions = _regions(matcher, intrinsic, block)
    _implement(state, block, intrinsic, [(r.buffer, r.starts) for r in regions], keeps_init=True)


def _matcher_of_part(part: Part, outer: OuterAxes, intrinsic: TensorIntrin) -> Matcher:
    """Compares a block as it will be inside of the outer block."""
    analyzer = analyzer_for(all_loops_above(part.block))
    for axis in outer.axes:
        analyzer.bind(axis.symbol, axis.min, axis.extent)
    matcher = Matcher(intrinsic, analyzer, "tensorize")
    axes, values = inner_axes(part, {axis.atom: axis.symbol for axis in outer.axes})
    for variable, value in values.items():
        atom = Analyzer().variable(variable)
        matcher.values[atom] = value
    matcher.prepared[part.block] = axes
    return matcher


def _require_whole(part: Part, intrinsic: TensorIntrin) -> None:
    """Raises where an outer loop continues a reduction whose output the intrinsic initializes."""
    for old, axis in zip(axes_of(part.block, Analyzer()), part.outer, strict=True):
        if axis.kind == "R" and axis.extent != ONE:
            raise refuse(
                part.block,
                f"tensorize: '{intrinsic.name}' initializes its output, but the loops around go on with reduction axis '{old.name}' of block '{part.block.block_name.data}'",
                "decompose_reduction, and use an intrinsic that only updates; or tensorize the whole reduction",
            )


def _regions(matcher: Matcher, intrinsic: TensorIntrin, block: tir.BlockOp) -> list[Region]:
    """Returns the region of the program for each parameter of the intrinsic; raises when there is none."""
    desc = parameter_buffers(intrinsic.desc, intrinsic.name)
    written = {op.buffer for op in walk_ops(intrinsic.desc) if isinstance(op, tir.StoreOp)}
    found: list[Region] = []
    for buffer in desc:
        region = matcher.regions.get(buffer)
        if region is None:
            raise refuse(
                intrinsic.desc,
                f"tensorize: the description of '{intrinsic.name}' does not access its parameter '{tir.buffer_name(buffer)}'",
            )
        found.append(region)
    for buffer, region in zip(desc, found, strict=True):
        for other, second in zip(desc, found, strict=True):
            if other is not buffer and region.buffer is second.buffer and buffer in written:
                raise refuse(
                    block,
                    f"tensorize: '{tir.buffer_name(region.buffer)}' would be both '{tir.buffer_name(buffer)}', which '{intrinsic.name}' writes, and '{tir.buffer_name(other)}'",
                    "the buffers of an intrinsic do not overlap",
                )
        _require_inside(matcher, buffer, region, block)
    for param, region in zip(parameter_buffers(intrinsic.impl, intrinsic.name), found, strict=True):
        _require_aligned(matcher, param, region, block)
    return found


def _require_inside(matcher: Matcher, param: SSAValue, region: Region, block: tir.BlockOp) -> None:
    """Raises unless a parameter's region is inside its buffer, including parts that are not accessed."""
    analyzer = matcher.analyzer
    sizes = _sizes(param, region)
    for number, (start, size, extent) in enumerate(
        zip(region.starts, sizes, extents_of(region.buffer, analyzer), strict=True)
    ):
        if not (analyzer.can_prove_ge0(start) and analyzer.can_prove_ge0(extent - start - size)):
            raise refuse(
                block,
                f"tensorize: '{tir.buffer_name(param)}' of '{matcher.intrinsic.name}' would reach from {start!r} over {size} elements of dimension {number} of '{tir.buffer_name(region.buffer)}', which is not known to be inside",
            )


def _sizes(param: SSAValue, region: Region) -> list[int]:
    assert isinstance(param.type, tir.BufferType)
    shape = param.type.static_shape or ()
    return [1] * (len(region.starts) - len(shape)) + list(shape)


def _require_aligned(matcher: Matcher, param: SSAValue, region: Region, block: tir.BlockOp) -> None:
    """Raises unless the implementation's offset_factor divides the offset of the region."""
    owner = param.owner
    factor = owner.offset_factor.value.data if isinstance(owner, BufferOp) and owner.offset_factor is not None else 1
    source = region.buffer.owner
    if factor <= 1 or (isinstance(source, BufferOp) and source.stride_dims.data):
        return
    offset, step = ZERO, ONE
    for start, extent in reversed(list(zip(region.starts, extents_of(region.buffer, matcher.analyzer), strict=True))):
        offset = offset + start * step
        step = step * extent
    modular = matcher.analyzer.modular_set(matcher.analyzer.simplify(offset))
    if modular.coeff % factor or modular.base % factor:
        raise refuse(
            block,
            f"tensorize: '{tir.buffer_name(param)}' of '{matcher.intrinsic.name}' must begin at a multiple of {factor} elements (offset_factor), which {offset!r} in '{tir.buffer_name(region.buffer)}' is not known to be",
        )


# Application


def _implement(
    state: State,
    block: tir.BlockOp,
    intrinsic: TensorIntrin,
    parts: Sequence[tuple[SSAValue, list[Expr]]],
    keeps_init: bool,
) -> None:
    """Replaces a block's statements by the implementation, which works on the given regions of buffers."""
    body = body_of(block)
    why = f"tensor intrinsic '{intrinsic.name}' took its place"
    kept = (tir.ReadsOp, tir.WritesOp, tir.InitOp) if keeps_init else (tir.ReadsOp, tir.WritesOp)
    for op in list(body.ops):
        if not isinstance(op, kept) and not op.results:
            state.erase(op, why)
    erase_dead(block)
    init = block.find(tir.InitOp)
    builder = builder_at_end(body, block.location) if init is None else builder_before(init, block.location)
    mapper: dict[SSAValue, SSAValue] = {}
    ops, root = statements(intrinsic.impl)
    for op in body_of(intrinsic.impl).ops:
        if isinstance(op, tir.VarOp):
            copy = builder.insert(op.clone(mapper))
            mapper[op.result] = copy.result
    for param, (buffer, starts) in zip(parameter_buffers(intrinsic.impl, intrinsic.name), parts, strict=True):
        mapper[param] = _matched(state, block, param, buffer, starts, mapper)
    place = builder_at_end(body, block.location)
    for op in ops:
        if isinstance(op, tir.BufferRegionOp | tir.ReadsOp | tir.WritesOp):
            continue
        copy = place.insert(op.clone(mapper))
        for inner in walk_ops(copy):
            inner.location = block.location
            if isinstance(inner, tir.BlockOp):
                inner.properties["block_name"] = StringAttr(state.fresh_block_name(block, inner.block_name.data))
                state.added(inner)
    erase_dead(block)
    if root is not None and root.annotations.data:
        block.properties["annotations"] = DictionaryAttr({**block.annotations.data, **root.annotations.data})


def _matched(
    state: State,
    block: tir.BlockOp,
    param: SSAValue,
    buffer: SSAValue,
    starts: Sequence[Expr],
    mapper: dict[SSAValue, SSAValue],
) -> SSAValue:
    """Builds `T.match_buffer(buffer[…], shape, …)` with the properties of the implementation's parameter."""
    init = block.find(tir.InitOp)
    body = body_of(block)
    builder = builder_at_end(body, block.location) if init is None else builder_before(init, block.location)
    type_ = index_type(buffer)
    analyzer = Analyzer()
    mins = [analyzer.to_ssa(start, builder, type_) for start in starts]
    extents = [builder.insert(tir.ConstOp.int(n, type_)).result for n in _sizes(param, Region(buffer, list(starts)))]
    region = builder.insert(tir.BufferRegionOp(buffer, mins, extents))
    assert isinstance(param.type, tir.BufferType)
    name = state.fresh_buffer_name(block, tir.buffer_name(param))
    owner = param.owner
    if not isinstance(owner, tir.MatchBufferOp):
        match = tir.MatchBufferOp(name, param.type, source=region)
    else:
        properties = {
            key: value
            for key, value in owner.properties.items()
            if key not in ("var_name", "stride_dims", "operandSegmentSizes")
        }
        match = tir.MatchBufferOp(
            name,
            param.type,
            source=region,
            strides=[mapper[s] for s in owner.strides],
            stride_dims=owner.stride_dims.data,
            elem_offset=None if owner.elem_offset is None else mapper[owner.elem_offset],
            properties=properties,
        )
    result = builder.insert(match).result
    state.named_buffer(match)
    result.name_hint = name if SSAValue.is_valid_name(name) else None
    return result
