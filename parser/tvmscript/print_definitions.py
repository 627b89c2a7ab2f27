"""The right sides of definitions as text: buffers, allocations, axes, attributes, threads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, IntegerAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...dialects.tir.buffer import (
    AllocateConstOp,
    AllocateOp,
    AllocBufferOp,
    BufferOp,
    DeclBufferOp,
    MatchBufferOp,
)
from ...dialects.tir.expr import LetOp, VarOp
from ...dialects.tir.operators import as_const
from ...dialects.tir.stmt import (
    AttrOp,
    BlockOp,
    ForOp,
    LaunchThreadOp,
    RealizeOp,
)
from ...dialects.tir.types import F32
from .print_expressions import (
    ExpressionPrinter,
    attribute_text,
    dictionary_text,
    dtype,
    float_text,
    integer_text,
    quoted,
)


class DefinitionPrinter(ExpressionPrinter):
    """Prints what statements define things by."""

    def is_inline_name(self, op: VarOp) -> bool:
        """Returns whether a variable is nothing but one stride of a buffer."""
        use = op.result.get_unique_use()
        if use is None or not isinstance(use.operation, BufferOp) or op.size_var is not None:
            return False
        return any(stride is op.result for stride in use.operation.strides)

    def is_remapped(self, op: BlockOp, k: int) -> bool:
        """Returns whether axis k runs over the range of the loop it is bound to, and has no other property."""
        binding = op.bindings[k]
        loop = binding.owner.parent_op() if isinstance(binding, BlockArgument) else None
        return (
            op.iter_types.data[k].data in "SR"
            and isinstance(loop, ForOp)
            and same_expression(op.dom_mins[k], loop.min)
            and same_expression(op.dom_extents[k], loop.extent)
        )

    def axes_text(self, op: BlockOp, run: list[int]) -> str:
        """The right side of an axis, or of several that are remapped together."""
        if len(run) > 1:
            kinds = "".join(op.iter_types.data[k].data for k in run)
            return f"T.axis.remap({quoted(kinds)}, [{self.texts([op.bindings[k] for k in run])}])"
        k = run[0]
        low, extent = op.dom_mins[k], op.dom_extents[k]
        const = as_const(low)
        dom = self.text(extent)
        if const is None or const.value != 0:
            dom = f"({self.text(low)}, {self.stop(low, extent)})"
        kind = {"S": "spatial", "R": "reduce"}.get(op.iter_types.data[k].data, op.iter_types.data[k].data)
        return f"T.axis.{kind}({dom}, {self.text(op.bindings[k])})"

    def buffer_text(self, op: BufferOp) -> str:
        """The call that makes a buffer."""
        type_ = op.result.type
        arguments: list[str] = []
        function = _BUFFER_FUNCTIONS[type(op)]
        if isinstance(op, DeclBufferOp) and op.implicit.value.data:
            function = "T.Buffer"
        if isinstance(op, MatchBufferOp) and op.source is not None:
            arguments.append(self.text(op.source))
        arguments.append(shape_text(self.dims(type_.shape.data, op.shape)))
        if type_.dtype != F32:
            arguments.append(dtype(type_.dtype))
        data = op.data if isinstance(op, MatchBufferOp) else op.source
        if data is not None:
            arguments.append(f"data={self.text(data)}")
        if op.stride_dims.data:
            arguments.append(f"strides={shape_text(self.dims(op.stride_dims.data, op.strides))}")
        if op.elem_offset is not None:
            arguments.append(f"elem_offset={self.text(op.elem_offset)}")
        if type_.scope.data != "global":
            arguments.append(f"scope={quoted(type_.scope.data)}")
        for key, attr in (("align", op.data_alignment), ("offset_factor", op.offset_factor)):
            if attr is not None:
                arguments.append(f"{key}={attr.value.data}")
        if op.buffer_type is not None:
            arguments.append(f"buffer_type={quoted(op.buffer_type.data)}")
        if op.axis_separators is not None:
            numbers = [
                str(a.data) if isinstance(a, IntAttr) else attribute_text(a, op) for a in op.axis_separators.data
            ]
            arguments.append(f"axis_separators=[{', '.join(numbers)}]")
        return f"{function}({', '.join(arguments)})"

    def dims(self, dims: Sequence[Attribute], values: Sequence[SSAValue]) -> list[str]:
        """Extents or strides; a variable that is nothing else is the name of a stride, in quotes."""
        pending = iter(values)
        texts: list[str] = []
        for dim in dims:
            if isinstance(dim, IntegerAttr):
                texts.append(integer_text(dim.value.data, dim.type))
                continue
            value = next(pending)
            var = value.owner
            if isinstance(var, VarOp) and value not in self.names.of and self.is_inline_name(var):
                texts.append(quoted(var.var_name.data))
            else:
                texts.append(self.text(value))
        return texts

    def allocate_text(self, op: AllocateOp) -> str:
        arguments = [f"[{self.texts(op.extents)}]", dtype(op.dtype), quoted(op.scope.data)]
        if op.condition is not None:
            arguments.append(self.text(op.condition))
        if op.annotations.data:
            arguments.append(f"annotations={dictionary_text(op.annotations, op)}")
        return f"T.allocate({', '.join(arguments)})"

    def allocate_const_text(self, op: AllocateConstOp) -> str:
        array = op.data.array
        pointee = op.result.type.pointee
        numbers = array.reshape(-1).tolist()
        floats = not hasattr(pointee, "signedness")
        texts = [_plain_float(float(n), pointee) if floats else str(int(n)) for n in numbers]
        arguments = [f"[{', '.join(texts)}]", dtype(pointee), f"[{', '.join(map(str, array.shape))}]"]
        if op.annotations.data:
            arguments.append(f"annotations={dictionary_text(op.annotations, op)}")
        return f"T.allocate_const({', '.join(arguments)})"

    def attr_text(self, op: AttrOp) -> str:
        return f"T.attr({self.text(op.node)}, {quoted(op.key.data)}, {self.text(op.value)})"

    def realize_text(self, op: RealizeOp) -> str:
        arguments = [self.text(op.region)]
        condition = None if op.condition is None else self.text(op.condition)
        if op.producer is not None:
            arguments += [condition] if condition is not None else []
            arguments += [quoted(op.scope.data)] if op.scope is not None else []
            return f"T.ProducerRealize({', '.join(arguments)})"
        arguments += [quoted(op.scope.data)] if op.scope is not None else []
        arguments += [f"condition={condition}"] if condition is not None else []
        return f"T.realize({', '.join(arguments)})"

    def launch_text(self, op: LaunchThreadOp) -> str:
        thread = quoted(op.thread.data) if op.env is None else self.names.name(op.env)
        return f"T.launch_thread({thread}, {self.text(op.extent)})"


def _plain_float(value: float, type: Attribute) -> str:
    text = float_text(value, type)
    inner = text[text.index("(") + 1 : -1]
    return text if inner.startswith('"') else inner


def shape_text(dims: Sequence[str]) -> str:
    """A tuple."""
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def same_expression(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether two values are one, or the same expression of the same variables."""
    pending = [(a, b)]
    steps = 0
    while pending:
        x, y = pending.pop()
        steps += 1
        if x is y:
            continue
        p, q = x.owner, y.owner
        if isinstance(p, Block) or isinstance(q, Block) or type(p) is not type(q) or steps > 1000:
            return False
        if isinstance(p, VarOp | LetOp | BufferOp) or p.regions or x.type != y.type or p.properties != q.properties:
            return False
        if len(p.operands) != len(q.operands):
            return False
        pending += zip(p.operands, q.operands, strict=True)
    return True


_BUFFER_FUNCTIONS: dict[type[Operation], str] = {
    MatchBufferOp: "T.match_buffer",
    AllocBufferOp: "T.alloc_buffer",
    DeclBufferOp: "T.decl_buffer",
}
