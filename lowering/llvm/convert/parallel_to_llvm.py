"""Lowers `scf.parallel` to a function that the runtime's thread pool calls on ranges of iterations.

    scf.parallel (%i) = (%lb) to (%ub) step (%s) { body }

becomes a call `mirstack_parallel_for(@f.parallel, captures, 0, count, grain)`. `@f.parallel(captures, begin, end)` loads
the captured values and passes them to `@f.parallel.body`, whose pointer parameters are `noalias` where they cannot overlap.
The outermost loop dimension is shared out; inner dimensions, and parallel loops inside of the body, run serially.
The attribute `mirstack.grain` of the loop is the least number of iterations that are worth a thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain

from xdsl.dialects import func, llvm, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, SymbolRefAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ....support.diagnostics import error_at
from ....support.edit import create_op
from ....support.operands import operands_of
from ....support.walk import all_ops
from .arith_to_llvm import divide
from .builder import NO_WRAP_SIGNED, WRAPS, Index, make_function
from .converter import Converter, HandlerTable, Signature
from .func_to_llvm import FAILING_OPS
from .heap_memory import HeapMemory
from .memref_descriptor import MemRefValue
from .scf_to_llvm import LOOP_ANNOTATION, MUST_PROGRESS
from .types import PTR, alignment_of

TABLE = HandlerTable()

GRAIN = "mirstack.grain"
PARALLEL_FOR = "mirstack_parallel_for"


@dataclass
class Captures:
    """The values from around a parallel loop that its body uses."""

    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """Source values that are no memrefs."""
    memrefs: list[SSAValue] = field(default_factory=list[SSAValue])
    slots: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Converted values to their place in the struct that carries them."""
    can_fail: bool = False

    def add(self, *converted: Index | None) -> None:
        """Adds a slot for each value, except for numbers and constants, which the body has by itself."""
        for value in converted:
            if isinstance(value, SSAValue) and type(value.owner) not in CONSTANT_OPS:
                self.slots.setdefault(value, len(self.slots))


CONSTANT_OPS: frozenset[type] = frozenset((llvm.ConstantOp, llvm.AddressOfOp, llvm.ZeroOp, llvm.UndefOp))


def find_captures(c: Converter, op: scf.ParallelOp) -> Captures:
    """Collects the values that the loop's body uses from outside, which are converted already."""
    captures = Captures()
    ops = all_ops(op)
    # The bounds of inner dimensions are needed inside, those of the first one are not.
    bounds = (op.lowerBound[0], op.step[0], *op.lowerBound[1:], *op.upperBound[1:], *op.step[1:])
    for source in dict.fromkeys(chain(bounds, *map(operands_of, ops[1:]))):
        if (ref := c.memrefs.get(source)) is not None:
            captures.memrefs.append(source)
            captures.add(ref.base, ref.offset, *ref.sizes, *ref.strides)
        elif (value := c.values.get(source)) is not None:
            captures.values.append(source)
            captures.add(value)
    captures.can_fail = any(_may_fail(c, inner) for inner in ops)
    return captures


def _may_fail(c: Converter, op: Operation) -> bool:
    if type(op) is func.CallOp:
        callee = c.signatures.get(op.callee.root_reference.data)
        return callee is not None and callee.may_fail
    return type(op) in FAILING_OPS


@TABLE.on(scf.ParallelOp)
def convert_parallel(c: Converter, op: scf.ParallelOp) -> None:
    """Shares the loop out to threads, or runs it serially inside of a loop that is shared out already."""
    if op.initVals:
        raise error_at(
            op, "scf.parallel with a reduction cannot be lowered", "reduce into a buffer, or use scf.for with iter_args"
        )
    if c.in_parallel:
        serial_loops(c, op, 0)
        return
    captures = find_captures(c, op)
    lower, upper, step = (c.index(bounds[0]) for bounds in (op.lowerBound, op.upperBound, op.step))
    struct = llvm.LLVMStructType.from_type_list([value.type for value in captures.slots])
    alignments = [alignment_of(value.type) for value in captures.slots]
    context = c.alloca(struct, 1, max(16, *alignments)) if captures.slots else c.emit(llvm.ZeroOp, (), PTR)
    for (value, slot), alignment in zip(captures.slots.items(), alignments, strict=True):
        c.store(value, c.field(context, struct, slot), alignment)
    name = f"{c.function_name}.parallel.{c.parallel_count}"
    c.parallel_count += 1
    grain = op.attributes.get(GRAIN)
    operands = (
        c.emit(llvm.AddressOfOp, (), PTR, {"global_name": SymbolRefAttr(name)}),
        context,
        c.i64(0),
        c.i64(iteration_count(c, lower, upper, step)),
        c.i64(grain.value.data if isinstance(grain, IntegerAttr) else 1),
    )
    status = c.call(c.declare(PARALLEL_FOR, (PTR, PTR, i64, i64, i64), i32), operands, i32)
    assert status is not None
    values = {source: c.values[source] for source in captures.values}
    memrefs = {source: c.memrefs[source] for source in captures.memrefs}
    task = ParallelBody(op, name, captures, struct, values, memrefs, noalias_roots(c, captures), c.passthrough)
    c.pending.append(lambda: task.convert(c))
    if captures.can_fail:
        c.fail_if_status(status)


def iteration_count(c: Converter, lower: Index, upper: Index, step: Index) -> Index:
    """Returns the number of steps from `lower` up to `upper`."""
    distance = c.add(upper, c.mul(lower, -1))
    if step == 1:
        return distance
    if isinstance(distance, int) and isinstance(step, int):
        return -(-distance // step)
    up = c.emit(llvm.SubOp, (c.i64(c.add(distance, step)), c.i64(1)), i64, WRAPS)
    # Of a step of 0 there are no iterations.
    return divide(c, llvm.SDivOp, up, c.i64(step), None)


def root_of(pointer: SSAValue) -> SSAValue:
    """Returns the pointer that address arithmetic started from."""
    while isinstance(owner := pointer.owner, llvm.GEPOp):
        pointer = owner.ptr
    return pointer


def noalias_roots(c: Converter, captures: Captures) -> dict[SSAValue, DictionaryAttr]:
    """Returns the captured pointers that overlap no other, with their parameter attributes in the body."""
    pointers = [value for value in captures.slots if value.type == PTR]
    roots = [root_of(pointer) for pointer in pointers]
    out: dict[SSAValue, DictionaryAttr] = {}
    for pointer, root in zip(pointers, roots, strict=True):
        attrs: dict[str, Attribute] = {}
        owner = root.owner
        if isinstance(root, BlockArgument) and root.block is c.entry:
            attrs = dict(c.argument_attrs.data[root.index].data) if c.argument_attrs else {}
            if root is not pointer:
                # What is known of the argument's address is not known of one further on.
                attrs = {key: value for key, value in attrs.items() if key == "llvm.noalias"}
        elif isinstance(owner, llvm.AllocaOp) or (isinstance(owner, llvm.CallOp) and _is_allocation(owner)):
            attrs = {"llvm.noalias": UnitAttr()}
        if "llvm.noalias" in attrs and roots.count(root) > 1:
            del attrs["llvm.noalias"]
        out[pointer] = DictionaryAttr(attrs)
    return out


def _is_allocation(op: llvm.CallOp) -> bool:
    return op.callee is not None and op.callee.string_value() == "aligned_alloc"


@dataclass
class ParallelBody:
    """The body of a parallel loop, to be converted once the function around it is."""

    op: scf.ParallelOp
    name: str
    captures: Captures
    struct: llvm.LLVMStructType
    values: dict[SSAValue, SSAValue]
    memrefs: dict[SSAValue, MemRefValue]
    attrs: dict[SSAValue, DictionaryAttr]
    passthrough: ArrayAttr[Attribute] | None
    """LLVM's own attributes of the function around it, which the body has, too."""

    def convert(self, c: Converter) -> None:
        """Makes the function that the pool calls, and the one that holds the loop."""
        c.location = self.op.location
        body_name = f"{self.name}.body"
        self.wrapper(c, body_name)
        slot_types = list(self.struct.types.data)
        entry = Block(arg_types=[*slot_types, i64, i64])
        function = self.function(c, body_name, entry)
        attrs = [self.attrs.get(value, DictionaryAttr({})) for value in self.captures.slots]
        function.properties["no_inline"] = UnitAttr()
        if self.passthrough is not None:
            function.properties["passthrough"] = self.passthrough
        function.properties["arg_attrs"] = ArrayAttr([*attrs, DictionaryAttr({}), DictionaryAttr({})])
        c.start_function(entry)
        c.values, c.memrefs, c.blocks = {}, {}, {}
        c.signature, c.failure = Signature(tuple(entry.arg_types), (), True, True), None
        c.heap, c.passthrough = HeapMemory(), self.passthrough
        c.argument_attrs = function.properties["arg_attrs"]  # pyright: ignore[reportAttributeAccessIssue]
        c.function_name, c.in_parallel = self.name, True
        self.bind_captures(c, entry)
        begin, end = entry.args[-2:]
        serial_loops(c, self.op, 1, begin, end)

    def function(self, c: Converter, name: str, entry: Block) -> llvm.FuncOp:
        """Returns a private function that starts at `entry` and returns a status."""
        type_ = llvm.LLVMFunctionType(list(entry.arg_types), i32)
        function = make_function(name, type_, "internal", Region(entry), {"no_unwind": UnitAttr()})
        function.location = self.op.location
        c.add_symbol(name, function)
        return function

    def wrapper(self, c: Converter, body_name: str) -> None:
        """Emits the function that the pool calls: it loads the captures and calls the body."""
        entry = Block(arg_types=[PTR, i64, i64])
        self.function(c, self.name, entry)
        c.start_function(entry)
        context, begin, end = entry.args
        loaded = [
            c.load(c.field(context, self.struct, slot), value.type, alignment_of(value.type))
            for value, slot in self.captures.slots.items()
        ]
        status = c.call(body_name, (*loaded, begin, end), i32)
        assert status is not None
        c.append(create_op(llvm.ReturnOp, (status,), (), {}, c.location))

    def bind_captures(self, c: Converter, entry: Block) -> None:
        """Binds the captured source values to the parameters, or to constants made again."""

        def local(value: SSAValue) -> SSAValue:
            slot = self.captures.slots.get(value)
            if slot is not None:
                return entry.args[slot]
            owner = value.owner
            assert isinstance(owner, Operation)
            if isinstance(owner, llvm.ConstantOp):
                return c.constant_attr(owner.value, value.type)
            return c.emit(type(owner), (), value.type, dict(owner.properties))

        def local_index(index: Index | None) -> Index | None:
            return local(index) if isinstance(index, SSAValue) else index

        def known(index: Index | None) -> Index:
            return 0 if index is None else index

        for source in self.captures.values:
            c.bind(source, local(self.values[source]))
        for source in self.captures.memrefs:
            ref = self.memrefs[source]
            c.bind(
                source,
                replace(
                    ref,
                    base=local(ref.base),
                    offset=known(local_index(ref.offset)),
                    sizes=tuple(local_index(size) for size in ref.sizes),
                    strides=tuple(known(local_index(stride)) for stride in ref.strides),
                ),
            )


def serial_loops(
    c: Converter, op: scf.ParallelOp, shared: int, begin: SSAValue | None = None, end: SSAValue | None = None
) -> None:
    """Emits the loop nest of one thread; with `shared`, the first dimension runs `begin` to `end` only."""
    body = op.body.block
    closers: list[tuple[Block, SSAValue, SSAValue, Block]] = []
    bounds = zip(body.args, op.lowerBound, op.upperBound, op.step, strict=True)
    for dimension, (argument, low, high, stride) in enumerate(bounds):
        header, loop, after = Block(arg_types=[i64]), c.new_block(), c.new_block()
        counter = header.args[0]
        if dimension < shared:
            assert begin is not None and end is not None
            first, limit, step = begin, end, c.i64(1)
        else:
            first, limit, step = c.operands_of(low, high, stride)
        c.branch(header, [first])
        c.enter(header)
        c.cond_branch(c.icmp("slt", counter, limit), loop, (), after, ())
        c.enter(loop)
        if dimension < shared:
            c.bind(argument, c.i64(c.add(c.mul(counter, c.index(stride)), c.index(low))))
        else:
            c.bind(argument, counter)
        closers.append((header, counter, step, after))
    annotation = op.attributes.get(LOOP_ANNOTATION, MUST_PROGRESS)

    def close() -> None:
        for header, counter, step, after in reversed(closers):
            following = c.emit(llvm.AddOp, (counter, step), i64, NO_WRAP_SIGNED)
            c.branch(header, [following]).attributes[LOOP_ANNOTATION] = annotation
            c.enter(after)
        if shared:
            c.return_values((), None)
            c.end_function()

    c.convert_block(body, close)
