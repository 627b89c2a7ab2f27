"""The pass `inject-virtual-thread`: virtual threads run one after the other, as TVM's pass.

    for v in T.thread_binding(2, "vthread"):     →     B[0] = A[0]
        B[v] = A[v]                                    B[1] = A[1]

Each statement that depends on the thread is written once for each thread, or becomes a loop over the threads; other
statements run once. Memory that is allocated for the threads and differs between them has a part for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.tir.operators import Const, ExprBuilder, Value, as_const
from ....dialects.tir.types import HandleType, lanes_of
from ....support.diagnostics import error_at
from ....support.edit import builder_before, erase_op, insert_ops_before
from ....support.walk import following, walk_ops
from ..analyzed_walk import analyzer_at
from ..clone_body import copy_ops
from ..data_dependence import Touched
from ..rewriting import PrimFuncPass, acts_until_end, erase_dead, multiply_extent, set_indices

MOST_COPIES = 16
"""From so many threads on, a loop is written instead of copies."""

_SHARED = (tir.LetOp, tir.DeclBufferOp, tir.AllocateOp, tir.AllocateConstOp, tir.VarOp, tir.EnvThreadOp, tir.IterVarOp)


def _tag(op: Operation) -> str | None:
    """Returns the tag of the virtual threads that an op launches, None of any other op."""
    if isinstance(op, tir.LaunchThreadOp):
        tag = op.thread.data
        return tag if tag.startswith("vthread") or tag == "cthread" else None
    if isinstance(op, tir.AttrOp) and op.key.data == "virtual_thread" and isinstance(op.node.owner, tir.IterVarOp):
        return op.node.owner.thread_tag.data
    return None


class VirtualThreads:
    """One launch of virtual threads, those inside of which are done with."""

    def __init__(self, op: tir.LaunchThreadOp | tir.AttrOp, tag: str):
        self.op = op
        extent = op.extent if isinstance(op, tir.LaunchThreadOp) else op.value
        count = as_const(extent)
        if count is None or count.value < 1:
            raise error_at(
                op,
                f"the number of virtual threads '{tag}' is {'not a number' if count is None else count.value}",
                "virtual threads are written out by the compiler: there is a known number of them, at least 1",
            )
        self.count = int(count.value)
        self.is_shared = tag.startswith("vthread")
        """Whether the threads may share what does not differ between them."""
        variables: list[SSAValue] = []
        if isinstance(op, tir.LaunchThreadOp):
            variables = [op.result] if op.env is None else [op.result, op.env]
            self.name = op.var_name.data
        else:
            node = op.node.owner
            assert isinstance(node, tir.IterVarOp)
            variables = [node.var]
            self.name = node.var.owner.var_name.data if isinstance(node.var.owner, tir.VarOp) else tag
        self.variables = variables
        self.type = variables[0].type
        self.statements = following(op)
        self.inside = [inner for statement in self.statements for inner in walk_ops(statement)]
        self.touched = Touched([*variables, *self.contexts()], self.inside)

    def contexts(self) -> list[SSAValue]:
        """Returns the calls that return a thread's number, where threads share nothing."""
        if self.is_shared:
            return []
        calls = [op for op in self.inside if isinstance(op, tir.CallOp) and op.intrinsic.data == "tvm_context_id"]
        return [result for call in calls for result in call.results]

    def run(self) -> None:
        """Writes out the threads, and takes the launch away."""
        contexts = self.contexts()
        for result in contexts:
            result.replace_all_uses_with(self.variables[0])
        memory = [
            op
            for op in self.inside
            if isinstance(op, tir.AllocateOp) or (isinstance(op, tir.DeclBufferOp) and _has_memory(op))
        ]
        touched = self.touched
        if not self.is_shared:
            for op in memory:
                touched.touch_memory(op.result)
        touched.settle()
        units = self.units(self.statements)
        nested = {inner for unit in units for op in unit for inner in walk_ops(op)}
        strides: dict[SSAValue, SSAValue | Const] = {}
        for op in memory:
            if op.result in touched.memory and op not in nested:
                strides[op.result] = self.multiply(op)
        self.move_accesses(strides)
        self.number()
        for unit in units:
            self.write_out(unit)
        op = self.op
        # What still uses the thread was computed for what was written out, and is not needed any more.
        assert isinstance(self.type, IntegerType)
        zero = builder_before(op).insert(tir.ConstOp.int(0, self.type)).result
        inside = set(self.order)
        for variable in self.variables:
            variable.replace_uses_with_if(zero, lambda use: use.operation in inside)
        erase_op(op)
        for result in contexts:
            call = result.owner
            if isinstance(call, tir.CallOp) and call.parent is not None and not result.uses:
                erase_op(call)

    # Units

    def units(self, statements: Sequence[Operation]) -> list[list[Operation]]:
        """Returns the groups of statements that each thread executes by itself."""
        found: list[list[Operation]] = []
        blocks = [list(statements)]
        while blocks:
            ops = blocks.pop()
            for number, op in enumerate(ops):
                acts_on = isinstance(op, tir.LetOp | tir.AttrOp | tir.AllocateOp | tir.LaunchThreadOp | tir.RealizeOp)
                acts_on = acts_on or (isinstance(op, tir.DeclBufferOp) and _has_memory(op))
                if op.results and not acts_on:
                    continue
                if acts_on and self.touched.touches(op):
                    found.append(ops[number:])
                    break
                if acts_on:
                    continue
                if isinstance(op, tir.WhileOp | tir.BlockOp):
                    if any(self.touched.touches(inner) for inner in walk_ops(op)):
                        found.append([op])
                elif self.touched.touches(op) or (isinstance(op, tir.EvaluateOp) and not self.is_shared):
                    found.append([op])
                else:
                    blocks += [list(block.ops) for region in op.regions for block in region.blocks]
        return found

    def number(self) -> None:
        """Numbers what the threads do, in order."""
        ops = (op for statement in following(self.op) for op in walk_ops(statement))
        self.order = {op: place for place, op in enumerate(ops)}

    def write_out(self, unit: Sequence[Operation]) -> None:
        """Puts what all threads do into the place of a unit."""
        first, is_last = unit[0], unit[-1].next_op is None
        home = first.parent
        assert home is not None and isinstance(self.type, IntegerType)
        needed, unit_ops = self.needed(unit), set(unit)
        ops = [*needed, *unit]
        builder = builder_before(first)
        if self.count >= MOST_COPIES or any(
            isinstance(inner, tir.ForOp | tir.WhileOp) for op in unit for inner in walk_ops(op)
        ):
            low, count = (builder.insert(tir.ConstOp.int(n, self.type)) for n in (0, self.count))
            loop = builder.insert(tir.ForOp(f"{self.name}_s", low, count))
            loop.body.block.add_ops(copy_ops(ops, dict.fromkeys(self.variables, loop.loop_var)))
        else:
            for number in range(self.count):
                value = builder.insert(tir.ConstOp.int(number, self.type)).result
                copies = copy_ops(ops, dict.fromkeys(self.variables, value))
                if any(map(acts_until_end, copies)) and not (is_last and number == self.count - 1):
                    body = Block()
                    body.add_ops(copies)
                    builder.insert(tir.ScopeOp(Region(body)))
                else:
                    home.insert_ops_before(copies, first)
        for op in reversed(ops):
            # Calls whose results only this unit used go with it.
            if op in unit_ops or not any(result.uses for result in op.results):
                erase_op(op)

    def needed(self, unit: Sequence[Operation]) -> list[Operation]:
        """Returns the ops of the block whose results a unit uses, in order."""
        found: dict[Operation, None] = {}
        inside = {inner for op in unit for inner in walk_ops(op)}
        home = unit[0].parent
        pending = [operand for inner in inside for operand in inner.operands]
        while pending:
            owner = pending.pop().owner
            if not isinstance(owner, Operation) or owner.parent is not home or owner in found or owner in inside:
                continue
            if isinstance(owner, _SHARED) or owner not in self.order:
                continue
            found[owner] = None
            pending += [operand for inner in walk_ops(owner) for operand in inner.operands]
        return sorted(found, key=self.order.__getitem__)

    # Memory

    def multiply(self, op: tir.AllocateOp | tir.DeclBufferOp) -> SSAValue | Const:
        """Makes memory large enough for all threads; the size of one thread's part."""
        name = op.var_name.data
        rank = len(op.extents) if isinstance(op, tir.AllocateOp) else op.result.type.rank
        if rank != 1 or (isinstance(op, tir.DeclBufferOp) and op.stride_dims.data):
            raise error_at(
                op,
                f"memory '{name}' of virtual threads is not flat",
                "run flatten-buffer before inject-virtual-thread: each thread has a part of flat memory",
            )
        if isinstance(op, tir.DeclBufferOp):
            extent = op.extents()[0]
            stride: SSAValue | Const = Const(extent) if isinstance(extent, int) else extent
            multiply_extent(op, self.count)
            return stride
        known = as_const(op.extents[0])
        stride = op.extents[0] if known is None else known
        builder = ExprBuilder(op.location)
        count = builder.value(builder.binary(tir.MulOp, stride, Const(self.count, op.extents[0].type)))
        insert_ops_before(builder.ops, op)
        op.operands[0] = count
        return stride

    def move_accesses(self, strides: Mapping[SSAValue, SSAValue | Const]) -> None:
        """Shifts the accesses of each thread to its part of the memory."""
        if not strides:
            return
        touched = self.touched
        for op in self.inside:
            match op:
                case tir.LoadOp() | tir.StoreOp() if touched.root(op.buffer) in strides:
                    index = self.part_of(op, op.indices[0], strides[touched.root(op.buffer)], analyzer_at(op))
                    set_indices(op, [index])
                case tir.DeclBufferOp() if op.source is not None and touched.root(op.source) in strides:
                    if op.result.type.rank != 1 or op.stride_dims.data:
                        raise error_at(
                            op,
                            f"buffer '{op.var_name.data}' of virtual threads is not flat",
                            "run flatten-buffer before inject-virtual-thread: each thread has a part of flat memory",
                        )
                    multiply_extent(op, self.count)
                case tir.CallOp():
                    self.move_pointers(op, strides, analyzer_at(op))
                case _:
                    pass

    def move_pointers(self, call: tir.CallOp, strides: Mapping[SSAValue, SSAValue | Const], analyzer: Analyzer) -> None:
        """Shifts the pointer arguments of a call to the thread's part of the memory."""
        for number, argument in enumerate(call.arguments):
            root = self.touched.root(argument)
            if root not in strides or not isinstance(argument.type, HandleType):
                continue
            if call.intrinsic.data != "tvm_access_ptr" or number != 1:
                raise error_at(
                    call,
                    "memory of virtual threads is given to a call as a whole",
                    "write T.tvm_access_ptr(type, data, offset, extent, mask): each thread has a part of the memory",
                )
            call.operands[2] = self.part_of(call, call.arguments[2], strides[root], analyzer)

    def part_of(self, op: Operation, index: SSAValue, stride: SSAValue | Const, analyzer: Analyzer) -> SSAValue:
        """Returns an index or offset within the thread's part of the memory."""
        ramp = index.owner
        if isinstance(ramp, tir.RampOp):
            base = self.part_of(op, ramp.base, stride, analyzer)
            return builder_before(op).insert(tir.RampOp(base, ramp.stride, lanes_of(ramp.result.type))).result
        if lanes_of(index.type) > 1:
            builder = ExprBuilder(op.location)
            moved: Value = builder.binary(tir.MulOp, self.variables[0], stride)
            result = builder.value(builder.binary(tir.AddOp, index, moved))
            insert_ops_before(builder.ops, op)
            return result
        size = analyzer.expr(stride.value if isinstance(stride, Const) else stride)  # pyright: ignore[reportArgumentType]
        moved_to = analyzer.simplify(analyzer.expr(index) + analyzer.expr(self.variables[0]) * size)
        return analyzer.to_ssa(moved_to, builder_before(op), index.type)


def _has_memory(op: tir.DeclBufferOp) -> bool:
    return op.source is None and not op.implicit.value.data


def inject(func: tir.PrimFuncOp) -> None:
    """Writes out the virtual threads of a function, inner ones first."""
    launches = [(op, tag) for op in walk_ops(func) if (tag := _tag(op)) is not None]
    for op, tag in reversed(launches):
        assert isinstance(op, tir.LaunchThreadOp | tir.AttrOp)
        VirtualThreads(op, tag).run()
    if launches:
        erase_dead(func)
        names = [op for op in walk_ops(func) if isinstance(op, tir.IterVarOp | tir.EnvThreadOp | tir.VarOp)]
        for op in reversed(names):
            if not op.result.uses:
                erase_op(op)


@dataclass(frozen=True)
class InjectVirtualThread(PrimFuncPass):
    """Replaces launches of virtual threads (`vthread`, `cthread`) by the threads' statements, in sequence."""

    name = "inject-virtual-thread"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Rewrites one prim_func.

        Raises MirError for an unknown number of threads, and for memory of theirs that is not flat or is given away as a whole.
        """
        inject(func)
