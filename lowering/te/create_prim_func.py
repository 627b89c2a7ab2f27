"""Implements `te.create_prim_func`: a TE function becomes loop nests with a block for each tensor.

    B = te.compute((n,), lambda i: A[i] + 1.0)

becomes

    for i in range(n):
        with T.block("B"):
            v_i = T.axis.spatial(n, i)
            T.reads(A[v_i])
            T.writes(B[v_i])
            B[v_i] = A[v_i] + T.float32(1.0)

Names, axes, regions and attributes are those of TVM 0.16's `create_prim_func` (TVM, "te/operation/create_primfunc").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import te, tir
from ...dialects.arith.regions import buffer_region, infer_regions, move_to_front
from ...dialects.interned import integer
from ...dialects.te.common_subexpr import shared_values, tree_size
from ...dialects.te.compute import steps_of
from ...dialects.te.ops import needed_ops
from ...dialects.tir.types import I1, I32, I64
from ...passes.tir.buffers.param_strides import PARAM_STRIDES, param_strides
from ...support.diagnostics import error_at
from ...support.edit import add_op, clone_op, insert_op_before
from ...support.text import FreshNames
from .block_body import BlockBody, combined, identity, load, store

NO_ALIAS = "tir.noalias"

MOST_REPEATED = 64
"""A body whose expressions share values is written out as trees, as TVM has them, where that adds at most so many ops."""


def create_prim_func(function: te.FuncOp) -> tir.PrimFuncOp:
    """Returns the TIR function that computes a TE function; inputs and outputs are its parameters.

    A parameter of known shape is a buffer; one with symbolic extents is a handle from which `tir.match_buffer` binds the symbolic
    sizes, and so is one with strides. A tensor that is not a parameter gets a buffer of its own.

    Raises MirError for a symbolic size that no parameter binds.
    """
    return Lowering(function).run()


@dataclass(frozen=True)
class _Axis:
    """An axis of a block: its value in TE, name, minimum (None: 0), extent and kind."""

    value: SSAValue
    name: str
    low: SSAValue | None
    extent: IntegerAttr | SSAValue
    kind: str


class Lowering:
    """One function on its way."""

    def __init__(self, function: te.FuncOp):
        self.function = function
        names = function.param_names()
        self.strides = dict(zip(function.params, param_strides(function), strict=True))
        types: list[Attribute] = []
        params: list[str] = []
        for name, value in zip(names, function.params, strict=True):
            if not isinstance(value.type, te.TensorType):
                types.append(value.type)
            elif value.type.static_shape is not None and not self.strides[value]:
                types.append(value.type.buffer())
            else:
                types.append(tir.HandleType.get())
                name = f"var_{name}"
            params.append(name)
        self.prim = tir.PrimFuncOp(
            function.sym_name.data,
            params,
            types,
            attrs=self._attributes(),
            private=function.sym_visibility is not None,
        )
        self.prim.location = function.location
        self.block = self.prim.body.block
        # Scalars at the function's level, buffers of tensors, and the tensors of buffers.
        self.scalars: dict[SSAValue, SSAValue] = {}
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.tensors: dict[SSAValue, SSAValue] = {}
        # The outermost op of the loop nest that is being made; the scalars that the nest needs are inserted before it.
        self.nest: Operation | None = None
        self.shared = shared_values(function.body.block, MOST_REPEATED)
        self.constants: dict[tuple[int, Attribute], SSAValue] = {}
        self.buffer_names = FreshNames(names)
        self.block_names = FreshNames()
        self.bound: set[SSAValue] = set()
        self.needed = needed_ops(function)

    def run(self) -> tir.PrimFuncOp:
        """Returns the TIR function."""
        self._parameters()
        body = [op for op in self.function.body.block.ops if op in self.needed]
        scans = [op for op in body if isinstance(op, te.ScanOp)]
        inside: set[Operation] = {op for scan in scans for op in steps_of(scan)}
        for op in body:
            if isinstance(op, te.ComputeOp | te.ExternOp | te.ScanOp):
                self._allocate(op, inside)
        for op in body:
            self.nest = None
            match op:
                case te.ComputeOp() if op not in inside:
                    self._compute(op, self.block)
                case te.ExternOp():
                    self._extern(op)
                case te.ScanOp():
                    self._scan(op)
                case _:
                    pass
        return self.prim

    # The function -----------------------------------------------------------------------------------------------------

    def _attributes(self) -> DictionaryAttr:
        """Returns the function's attributes, with `tir.noalias` and the buffers of free layout."""
        attrs = {key: value for key, value in self.function.attrs.data.items() if key != PARAM_STRIDES}
        params = list(self.function.params)
        free = [
            params.index(tensor)
            for op in self.function.body.block.ops
            if isinstance(op, te.ComputeOp)
            for tensor in op.layout_free
            if tensor in params
        ]
        if free:
            attrs["layout_free_buffers"] = ArrayAttr([IntegerAttr(i, I32) for i in dict.fromkeys(free)])
        attrs[NO_ALIAS] = IntegerAttr(1, I1)
        return DictionaryAttr({key: annotation(value) for key, value in attrs.items()})

    def _parameters(self) -> None:
        params = list(zip(self.function.params, self.prim.params, self.function.param_names(), strict=True))
        for value, param, name in params:
            param.name_hint = name if name.isidentifier() else None
            if not isinstance(value.type, te.TensorType):
                self.scalars[value] = param
                self.bound.add(value)
                continue
            for extent in te.extents_of(value):
                if isinstance(extent, SSAValue) and isinstance(extent.owner, tir.VarOp):
                    self.bound.add(extent)
        for value, param, name in params:
            if isinstance(value.type, te.TensorType):
                self._parameter(value, param, name)

    def _parameter(self, value: SSAValue, param: SSAValue, name: str) -> None:
        assert isinstance(value.type, te.TensorType)
        type = value.type.buffer()
        if isinstance(param.type, tir.BufferType):
            buffer = param
        else:
            shape = [self.scalar(e) for e in te.extents_of(value) if isinstance(e, SSAValue)]
            strides = [integer(step, I32) for step in self.strides[value]]
            match = tir.MatchBufferOp(name, type, source=param, shape=shape, stride_dims=strides)
            match.location = value.owner.location if isinstance(value.owner, Operation) else self.function.location
            self.block.add_op(match)
            match.result.name_hint = name if name.isidentifier() else None
            buffer = match.result
        self.buffers[value] = buffer
        self.tensors[buffer] = value

    def _allocate(self, op: Operation, inside: set[Operation]) -> None:
        """Allocates tensors that are not parameters; a scan's update is stored in the scan's own buffer."""
        if op in inside and isinstance(op, te.ComputeOp) and any(_scan_of(r) for r in op.results):
            return
        for result in op.results:
            if result in self.buffers or not isinstance(result.type, te.TensorType):
                continue
            name = self.buffer_names.fresh(te.tensor_name(result))
            shape = [self.scalar(e) for e in te.extents_of(result) if isinstance(e, SSAValue)]
            alloc = tir.AllocBufferOp(name, result.type.buffer(), shape=shape)
            alloc.location = op.location
            self.block.add_op(alloc)
            alloc.result.name_hint = name if name.isidentifier() else None
            self.buffers[result] = alloc.result
            self.tensors[alloc.result] = result

    # Scalars ----------------------------------------------------------------------------------------------------------

    def constant(self, value: int, type: Attribute) -> SSAValue:
        """Returns an integer constant at the function's level."""
        found = self.constants.get((value, type))
        if found is None:
            found = self.constants[value, type] = self.add(tir.ConstOp.int(value, type))
        return found

    def extent(self, extent: IntegerAttr | SSAValue) -> SSAValue:
        """Returns an extent as a value at the function's level."""
        if isinstance(extent, SSAValue):
            return self.scalar(extent)
        return self.constant(extent.value.data, extent.type)

    def scalar(self, root: SSAValue) -> SSAValue:
        """Computes a scalar of the TE function before the nest: for each use, unless it is shared."""
        done: list[SSAValue] = []
        work: list[tuple[SSAValue, bool]] = [(root, False)]
        while work:
            value, is_ready = work.pop()
            found = self.scalars.get(value)
            if found is not None:
                done.append(found)
                continue
            op = value.owner
            assert isinstance(op, Operation)
            if not is_ready:
                work.append((value, True))
                work += [(v, False) for v in reversed(op.operands)]
                continue
            count = len(op.operands)
            operands = done[len(done) - count :]
            del done[len(done) - count :]
            result = self.add(self._copy(op, operands))
            result.name_hint = value.name_hint
            if isinstance(op, tir.VarOp | tir.ConstOp) or value in self.shared:
                self.scalars[value] = result
            done.append(result)
        return done[0]

    def _copy(self, op: Operation, operands: list[SSAValue]) -> Operation:
        if isinstance(op, tir.VarOp) and op.result not in self.bound:
            raise error_at(
                op,
                f"no parameter binds the symbolic size '{op.var_name.data}' of function '{self.function.sym_name.data}'",
                "a size is bound where it is, by itself, an extent of a parameter: return a tensor that has it",
                f"or return it as a scalar parameter: return [{op.var_name.data}, …]",
            )
        if op.regions:
            # The sides of a choice see values of the function's level.
            captured = {v: self.scalar(v) for part in op.walk() for v in part.operands if v.owner.parent is op.parent}  # type: ignore[union-attr]
            copied = op.clone(captured)
            copied.location = op.location
            return copied
        return clone_op(op, operands)

    def add(self, op: Operation) -> SSAValue:
        """Adds an op of one result at the function's level, before the nest that is being made."""
        if self.nest is None:
            add_op(self.block, op)
        else:
            insert_op_before(op, self.nest)
        return op.results[0]

    def append(self, op: Operation, block: Block) -> None:
        """Appends a loop or block; at the function's level it begins a nest."""
        add_op(block, op)
        if block is self.block:
            self.nest = op

    def _low(self, axis: _Axis) -> SSAValue:
        return self.constant(0, axis.extent.type) if axis.low is None else self.scalar(axis.low)

    # Tensors ----------------------------------------------------------------------------------------------------------

    def _compute(self, op: te.ComputeOp, block: Block, step: tir.ForOp | None = None) -> None:
        """The loop nest of a compute, at the end of `block`.

        With `step`, the first axis is carried out by that loop.
        """
        axes = [
            _Axis(axis, name.data, None, extent, "S")
            for axis, name, extent in zip(op.axes, op.iter_names.data, te.extents_of(op.results[0]), strict=True)
        ]
        for value in () if op.reduction is None else op.reduction.axes:
            owner = value.owner
            assert isinstance(owner, te.ReduceAxisOp)
            axes.append(_Axis(value, owner.var_name.data, owner.min, owner.extent, "R"))
        bindings: list[SSAValue] = []
        for axis in axes:
            if step is not None and not bindings:
                bindings.append(step.loop_var)
                continue
            loop = tir.ForOp(axis.name, self._low(axis), self.extent(axis.extent))
            loop.location = op.location
            self.append(loop, block)
            block = loop.body.block
            loop.loop_var.name_hint = axis.name if axis.name.isidentifier() else None
            bindings.append(loop.loop_var)
        outputs = [self.buffers[r] for r in op.results]
        # Values that do not depend on each other are blocks of their own; a reduction of several values is one.
        groups = [list(range(len(outputs)))] if op.reduction is not None else [[i] for i in range(len(outputs))]
        for group in groups:
            base = op.compute_name.data if len(groups) == 1 else f"{op.compute_name.data}.v{group[0]}"
            self._block(op, block, base, axes, bindings, group, step)

    def _block(
        self,
        op: te.ComputeOp,
        parent: Block,
        name: str,
        axes: list[_Axis],
        bindings: list[SSAValue],
        group: list[int],
        step: tir.ForOp | None,
    ) -> None:
        names, kinds = [f"v_{axis.name}" for axis in axes], [axis.kind for axis in axes]
        mins, extents = [self._low(axis) for axis in axes], [self.extent(axis.extent) for axis in axes]
        if step is not None:
            kinds[0], mins[0], extents[0] = "scan", step.min, step.extent
        if not axes:
            names, kinds = ["vi"], ["S"]
            mins, extents, bindings = [self.constant(0, I32)], [self.constant(1, I32)], [self.constant(0, I32)]
        made = tir.BlockOp(
            self.block_names.fresh(name),
            names,
            kinds,
            mins,
            extents,
            bindings,
            annotations=DictionaryAttr({key: annotation(value) for key, value in op.attrs.data.items()}),
        )
        made.location = op.location
        self.append(made, parent)
        for var, var_name in zip(made.iter_vars, names, strict=True):
            var.name_hint = var_name if var_name.isidentifier() else None
        known = dict(zip((axis.value for axis in axes), made.iter_vars, strict=False))
        shared = shared_values(op.body.block, MOST_REPEATED)
        if op.reduction is not None and (reducer := _reducer(op.reduction)) is not None:
            shared |= shared_values(reducer.combiner.block, MOST_REPEATED)
        body = BlockBody(self, made.body.block, known, shared)
        spatial = [known[axis] for axis in op.axes]
        outputs = [self.buffers[op.results[i]] for i in group]
        if op.reduction is not None:
            init = tir.InitOp()
            init.location = op.location
            self._reduction(op, op.reduction, body, init, outputs, spatial)
            if body.block.first_op is not None:
                body.block.insert_op_before(init, body.block.first_op)
        else:
            values = [body.value(op.values[i]) for i in group]
            for value, output in zip(values, outputs, strict=True):
                body.add(store(value, output, spatial), op.location)
        infer_regions(made)

    def _reduction(
        self,
        op: te.ComputeOp,
        reduction: te.ReduceOp,
        body: BlockBody,
        init: tir.InitOp,
        outputs: list[SSAValue],
        spatial: list[SSAValue],
    ) -> None:
        """The update of a reduction, and its init."""
        location = reduction.location
        start = BlockBody(self, init.body.block, dict(body.known))
        for index, output in enumerate(outputs):
            value = start.value(reduction.init[index]) if reduction.init else identity(reduction, index, start)
            start.add(store(value, output, spatial), location)

        def before_of(output: SSAValue) -> SSAValue:
            return body.add(load(output, spatial), location).results[0]

        before = [partial(before_of, output) for output in outputs]
        sources = [partial(body.value, source) for source in reduction.sources]
        if reduction.condition is not None:
            sources = [partial(body.guarded, reduction, index) for index in range(len(reduction.sources))]
        elif _repeated_sources(reduction) > MOST_REPEATED:
            sources = [partial(_same, value) for value in body.values(reduction.sources)]
        results = combined(reduction, body, before, sources)
        if len(results) > 1:
            # All are computed before the first is stored.
            lets: list[SSAValue] = []
            for value, result in zip(results, op.results, strict=True):
                name = f"v_{te.tensor_name(result)}"
                lets.append(body.add(tir.LetOp(name, value), location).results[0])
                lets[-1].name_hint = name if name.isidentifier() else None
            results = lets
        for value, output in zip(results, outputs, strict=True):
            body.add(store(value, output, spatial), location)

    def _scan(self, scan: te.ScanOp) -> None:
        """Lowers a scan to a serial loop: `init` is copied, then each step updates one row of the state."""
        for index, init in enumerate(scan.init):
            buffer = self.buffers[scan.results[index]]
            self.buffers[scan.state[index]] = buffer
            self.buffers[scan.update[index]] = buffer
            self._copy_init(scan, init, buffer)
        self.nest = None
        first, last = te.extents_of(scan.init[0])[0], te.extents_of(scan.state[0])[0]
        if isinstance(first, IntegerAttr) and isinstance(last, IntegerAttr):
            rest = self.constant(max(last.value.data - first.value.data, 0), first.type)
        else:
            rest = self.add(tir.SubOp(self.extent(last), self.extent(first)))
        loop = tir.ForOp("scan_idx", self.extent(first), rest)
        loop.location = scan.location
        self.append(loop, self.block)
        loop.loop_var.name_hint = "scan_idx"
        for step in steps_of(scan):
            self._compute(step, loop.body.block, loop)

    def _copy_init(self, scan: te.ScanOp, init: SSAValue, buffer: SSAValue) -> None:
        self.nest = None
        block: Block = self.block
        bindings: list[SSAValue] = []
        extents = [self.extent(e) for e in te.extents_of(init)]
        mins = [self.constant(0, e.type) for e in extents]
        for number, (low, extent) in enumerate(zip(mins, extents, strict=True)):
            loop = tir.ForOp(f"i{number}", low, extent)
            loop.location = scan.location
            self.append(loop, block)
            block = loop.body.block
            bindings.append(loop.loop_var)
        names = [f"v_i{number}" for number in range(len(extents))]
        name = self.block_names.fresh(f"{scan.scan_name.data}_init")
        made = tir.BlockOp(name, names, ["S"] * len(extents), mins, extents, bindings)
        made.location = scan.location
        self.append(made, block)
        axes = list(made.iter_vars)
        read = load(self.buffers[init], axes)
        write = store(read.result, buffer, axes)
        read.location = write.location = scan.location
        made.body.block.add_ops([read, write])
        infer_regions(made)

    def _extern(self, op: te.ExternOp) -> None:
        """One block without axes, which reads and writes whole buffers."""
        made = tir.BlockOp(
            self.block_names.fresh(op.extern_name.data),
            [],
            [],
            [],
            [],
            [],
            annotations=DictionaryAttr({key: annotation(value) for key, value in op.attrs.data.items()}),
        )
        made.location = op.location
        self.append(made, self.block)
        block = made.body.block
        tensors = [*op.inputs, *op.results]
        known: dict[SSAValue, SSAValue] = {
            arg: self.buffers[t] for arg, t in zip(op.body.block.args, tensors, strict=True)
        }
        body = BlockBody(self, block, known)
        body.copy_all(op.body.block)
        head = Block()
        inputs = dict.fromkeys(self.buffers[t] for t in op.inputs)
        for kind, buffers in ((tir.ReadsOp, inputs), (tir.WritesOp, [self.buffers[r] for r in op.results])):
            add_op(head, kind(*[self._whole(buffer, head) for buffer in buffers]))
        move_to_front(head.ops, block)

    def _whole(self, buffer: SSAValue, head: Block) -> SSAValue:
        """Returns the region of all of a buffer, made at the end of `head`."""
        extents = [self.extent(extent) for extent in te.extents_of(self.tensors[buffer])]
        zeros = [tir.ConstOp.int(0, extent.type) for extent in extents]
        region = buffer_region(buffer, [zero.result for zero in zeros], extents)
        for op in (*zeros, region):
            add_op(head, op)
        return region.result


def _reducer(reduction: te.ReduceOp) -> te.CommReducerOp | None:
    owner = None if reduction.reducer is None else reduction.reducer.owner
    return owner if isinstance(owner, te.CommReducerOp) else None


def _repeated_sources(reduction: te.ReduceOp) -> int:
    """Returns how many ops it adds to write a custom reducer's sources at each of their uses."""
    reducer = _reducer(reduction)
    if reducer is None:
        return 0
    parameters = reducer.combiner.block.args[len(reduction.sources) :]
    return sum((len(list(p.uses)) - 1) * tree_size(s) for p, s in zip(parameters, reduction.sources, strict=True))


def _same(value: SSAValue) -> SSAValue:
    return value


def _scan_of(result: SSAValue) -> te.ScanOp | None:
    return next(
        (u.operation for u in result.uses if isinstance(u.operation, te.ScanOp) and result in u.operation.update), None
    )


def annotation(value: Attribute) -> Attribute:
    """Converts an attribute to TIR: integers are int32 where they fit, as Python's are in TVMScript."""
    match value:
        case IntegerAttr() if value.type == I64 and -(1 << 31) <= value.value.data < 1 << 31:
            return IntegerAttr(value.value.data, I32)
        case ArrayAttr():
            return ArrayAttr([annotation(v) for v in value.data])
        case DictionaryAttr():
            return DictionaryAttr({key: annotation(v) for key, v in value.data.items()})
        case _:
            return value
