"""The pass `flatten-buffer`: buffers of one dimension, as in TVM's `tir.transform.FlattenBuffer`.

An allocated buffer becomes flat; a buffer that the function is given is seen through a flat view of its memory. A buffer with
axis separators keeps one dimension for each group of axes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, IntegerType, LocationAttr, NoneType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith import expr as x
from ....dialects.arith.to_ssa import to_ssa
from ....dialects.tir.buffer import AccessOp, BufferOp, buffer_name, buffer_type
from ....dialects.tir.types import I1, I32, element_of, is_scalable, lanes_of
from ....support.diagnostics import error_at
from ....support.edit import builder_before, erase_op
from ..analyzed_walk import AnalyzedWalk, Visit
from ..rewriting import PrimFuncPass, erase_dead, set_indices, set_operands
from ..scalars.expression_simplifier import appearance
from .strides import extents_of, row_major, strides_of


@dataclass
class Flat:
    """The flat form of a buffer: for each flat dimension its range of axes, and the strides of all axes."""

    value: SSAValue
    groups: list[tuple[int, int]]
    strides: list[Expr]

    def index_type(self, group: tuple[int, int], types: Sequence[Attribute]) -> Attribute:
        """Returns the dtype of an index into the dimension of `group` that is made of indices of `types`.

        It is int64 where one of them, or the dimension itself, needs more than 32 bits.
        """
        size = buffer_type(self.value).shape.data[self.groups.index(group)]
        widths = [type.width.data for type in types if isinstance(type, IntegerType)]
        is_large = isinstance(size, IntegerAttr) and not _holds(I32, size.value.data)
        return tir.types.I64 if is_large or max(widths, default=32) > 32 else I32


class Flattener(AnalyzedWalk):
    """Flattens the buffers of one function."""

    def __init__(self) -> None:
        super().__init__(Analyzer())
        self.flat: dict[SSAValue, Flat] = {}
        self.replaced: list[Operation] = []

    def flatten(self, func: tir.PrimFuncOp) -> None:
        """Flattens parameters, then buffers and accesses in order."""
        start = InsertPoint.at_start(func.body.block)
        for param in func.body.block.args:
            if isinstance(param.type, tir.BufferType) and self.is_shaped(param):
                self.view(param, Builder(start), func.location)
        self.run(func)
        for op in reversed(self.replaced):
            for use in op.results[0].uses:
                raise error_at(
                    use.operation,
                    f"buffer '{buffer_name(op.results[0])}' is used whole by '{use.operation.name}'",
                    "a buffer that is to be flat is loaded from and stored to, or its data is passed on",
                )
            erase_op(op)
        _drop_unused(self.flat.values())
        erase_dead(func)

    def is_shaped(self, buffer: SSAValue) -> bool:
        """Returns whether the buffer has strides, or not exactly one dimension."""
        owner = buffer.owner
        strided = isinstance(owner, BufferOp) and bool(owner.stride_dims.data)
        return buffer_type(buffer).rank != 1 or strided

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """Visits one op, the buffers of which were flattened."""
        match op:
            case tir.MatchBufferOp():
                self.match(op)
            case tir.AllocBufferOp() | tir.DeclBufferOp() if self.is_shaped(op.result):
                self.rebuild(op)
            case tir.AllocateOp() if len(op.extents) != 1:
                self.allocate(op)
            case AccessOp() if op.buffer in self.flat:
                self.access(op, self.flat[op.buffer])
            case tir.BufferRegionOp() if op.buffer in self.flat:
                self.region(op, self.flat[op.buffer])
            case tir.BufferGetOp() if op.buffer.owner in self.replaced:
                self.field(op)
            case _:
                pass
        yield from self.inside(op)
        return None

    # Buffers -----------------------------------------------------------------------------------------------------

    def match(self, op: tir.MatchBufferOp) -> None:
        """Declares a flat view of a matched handle; raises MirError for a match of a region."""
        if op.source is not None and isinstance(op.source.owner, tir.BufferRegionOp):
            raise error_at(
                op,
                f"'{op.var_name.data}' is matched to a region of another buffer",
                "run lower-match-buffer before flatten-buffer",
            )
        if self.is_shaped(op.result):
            self.view(op.result, Builder(InsertPoint.after(op)), op.location)

    def view(self, buffer: SSAValue, builder: Builder, location: LocationAttr) -> None:
        """Declares a flat view of a buffer's memory."""
        builder.operation_insertion_handler = [lambda new: _locate(new, location)]
        owner = buffer.owner
        type_, shape, groups = self.flat_type(buffer, builder)
        handle = tir.HandleType.get(type_.dtype, type_.scope.data)
        data = builder.insert(tir.BufferGetOp(buffer, "data", handle))
        offset = owner.elem_offset if isinstance(owner, BufferOp) else None
        view = builder.insert(
            tir.DeclBufferOp(
                buffer_name(buffer),
                type_,
                source=data.result,
                shape=shape,
                elem_offset=offset,
                properties={"implicit": IntegerAttr(1, I1)},
            )
        )
        self.flat[buffer] = Flat(view.result, groups, self.strides(buffer, groups))

    def rebuild(self, op: tir.AllocBufferOp | tir.DeclBufferOp) -> None:
        """Allocates or declares flat memory in the stead of the shaped."""
        builder = builder_before(op)
        type_, shape, groups = self.flat_type(op.result, builder)
        dropped = ("stride_dims", "axis_separators", "operandSegmentSizes", "var_name")
        properties = {k: v for k, v in op.properties.items() if k not in dropped}
        if len(groups) > 1:
            properties["axis_separators"] = ArrayAttr([IntAttr(k) for k in range(1, len(groups))])
        new = type(op)(
            op.var_name.data,
            type_,
            source=op.source,
            shape=shape,
            elem_offset=op.elem_offset,
            data=op.data,
            properties=properties,
        )
        builder.insert(new)
        new.result.name_hint = op.result.name_hint
        self.flat[op.result] = Flat(new.result, groups, self.strides(op.result, groups))
        self.replaced.append(op)

    def strides(self, buffer: SSAValue, groups: list[tuple[int, int]]) -> list[Expr]:
        """Returns the stride of each axis within its group."""
        owner = buffer.owner
        if isinstance(owner, BufferOp) and owner.stride_values() is not None:
            return strides_of(self.analyzer, buffer)
        strides: list[Expr] = []
        for first, last in groups:
            strides += row_major(extents_of(self.analyzer, buffer)[first:last])
        return strides

    def flat_type(
        self, buffer: SSAValue, builder: Builder
    ) -> tuple[tir.BufferType, list[SSAValue], list[tuple[int, int]]]:
        """Returns the flat type, the values of its symbolic extents, and the axes that each dimension joins."""
        owner, old = buffer.owner, buffer_type(buffer)
        cuts = [0, old.rank]
        if isinstance(owner, BufferOp) and owner.axis_separators is not None:
            cuts += [_number(s) for s in owner.axis_separators.data]
        cuts = sorted({cut for cut in cuts if 0 <= cut <= old.rank})
        groups = list(pairwise(cuts)) or [(0, 0)]
        strided = isinstance(owner, BufferOp) and owner.stride_values() is not None
        extents, strides = extents_of(self.analyzer, buffer), strides_of(self.analyzer, buffer)
        width = next((d.type for d in old.shape.data if isinstance(d, IntegerAttr)), I32)
        dims: list[Attribute] = []
        shape: list[SSAValue] = []
        for first, last in groups:
            size = x.ONE
            for extent in extents[first:last]:
                size = size * extent
            if strided and first < last:
                size = extents[first] * strides[first]
            size = self.analyzer.simplify(size)
            if size.value is not None:
                dims.append(IntegerAttr(size.const, width if _holds(width, size.const) else tir.types.I64))
            else:
                dims.append(NoneType())
                shape.append(to_ssa(size, builder, width, shared=False))
        return tir.BufferType(ArrayAttr(dims), old.dtype, old.scope), shape, groups

    def allocate(self, op: tir.AllocateOp) -> None:
        """Replaces the extents of an allocation by their product."""
        total = x.ONE
        for extent in op.extents:
            total = total * self.analyzer.expr(extent)
        type_ = op.extents[0].type if op.extents else I32
        value = to_ssa(self.analyzer.simplify(total), builder_before(op), type_, shared=False)
        set_operands(op, [value], [] if op.condition is None else [op.condition])

    def field(self, op: tir.BufferGetOp) -> None:
        """Rewrites a field: the data is that of the flat buffer, shape and strides stay the old ones."""
        if op.dim is None:
            op.operands[0] = self.flat[op.buffer].value
            return
        dim = op.dim.value.data
        given = (extents_of if op.field.data == "shape" else strides_of)(self.analyzer, op.buffer)
        value = to_ssa(self.analyzer.simplify(given[dim]), builder_before(op), op.result.type, shared=False)
        op.result.replace_all_uses_with(value)

    # Accesses ----------------------------------------------------------------------------------------------------

    def access(self, op: AccessOp, flat: Flat) -> None:
        """Loads from, or stores to, the flat buffer."""
        set_indices(op, [self.index(op, op.indices, flat, group) for group in flat.groups], flat.value)

    def index(self, op: Operation, indices: Sequence[SSAValue], flat: Flat, group: tuple[int, int]) -> SSAValue:
        """Returns the index into one dimension of the flat buffer."""
        builder = builder_before(op)
        own, strides = list(indices[group[0] : group[1]]), flat.strides[group[0] : group[1]]
        lanes = lanes_of(own[-1].type) if own else 1
        is_vector = bool(own) and element_of(own[-1].type) != own[-1].type
        scalars = own[:-1] if is_vector else own
        total = x.ZERO
        for index, stride in zip(scalars, strides, strict=False):
            total = total + self.analyzer.expr(index) * stride
        type_ = flat.index_type(group, [element_of(index.type) for index in own])
        if not is_vector:
            return self.emit(total, builder, type_, scalars)
        vector, step = own[-1], strides[-1]
        ramp = vector.owner
        if isinstance(ramp, tir.RampOp):
            start = self.emit(total + self.analyzer.expr(ramp.base) * step, builder, type_, [*scalars, ramp.base])
            by = self.emit(self.analyzer.expr(ramp.stride) * step, builder, type_, [ramp.stride])
            return builder.insert(tir.RampOp(start, by, lanes, is_scalable(vector.type))).result
        if vector.type != (wide := tir.types.with_lanes_of(type_, vector.type)):
            vector = builder.insert(tir.CastOp(vector, wide)).result
        for amount, op_class, neutral in ((step, tir.MulOp, x.ONE), (total, tir.AddOp, x.ZERO)):
            if amount != neutral:
                scalar = self.emit(amount, builder, type_, scalars)
                spread = builder.insert(tir.BroadcastOp(scalar, lanes, is_scalable(vector.type))).result
                vector = builder.insert(op_class(vector, spread)).result
        return vector

    def region(self, op: tir.BufferRegionOp, flat: Flat) -> None:
        """Returns the range from the first to the last element of a box."""
        builder = builder_before(op)
        mins: list[SSAValue] = []
        extents: list[SSAValue] = []
        for first, last in flat.groups:
            low = high = x.ZERO
            own, sizes = op.mins[first:last], op.extents[first:last]
            for value, size, stride in zip(own, sizes, flat.strides[first:last], strict=True):
                start = self.analyzer.expr(value)
                low = low + start * stride
                high = high + (start + self.analyzer.expr(size) - 1) * stride
            type_ = flat.index_type((first, last), [value.type for value in own])
            mins.append(self.emit(low, builder, type_, own))
            extents.append(self.emit(high - low + 1, builder, type_, [*own, *sizes]))
        set_operands(op, [flat.value], mins, extents)

    def emit(self, e: Expr, builder: Builder, type_: Attribute, roots: Sequence[SSAValue]) -> SSAValue:
        """Ops that compute a sum, its terms in the order of the indices that it is made of."""
        return to_ssa(self.analyzer.simplify(e), builder, type_, order=appearance(self.analyzer, roots), shared=False)


def _locate(op: Operation, location: LocationAttr) -> None:
    op.location = location


def _number(attr: Attribute) -> int:
    """Returns the number of an attribute, with a dtype or without."""
    if isinstance(attr, IntegerAttr):
        return attr.value.data
    return attr.data if isinstance(attr, IntAttr) else 0


def _holds(type: Attribute, number: int) -> bool:
    return isinstance(type, IntegerType) and number < 1 << (type.width.data - 1)


def _drop_unused(flats: Iterable[Flat]) -> None:
    """Views that nothing uses are not declared."""
    for flat in flats:
        op = flat.value.owner
        if isinstance(op, tir.DeclBufferOp) and op.implicit.value.data and not flat.value.uses:
            source = op.source
            erase_op(op)
            if source is not None and isinstance(source.owner, tir.BufferGetOp) and not source.uses:
                erase_op(source.owner)


@dataclass(frozen=True)
class FlattenBuffer(PrimFuncPass):
    """Makes buffers flat."""

    name = "flatten-buffer"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Flattens the buffers of one prim_func.

        Raises MirError for a buffer matched to a region, and one that is used whole.
        """
        Flattener().flatten(func)
