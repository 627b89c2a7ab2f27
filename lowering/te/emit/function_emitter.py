"""From the statements of a scheduled program to a TIR function with flat buffers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects import tir
from ....dialects.arith.ordered import Arith, constant, number
from ....dialects.arith.ordered_int_set import Interval, IntSet
from ....dialects.te import extern as ext
from ....dialects.te import tensor as te
from ....dialects.te.axes import is_virtual
from ....dialects.te.expr_mutator import map_children, substitute
from ....dialects.tir import node as ex
from ....dialects.tir.node import Const, Expr, IntImm, IterVar, Range, Var, fail, location_scope
from ....dialects.tir.node.emit_expr import ExprEmitter, type_of
from ....dialects.tir.types import DYNAMIC, I1, BufferType
from ....support.text import FreshNames
from ..schedule.infer_bound import reads_in
from . import statements as st
from .schedule_ops import combine, start_values
from .storage_flatten import DEFAULT_ALIGNMENT, Memory, Stride, parameter_memory, product, realized_memory

LEGACY = "from_legacy_te_schedule"
"""The attribute of functions that come from a TE schedule."""


class FunctionEmitter(ExprEmitter):
    """Emits one function. `args` are its parameters in order: tensors and scalars."""

    def __init__(
        self,
        name: str,
        args: Sequence[te.Tensor | Var],
        arg_names: Sequence[str],
        body: st.Body,
        shared: Mapping[int, te.Tensor] | None = None,
    ):
        """Declares the parameters.

        `arg_names` are the parameters' names; `shared` maps a tensor to the one in whose memory it is stored: a scan's `init`,
        `update` and `state` to the scan's result.
        """
        self.name = name
        self.in_other = dict(shared or {})
        self.args = args
        self.arith = Arith()
        # What holds, or is, the pointer to a buffer's memory.
        self.pointers: dict[int, SSAValue] = {}
        self.extents: dict[int, Expr] = {}
        self.aliases: dict[int, Memory] = {}
        self.memories: dict[int, Memory] = {}
        self.threads: dict[str, IterVar] = {}
        self.environment: dict[int, SSAValue] = {}
        self.regions: dict[int, list[Expr]] = {}
        # The variables of loops that attributes outside of them name.
        self.loop_vars: dict[int, SSAValue] = {}
        compact = any(isinstance(n, st.Statements) and n.regions for n in st.walk(body))
        compact = compact or any(isinstance(n, st.Statements) and _passes_buffers(n) for n in st.walk(body))
        taken = FreshNames()
        names, types = [taken.fresh(clean(each)) for each in arg_names], list[Attribute]()
        for arg, arg_name in zip(args, arg_names, strict=True):
            if isinstance(arg, Var):
                types.append(type_of(arg.dtype))
            else:
                memory = self.memories[id(arg)] = parameter_memory(arg, arg_name, compact=compact)
                is_static = all(isinstance(d, Const) for d in arg.dims)
                types.append(buffer_type(memory.shape, arg.dtype) if is_static else tir.HandleType.get())
        attrs = DictionaryAttr({LEGACY: IntegerAttr(1, I1), "tir.noalias": IntegerAttr(1, I1)})
        self.prim = tir.PrimFuncOp(name, names, types, attrs=attrs)
        self.prim.location = ex.current_location()
        super().__init__(self.prim.body.block)
        self.body = body

    def run(self) -> tir.PrimFuncOp:
        """Returns the function. Raises MirError for a size that no parameter binds."""
        self._parameters()
        self._environment()
        self.statements(self.body)
        return self.prim

    # Parameters ------------------------------------------------------------------------------------------------------

    def _parameters(self) -> None:
        tensors = [(a, p) for a, p in zip(self.args, self.prim.params, strict=True) if isinstance(a, te.Tensor)]
        for arg, param in zip(self.args, self.prim.params, strict=True):
            if isinstance(arg, Var):
                self.define(arg, param)
        for tensor, _ in tensors:
            for dim in tensor.dims:
                if isinstance(dim, Var) and id(dim) not in self.values:
                    self._size(dim)
        for tensor, param in tensors:
            memory = self.memories[id(tensor)]
            if isinstance(param.type, BufferType):
                memory.buffer = param
                continue
            shape = [self.expr(self.arith.simplify(d)) for d in tensor.dims if not isinstance(d, Const)]
            strides: list[SSAValue] = []
            for stride in memory.strides if memory.is_auto else ():
                strides.append(self.add(tir.VarOp("stride", type_of(stride.dtype))))
            properties: dict[str, Attribute] = {"buffer_type": StringAttr("auto")} if memory.is_auto else {}
            match = tir.MatchBufferOp(
                clean(memory.name),
                buffer_type(memory.shape, tensor.dtype),
                source=param,
                shape=shape,
                strides=strides,
                stride_dims=[DYNAMIC] * len(strides),
                properties=properties,
            )
            match.location = tensor.op.location
            memory.buffer = self.add(match)
        for tensor, _ in tensors:
            self._declare_parameter(self.memories[id(tensor)])

    def _size(self, size: Var) -> None:
        op = tir.VarOp(clean(size.name), type_of(size.dtype), size_var=size.is_size)
        op.location = size.location
        self.define(size, self.add(op))
        if size.is_size:
            self.arith.analyzer.mark_global_non_neg_value(self.arith.analyzed(size))

    def _declare_parameter(self, memory: Memory) -> None:
        assert memory.buffer is not None
        if memory.is_flat:
            memory.declared = self.buffers[id(memory.flat)] = memory.buffer
            return
        pointer = self.add(tir.BufferGetOp(memory.buffer, "data", tir.HandleType.get(type_of(memory.dtype), "global")))
        properties: dict[str, Attribute] = {"buffer_type": StringAttr("auto")} if memory.is_auto else {}
        self._declare(memory, pointer, properties)

    def _declare(self, memory: Memory, pointer: SSAValue, properties: dict[str, Attribute]) -> None:
        """Declares the flat buffer in the memory at a pointer."""
        size = self.arith.simplify(memory.flat.dims[0]) if not memory.is_auto else memory.flat.dims[0]
        if memory.alignment != DEFAULT_ALIGNMENT:
            properties["data_alignment"] = IntegerAttr(memory.alignment, 32)
        properties["implicit"] = IntegerAttr(1, I1)
        made = tir.DeclBufferOp(
            clean(memory.name),
            buffer_type([size], memory.dtype, memory.scope),
            source=pointer,
            shape=[] if isinstance(size, Const) else [self.expr(size)],
            properties=properties,
        )
        memory.declared = self.add(made)
        self.buffers[id(memory.flat)] = memory.declared
        # A parameter's pointer is taken of its own buffer, where it is used.
        self.pointers[id(memory.flat)] = (
            memory.buffer if memory.pointer is None and memory.buffer is not None else pointer
        )

    def field(self, e: ex.BufferField) -> SSAValue:
        source = self.pointers.get(id(e.buffer), self.buffers[id(e.buffer)])
        if not isinstance(source.type, tir.BufferType):
            return source
        pointer = tir.HandleType.get(source.type.dtype, source.type.scope.data)
        return self.add(tir.BufferGetOp(source, e.field, pointer))

    def other(self, e: Expr) -> SSAValue:
        if not isinstance(e, Stride):
            return super().other(e)
        assert e.memory.buffer is not None
        return self.add(tir.BufferGetOp(e.memory.buffer, "strides", type_of(e.dtype), e.dim))

    # Expressions of tensors ------------------------------------------------------------------------------------------

    def flat(self, e: Expr, memo: dict[int, Expr] | None = None) -> Expr:
        """Returns the expression with elements of tensors read from their memory."""
        memo = {} if memo is None else memo
        found = memo.get(id(e))
        if found is None:
            found = map_children(e, lambda part: self.flat(part, memo))
            if isinstance(found, te.Read):
                memory = self._memory(found.tensor)
                found = ex.BufferLoad(memory.flat, (memory.index(found.args),))
            elif isinstance(found, ex.BufferLoad) and id(found.buffer) in self.aliases:
                memory = self.aliases[id(found.buffer)]
                found = ex.BufferLoad(memory.flat, (memory.index(self._in_region(found.buffer, found.args)),))
            elif isinstance(found, ex.Call) and found.intrinsic == "tvm_access_ptr":
                found = self._access_pointer(e, found)
            elif isinstance(found, ex.Call) and any(isinstance(o, ex.Buffer) for o in found.operands):
                operands = tuple(self._array(o) if isinstance(o, ex.Buffer) else o for o in found.operands)
                found = ex.call(found.intrinsic, operands, found.dtype)
            elif isinstance(found, ex.BufferField) and found.dim is not None and id(found.buffer) in self.aliases:
                # The stride of an intrinsic's buffer, which has the last dimensions of the tensor.
                memory = self.aliases[id(found.buffer)]
                found = memory.stride(len(memory.shape) - len(found.buffer.dims) + found.dim)
            elif isinstance(found, ex.BufferField) and id(found.buffer) in self.aliases:
                found = ex.BufferField(self.aliases[id(found.buffer)].flat, found.field, found.dtype)
            elif isinstance(found, IterVar) and found.thread_tag and id(found) not in self.values:
                found = self.threads.get(found.thread_tag, found)
            memo[id(e)] = found
        return found

    def _in_region(self, buffer: ex.Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Indices of the tensor's element that an intrinsic's buffer has at `indices`."""
        lows = self.regions.get(id(buffer))
        if lows is None:
            return indices
        extra = len(lows) - len(indices)
        return (*lows[:extra], *(ex.add(low, i) for low, i in zip(lows[extra:], indices, strict=True)))

    def _access_pointer(self, before: Expr, call: ex.Call) -> Expr:
        """`tvm_access_ptr` of an intrinsic's buffer begins at its region."""
        pointer = before.operands[1] if isinstance(before, ex.Call) else None
        lows = self.regions.get(id(pointer.buffer)) if isinstance(pointer, ex.BufferField) else None
        if lows is None or not isinstance(pointer, ex.BufferField):
            return call
        memory = self.aliases[id(pointer.buffer)]
        operands = list(call.operands)
        operands[2] = ex.add(memory.index(tuple(lows)), operands[2])  # type: ignore[arg-type]
        return ex.call(call.intrinsic, tuple(operands), call.dtype)

    def _memory(self, tensor: te.Tensor) -> Memory:
        memory = self.memories.get(id(self.in_other.get(id(tensor), tensor)))
        if memory is None:
            raise fail(
                f"tensor '{tensor.name}' is read, but neither computed before nor a parameter",
                f"list the inputs and outputs: lower(s, [{tensor.name}, …])",
            )
        return memory

    def _array(self, buffer: ex.Buffer) -> Expr:
        """Returns a buffer as a packed function takes it: pointer, shape, strides, rank, dtype and offset."""
        memory = self.aliases[id(buffer)]
        shape = ex.call("tvm_stack_make_shape", tuple(memory.shape), "handle")
        parts = (
            ex.BufferField(memory.flat, "data", "handle"), shape, number(0), number(len(memory.shape)),
            ex.const(0, memory.dtype), number(0),
        )  # fmt: skip
        return ex.call("tvm_stack_make_array", parts, "handle")

    def simplified(self, e: Expr) -> Expr:
        """Returns the expression with flat accesses, simplified."""
        return self.arith.simplify(self.flat(e))

    # Statements ------------------------------------------------------------------------------------------------------

    def _environment(self) -> None:
        """Threads that are launched more than once are variables of the whole function."""
        counts: dict[int, int] = {}
        for node in st.launches(self.body, {}):
            counts[id(node.thread)] = counts.get(id(node.thread), 0) + 1
            if counts[id(node.thread)] == 2 and not is_virtual(node.thread.thread_tag):
                op = tir.EnvThreadOp(clean(node.thread.name), node.thread.thread_tag)
                self.environment[id(node.thread)] = self.add(op)

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Ops go to `block`."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    def statements(self, body: st.Body, *, is_last: bool = True) -> None:
        """Emits statements at the end of the block; with `is_last` nothing follows them in it."""
        for place, node in enumerate(body):
            with location_scope(node.location):
                self._statement(node, is_last=is_last and place == len(body) - 1)

    def _statement(self, node: st.Stmt, *, is_last: bool) -> None:
        match node:
            case st.Mark():
                self._scoped(node.body, is_last)
            case st.Loop():
                self._loop(node)
            case st.Launch():
                self._launch(node, is_last)
            case st.Attr():
                self._attr(node, is_last)
            case st.Realize():
                self._realize(node, is_last)
            case st.Provide():
                memory = self._memory(node.tensor)
                self._store(memory.declared, self.simplified(memory.index(node.indices)), self.simplified(node.value))
            case st.Cond():
                self._branch(node.condition, lambda: self.statements(node.body))
            case st.Let():
                op = tir.LetOp(clean(node.var.name), self.expr(self.simplified(node.value)))
                self.define(node.var, self.add(op))
                self.statements(node.body, is_last=is_last)
            case st.Temporary():
                self._temporary(node, is_last)
            case st.Statements():
                for buffer, tensor in node.buffers:
                    self.aliases[id(buffer)] = self._memory(tensor)
                self.regions = {key: [self.flat(r.min) for r in ranges] for key, ranges in node.regions.items()}
                self._given(node.statements)
            case st.AllReduce():
                self._in_scope(lambda: self._all_reduce(node))
            case st.Prefetch():
                self._prefetch(node)
                self._scoped(node.body, is_last)
            case _:
                raise AssertionError(node)

    def _scoped(self, body: st.Body, is_last: bool) -> None:
        """Emits statements whose allocations end after the last of them."""
        if is_last or not any(isinstance(n, st.Realize | st.Temporary | st.Launch) for n in body):
            self.statements(body, is_last=is_last)
        else:
            self._in_scope(lambda: self.statements(body))

    def _in_scope(self, emit: Callable[[], None]) -> None:
        """Emits statements in a scope, which ends what they allocate."""
        scope = tir.ScopeOp()
        with self.inside(scope.body.block):
            emit()
        self.add_op(scope)

    def _store(self, buffer: SSAValue | None, place: Expr, value: Expr) -> None:
        assert buffer is not None
        self.share(value)
        index = self.expr(place)
        self.add_op(tir.StoreOp(self.expr(value), buffer, [index]))
        self.unshare()

    def _loop(self, node: st.Loop) -> None:
        extent = self.arith.simplify(self.flat(node.extent))
        low = self.expr(number(0, extent.dtype))
        variable = self.loop_vars.pop(id(node.var), None)
        loop = tir.ForOp(clean(node.var.name), low, self.expr(extent), kind=node.kind, var=variable)
        loop.loop_var.name_hint = clean(node.var.name)
        self.add_op(loop)
        self.define(node.var, loop.loop_var)
        with self.inside(loop.body.block), self.arith.inside(node.var, number(0, extent.dtype), extent):
            self.statements(node.body)

    def _branch(self, condition: Expr, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        test = self.simplified(condition)
        if isinstance(test, Const):
            chosen = then if test.value else orelse
            if chosen is not None:
                chosen()
            return
        branch = tir.IfOp(self.expr(test), Region(Block()), None if orelse is None else Region(Block()))
        self.add_op(branch)
        with self.inside(branch.then_region.block), self.arith.knowing(test):
            then()
        if orelse is not None:
            with self.inside(branch.else_region.block), self.arith.knowing(ex.logical_not(test)):
                orelse()

    def _launch(self, node: st.Launch, is_last: bool) -> None:
        tag = node.thread.thread_tag
        held = self.threads.get(tag) if not is_virtual(tag) else None
        extent = self.arith.simplify(self.flat(node.extent))
        if held is not None:
            if not self.arith.prove_equal(extent, self.extents[id(held)]):
                raise fail(
                    f"thread '{tag}' is launched with two numbers of threads in one place",
                    "loops that are bound to one thread inside of each other have the same extent",
                )
            before = self.values.get(id(node.thread))
            self.values[id(node.thread)] = self.values[id(held)]
            self._scoped(node.body, is_last)
            if before is not None:
                self.values[id(node.thread)] = before
            return
        if not is_last:
            self._in_scope(lambda: self._launch(node, True))
            return
        name = clean(node.thread.name)
        self.extents[id(node.thread)] = extent
        self.arith.bind(node.thread, number(0, extent.dtype), extent)
        if is_virtual(tag):
            variable = self.add(tir.VarOp(name, type_of(node.thread.dtype)))
            token = self.add(tir.IterVarOp(variable, [], "ThreadIndex", tag))
            self.add_op(tir.AttrOp(token, "virtual_thread", self.expr(extent)))
            self.define(node.thread, variable)
            self.statements(node.body)
            return
        launch = tir.LaunchThreadOp(name, tag, self.expr(extent), self.environment.get(id(node.thread)))
        self.define(node.thread, self.add(launch))
        launch.result.name_hint = name
        self.threads[tag] = node.thread
        self.statements(node.body)
        del self.threads[tag]

    def _attr(self, node: st.Attr, is_last: bool) -> None:
        if node.key in ("scan_init", "scan_update"):
            self._scoped(node.body, is_last)
            return
        if not is_last:
            self._in_scope(lambda: self._attr(node, True))
            return
        match node.node:
            case IterVar():
                # The loop, which is inside, gets this variable.
                variable = self.loop_vars.get(id(node.node))
                if variable is None:
                    made = tir.VarOp(clean(node.node.name), type_of(node.node.dtype))
                    variable = self.loop_vars[id(node.node)] = self.add(made)
                token = self.add(tir.IterVarOp(variable, [], "DataPar", ""))
            case te.Tensor():
                memory = self._memory(node.node)
                pointer = memory.pointer
                if pointer is None:
                    self.statements(node.body)
                    return
                token = pointer
            case _:
                token = self.expr(number(0))
        self.add_op(tir.AttrOp(token, node.key, self.expr(self.simplified(node.value))))
        self.statements(node.body)

    def _realize(self, node: st.Realize, is_last: bool) -> None:
        if id(node.tensor) in self.memories or id(node.tensor) in self.in_other:
            self._scoped(node.body, is_last)
            return
        if not is_last:
            self._in_scope(lambda: self._realize(node, True))
            return
        memory = self.memories[id(node.tensor)] = realized_memory(node, self.arith)
        memory.lows = [self.simplified(low) for low in memory.lows]
        self._allocate(memory)
        self.statements(node.body)

    def _allocate(self, memory: Memory) -> None:
        size = memory.flat.dims[0]
        op = tir.AllocateOp(clean(memory.name), [self.expr(size)], type_of(memory.dtype), memory.scope)
        memory.pointer = self.add(op)
        self._declare(memory, memory.pointer, {})

    def _temporary(self, node: st.Temporary, is_last: bool) -> None:
        buffer = node.buffer
        memory = Memory(buffer.name, buffer.dtype, list(buffer.dims), buffer, scope=node.scope)
        self._allocate(memory)
        self.aliases[id(buffer)] = memory
        self._scoped(node.body, is_last)

    def _all_reduce(self, node: st.AllReduce) -> None:
        """Combines a value of each thread by `T.tvm_thread_allreduce`."""
        reduction = node.reduction
        dtypes = [s.dtype for s in node.sources]
        left, right = (
            [Var(f"{letter}{i}" if len(dtypes) > 1 else letter, t) for i, t in enumerate(dtypes)] for letter in "xy"
        )
        identities = [self.expr(v) for v in start_values(reduction)]
        combiner = Block(arg_types=[type_of(v.dtype) for v in (*left, *right)])
        for variable, arg in zip((*left, *right), combiner.args, strict=True):
            self.define(variable, arg)
        with self.inside(combiner):
            results = [self.expr(v) for v in combine(reduction, list(left), list(right))]
            self.add_op(tir.YieldOp(*results))
        names = [v.name for v in (*left, *right)]
        token = self.add(tir.CommReducerOp(identities, Region(combiner), tir.ReducerType(), names))
        null = self.expr(ex.call("reinterpret", (IntImm("uint64", 0),), "handle"))
        self.add_op(tir.AttrOp(token, "reduce_scope", null))
        held = tuple(ex.BufferLoad(b, (number(0),)) for b in node.results)
        operands = (IntImm("uint32", len(dtypes)), *node.sources, node.condition, *held, *node.threads)
        call = ex.call("tvm_thread_allreduce", operands, "handle")
        self.add_op(tir.EvaluateOp(self.expr(self.simplified(call))))

    def _prefetch(self, node: st.Prefetch) -> None:
        """Emits a hint for the bounding box of what the body reads of a tensor, iterations ahead."""
        memory = self.memories.get(id(node.tensor))
        if memory is None:
            raise fail(
                f"tensor '{node.tensor.name}' is prefetched, but neither computed before nor a parameter",
                "prefetch what the stage reads",
            )
        interval = Interval(self.arith)
        sets: dict[int, IntSet] = {}
        boxes: list[list[IntSet]] = [[] for _ in memory.shape]
        for inner in st.walk(node.body):
            if isinstance(inner, st.Loop):
                sets[id(inner.var)] = IntSet.of_range(
                    Range.from_min_extent(number(0, inner.extent.dtype), inner.extent)
                )
        for inner in st.walk(node.body):
            for read in reads_in((inner.value,)) if isinstance(inner, st.Provide) else ():
                if self.memories.get(id(read.tensor)) is memory:
                    for box, index in zip(boxes, read.args, strict=True):
                        box.append(interval.of(index, sets))
        if not all(boxes) or not boxes:
            return
        moved = {id(node.axis): ex.add(node.axis, node.offset)}
        ranges = [
            interval.range_of(interval.union(box), Range.from_min_extent(number(0), extent))
            for box, extent in zip(boxes, memory.shape, strict=True)
        ]
        lows = tuple(self.simplified(substitute(r.min, moved)) for r in ranges)
        buffer, mins, extents = memory.buffer, list(lows), [self.simplified(r.extent) for r in ranges]
        if buffer is None:
            buffer, mins, extents = memory.declared, [self.simplified(memory.index(lows))], [number(1)]
        assert buffer is not None
        region = tir.BufferRegionOp(buffer, [self.expr(m) for m in mins], [self.expr(x) for x in extents])
        self.add_op(region)
        self.add_op(tir.PrefetchOp(region))

    # Statements of externs -------------------------------------------------------------------------------------------

    def _given(self, statements: Sequence[ext.Stmt]) -> None:
        for statement in statements:
            with location_scope(statement.location):
                self._given_statement(statement)

    def _given_statement(self, statement: ext.Stmt) -> None:
        match statement:
            case ext.Evaluated():
                self.add_op(tir.EvaluateOp(self.expr(self.simplified(statement.value))))
            case ext.Store():
                memory = self.aliases[id(statement.buffer)]
                place = self.simplified(memory.index(self._in_region(statement.buffer, statement.indices)))
                self._store(memory.declared, place, self.simplified(statement.value))
            case ext.Loop():
                low, extent = self.simplified(statement.min), self.simplified(statement.extent)
                name = clean(statement.var.name)
                loop = tir.ForOp(name, self.expr(low), self.expr(extent), kind=statement.kind)
                loop.loop_var.name_hint = name
                self.add_op(loop)
                self.define(statement.var, loop.loop_var)
                with self.inside(loop.body.block), self.arith.inside(statement.var, low, extent):
                    self._given(statement.body)
            case ext.Temporary():
                buffer = statement.buffer
                size = self.arith.simplify(product(list(buffer.dims)))
                flat = ex.Buffer(buffer.name, (size,), buffer.dtype)
                memory = Memory(buffer.name, buffer.dtype, list(buffer.dims), flat, scope=statement.scope)
                self._allocate(memory)
                self.aliases[id(buffer)] = memory
            case ext.Branch():
                orelse = (lambda: self._given(statement.orelse)) if statement.orelse else None
                self._branch(statement.condition, lambda: self._given(statement.then), orelse)


def _passes_buffers(node: st.Statements) -> bool:
    """Returns whether statements hand whole buffers to functions, which have to be compact then."""
    pending: list[ext.Stmt] = list(node.statements)
    while pending:
        statement = pending.pop()
        match statement:
            case ext.Evaluated(value=ex.Call(operands=operands)):
                if any(isinstance(o, ex.Buffer) for o in operands):
                    return True
            case ext.Loop():
                pending += statement.body
            case ext.Branch():
                pending += [*statement.then, *statement.orelse]
            case _:
                pass
    return False


def buffer_type(shape: Sequence[Expr], dtype: str, scope: str = "global") -> BufferType:
    """Returns the type of a buffer of this shape."""
    dims: list[Attribute] = []
    for extent in shape:
        value = constant(extent)
        dims.append(DYNAMIC if value is None else IntegerAttr(value, type_of(extent.dtype)))  # type: ignore[arg-type]
    return BufferType(ArrayAttr(dims), type_of(dtype), StringAttr(scope))


def clean(name: str) -> str:
    """Returns the name as TVMScript can write it: `i.outer` is i_outer."""
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "v"
    return f"_{text}" if text[0].isdigit() else text
