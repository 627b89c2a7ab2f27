"""Reads the ops of a function back as statement nodes; `export` is the inverse.

A value that is computed once and used once is part of the expression that uses it; others are named by lets, as TVMScript's printer
does, so that nothing is computed twice and no load moves over a store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    NoneType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as IRBlock

from ...dialects import tir
from ...dialects.tir.attribute_values import value_of
from ...dialects.tir.node import stmt as st
from ...dialects.tir.node.buffer import (
    Broadcast,
    Buffer,
    BufferField,
    BufferLoad,
    BufferRegion,
    Let,
    MatchBufferRegion,
    Ramp,
    Shuffle,
)
from ...dialects.tir.node.expr import (
    Choice,
    CommReducer,
    Expr,
    FloatImm,
    IntImm,
    IterVar,
    PointerType,
    PrimType,
    Range,
    SizeVar,
    StringImm,
    Var,
    apply,
    call,
    location_scope,
)
from ...dialects.tir.types import BufferType, HandleType, is_scalable, lanes_of, type_to_dtype
from ...parser.tvmscript.inlined_values import Plan
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import error_at
from .export import ITER_NAMES, ITER_TYPES, ROOT

KINDS_OF_AXES = {letter: kind for kind, letter in ITER_TYPES.items()}


class Restored(NamedTuple):
    """The parts of a function as nodes."""

    params: list[Var]
    buffer_map: dict[Var, Buffer]
    body: st.Stmt


def restore_function(op: tir.PrimFuncOp) -> Restored:
    """Returns the parameters of a function, their buffers, and its body."""
    return in_deep_stack(lambda: _Restorer(op).function())


def restore_statements(op: tir.PrimFuncOp) -> dict[Operation, st.Stmt]:
    """Returns the node of each loop and block of a function."""
    restorer = _Restorer(op)
    in_deep_stack(restorer.function)
    return restorer.statements


def type_of_variable(type: Attribute) -> str | PrimType | PointerType:
    """Returns the type of a variable's value: an address's with what it points to."""
    if isinstance(type, HandleType) and not isinstance(type.pointee, NoneType):
        pointee = "void" if isinstance(type.pointee, UnitAttr) else type_to_dtype(type.pointee)
        return PointerType(PrimType(pointee), type.scope.data)
    return type_to_dtype(type)


class _Restorer:
    """Reads one function."""

    def __init__(self, op: tir.PrimFuncOp):
        self.op = op
        self.plan = Plan(op.body.block)
        self.vars: dict[SSAValue, Expr] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.axes: dict[SSAValue, IterVar] = {}
        self.regions: dict[SSAValue, BufferRegion] = {}
        self.buffer_map: dict[Var, Buffer] = {}
        self.params: list[Var] = []
        self.allocated: list[Buffer] = []
        self.statements: dict[Operation, st.Stmt] = {}
        """The nodes of loops and blocks; of the function, its root block."""

    def function(self) -> Restored:
        for name, value in zip(self.op.param_names.data, self.op.params, strict=True):
            self._parameter(name.data, value)
        body = self._block(self.op.body.block)
        if self.allocated or (_has_blocks(body) and not _is_one_opaque_block(body)):
            root = self.statements[self.op] = st.Block([], [], [], ROOT, body, alloc_buffers=self.allocated)
            body = st.BlockRealize([], True, root)
        return Restored(self.params, self.buffer_map, body)

    def _parameter(self, name: str, value: SSAValue) -> None:
        if isinstance(value.type, BufferType):
            param = Var(f"{name}_handle", "handle")
            buffer = Buffer(
                name,
                tuple(self._number(dim) for dim in value.type.shape.data),
                type_to_dtype(value.type.dtype),
                scope=value.type.scope.data,
            )
            self.buffers[value] = self.buffer_map[param] = buffer
        else:
            param = Var(name, type_of_variable(value.type))
            self.vars[value] = param
        self.params.append(param)

    @staticmethod
    def _number(dim: Attribute) -> Expr:
        assert isinstance(dim, IntegerAttr)
        return IntImm(type_to_dtype(dim.type), dim.value.data)

    # Statements ------------------------------------------------------------------------------------------------------

    def _block(self, block: IRBlock) -> st.Stmt:
        """Returns the statements of a region as one; an empty one is `Evaluate(0)`."""
        wraps: list[Callable[[st.Stmt], st.Stmt]] = []
        parts: list[tuple[int, st.Stmt]] = []
        for op in block.ops:
            if op in self.plan.inline:
                continue
            with location_scope(op.location):
                made = self._op(op)
            if isinstance(made, st.Stmt):
                parts.append((len(wraps), made))
            elif made is not None:
                wraps.append(made)
        return _nested(parts, wraps, 0)

    def _op(self, op: Operation) -> st.Stmt | Callable[[st.Stmt], st.Stmt] | None:
        """Returns a statement, or what makes a statement of the rest of the region; None for a declaration."""
        match op:
            case tir.StoreOp():
                predicate = None if op.predicate is None else self.expr(op.predicate)
                value = self.expr(op.value)
                return st.BufferStore(self._buffer(op.buffer), value, self._all(op.indices), predicate)
            case tir.EvaluateOp():
                return st.Evaluate(self.expr(op.value))
            case tir.ForOp():
                return self._for(op)
            case tir.WhileOp():
                last = op.condition.block.last_op
                assert last is not None
                condition = self._within(op.condition.block, last.operands[0])
                return st.While(condition, self._block(op.body.block))
            case tir.IfOp():
                orelse = self._block(op.else_region.block) if op.else_region.blocks else None
                return st.IfThenElse(self.expr(op.condition), self._block(op.then_region.block), orelse)
            case tir.ScopeOp():
                return self._block(op.body.block)
            case tir.BlockOp():
                return self._realize_block(op)
            case tir.PrefetchOp():
                region = self._region(op.region)
                return st.Prefetch(region.buffer, region.region)
            case tir.LetOp():
                return self._let(op)
            case tir.AssertOp():
                condition, message = self.expr(op.condition), op.message.data
                return lambda rest: st.AssertStmt(condition, message, rest)
            case tir.AttrOp():
                node, value = self._node(op.node), self.expr(op.value)
                key = op.key.data
                return lambda rest: st.AttrStmt(node, key, value, rest)
            case tir.LaunchThreadOp():
                return self._launch(op)
            case tir.EnvThreadOp():
                axis = IterVar(
                    None, Var(op.var_name.data, type_to_dtype(op.result.type)), IterVar.ThreadIndex, op.thread.data
                )
                self.vars[op.result] = self.axes[op.result] = axis
                return None
            case tir.AllocateOp():
                return self._allocate(op)
            case tir.AllocateConstOp():
                variable = self._define(op.result, op.var_name.data)
                array, notes = op.data.array, _values(op.annotations)
                dtype = type_to_dtype(op.result.type.pointee)
                return lambda rest: st.AllocateConst(variable, dtype, list(array.shape), array, rest, notes)
            case tir.DeclBufferOp():
                return self._declare(op)
            case tir.MatchBufferOp():
                self._match(op)
                return None
            case tir.AllocBufferOp():
                self.allocated.append(self._new_buffer(op, None))
                return None
            case tir.RealizeOp():
                region = self._region(op.region)
                condition = IntImm("bool", 1) if op.condition is None else self.expr(op.condition)
                return lambda rest: st.BufferRealize(region.buffer, region.region, condition, rest)
            case tir.VarOp():
                kind = Var if op.size_var is None else SizeVar
                self.vars[op.result] = kind(op.var_name.data, type_of_variable(op.result.type))
                return None
            case tir.CallOp():
                if op.result is None or op.result.uses.get_length() == 0:
                    return st.Evaluate(self._call(op))
                return self._named(op)
            case tir.YieldOp():
                return None
            case _ if op.results:
                return self._named(op)
            case _:
                raise error_at(op, f"'{op.name}' has no node")

    def _named(self, op: Operation) -> Callable[[st.Stmt], st.Stmt]:
        """Returns the let of a value with several uses."""
        value = self._value(op)
        result = op.results[0]
        variable = Var(result.name_hint or "v", type_of_variable(result.type))
        self.vars[result] = variable
        return lambda rest: st.LetStmt(variable, value, rest)

    def _define(self, value: SSAValue, name: str) -> Var:
        variable = self.vars[value] = Var(name, type_of_variable(value.type))
        return variable

    def _let(self, op: tir.LetOp) -> Callable[[st.Stmt], st.Stmt]:
        value = self.expr(op.value)
        if op.var is not None:
            bound = self.expr(op.var)
            assert isinstance(bound, Var)
            self.vars[op.result] = variable = bound
        else:
            variable = self._define(op.result, op.var_name.data)
        return lambda rest: st.LetStmt(variable, value, rest)

    def _launch(self, op: tir.LaunchThreadOp) -> Callable[[st.Stmt], st.Stmt]:
        extent = self.expr(op.extent)
        axis = None if op.env is None else self.axes.get(op.env)
        if axis is None:
            axis = IterVar(Range(extent), op.var_name.data, IterVar.ThreadIndex, op.thread.data)
        else:
            axis.dom = Range(extent)
            axis.min, axis.extent = axis.dom
        self.vars[op.result] = self.axes[op.result] = axis
        return lambda rest: st.AttrStmt(axis, "thread_extent", extent, rest)

    def _allocate(self, op: tir.AllocateOp) -> Callable[[st.Stmt], st.Stmt]:
        variable = self._define(op.result, op.var_name.data)
        extents, notes = self._all(op.extents), _values(op.annotations)
        condition = IntImm("bool", 1) if op.condition is None else self.expr(op.condition)
        dtype = type_to_dtype(op.dtype)
        return lambda rest: st.Allocate(variable, dtype, extents, condition, rest, notes)

    def _for(self, op: tir.ForOp) -> st.Stmt:
        low, extent = self.expr(op.min), self.expr(op.extent)
        if op.var is not None and isinstance(named := self.vars.get(op.var), Var):
            self.vars[op.loop_var] = variable = named
        else:
            variable = self._define(op.loop_var, op.var_name.data)
        thread = None
        if op.thread is not None:
            thread = IterVar(None, Var(op.thread.data, variable.dtype), IterVar.ThreadIndex, op.thread.data)
        body = self._block(op.body.block)
        kind = st.KINDS.index(op.kind.data)
        loop = self.statements[op] = st.For(variable, low, extent, kind, body, thread, _values(op.annotations))
        return loop

    # Blocks ----------------------------------------------------------------------------------------------------------

    def _realize_block(self, op: tir.BlockOp) -> st.Stmt:
        values = self._all(op.bindings)
        predicate = IntImm("bool", 1) if op.predicate is None else self.expr(op.predicate)
        axes: list[IterVar] = []
        names = zip(op.iter_names.data, op.iter_types.data, op.dom_mins, op.dom_extents, op.iter_vars, strict=True)
        for name, kind, low, extent, value in names:
            domain = Range.from_min_extent(self.expr(low), self.expr(extent))
            axis = IterVar(domain, name.data, KINDS_OF_AXES[kind.data])
            self.vars[value] = axis
            axes.append(axis)
        outer, self.allocated = self.allocated, []
        matches: list[MatchBufferRegion] = []
        regions: dict[type[Operation], list[BufferRegion]] = {}
        init: st.Stmt | None = None
        for inner in op.body.block.ops:
            match inner:
                case tir.ReadsOp() | tir.WritesOp():
                    regions[type(inner)] = [self._region(region) for region in inner.regions_]
                    self.plan.inline.add(inner)
                case tir.AllocBufferOp():
                    self.allocated.append(self._new_buffer(inner, None))
                    self.plan.inline.add(inner)
                case tir.MatchBufferOp() if inner.source is not None:
                    source = self._region(inner.source)
                    matches.append(MatchBufferRegion(self._new_buffer(inner, None), source))
                    self.plan.inline.add(inner)
                case tir.VarOp():
                    self._op(inner)
                    self.plan.inline.add(inner)
                case tir.InitOp():
                    init = self._block(inner.body.block)
                    self.plan.inline.add(inner)
                case _:
                    pass
        body = self._block(op.body.block)
        block = self.statements[op] = st.Block(
            axes,
            regions.get(tir.ReadsOp, []),
            regions.get(tir.WritesOp, []),
            op.block_name.data,
            body,
            init,
            self.allocated,
            matches,
            _values(op.annotations),
        )
        self.allocated = outer
        return st.BlockRealize(values, predicate, block)

    # Buffers ---------------------------------------------------------------------------------------------------------

    def _new_buffer(self, op: tir.BufferOp, data: Var | None) -> Buffer:
        shape, strides = iter(self._all(op.shape)), iter(self._all(op.strides))
        type = op.result.type
        buffer = Buffer(
            op.var_name.data,
            tuple(self._number(d) if isinstance(d, IntegerAttr) else next(shape) for d in type.shape.data),
            type_to_dtype(type.dtype),
            data=data,
            strides=tuple(
                self._number(d) if isinstance(d, IntegerAttr) else next(strides) for d in op.stride_dims.data
            ),
            elem_offset=None if op.elem_offset is None else self.expr(op.elem_offset),
            scope=type.scope.data,
            data_alignment=64 if op.data_alignment is None else op.data_alignment.value.data,
            offset_factor=1 if op.offset_factor is None else op.offset_factor.value.data,
            buffer_type="default" if op.buffer_type is None else op.buffer_type.data,
            axis_separators=tuple(
                axis.data if isinstance(axis, IntAttr) else value_of(axis) for axis in (op.axis_separators or ())
            ),
        )
        if op.elem_offset is None and op.offset_factor is not None and isinstance(op, tir.MatchBufferOp):
            # The offset is then a variable of its own.
            buffer.elem_offset = BufferField(buffer, "elem_offset", "int32")
        self.buffers[op.result] = buffer
        return buffer

    def _declare(self, op: tir.DeclBufferOp) -> Callable[[st.Stmt], st.Stmt] | None:
        data = None if op.source is None else self.expr(op.source)
        assert data is None or isinstance(data, Var)
        buffer = self._new_buffer(op, data)
        if op.implicit.value.data:
            return None
        return lambda rest: st.DeclBuffer(buffer, rest)

    def _match(self, op: tir.MatchBufferOp) -> None:
        data = None if op.data is None else self.expr(op.data)
        buffer = self._new_buffer(op, data if isinstance(data, Var) else None)
        param = None if op.source is None else self.vars.get(op.source)
        if isinstance(param, Var):
            self.buffer_map[param] = buffer

    def _buffer(self, value: SSAValue) -> Buffer:
        return self.buffers[value]

    def _region(self, value: SSAValue) -> BufferRegion:
        op = value.owner
        assert isinstance(op, tir.BufferRegionOp)
        ranges = [
            Range.from_min_extent(self.expr(low), self.expr(extent))
            for low, extent in zip(op.mins, op.extents, strict=True)
        ]
        return BufferRegion(self._buffer(op.buffer), ranges)

    def _node(self, value: SSAValue) -> object:
        """Returns the node of an attribute."""
        op = value.owner
        match op:
            case tir.IterVarOp():
                variable = self.expr(op.var)
                assert isinstance(variable, Var)
                kind = ITER_NAMES.index(op.iter_type.data)
                axis = self.axes.get(op.var)
                if axis is None:
                    dom = Range.from_min_extent(*self._all(op.dom)) if len(op.dom) else None
                    axis = IterVar(dom, variable, kind, op.thread_tag.data)
                    self.vars[op.var] = self.axes[op.var] = axis
                return axis
            case tir.TargetOp():
                return op.config
            case tir.CommReducerOp():
                return self._reducer(op)
            case _ if isinstance(value.type, BufferType):
                return self._buffer(value)
            case _:
                return self.expr(value)

    def _reducer(self, op: tir.CommReducerOp) -> CommReducer:
        block = op.combiner.block
        names = [None] * len(block.args) if op.arg_names is None else [name.data for name in op.arg_names.data]
        made = [self._define(arg, name or arg.name_hint or "x") for arg, name in zip(block.args, names, strict=True)]
        last = block.last_op
        assert last is not None
        result = [self._within(block, value) for value in last.operands]
        half = len(made) // 2
        return CommReducer(made[:half], made[half:], result, self._all(op.identities))

    # Expressions -----------------------------------------------------------------------------------------------------

    def _all(self, values: Sequence[SSAValue]) -> list[Expr]:
        return [self.expr(value) for value in values]

    def expr(self, value: SSAValue) -> Expr:
        """Returns a value as an expression: a variable, or what computes it."""
        found = self.vars.get(value)
        if found is not None:
            return found
        op = value.owner
        if isinstance(op, IRBlock):
            raise error_at(value, "a value of another region is used")
        with location_scope(op.location):
            return self._value(op)

    def _within(self, block: IRBlock, value: SSAValue) -> Expr:
        """Returns the value of a region, with the lets in it."""
        lets: list[tuple[Var, Expr]] = []
        for op in block.ops:
            if op in self.plan.inline or isinstance(op, tir.YieldOp):
                continue
            made = self.expr(op.value) if isinstance(op, tir.LetOp) else self._value(op)
            lets.append((self._define(op.results[0], op.results[0].name_hint or "v"), made))
        result = self.expr(value)
        for variable, named in reversed(lets):
            result = Let(variable, named, result)
        return result

    def _value(self, op: Operation) -> Expr:
        match op:
            case tir.ConstOp():
                return _constant(op)
            case tir.BinaryOp() | tir.NotOp() | tir.SelectOp() | tir.CastOp():
                return apply(type(op), tuple(self._all(op.operands)), type_to_dtype(op.results[0].type))
            case tir.LoadOp():
                predicate = None if op.predicate is None else self.expr(op.predicate)
                return BufferLoad(self._buffer(op.buffer), tuple(self._all(op.indices)), predicate)
            case tir.IfThenElseOp():
                sides = [self._within(region.block, _yielded(region.block)) for region in op.regions]
                return Choice(self.expr(op.condition), *sides)
            case tir.CallOp():
                return self._call(op)
            case tir.RampOp():
                scalable = is_scalable(op.result.type)
                return Ramp(self.expr(op.base), self.expr(op.stride), lanes_of(op.result.type), is_scalable=scalable)
            case tir.BroadcastOp():
                scalable = is_scalable(op.result.type)
                return Broadcast(self.expr(op.value), lanes_of(op.result.type), is_scalable=scalable)
            case tir.ShuffleOp():
                return Shuffle(self._all(op.vectors), [index.data for index in op.indices.data])
            case tir.BufferGetOp():
                return self._field(op)
            case tir.LetOp():
                return self.expr(op.value)
            case _:
                raise error_at(op, f"'{op.name}' has no node")

    def _field(self, op: tir.BufferGetOp) -> Expr:
        buffer, dim = self._buffer(op.buffer), None if op.dim is None else op.dim.value.data
        match op.field.data:
            case "data":
                return buffer.data
            case "shape" if dim is not None:
                return buffer.dims[dim]
            case "strides" if dim is not None and dim < len(buffer.strides):
                return buffer.strides[dim]
            case field:
                return BufferField(buffer, field, type_to_dtype(op.result.type), dim)

    def _call(self, op: tir.CallOp) -> Expr:
        operands: list[object] = []
        for value in op.arguments:
            if isinstance(value.type, BufferType):
                operands.append(self._buffer(value))
            elif isinstance(value.owner, tir.BufferRegionOp):
                operands.append(self._region(value))
            else:
                operands.append(self.expr(value))
        dtype = "void" if op.result is None else type_to_dtype(op.result.type)
        made = call(op.intrinsic.data, tuple(operands), dtype)
        made.callee = None if op.callee is None else op.callee.string_value()
        return made


def _yielded(block: IRBlock) -> SSAValue:
    last = block.last_op
    assert last is not None
    return last.operands[0]


def _constant(op: tir.ConstOp) -> Expr:
    match op.value:
        case StringAttr():
            return StringImm(op.value.data)
        case FloatAttr():
            return FloatImm(type_to_dtype(op.result.type), op.value.value.data)
        case _:
            return IntImm(type_to_dtype(op.result.type), op.value.value.data)


def _nested(parts: Sequence[tuple[int, st.Stmt]], wraps: Sequence[Callable[[st.Stmt], st.Stmt]], depth: int) -> st.Stmt:
    """Returns statements as one: what begins before a statement holds all that follow."""
    body: list[st.Stmt] = []
    end = len(parts)
    for level in range(len(wraps), depth - 1, -1):
        start = end
        while start > 0 and parts[start - 1][0] >= level:
            start -= 1
        body = [stmt for _, stmt in parts[start:end]] + body
        end = start
        if level > depth:
            rest = st.sequence(body)
            body = [wraps[level - 1](rest)]
    return st.sequence(body)


def _has_blocks(stmt: st.Stmt) -> bool:
    from ...dialects.tir.node.functor import post_order_visit

    found: list[bool] = []
    post_order_visit(stmt, lambda node: found.append(True) if isinstance(node, st.Block) else None)
    return bool(found)


def _is_one_opaque_block(stmt: st.Stmt) -> bool:
    return isinstance(stmt, st.BlockRealize) and not stmt.block.iter_vars


def _values(attributes: DictionaryAttr) -> dict[str, Any]:
    """Returns annotations as Python values; integers and floats as immediates."""
    return {name: annotation_of(value) for name, value in attributes.data.items()}


def annotation_of(value: Attribute) -> Any:
    """Returns an annotation as nodes: numbers are immediates of their dtype."""
    match value:
        case IntegerAttr():
            return IntImm(type_to_dtype(value.type), value.value.data)
        case FloatAttr():
            return FloatImm(type_to_dtype(value.type), value.value.data)
        case ArrayAttr():
            return [annotation_of(item) for item in value.data]
        case DictionaryAttr():
            return {name: annotation_of(item) for name, item in value.data.items()}
        case _:
            return value_of(value)
