"""Writes statement nodes as the ops of a function; `restore` is the inverse.

    Allocate(p, "float32", [8], True, body)     %p = tir.allocate … ; the ops of body

A statement with the rest as its body becomes a flat op; where other statements follow, a `tir.scope` ends it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir import Block as IRBlock

from ...dialects import tir
from ...dialects.array import ArrayValueAttr
from ...dialects.tir.attribute_values import attribute_of
from ...dialects.tir.node import stmt as st
from ...dialects.tir.node.buffer import Buffer, BufferField, BufferLoad, BufferRegion, MatchBufferRegion
from ...dialects.tir.node.emit_expr import ExprEmitter, hint, number_of, type_of, variable_type
from ...dialects.tir.node.expr import (
    Call,
    CommReducer,
    Const,
    Expr,
    IntImm,
    IterVar,
    PointerType,
    Range,
    StringImm,
    Var,
    fail,
    location_scope,
)
from ...dialects.tir.node.functor import expressions_of, post_order_visit
from ...dialects.tir.types import DYNAMIC, I1, I32, Dim
from ...support.deep_stack import in_deep_stack

ROOT = "root"
"""The name of the block around a function's blocks, which text and ops leave out."""

ITER_TYPES = {IterVar.DataPar: "S", IterVar.CommReduce: "R", IterVar.Ordered: "scan", IterVar.DimInfo: "opaque"}
"""The kinds of blocks' axes, as `tir.block` has them."""

ITER_NAMES = (
    "DataPar", "ThreadIndex", "CommReduce", "Ordered", "Opaque", "Unrolled", "Vectorized", "Parallelized", "Tensorized",
    "VirtualThread",
)  # fmt: skip
"""The names of the kinds of axes, by their number."""


def export_function(
    name: str,
    params: Sequence[Var],
    buffer_map: Mapping[Var, Buffer],
    body: st.Stmt,
    *,
    ret_type: Attribute | None = None,
    attrs: DictionaryAttr | None = None,
    private: bool = False,
) -> tir.PrimFuncOp:
    """Returns the function of parameters, some of which are addresses of buffers, and a body.

    Raises MirError for a variable or buffer that nothing defines.
    """
    names: list[str] = []
    types: list[Attribute] = []
    for param in params:
        buffer = buffer_map.get(param)
        plain = buffer is not None and _is_plain(buffer)
        names.append(buffer.name if buffer is not None and plain else param.name)
        types.append(buffer_type(buffer) if buffer is not None and plain else variable_type(param))
    made = tir.PrimFuncOp(name, names, types, attrs=attrs or DictionaryAttr({}), ret_type=ret_type, private=private)
    emitter = StmtEmitter(made.body.block, body)
    in_deep_stack(lambda: emitter.function(params, buffer_map, body))
    return made


def _is_plain(buffer: Buffer) -> bool:
    """Returns whether a buffer can be a parameter by itself: of known extents, compact, with defaults."""
    return (
        all(isinstance(dim, Const) for dim in buffer.dims)
        and not buffer.strides
        and isinstance(buffer.elem_offset, IntImm)
        and buffer.elem_offset.value == 0
        and owns_memory(buffer)
        and buffer.storage_scope == "global"
        and (buffer.data_alignment, buffer.offset_factor, buffer.buffer_type) == (64, 1, "default")
        and not buffer.axis_separators
    )


def owns_memory(buffer: Buffer) -> bool:
    """Returns whether no variable of the program holds a buffer's address."""
    data = buffer.data
    return isinstance(data, BufferField) and data.buffer is buffer


def _dim(extent: Expr) -> Dim:
    return number_of(extent) if isinstance(extent, Const) else DYNAMIC  # type: ignore[return-value]


def buffer_type(buffer: Buffer) -> tir.BufferType:
    """Returns the type of a buffer's value."""
    dims = ArrayAttr([_dim(dim) for dim in buffer.dims])
    return tir.BufferType(dims, type_of(buffer.dtype), StringAttr(buffer.storage_scope))


class StmtEmitter(ExprEmitter):
    """Emits the statements of one function."""

    def __init__(self, block: IRBlock, body: st.Stmt | None = None):
        super().__init__(block)
        self.function_block = block
        # Declarations of what nothing defines, which come first.
        self.prologue = IRBlock()
        # Variables that are the node of an attribute before a loop defines them.
        self.named: dict[int, SSAValue] = {}
        self.views: dict[int, list[Buffer]] = {}
        if body is not None:
            self._find_views(body)

    def _find_views(self, body: st.Stmt) -> None:
        """Finds buffers that no statement declares; they are declared where their memory is."""
        declared: set[int] = set()
        used: dict[int, Buffer] = {}

        def visit(node: object) -> None:
            match node:
                case BufferLoad() | st.BufferStore() | st.Prefetch():
                    used[id(node.buffer)] = node.buffer
                case st.DeclBuffer() | st.BufferRealize():
                    declared.add(id(node.buffer))
                    used.setdefault(id(node.buffer), node.buffer)
                case st.Block():
                    declared.update(id(buffer) for buffer in node.alloc_buffers)
                    declared.update(id(match.buffer) for match in node.match_buffers)
                    for region in (*node.reads, *node.writes):
                        used[id(region.buffer)] = region.buffer
                case Call():
                    for operand in node.operands:
                        if isinstance(operand, Buffer):
                            used[id(operand)] = operand
                case _:
                    pass

        post_order_visit(body, visit)
        for key, buffer in used.items():
            if key not in declared and not owns_memory(buffer):
                self.views.setdefault(id(buffer.data), []).append(buffer)

    # Functions -------------------------------------------------------------------------------------------------------

    def function(self, params: Sequence[Var], buffer_map: Mapping[Var, Buffer], body: st.Stmt) -> None:
        """Emits the body of a function whose block's arguments are the parameters."""
        matched: list[tuple[Var, Buffer]] = []
        for param, value in zip(params, self.block.args, strict=True):
            value.name_hint = hint(param.name)
            self.define(param, value)
            buffer = buffer_map.get(param)
            if isinstance(value.type, tir.BufferType) and buffer is not None:
                value.name_hint = hint(buffer.name)
                self.see(buffer, value)
                self.views_of(buffer.data)
            elif buffer is not None:
                matched.append((param, buffer))
            else:
                self.views_of(param)
        for param, buffer in matched:
            for part in (*buffer.dims, *buffer.strides, buffer.elem_offset):
                self._declare_sizes(part)
            data = buffer.data
            match = self._buffer_op(tir.MatchBufferOp, buffer, source=self.values[id(param)])
            self.see(buffer, match)
            if not isinstance(data, BufferField):
                self.define(data, self.add(tir.BufferGetOp(match, "data", self._pointer_type(buffer))))
            self.views_of(data)
        if is_root(body):
            assert isinstance(body, st.BlockRealize)
            for buffer in body.block.alloc_buffers:
                self.see(buffer, self._buffer_op(tir.AllocBufferOp, buffer))
            body = body.block.body
        self.stmt(body)
        for op in reversed(list(self.prologue.ops)):
            op.detach()
            first = self.function_block.first_op
            if first is None:
                self.function_block.add_op(op)
            else:
                self.function_block.insert_op_before(op, first)

    def _declare_sizes(self, part: Expr) -> None:
        """Emits the variables of an extent that no parameter is."""
        for node in expressions_of(part):
            if isinstance(node, Var) and not isinstance(node, BufferField) and id(node) not in self.values:
                self.declare(node)

    def declare(self, variable: Var) -> SSAValue:
        """Emits a variable that a match binds, or an attribute names."""
        op = tir.VarOp(variable.name, variable_type(variable), size_var=variable.is_size)
        op.result.name_hint = hint(variable.name)
        self.define(variable, self.add(op))
        return op.result

    def _pointer_type(self, buffer: Buffer) -> tir.HandleType:
        return tir.HandleType.get(type_of(buffer.dtype), buffer.storage_scope)

    # Buffers ---------------------------------------------------------------------------------------------------------

    def see(self, buffer: Buffer, value: SSAValue) -> None:
        """From now on, `buffer` is `value`."""
        self.buffers[id(buffer)] = value
        self._kept.append(buffer)

    def buffer(self, buffer: Buffer) -> SSAValue:
        found = self.buffers.get(id(buffer))
        if found is None:
            with self.inside(self.prologue):
                source = None if owns_memory(buffer) else self.expr(buffer.data)
                found = self._buffer_op(tir.DeclBufferOp, buffer, source)
                assert isinstance(found.owner, tir.DeclBufferOp)
                found.owner.properties["implicit"] = IntegerAttr(1, I1)
                self.see(buffer, found)
        return found

    def undefined(self, variable: Var) -> SSAValue:
        # As in TVM, what nothing defines is a variable of the function, which checks of its form refuse.
        with self.inside(self.prologue):
            return self.declare(variable)

    def field(self, e: BufferField) -> SSAValue:
        self.buffer(e.buffer)
        return super().field(e)

    def operand(self, operand: object, e: Call) -> SSAValue:
        return self.buffer(operand) if isinstance(operand, Buffer) else super().operand(operand, e)

    def views_of(self, data: Var) -> None:
        """Declares the buffers in the memory of a variable that no statement declares."""
        for buffer in self.views.pop(id(data), ()):
            if id(buffer) not in self.buffers:
                made = self._buffer_op(tir.DeclBufferOp, buffer, source=self.expr(data))
                assert isinstance(made.owner, tir.DeclBufferOp)
                made.owner.properties["implicit"] = IntegerAttr(1, I1)
                self.see(buffer, made)

    def _buffer_op(self, kind: type[tir.BufferOp], buffer: Buffer, source: SSAValue | None = None) -> SSAValue:
        """Emits the op that defines a buffer."""
        shape = [self.expr(dim) for dim in buffer.dims if not isinstance(dim, Const)]
        strides = [self.expr(stride) for stride in buffer.strides if not isinstance(stride, Const)]
        offset = buffer.elem_offset
        is_zero = isinstance(offset, IntImm) and offset.value == 0
        properties: dict[str, Attribute] = {}
        if buffer.data_alignment != 64:
            properties["data_alignment"] = IntegerAttr(buffer.data_alignment, I32)
        own_offset = isinstance(offset, BufferField) and offset.buffer is buffer
        if buffer.offset_factor != 1 or own_offset:
            properties["offset_factor"] = IntegerAttr(buffer.offset_factor, I32)
        if buffer.buffer_type not in ("default", ""):
            properties["buffer_type"] = StringAttr(buffer.buffer_type)
        if buffer.axis_separators:
            properties["axis_separators"] = ArrayAttr([IntAttr(axis) for axis in buffer.axis_separators])
        op = kind(
            buffer.name,
            buffer_type(buffer),
            source=source,
            shape=shape,
            strides=strides,
            stride_dims=[_dim(stride) for stride in buffer.strides],
            elem_offset=None if is_zero or own_offset else self.expr(offset),
            properties=properties,
        )
        op.result.name_hint = hint(buffer.name)
        return self.add(op)

    def region(self, buffer: Buffer, ranges: Sequence[Range]) -> SSAValue:
        """Returns the box of a buffer."""
        mins = [self.expr(r.min) for r in ranges]
        extents = [self.expr(r.extent) for r in ranges]
        return self.add(tir.BufferRegionOp(self.buffer(buffer), mins, extents))

    # Statements ------------------------------------------------------------------------------------------------------

    @contextmanager
    def inside(self, block: IRBlock) -> Generator[None]:
        """Emits ops into `block` within the `with`."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    def body(self, stmt: st.Stmt) -> Region:
        """Returns a region of statements."""
        block = IRBlock()
        with self.inside(block):
            self.stmt(stmt)
        return Region(block)

    def stmt(self, stmt: st.Stmt, *, is_last: bool = True) -> None:
        """Emits a statement; nothing follows it in the block if it is the last."""
        with location_scope(stmt.location):
            self._stmt(stmt, is_last)

    def _stmt(self, stmt: st.Stmt, is_last: bool) -> None:
        match stmt:
            case st.SeqStmt():
                for place, part in enumerate(stmt.seq):
                    self.stmt(part, is_last=is_last and place == len(stmt.seq) - 1)
            case st.Evaluate():
                self._evaluate(stmt.value)
            case st.BufferStore():
                self.share(stmt.value)
                value = self.expr(stmt.value)
                indices = [self.expr(index) for index in stmt.indices]
                predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
                self.add_op(tir.StoreOp(value, self.buffer(stmt.buffer), indices, predicate))
                self.unshare()
            case st.For():
                self._for(stmt)
            case st.While():
                condition = IRBlock()
                with self.inside(condition):
                    self.add_op(tir.YieldOp(self.expr(stmt.condition)))
                self.add_op(tir.WhileOp(Region(condition), self.body(stmt.body)))
            case st.IfThenElse():
                test = self.expr(stmt.condition)
                orelse = None if stmt.else_case is None else self.body(stmt.else_case)
                self.add_op(tir.IfOp(test, self.body(stmt.then_case), orelse))
            case st.BlockRealize():
                self._block(stmt)
            case st.Block():
                self._block(st.BlockRealize([], True, stmt) if not stmt.iter_vars else _unbound(stmt))
            case st.Prefetch():
                self.add_op(tir.PrefetchOp(self.region(stmt.buffer, stmt.bounds)))
            case _:
                if is_last:
                    self._scoped(stmt)
                else:
                    scope = tir.ScopeOp()
                    with self.inside(scope.body.block):
                        self._scoped(stmt)
                    self.add_op(scope)

    def _scoped(self, stmt: st.Stmt) -> None:
        """Emits a statement that acts on its body, at the end of a block."""
        match stmt:
            case st.LetStmt():
                op = tir.LetOp(
                    stmt.var.name,
                    self.expr(stmt.value),
                    variable_type(stmt.var),
                    var=self.values.get(id(stmt.var)),
                )
                op.result.name_hint = hint(stmt.var.name)
                self.define(stmt.var, self.add(op))
                self.views_of(stmt.var)
                self.stmt(stmt.body)
            case st.AssertStmt():
                self.add_op(tir.AssertOp(self.expr(stmt.condition), stmt.message.value))
                self.stmt(stmt.body)
            case st.AttrStmt():
                self._attr(stmt)
            case st.Allocate():
                kind = stmt.buffer_var.type_annotation
                scope = kind.storage_scope if isinstance(kind, PointerType) else ""
                op = tir.AllocateOp(
                    stmt.buffer_var.name,
                    [self.expr(extent) for extent in stmt.extents],
                    type_of(stmt.dtype),
                    scope or "global",
                    condition=None if st.is_true(stmt.condition) else self.expr(stmt.condition),
                    annotations=attributes(stmt.annotations),
                )
                self._memory(stmt.buffer_var, op)
                self.stmt(stmt.body)
            case st.AllocateConst():
                data = ArrayValueAttr.of(stmt.data)
                op = tir.AllocateConstOp(stmt.buffer_var.name, data, type_of(stmt.dtype), attributes(stmt.annotations))
                self._memory(stmt.buffer_var, op)
                self.stmt(stmt.body)
            case st.DeclBuffer():
                data = stmt.buffer.data
                source = None if owns_memory(stmt.buffer) else self.expr(data)
                self.see(stmt.buffer, self._buffer_op(tir.DeclBufferOp, stmt.buffer, source))
                self.stmt(stmt.body)
            case st.BufferRealize():
                if id(stmt.buffer) not in self.buffers:
                    self.see(stmt.buffer, self._buffer_op(tir.DeclBufferOp, stmt.buffer))
                region = self.region(stmt.buffer, stmt.bounds)
                condition = None if st.is_true(stmt.condition) else self.expr(stmt.condition)
                self.add_op(tir.RealizeOp(region, stmt.buffer.storage_scope, condition))
                self.stmt(stmt.body)
            case _:
                raise fail(f"a statement of kind {type(stmt).__name__} cannot be emitted")

    def _memory(self, variable: Var, op: Operation) -> None:
        op.results[0].name_hint = hint(variable.name)
        self.define(variable, self.add(op))
        self.views_of(variable)

    def _evaluate(self, value: Expr) -> None:
        if isinstance(value, Call) and value.dtype == "void":
            operands = [self.operand(operand, value) for operand in value.operands]
            self.add_op(tir.CallOp(value.intrinsic, operands, None, value.callee))
            return
        self.add_op(tir.EvaluateOp(self.expr(value)))

    def _for(self, stmt: st.For) -> None:
        low, extent = self.expr(stmt.min), self.expr(stmt.extent)
        op = tir.ForOp(
            stmt.loop_var.name,
            low,
            extent,
            kind=st.KINDS[stmt.kind],
            thread=None if stmt.thread_binding is None else stmt.thread_binding.thread_tag,
            annotations=attributes(stmt.annotations),
            var=self.named.get(id(stmt.loop_var)),
        )
        op.loop_var.name_hint = hint(stmt.loop_var.name)
        self.add_op(op)
        before = self.values.get(id(stmt.loop_var))
        self.define(stmt.loop_var, op.loop_var)
        with self.inside(op.body.block):
            self.stmt(stmt.body)
        if before is not None:
            self.values[id(stmt.loop_var)] = before

    def _attr(self, stmt: st.AttrStmt) -> None:
        node, value = stmt.node, self.expr(stmt.value)
        if isinstance(node, IterVar) and stmt.attr_key == "thread_extent":
            launch = tir.LaunchThreadOp(node.name, node.thread_tag, value, self.named.get(id(node)))
            launch.result.name_hint = hint(node.name)
            self.define(node, self.add(launch))
        else:
            self.add_op(tir.AttrOp(self._node(node), stmt.attr_key, value))
        self.stmt(stmt.body)

    def _node(self, node: object) -> SSAValue:
        """Returns the value of an attribute's node."""
        match node:
            case IterVar():
                variable = self.values.get(id(node))
                if variable is None:
                    variable = self.named[id(node)] = self.undefined(node)
                dom = [] if node.dom is None else [self.expr(part) for part in node.dom]
                return self.add(tir.IterVarOp(variable, dom, ITER_NAMES[node.iter_type], node.thread_tag))
            case Var():
                if id(node) not in self.values and not isinstance(node, BufferField):
                    self.named[id(node)] = self.undefined(node)
                return self.expr(node)
            case Expr():
                return self.expr(node)
            case Buffer():
                return self.buffer(node)
            case CommReducer():
                return self._reducer(node)
            case BufferRegion():
                return self.region(node.buffer, node.region)
            case Attribute():
                return self.add(tir.TargetOp(node))
            case _:
                raise fail(f"{type(node).__name__} cannot be the node of an attribute")

    def _reducer(self, reducer: CommReducer) -> SSAValue:
        parameters = (*reducer.lhs, *reducer.rhs)
        identities = [self.expr(value) for value in reducer.identity_element]
        combiner = IRBlock(arg_types=[type_of(parameter.dtype) for parameter in parameters])
        for parameter, value in zip(parameters, combiner.args, strict=True):
            value.name_hint = hint(parameter.name)
            self.define(parameter, value)
        with self.inside(combiner):
            self.add_op(tir.YieldOp(*[self.expr(value) for value in reducer.result]))
        names = [parameter.name for parameter in parameters]
        return self.add(tir.CommReducerOp(identities, Region(combiner), tir.ReducerType(), names))

    def _block(self, stmt: st.BlockRealize) -> None:
        block = stmt.block
        domains = [axis.domain for axis in block.iter_vars]
        if (odd := next((axis for axis in block.iter_vars if axis.iter_type not in ITER_TYPES), None)) is not None:
            raise fail(
                f"axis '{odd.name}' of block '{block.name_hint}' is of kind {ITER_NAMES[odd.iter_type]}",
                "an axis of a block is DataPar, CommReduce, Ordered or DimInfo",
            )
        op = tir.BlockOp(
            block.name_hint,
            [axis.name for axis in block.iter_vars],
            [ITER_TYPES[axis.iter_type] for axis in block.iter_vars],
            [self.expr(domain.min) for domain in domains],
            [self.expr(domain.extent) for domain in domains],
            [self.expr(value) for value in stmt.iter_values],
            predicate=None if st.is_true(stmt.predicate) else self.expr(stmt.predicate),
            annotations=attributes(block.annotations),
        )
        self.add_op(op)
        for axis, value in zip(block.iter_vars, op.iter_vars, strict=True):
            value.name_hint = hint(axis.name)
            self.define(axis, value)
        with self.inside(op.body.block):
            self._regions(tir.ReadsOp, block.reads)
            self._regions(tir.WritesOp, block.writes)
            for buffer in block.alloc_buffers:
                self.see(buffer, self._buffer_op(tir.AllocBufferOp, buffer))
                self.views_of(buffer.data)
            for match in block.match_buffers:
                self._match(match)
            if block.init is not None:
                self.add_op(tir.InitOp(self.body(block.init)))
            self.stmt(block.body)

    def _regions(self, kind: type[tir.ReadsOp | tir.WritesOp], regions: Sequence[BufferRegion]) -> None:
        self.add_op(kind(*[self.region(region.buffer, region.region) for region in regions]))

    def _match(self, match: MatchBufferRegion) -> None:
        source = self.region(match.source.buffer, match.source.region)
        for part in (*match.buffer.dims, *match.buffer.strides, match.buffer.elem_offset):
            self._declare_sizes(part)
        made = self._buffer_op(tir.MatchBufferOp, match.buffer, source)
        self.see(match.buffer, made)
        data = match.buffer.data
        if not isinstance(data, BufferField):
            self.define(data, self.add(tir.BufferGetOp(made, "data", self._pointer_type(match.buffer))))


def _unbound(block: st.Block) -> st.BlockRealize:
    return st.BlockRealize([axis.min for axis in block.iter_vars], True, block)


def is_root(stmt: st.Stmt) -> bool:
    """Returns whether a statement is the block around a function's blocks, which ops leave out."""
    if not isinstance(stmt, st.BlockRealize) or stmt.block.name_hint != ROOT:
        return False
    block = stmt.block
    if not block.alloc_buffers and isinstance(block.body, st.BlockRealize) and not block.body.block.iter_vars:
        return False
    return not (block.iter_vars or block.reads or block.writes or block.annotations or block.match_buffers) and (
        block.init is None and st.is_true(stmt.predicate)
    )


def attributes(values: Mapping[str, Any]) -> DictionaryAttr:
    """Returns annotations as attributes."""
    return DictionaryAttr({str(name): _attribute(value) for name, value in values.items()})


def _attribute(value: Any) -> Attribute:
    match value:
        case Const():
            return number_of(value)
        case StringImm():
            return StringAttr(value.value)
        case list() | tuple():
            return ArrayAttr([_attribute(item) for item in value])  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return attributes(value)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return attribute_of(value)
