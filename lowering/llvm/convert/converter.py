"""Converts standard dialects to the `llvm` dialect: one walk that rebuilds each function, op by op.

Each source dialect has its file (`arith_to_llvm`, `scf_to_llvm`, …) that holds a table from op class to handler. A
handler reads the converted operands, appends LLVM ops and binds the results. Nothing is rewritten in place, so the
whole takes time linear in the number of ops, and nested regions are walked with an explicit stack.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    bf16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....support.diagnostics import error_at, source_position
from ....support.edit import create_op
from ....support.graph import reverse_postorder
from ....support.operands import operands_of
from ....support.source_text import text_bytes
from ....support.walk import ops_in
from .builder import PTR, Builder, Index, make_function
from .heap_memory import HeapMemory
from .memref_descriptor import MemRefValue, from_parts, open_parts
from .types import TypeConverter, element_of, is_memref

OpT = TypeVar("OpT", bound=Operation)
Handler = Callable[["Converter", Any], None]

MESSAGES = "mirstack.messages"
"""Module attribute: what each status code that a function of the module may return means."""


class HandlerTable:
    """Handlers by op class."""

    def __init__(self) -> None:
        self.handlers: dict[type[Operation], Handler] = {}

    def on(self, *ops: type[OpT]) -> Callable[[Callable[[Converter, OpT], None]], Callable[[Converter, OpT], None]]:
        """Decorates the handler of these op classes."""

        def register(handler: Callable[[Converter, OpT], None]) -> Callable[[Converter, OpT], None]:
            for op in ops:
                self.handlers[op] = handler
            return handler

        return register


@dataclass
class BlockFrame:
    """A block that is being converted: the ops still to come and what to do after the last."""

    ops: Iterator[Operation]
    done: Callable[[], None]


@dataclass(frozen=True)
class Signature:
    """The converted type of a function."""

    inputs: tuple[Attribute, ...]
    results: tuple[Attribute, ...]
    returns_status: bool
    """Whether it also returns an i32: 0, or the code of the check that failed."""
    may_fail: bool
    """Whether a caller must look at the status."""

    @property
    def output(self) -> Attribute | None:
        """The LLVM return type, None for void; several values come as a struct, the status last."""
        parts = [*self.results, i32] if self.returns_status else list(self.results)
        if len(parts) > 1:
            return llvm.LLVMStructType.from_type_list(parts)
        return parts[0] if parts else None


def ignore() -> None:
    """Does nothing after a block."""


@dataclass(eq=False)
class Converter(Builder):
    """The state of one module's conversion."""

    handlers: dict[type[Operation], Handler]
    signatures: dict[str, Signature]
    cpu: str = ""
    """LLVM's name of the processor that code is made for; "" is this one."""

    types: TypeConverter = field(default_factory=TypeConverter)
    strict_math: bool = False
    """Whether functions such as exp are C's, computed in f64."""
    frames: list[BlockFrame] = field(default_factory=list[BlockFrame])
    messages: dict[int, str] = field(default_factory=dict[int, str])
    top_level: list[Operation] = field(default_factory=list[Operation])
    """The ops of the converted module."""
    library: dict[str, Callable[[], Operation]] = field(default_factory=dict[str, Callable[[], Operation]])
    """Functions that handlers asked for and that are not built yet, by symbol."""
    symbols: dict[str, Operation] = field(default_factory=dict[str, Operation])
    """Functions and globals of `top_level` that handlers added, by symbol."""
    yielded: tuple[SSAValue, ...] = ()
    """The operands of the terminator of the region that ended last, in the source module's values."""

    def __post_init__(self) -> None:
        super().__init__()
        self.values: dict[SSAValue, SSAValue] = {}
        self.memrefs: dict[SSAValue, MemRefValue] = {}
        self.blocks: dict[Block, Block] = {}
        self.signature: Signature | None = None
        self.failure: Block | None = None
        self.heap = HeapMemory()
        self.joins: dict[Operation, Block] = {}
        self.argument_attrs: ArrayAttr[DictionaryAttr] | None = None
        self.passthrough: ArrayAttr[Attribute] | None = None
        """LLVM's own attributes of the function."""
        self.function_name = ""
        self.in_parallel = False
        """Whether the function runs inside of a loop that is shared out to threads."""
        self.parallel_count = 0
        self.pending: deque[Callable[[], None]] = deque()
        """Functions to convert after the present one."""

    # Values

    def value(self, source: SSAValue) -> SSAValue:
        """Returns the LLVM value of `source`."""
        converted = self.values.get(source)
        if converted is None:
            raise error_at(source, "this value is used before its definition", "check the order of the ops")
        return converted

    def operands(self, op: Operation) -> tuple[SSAValue, ...]:
        """Returns the converted operands of an op that takes no memrefs."""
        values = self.values
        try:
            return tuple([values[operand] for operand in operands_of(op)])
        except KeyError:
            return tuple(self.value(operand) for operand in op.operands)

    def operands_of(self, *sources: SSAValue) -> tuple[SSAValue, ...]:
        """Returns the LLVM values of `sources`."""
        return tuple(self.value(source) for source in sources)

    def memref(self, source: SSAValue) -> MemRefValue:
        """Returns the descriptor of the memref `source`."""
        converted = self.memrefs.get(source)
        if converted is None:
            raise error_at(source, "this memref is used before its definition", "check the order of the ops")
        return converted

    def index(self, source: SSAValue) -> Index:
        """Returns `source` as a number when it is constant, otherwise as an i64 value."""
        converted = self.value(source)
        owner = converted.owner
        if type(owner) is llvm.ConstantOp and isinstance(number := owner.properties["value"], IntegerAttr):
            return number.value.data
        return converted

    def indices(self, sources: Sequence[SSAValue]) -> list[Index]:
        """Returns `index` of each."""
        return [self.index(source) for source in sources]

    def bind(self, source: SSAValue, converted: SSAValue | MemRefValue) -> None:
        """Sets the conversion of `source`, which takes over its name."""
        if isinstance(converted, MemRefValue):
            self.memrefs[source] = converted
            converted = converted.base
        else:
            self.values[source] = converted
        if source.name_hint is not None and converted.name_hint is None:
            converted.name_hint = source.name_hint

    def type_of(self, source: SSAValue) -> Attribute:
        """Returns the LLVM type of `source`."""
        return self.types(source.type, source)

    # Memrefs across blocks: the pointer to the first element, then what the type leaves open

    def flat_types(self, source: SSAValue) -> list[Attribute]:
        """Returns the types of the block arguments that carry `source`."""
        if not is_memref(source.type):
            return [self.type_of(source)]
        sizes, strides = open_parts(source.type)
        return [PTR, *[i64] * (len(sizes) + len(strides))]

    def flatten(self, sources: Sequence[SSAValue]) -> list[SSAValue]:
        """Returns the values that carry `sources` to another block."""
        out: list[SSAValue] = []
        for source in sources:
            if is_memref(source.type):
                ref, (sizes, strides) = self.memref(source), open_parts(source.type)
                out.append(ref.bare(self))
                out += [self.i64(ref.known_size(self, dim, source)) for dim in sizes]
                out += [self.i64(ref.strides[dim]) for dim in strides]
            else:
                out.append(self.value(source))
        return out

    def bind_flat(self, sources: Sequence[SSAValue], flat: Sequence[SSAValue]) -> None:
        """Binds `sources` to what `flatten` sent over."""
        position = 0
        for source in sources:
            if is_memref(source.type):
                count = len(self.flat_types(source))
                element = self.types(source.type.element_type, source)
                self.bind(source, from_parts(source.type, element, flat[position : position + count]))
                position += count
            else:
                self.bind(source, flat[position])
                position += 1

    # Blocks

    def new_block(self, arguments: Sequence[SSAValue] = ()) -> Block:
        """Returns a block with arguments for `arguments`; the function gets it when it is first entered."""
        return Block(arg_types=[type_ for argument in arguments for type_ in self.flat_types(argument)])

    def enter(self, block: Block) -> None:
        """Moves the insertion point to the end of `block`."""
        if block.parent is None:
            region = self.entry.parent
            assert region is not None
            region.add_block(block)
        self.block = block

    def convert_block(self, source: Block, done: Callable[[], None] = ignore) -> None:
        """Schedules the conversion of the ops of `source` into the current block, before anything else."""
        self.frames.append(BlockFrame(iter(ops_in(source)), done))

    def convert_region(self, region: Region, entry: Block, done: Callable[[], None] = ignore) -> None:
        """Schedules the conversion of all blocks of `region`, the first into `entry`, definitions before uses."""
        first = region.blocks.first
        if first is None:
            return
        order = reverse_postorder(first)
        self.blocks[first] = entry
        for block in order[1:]:
            self.blocks[block] = new = self.new_block(block.args)
            self.bind_flat(block.args, new.args)

        def run_block(source: Block) -> None:
            self.enter(self.blocks[source])
            self.convert_block(source)

        def next_block() -> None:
            if remaining:
                self.frames.append(BlockFrame(iter(()), next_block))
                run_block(remaining.pop())
            else:
                done()

        remaining = order[::-1]
        next_block()

    def run(self) -> None:
        """Converts until nothing is left to convert."""
        frames, handlers = self.frames, self.handlers
        while frames:
            frame = frames[-1]
            for op in frame.ops:
                self.location = op.location
                handler = handlers.get(type(op))
                if handler is None:
                    self.other(op)
                else:
                    handler(self, op)
                if frames[-1] is not frame:
                    break
            else:
                frames.pop()
                frame.done()

    def run_all(self) -> None:
        """Converts until nothing is left, functions that were split off included."""
        self.run()
        while self.pending:
            self.pending.popleft()()
            self.run()

    def other(self, op: Operation) -> None:
        """Keeps ops without a handler that are LLVM's already."""
        if not op.name.startswith(("llvm.", "llvm_ext.")) or op.regions:
            raise error_at(
                op,
                f"'{op.name}' cannot be lowered to LLVM",
                "lower-std-to-llvm takes func, cf, scf, arith, math, memref, vector and vector_ext; "
                "lower other dialects to these first",
            )
        new = self.append(
            type(op).create(
                operands=self.operands(op),
                result_types=[result.type for result in op.results],
                properties=op.properties,
                attributes=op.attributes,
                successors=[self.blocks[block] for block in op.successors],
            )
        )
        for source, converted in zip(op.results, new.results, strict=True):
            self.types.has_bf16 |= element_of(source.type) == bf16
            self.bind(source, converted)

    # Failure

    def fail_unless(self, cond: SSAValue, message: str) -> None:
        """Leaves the function with the status of `message` unless `cond`; goes on in a new block."""
        code = self.message_code(message, self.location)
        going_on = self.new_block()
        self.cond_branch(cond, going_on, (), self.failure_block(), (self.constant(code, i32),))
        self.enter(going_on)

    def fail_if_status(self, status: SSAValue) -> None:
        """Leaves the function with `status` unless it is 0; goes on in a new block."""
        going_on = self.new_block()
        ok = self.icmp("eq", status, self.constant(0, i32))
        self.cond_branch(ok, going_on, (), self.failure_block(), (status,))
        self.enter(going_on)

    def failure_block(self) -> Block:
        """Returns the function's block that returns the status that it is given."""
        if self.failure is None:
            self.failure = Block(arg_types=[i32])
        self.heap.exits += 1
        return self.failure

    def end_function(self) -> None:
        """Adds the failure block, if anything jumps there."""
        if self.failure is not None:
            assert self.signature is not None
            slots = self.heap.variables(self)
            self.enter(self.failure)
            if slots:
                self.heap.free_all(self, slots, self.declare("free", (PTR,), None))
            self.return_values([self.poison(type_) for type_ in self.signature.results], self.failure.args[0])

    def return_values(self, results: Sequence[SSAValue], status: SSAValue | None) -> None:
        """Ends the function; `status` None means success."""
        assert self.signature is not None
        parts = list(results)
        if self.signature.returns_status:
            parts.append(self.constant(0, i32) if status is None else status)
        if len(parts) <= 1:
            self.append(create_op(llvm.ReturnOp, parts, (), {}, self.location))
            return
        type_ = self.signature.output
        assert type_ is not None
        self.append(create_op(llvm.ReturnOp, (self.pack_struct(type_, parts),), (), {}, self.location))

    def message_code(self, message: str, location: LocationAttr | None) -> int:
        """Returns the status code of `message`: a checksum of it, so that modules compiled apart do not clash."""
        position = source_position(location)
        text = message if position is None else f"{position[0]}:{position[1]}:{position[2]}: error: {message}"
        code = (zlib.crc32(text_bytes(text)) & 0x7FFFFFFF) or 1
        self.messages[code] = text
        return code

    # Symbols

    def declare(self, name: str, inputs: Sequence[Attribute], output: Attribute | None) -> str:
        """Declares the external function `name` in the module, once."""
        if name not in self.symbols and name not in self.signatures:
            self.add_symbol(name, make_function(name, llvm.LLVMFunctionType(inputs, output), "external"))
        return name

    def add_symbol(self, name: str, op: Operation) -> None:
        """Adds a function or global to the module."""
        self.symbols[name] = op
        self.top_level.append(op)

    def know(self, op: Operation) -> None:
        """Notes the symbol of an op that stays as it is."""
        name = op.get_attr_or_prop("sym_name")
        if isinstance(name, StringAttr):
            self.symbols[name.data] = op

    def use_library(self, name: str, build: Callable[[], Operation]) -> str:
        """Adds the function `name` to the module, built by `build` once everything else is converted."""
        if name not in self.symbols and name not in self.library:
            self.library[name] = build
        return name

    def finish(self, module: ModuleOp) -> None:
        """Builds the library functions in use and replaces the module's body by the converted one."""
        while self.library:
            name, build = self.library.popitem()
            op = build()
            # Building appends functions that it declares itself; the op is known under its name from now on.
            self.add_symbol(name, op)
        body = Block(self.top_level)
        for block in list(module.body.blocks):
            module.body.detach_block(block)
        module.body.add_block(body)
        if self.messages:
            known = module.attributes.get(MESSAGES)
            table = dict(known.data) if isinstance(known, DictionaryAttr) else {}
            table |= {str(code): StringAttr(text) for code, text in self.messages.items()}
            module.attributes[MESSAGES] = DictionaryAttr(table)
