"""Lifts a `te.func` to the Python objects that describe its tensors, the inverse of `emit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, NoneType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from ...support.diagnostics import error_at
from .. import tir
from ..tir import node as ex
from ..tir.node import Expr
from ..tir.types import I1, type_to_dtype
from . import compute as composite
from . import extern as ext
from . import ops
from . import tensor as te
from .axes import REDUCE, SPATIAL
from .axes import axis as axis_of
from .types import TensorType


class Lifted:
    """The objects of one function: `operations` in the order of the text."""

    def __init__(self, function: ops.FuncOp):
        self.function = function
        self.operations: list[te.Operation] = []
        self.vars: dict[str, ex.Var] = {}
        self.tensors: dict[SSAValue, te.Tensor] = {}
        self.scalars: dict[SSAValue, Expr] = {}
        self.reducers: dict[SSAValue, te.ReducerInstance] = {}
        self.buffers: dict[SSAValue, ex.Buffer] = {}
        for op in function.body.block.ops:
            with ex.location_scope(op.location):
                self._definition(op)

    @cached_property
    def args(self) -> list[te.Tensor | ex.Var]:
        """The parameters."""
        return [self._param(v) for v in self.function.params]

    def outputs(self) -> list[te.Operation]:
        """Returns the operations of the parameters that are computed, each once."""
        found = {
            id(a.op): a.op for a in self.args if isinstance(a, te.Tensor) and not isinstance(a.op, te.PlaceholderOp)
        }
        return list(found.values())

    def _param(self, value: SSAValue) -> te.Tensor | ex.Var:
        if value in self.tensors:
            return self.tensors[value]
        scalar = self.scalars[value]
        assert isinstance(scalar, ex.Var)
        return scalar

    def _definition(self, op: Operation) -> None:
        match op:
            case tir.VarOp():
                kind = ex.Var if op.size_var is None else ex.SizeVar
                var = kind(op.var_name.data, type_to_dtype(op.result.type))
                var.hint = op.result.name_hint
                self.scalars[op.result] = self.vars[op.var_name.data] = var
            case ops.ReduceAxisOp():
                axis = axis_of(
                    op.var_name.data, ex.Range.from_min_extent(self.value(op.min), self.value(op.extent)), REDUCE
                )
                axis.hint = op.result.name_hint
                self.scalars[op.result] = axis
            case ops.PlaceholderOp():
                self._add_operation(op, te.PlaceholderOp(op.var_name.data))
            case ops.CommReducerOp():
                self._reducer(op)
            case composite.ComputeOp():
                self._compute(op)
            case composite.ScanOp():
                groups = [tuple(self.tensors[v] for v in g) for g in (op.init, op.update, op.state, op.inputs)]
                attrs = _values(op.attrs)
                scan = te.ScanOp(op.scan_name.data, groups[0], groups[1], groups[2], groups[3], op.tag.data, attrs)
                self._add_operation(op, scan)
            case composite.ExternOp():
                self._extern(op)
            case _:
                if op.results and op.name.startswith("tir."):
                    self.value(op.results[0])

    def _add_operation(self, op: Operation, operation: te.Operation) -> None:
        outputs: list[tuple[te.Dims, str]] = []
        for result in op.results:
            assert isinstance(result.type, TensorType)
            dims = tuple(self._extent(e) for e in composite.extents_of(result))
            outputs.append((dims, type_to_dtype(result.type.dtype)))
        for tensor, result in zip(operation.set_outputs(outputs), op.results, strict=True):
            tensor.hint = result.name_hint
            self.tensors[result] = tensor
        self.operations.append(operation)

    def _extent(self, extent: IntegerAttr | SSAValue) -> Expr:
        if isinstance(extent, SSAValue):
            return self.value(extent)
        return ex.IntImm(type_to_dtype(extent.type), extent.value.data)

    def _reducer(self, op: ops.CommReducerOp) -> None:
        args = op.combiner.block.args
        count = len(args) // 2
        names = [f"{'x' if i < count else 'y'}{i % count if count > 1 else ''}" for i in range(len(args))]
        parameters = tuple(ex.Var(n, type_to_dtype(a.type)) for n, a in zip(names, args, strict=True))
        self.scalars.update(zip(args, parameters, strict=True))
        self.reducers[op.result] = te.ReducerInstance(
            op.reducer_name.data,
            parameters,
            self._yielded(op.combiner.block),
            self._yielded(op.identity.block),
            op.location,
        )

    def _yielded(self, block: Block) -> tuple[Expr, ...]:
        last = block.last_op
        return tuple(self.value(v) for v in last.operands) if last is not None else ()

    def _compute(self, op: composite.ComputeOp) -> None:
        extents = [self._extent(e) for e in composite.extents_of(op.results[0])]
        axes = tuple(
            axis_of(name.data, ex.Range(extent), SPATIAL)
            for name, extent in zip(op.iter_names.data, extents, strict=True)
        )
        self.scalars.update(zip(op.axes, axes, strict=True))
        reduction = op.reduction
        if reduction is None:
            body: tuple[Expr, ...] = tuple(self.value(v) for v in op.values)
        else:
            body = self._reduction(reduction)
        attrs: dict[str, te.AttrValue] = dict(_values(op.attrs))
        if op.layout_free:
            attrs["layout_free_placeholders"] = [self.tensors[t] for t in op.layout_free]  # type: ignore[assignment]
        self._add_operation(op, te.ComputeOp(op.compute_name.data, axes, body, op.tag.data, attrs))

    def _reduction(self, op: ops.ReduceOp) -> tuple[Expr, ...]:
        axes: list[ex.IterVar] = []
        for value in op.axes:
            axis = self.scalars[value]
            assert isinstance(axis, ex.IterVar)
            axes.append(axis)
        reduction = te.Reduction(
            op.kind.data if op.reducer is None else self.reducers[op.reducer],
            tuple(self.value(s) for s in op.sources),
            tuple(axes),
            None if op.condition is None else self.value(op.condition),
            tuple(self.value(v) for v in op.init),
        )
        return tuple(te.Reduce.of(reduction, i) for i in range(len(op.sources)))

    # Externs ---------------------------------------------------------------------------------------------------------

    def _extern(self, op: composite.ExternOp) -> None:
        buffers: list[ex.Buffer] = []
        for arg, tensor in zip(op.body.block.args, (*op.inputs, *op.results), strict=True):
            assert isinstance(tensor.type, TensorType)
            dims = tuple(self._extent(e) for e in composite.extents_of(tensor))
            buffer = ex.Buffer(ops.tensor_name(tensor), dims, type_to_dtype(tensor.type.dtype))
            self.buffers[arg] = buffer
            buffers.append(buffer)
        count = len(op.inputs)
        inputs = tuple(self.tensors[v] for v in op.inputs)
        made = ext.ExternOp(
            op.extern_name.data, inputs, tuple(buffers[:count]), tuple(buffers[count:]), op.tag.data, _values(op.attrs)
        )
        made.body = self._statements(op.body.block)
        self._add_operation(op, made)

    def _statements(self, block: Block) -> list[ext.Stmt]:
        found: list[ext.Stmt] = []
        for op in block.ops:
            with ex.location_scope(op.location):
                match op:
                    case tir.EvaluateOp():
                        found.append(ext.Evaluated(self.value(op.value)))
                    case tir.StoreOp():
                        indices = tuple(self.value(i) for i in op.indices)
                        found.append(ext.Store(self.buffers[op.buffer], indices, self.value(op.value)))
                    case tir.ForOp():
                        variable = ex.Var(op.var_name.data, type_to_dtype(op.loop_var.type))
                        self.scalars[op.loop_var] = variable
                        low, extent = self.value(op.min), self.value(op.extent)
                        body = self._statements(op.body.block)
                        found.append(ext.Loop(variable, low, extent, op.kind.data, body))
                    case tir.IfOp():
                        orelse = self._statements(op.else_region.block) if op.else_region.blocks else []
                        found.append(
                            ext.Branch(self.value(op.condition), self._statements(op.then_region.block), orelse)
                        )
                    case tir.DeclBufferOp() if op.source is None:
                        type = op.result.type
                        dims = tuple(ex.const(e) if isinstance(e, int) else self.value(e) for e in op.extents())
                        buffer = ex.Buffer(op.var_name.data, dims, type_to_dtype(type.dtype))
                        self.buffers[op.result] = buffer
                        found.append(ext.Temporary(buffer, type.scope.data))
                    case _:
                        # A value: taken where it is used.
                        if not op.results:
                            raise error_at(op, f"'{op.name}' cannot be scheduled as a statement of te.extern")
        return found

    # Expressions -----------------------------------------------------------------------------------------------------

    def value(self, root: SSAValue) -> Expr:
        """Returns a value as an expression."""
        pending = [root]
        while pending:
            value = pending[-1]
            if value in self.scalars:
                pending.pop()
                continue
            if not isinstance(value, OpResult):
                assert isinstance(value, BlockArgument)
                raise error_at(value, "a value of another region is used")
            parts = [v for v in value.op.operands if not _is_whole(v)]
            missing = [v for v in parts if v not in self.scalars]
            if missing:
                pending += missing
                continue
            pending.pop()
            with ex.location_scope(value.op.location):
                self.scalars[value] = self._expr(value.op, [self.scalars[v] for v in parts])
        return self.scalars[root]

    def _expr(self, op: Operation, parts: Sequence[Expr]) -> Expr:
        dtype = type_to_dtype(op.results[0].type)
        match op:
            case tir.ConstOp():
                return _constant(op, dtype)
            case tir.BinaryOp() | tir.NotOp() | tir.SelectOp() | tir.CastOp():
                return ex.apply(type(op), tuple(parts), dtype)
            case ops.ReadOp():
                return te.Read(self.tensors[op.tensor], parts)
            case tir.LoadOp():
                return ex.BufferLoad(self.buffers[op.buffer], tuple(parts))
            case tir.BufferGetOp():
                return ex.BufferField(self.buffers[op.buffer], op.field.data, "handle")
            case tir.IfThenElseOp():
                sides = [self._yielded(region.block)[0] for region in op.regions]
                return ex.Choice(parts[0], sides[0], sides[1])
            case tir.CallOp():
                return self._call(op, dtype)
            case _:
                raise error_at(op, f"'{op.name}' is not an expression of TE")

    def _call(self, op: tir.CallOp, dtype: str) -> Expr:
        operands: list[object] = []
        for value in op.arguments:
            if value in self.buffers:
                operands.append(self.buffers[value])
            elif isinstance(value.owner, tir.ConstOp) and isinstance(value.owner.value, StringAttr):
                operands.append(ex.StringImm(value.owner.value.data))
            else:
                operands.append(self.scalars[value])
        return ex.call(op.intrinsic.data, tuple(operands), dtype)


def _is_whole(value: SSAValue) -> bool:
    """Returns True for a tensor, buffer or string, which are not scalars."""
    text = isinstance(value.owner, tir.ConstOp) and isinstance(value.owner.value, StringAttr)
    return text or isinstance(value.type, (TensorType, tir.BufferType))


def _constant(op: tir.ConstOp, dtype: str) -> Expr:
    value = op.value
    if isinstance(value, StringAttr):
        raise error_at(op, "a string is not a value of an expression")
    return ex.immediate(value.value.data, dtype)


def attribute_value(attribute: Attribute) -> te.AttrValue:
    """Returns the Python value of an attribute."""
    match attribute:
        case NoneType():
            return None
        case IntegerAttr():
            return bool(attribute.value.data) if attribute.type == I1 else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [attribute_value(a) for a in attribute.data]
        case DictionaryAttr():
            return _values(attribute)
        case _:
            return str(attribute)


def _values(attributes: DictionaryAttr) -> Mapping[str, te.AttrValue]:
    return {key: attribute_value(value) for key, value in attributes.data.items()}


def lift(function: ops.FuncOp) -> Lifted:
    """Returns the Python objects that describe the function."""
    return Lifted(function)
