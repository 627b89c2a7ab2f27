"""Creates buffers with several versions: a new dimension, and accesses to an iteration's version.

B = T.alloc_buffer((16,))        B = T.alloc_buffer((2, 16))
… B[j] …                    →    … B[i % 2, j] …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, NoneType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.tir.buffer import buffer_name
from ....dialects.tir.operators import Const, ExprBuilder, Value, as_const
from ....dialects.tir.types import I32, BufferType
from ....support.diagnostics import error_at
from ....support.edit import insert_ops_before, set_type
from ..rewriting import set_indices, set_operands

Iteration = Callable[[ExprBuilder], Value]


class Versions:
    """The buffers of a pipeline's own: as they were, and with a dimension for their versions."""

    def __init__(self, loop: tir.ForOp, counts: Mapping[SSAValue, int], *, all_at_once: bool):
        self.loop = loop
        self.counts = counts
        self.all_at_once = all_at_once
        """Whether a block says that it accesses all versions: with more than two stages, as TVM has it."""
        self.made: dict[SSAValue, SSAValue] = {}
        self.count_of: dict[SSAValue, int] = {}
        self.old: dict[SSAValue, tir.AllocBufferOp] = {}

    def allocate(self, allocations: Sequence[tir.AllocBufferOp], home: Block) -> None:
        """Allocates the buffers of the pipeline in its block."""
        for old in allocations:
            new = old.clone()
            count = self.counts.get(old.result, 1)
            if count > 1:
                self.add_dimension(new, count)
                self.count_of[new.result] = count
                self.old[new.result] = old
            self.made[old.result] = new.result
            home.add_op(new)

    def add_dimension(self, op: tir.AllocBufferOp, count: int) -> None:
        """Adds a first dimension of this extent."""
        type_ = op.result.type
        first: Attribute = IntegerAttr(count, I32)
        dims = [first, *type_.shape.data]
        if op.stride_dims.data:
            stride, extent = op.stride_dims.data[0], type_.shape.data[0]
            if isinstance(stride, NoneType) or isinstance(extent, NoneType):
                raise error_at(
                    op,
                    f"buffer '{op.var_name.data}' of the software pipeline '{self.loop.var_name.data}' has symbolic strides",
                    "a buffer of several versions has strides that are numbers, or none",
                )
            assert isinstance(stride, IntegerAttr) and isinstance(extent, IntegerAttr)
            outer = IntegerAttr(stride.value.data * extent.value.data, stride.type)
            op.stride_dims = ArrayAttr([outer, *op.stride_dims.data])
        set_type(op.result, BufferType(ArrayAttr(dims), type_.dtype, type_.scope))

    def rewrite(self, ops: Iterable[Operation], iteration: Iteration) -> None:
        """Redirects the accesses of one iteration to its version."""
        if not self.count_of:
            return
        for op in ops:
            match op:
                case tir.LoadOp() | tir.StoreOp() if op.buffer in self.count_of:
                    builder = ExprBuilder(op.location)
                    version = self.version(op.buffer, iteration, builder)
                    insert_ops_before(builder.ops, op)
                    set_indices(op, [version, *op.indices])
                case tir.BufferRegionOp() if op.buffer in self.count_of:
                    self.region(op, iteration)
                case tir.BufferGetOp() if op.buffer in self.count_of:
                    self.field(op, iteration)
                case _:
                    pass

    def region(self, op: tir.BufferRegionOp, iteration: Iteration) -> None:
        """Extends the region that a block declares."""
        builder = ExprBuilder(op.location)
        if self.all_at_once:
            low = builder.value(Const(0))
            extent = builder.value(Const(self.count_of[op.buffer]))
        else:
            low = self.version(op.buffer, iteration, builder)
            extent = builder.value(Const(1))
        insert_ops_before(builder.ops, op)
        set_operands(op, [op.buffer], [low, *op.mins], [extent, *op.extents])

    def field(self, op: tir.BufferGetOp, iteration: Iteration) -> None:
        """Rewrites a field that is read of a buffer.

        Extents and strides have moved by one dimension; a pointer starts at the version.
        """
        if op.field.data in ("shape", "strides"):
            dim = 0 if op.dim is None else op.dim.value.data
            op.dim = IntegerAttr(dim + 1, 64)
            return
        if op.field.data != "data":
            return
        for use in list(op.result.uses):
            call = use.operation
            if not isinstance(call, tir.CallOp) or call.intrinsic.data != "tvm_access_ptr":
                raise self.refused(call, op.buffer)
            builder = ExprBuilder(call.location)
            version = self.version(op.buffer, iteration, builder)
            size: Value = Const(1)
            old = self.old[op.buffer]
            for extent in old.extents():
                size = builder.binary(tir.MulOp, size, Const(extent) if isinstance(extent, int) else extent)
            if old.stride_dims.data and isinstance(first := old.stride_values(), list):
                stride, extent = first[0], old.extents()[0]
                size = builder.binary(
                    tir.MulOp,
                    Const(stride) if isinstance(stride, int) else stride,
                    Const(extent) if isinstance(extent, int) else extent,
                )
            offset = builder.binary(tir.AddOp, call.arguments[2], builder.binary(tir.MulOp, version, size))
            value = builder.value(offset)
            insert_ops_before(builder.ops, call)
            call.operands[2] = value

    def version(self, buffer: SSAValue, iteration: Iteration, builder: ExprBuilder) -> SSAValue:
        """Returns the version of the iteration, counted from the loop's start."""
        value, low = iteration(builder), as_const(self.loop.min)
        if low is None or low.value:
            value = builder.node(tir.SubOp, value, self.loop.min)
        return builder.node(tir.FloorModOp, value, Const(self.count_of[buffer], value.type))

    def refused(self, op: Operation, buffer: SSAValue) -> Exception:
        """Returns the error for memory that is accessed in a way that cannot be redirected to a version."""
        return error_at(
            op,
            f"buffer '{buffer_name(buffer)}' of the software pipeline '{self.loop.var_name.data}' is accessed through a pointer",
            "write loads and stores, or T.tvm_access_ptr, which says what it accesses",
        )
