"""Emits the ops of Python descriptions: `func` emits a `te.func` with its parameters' producers.

Equal expressions in one scope become one value, so that the ops are few and do not depend on whether the Python code, or
the text that was parsed, shared a subexpression or repeated it. The sides of `if_then_else` are scopes: they see what the
scopes around them have, not the other way round. A statement of an extern sees nothing of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import error_at
from ...support.edit import add_op, create_op
from .. import tir
from ..interned import integer
from ..tir import node as ex
from ..tir.node import Expr
from ..tir.node.emit_expr import hint, number_of, type_of
from ..tir.types import DYNAMIC, I1, Dim
from . import compute as composite
from . import extern as ext
from . import ops
from . import tensor as te
from .reducers import AxisReducer
from .types import TensorType
from .value_numbering import Numbering

T = TypeVar("T")

Definition: TypeAlias = "te.Operation | AxisReducer | ex.Var | ex.IterVar"
"""The Python object that a statement of a function defines."""

# The stack that one level of nested if_then_else takes is a few frames; this many levels fit the default limit.
SHALLOW = 60

LAYOUT_FREE = "layout_free_placeholders"


def func(
    name: str,
    args: Sequence[object],
    attrs: Mapping[str, te.AttrValue] | None = None,
    *,
    definitions: Sequence[Definition] = (),
    private: bool = False,
) -> ops.FuncOp:
    """Creates the `te.func` whose parameters are `args`: placeholders, scalars and outputs, in order.

    Producers of the parameters are emitted in the order of use; `definitions` come first, in their order, needed or not.
    The ops take the locations at which their Python objects were created.
    """
    block = Block()
    emitter = FunctionEmitter(block)
    for definition in definitions:
        emitter.define(definition)
    values: list[SSAValue] = []
    for arg in args:
        if isinstance(arg, te.Tensor):
            values.append(emitter.tensor(arg))
        elif isinstance(arg, ex.Var) and not isinstance(arg, ex.IterVar):
            values.append(emitter.value(arg))
        else:
            raise ex.fail(f"function '{name}' returns tensors and te.var scalars, not {ex.describe(arg)}")
    end = ops.ReturnOp(values)
    end.location = ex.current_location()
    block.add_op(end)
    result = ops.FuncOp(name, Region(block), attributes_of(attrs or {}), private=private)
    result.location = ex.current_location()
    return result


def attribute_of(value: Any) -> Attribute:
    """Returns a Python value as an attribute: int i64, float f64, bool i1, constants in their own dtype."""
    match value:
        case None:
            return DYNAMIC
        case bool():
            return IntegerAttr(int(value), I1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case ex.Const():
            return number_of(value)
        case dict():
            return attributes_of(value)  # pyright: ignore[reportUnknownArgumentType]
        case _ if (items := ex.items_of(value)) is not None:
            return ArrayAttr([attribute_of(item) for item in items])
        case _:
            raise ex.fail(
                f"{ex.describe(value)} cannot be an attribute", "attributes are numbers, strings, lists and dicts"
            )


def attributes_of(values: Mapping[str, Any]) -> DictionaryAttr:
    """Attributes by name."""
    return DictionaryAttr({str(name): attribute_of(value) for name, value in values.items()})


class FunctionEmitter:
    """Emits into one function's block."""

    def __init__(self, block: Block):
        self.function_block = block
        self.block = block
        self.numbering = Numbering()
        # Visible expressions, by number, and those that the innermost scope added; None in the function's own.
        self.known: dict[int, SSAValue] = {}
        self.added: list[int] | None = None
        self.depth = 0
        # Tensors, reducers and buffers, by id; `kept` keeps them alive, so that an id stays theirs.
        self.objects: dict[int, SSAValue] = {}
        self.kept: list[object] = []

    def define(self, definition: Definition) -> None:
        """Emits a definition at the function's level."""
        if isinstance(definition, te.Operation):
            self.operation(definition)
        elif isinstance(definition, AxisReducer):
            for instance in definition.instances.values():
                self._reducer(instance)
        else:
            self.value(definition)

    def tensor(self, tensor: te.Tensor) -> SSAValue:
        """Returns the value of a tensor, whose operation is emitted when first met."""
        found = self.objects.get(id(tensor))
        if found is None:
            self.operation(tensor.op)
            found = self.objects[id(tensor)]
        return found

    def operation(self, operation: te.Operation) -> None:
        """Emits an operation after its producers; chains of operations may be long."""
        pending = [operation]
        while pending:
            op = pending[-1]
            if id(op.outputs[0]) in self.objects:
                pending.pop()
                continue
            needed = op.input_tensors + (op.attached_tensors if isinstance(op, te.ComputeOp) else [])
            missing = [t.op for t in needed if id(t) not in self.objects]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            with ex.location_scope(op.location):
                self._operation(op)

    def _operation(self, op: te.Operation) -> None:
        match op:
            case te.PlaceholderOp():
                tensor = op.outputs[0]
                emitted: Operation = ops.PlaceholderOp(op.name, self._type(tensor), self._open(tensor.dims))
            case te.ComputeOp():
                emitted = self._compute(op)
            case te.ScanOp():
                groups = [[self.tensor(t) for t in group] for group in (op.init, op.update, op.state, op.inputs)]
                emitted = composite.ScanOp(op.name, *groups, tag=op.tag, attrs=attributes_of(op.attrs))
            case ext.ExternOp():
                emitted = self._extern(op)
            case _:
                raise ex.fail(f"operation '{op.name}' cannot be emitted")
        emitted.location = op.location
        self.function_block.add_op(emitted)
        for tensor, result in zip(op.outputs, emitted.results, strict=True):
            result.name_hint = tensor.hint or hint(tensor.name.replace(".", "_"))
            self._remember(tensor, result)

    def _type(self, tensor: te.Tensor) -> TensorType:
        return TensorType(ArrayAttr([self._dim(d) for d in tensor.dims]), type_of(tensor.dtype))

    @staticmethod
    def _dim(extent: Expr) -> Dim:
        return integer(extent.value, type_of(extent.dtype)) if isinstance(extent, ex.Const) else DYNAMIC  # type: ignore[arg-type]

    def _open(self, dims: Sequence[Expr]) -> list[SSAValue]:
        return [self.value(d) for d in dims if not isinstance(d, ex.Const)]

    def _compute(self, op: te.ComputeOp) -> Operation:
        shape = self._open(op.outputs[0].dims)
        attached = op.attached_tensors
        attrs = {key: value for key, value in op.attrs.items() if not (attached and key == LAYOUT_FREE)}
        first = op.body[0]
        # Ops of the function's block are emitted before the body is begun.
        for axis in op.reduce_axis:
            self.value(axis)
        if isinstance(first, te.Reduce) and not isinstance(first.reduction.reducer, str):
            self._reducer(first.reduction.reducer)
        body = Block(arg_types=[type_of(axis.dtype) for axis in op.axis])
        with self._scope(body):
            for axis, arg in zip(op.axis, body.args, strict=True):
                arg.name_hint = hint(axis.name)
                arg.location = op.location
                self._know(axis, arg)
            values = self._reduction(first) if isinstance(first, te.Reduce) else [self.value(v) for v in op.body]
            self._add(tir.YieldOp(*values), first.location)
        return composite.ComputeOp(
            op.name,
            [self._type(t) for t in op.outputs],
            [axis.name for axis in op.axis],
            Region(body),
            shape=shape,
            tag=op.tag,
            attrs=attributes_of(attrs),
            layout_free=[self.tensor(t) for t in attached],
        )

    def _reduction(self, node: te.Reduce) -> Sequence[SSAValue]:
        reduction = node.reduction
        reducer = None if isinstance(reduction.reducer, str) else self._reducer(reduction.reducer)
        sources = [self.value(s) for s in reduction.sources]
        emitted = ops.ReduceOp(
            "custom" if reducer is not None else str(reduction.reducer),
            sources,
            [self.value(axis) for axis in reduction.axes],
            condition=None if reduction.condition is None else self.value(reduction.condition),
            init=[self.value(v) for v in reduction.init],
            reducer=reducer,
        )
        self._add(emitted, node.location)
        return emitted.results

    def _reducer(self, reducer: te.ReducerInstance) -> SSAValue:
        found = self.objects.get(id(reducer))
        if found is not None:
            return found
        combiner = Block(arg_types=[type_of(p.dtype) for p in reducer.parameters])
        with self._scope(combiner):
            for parameter, arg in zip(reducer.parameters, combiner.args, strict=True):
                arg.name_hint = hint(parameter.name)
                self._know(parameter, arg)
            self._add(tir.YieldOp(*[self.value(v) for v in reducer.results]), reducer.location)
        identity = Block()
        with self._scope(identity):
            self._add(tir.YieldOp(*[self.value(v) for v in reducer.identities]), reducer.location)
        emitted = ops.CommReducerOp(reducer.name, Region(combiner), Region(identity))
        emitted.location = reducer.location
        emitted.result.name_hint = hint(reducer.name)
        self.function_block.add_op(emitted)
        self._remember(reducer, emitted.result)
        return emitted.result

    def _extern(self, op: ext.ExternOp) -> Operation:
        inputs = [self.tensor(t) for t in op.inputs]
        types = [self._type(t) for t in op.outputs]
        shape = [value for t in op.outputs for value in self._open(t.dims)]
        body = Block(arg_types=[self._type(t).buffer() for t in (*op.inputs, *op.outputs)])
        for buffer, arg in zip((*op.in_buffers, *op.out_buffers), body.args, strict=True):
            arg.name_hint = hint(buffer.name)
            arg.location = op.location
            self._remember(buffer, arg)
        with self._scope(body):
            self._statements(op.body)
        return composite.ExternOp(
            op.name, inputs, types, Region(body), shape=shape, tag=op.tag, attrs=attributes_of(op.attrs)
        )

    def _statements(self, statements: Sequence[ext.Stmt]) -> None:
        for statement in statements:
            with ex.location_scope(statement.location), self._scope(self.block):
                emitted = self._statement(statement)
            self._add(emitted, statement.location)

    def _statement(self, statement: ext.Stmt) -> Operation:
        match statement:
            case ext.Evaluated():
                return tir.EvaluateOp(self.value(statement.value))
            case ext.Temporary():
                buffer = statement.buffer
                dims = ArrayAttr([self._dim(d) for d in buffer.dims])
                type = tir.BufferType(dims, type_of(buffer.dtype), StringAttr(statement.scope))
                made = tir.DeclBufferOp(buffer.name, type, shape=self._open(buffer.dims))
                made.result.name_hint = hint(buffer.name)
                self._remember(buffer, made.result)
                return made
            case ext.Store():
                value = self.value(statement.value)
                indices = [self.value(i) for i in statement.indices]
                return tir.StoreOp(value, self._buffer(statement.buffer), indices)
            case ext.Loop():
                # Values loaded for the bounds may be overwritten in the body, which must not see them.
                with self._scope(self.block):
                    begin, extent = self.value(statement.min), self.value(statement.extent)
                body = Block(arg_types=[type_of(statement.var.dtype)])
                body.args[0].name_hint = hint(statement.var.name)
                with self._scope(body):
                    self._know(statement.var, body.args[0])
                    self._deeper(lambda: self._statements(statement.body))
                return tir.ForOp(statement.var.name, begin, extent, kind=statement.kind, body=Region(body))
            case ext.Branch():
                with self._scope(self.block):
                    condition = self.value(statement.condition)
                branches: list[Region] = []
                for part in (statement.then, statement.orelse):
                    branch = Block()
                    with self._scope(branch):
                        self._deeper(lambda part=part: self._statements(part))
                    branches.append(Region(branch))
                return tir.IfOp(condition, branches[0], branches[1] if statement.orelse else None)

    def _buffer(self, buffer: ex.Buffer) -> SSAValue:
        found = self.objects.get(id(buffer))
        if found is None:
            raise ex.fail(f"buffer '{buffer.name}' does not belong to this extern")
        return found

    def value(self, root: Expr) -> SSAValue:
        """Returns the value of an expression; expressions may be deep."""
        known = self.known
        found = known.get(self.numbering.number(root))
        if found is not None:
            return found
        numbers, pending = self.numbering.numbers, [root]
        while pending:
            node = pending[-1]
            number = numbers[id(node)]
            if number in known:
                pending.pop()
                continue
            missing = [a for a in node.args if numbers[id(a)] not in known]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if isinstance(node, ex.Var) and not isinstance(node, ex.BufferField):
                known[number] = self._definition(node)
                continue
            op = self._node(node, [known[numbers[id(a)]] for a in node.args])
            self._add(op, node.location)
            known[number] = op.results[0]
            if self.added is not None:
                self.added.append(number)
        return known[numbers[id(root)]]

    def _node(self, node: Expr, operands: list[SSAValue]) -> Operation:
        match node:
            case ex.Apply():
                return create_op(node.op, operands, (type_of(node.dtype),), {}, UNKNOWN_LOC)
            case te.Read():
                tensor = self.objects.get(id(node.tensor))
                if tensor is None or self.block is self.function_block:
                    raise error_at(node.location, f"tensor '{node.tensor.name}' is read outside of a te.compute")
                return create_op(ops.ReadOp, [tensor, *operands], (type_of(node.dtype),), {}, UNKNOWN_LOC)
            case ex.Const():
                return create_op(tir.ConstOp, (), (type_of(node.dtype),), {"value": number_of(node)}, UNKNOWN_LOC)
            case ex.StringImm():
                return tir.ConstOp(StringAttr(node.value))
            case ex.Choice():
                sides = [self._side(node.then_value), self._side(node.else_value)]
                return tir.IfThenElseOp(operands[0], sides[0], sides[1], type_of(node.dtype))
            case ex.Call():
                return self._call(node, operands)
            case te.Reduce():
                raise error_at(
                    node.location,
                    "a reduction must be the whole value of a compute",
                    "give it a te.compute of its own, and read that where the result is used",
                )
            case ex.BufferLoad():
                return tir.LoadOp(self._buffer(node.buffer), operands)
            case ex.BufferField():
                pointer = tir.HandleType.get(type_of(node.buffer.dtype), "global")
                return tir.BufferGetOp(self._buffer(node.buffer), node.field, pointer)
            case _:
                raise error_at(node.location, f"an expression of kind {type(node).__name__} cannot be emitted")

    def _call(self, node: ex.Call, values: list[SSAValue]) -> Operation:
        if node.intrinsic == "tvm_access_ptr" and ex.lanes_of(node.args[0].dtype) > 1:
            raise error_at(node.location, "access_ptr is by scalar elements here: content_lanes is 1")
        pending = iter(values)
        operands: list[SSAValue] = []
        for operand in node.operands:
            if isinstance(operand, Expr):
                operands.append(next(pending))
            else:
                assert isinstance(operand, ex.Buffer)
                operands.append(self._buffer(operand))
        return tir.CallOp(node.intrinsic, operands, type_of(node.dtype))

    def _side(self, value: Expr) -> Region:
        block = Block()
        with self._scope(block):
            emitted = self._deeper(lambda: self.value(value))
            self._add(tir.YieldOp(emitted), value.location)
        return Region(block)

    def _definition(self, node: ex.Var) -> SSAValue:
        """Emits a symbolic variable or a reduction's axis at the function's level."""
        if not isinstance(node, ex.IterVar):
            op: Operation = tir.VarOp(node.name, type_of(node.dtype), size_var=node.is_size)
        elif node.iter_type != ex.IterVar.CommReduce:
            raise ex.fail(f"axis '{node.name}' belongs to another compute")
        elif self.block is not self.function_block:
            raise ex.fail(
                f"axis '{node.name}' is used here, but not reduced over",
                f"an axis of te.reduce_axis is used inside a reduction: te.sum(…, axis={node.name})",
            )
        else:
            op = ops.ReduceAxisOp(node.name, self.value(node.min), self.value(node.extent))
        op.location = node.location
        self.function_block.add_op(op)
        result = op.results[0]
        result.name_hint = node.hint or hint(node.name)
        return result

    def _deeper(self, emit: Callable[[], T]) -> T:
        return in_deep_stack(emit) if self.depth % SHALLOW == 0 else emit()

    def _remember(self, thing: object, value: SSAValue) -> None:
        self.objects[id(thing)] = value
        self.kept.append(thing)

    def _know(self, node: Expr, value: SSAValue) -> None:
        number = self.numbering.number(node)
        self.known[number] = value
        if self.added is not None:
            self.added.append(number)

    def _add(self, op: Operation, location: LocationAttr) -> None:
        op.location = location
        add_op(self.block, op)

    @contextmanager
    def _scope(self, block: Block) -> Generator[None]:
        """Emits ops into `block` within the `with`; expressions added inside are forgotten after it."""
        outer, added = self.block, self.added
        self.block, self.added = block, []
        self.depth += 1
        try:
            yield
        finally:
            for number in self.added:
                self.known.pop(number, None)
            self.block, self.added = outer, added
            self.depth -= 1
