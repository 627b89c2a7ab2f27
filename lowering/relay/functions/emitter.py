"""Builds LLVM-dialect code of many blocks: each method appends one op at the current place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerAttr, IntegerType, LocationAttr, SymbolRefAttr, i1, i8, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.interned import i32_array, integer
from ....dialects.plain_op import SEGMENTS
from ....support.edit import add_op, create_op
from ...llvm.convert.builder import CALL, GEP_INBOUNDS, NOT_ATOMIC, gep_index

PTR = llvm.LLVMPointerType()


class RelayEmitter:
    """Appends to `block`; every op gets `location`."""

    def __init__(self, region: Region):
        self.region = region
        self.block = region.blocks[0]
        self.location: LocationAttr = UNKNOWN_LOC

    def new_block(self, *types: Attribute) -> Block:
        """Adds a block with arguments to the function; emission stays in the current one."""
        block = Block(arg_types=types)
        self.region.add_block(block)
        return block

    def add(self, op: Operation) -> Operation:
        """Appends the op."""
        op.location = self.location
        add_op(self.block, op)
        return op

    def make(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        type: Attribute | None,
        properties: dict[str, Attribute] | None = None,
    ) -> Operation:
        """Appends a new op; without `type` it has no result."""
        results = () if type is None else (type,)
        op = create_op(kind, operands, results, {} if properties is None else properties, self.location)
        add_op(self.block, op)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Appends the op and returns its one result."""
        return self.add(op).results[0]

    def int(self, value: int, type: IntegerType = i64) -> SSAValue:
        """Emits an integer constant."""
        return self.make(llvm.ConstantOp, (), type, {"value": integer(value, type)}).results[0]

    def offset(self, pointer: SSAValue, offset: int) -> SSAValue:
        """`pointer` plus a number of bytes."""
        if offset == 0:
            return pointer
        indices, operands = gep_index(offset)
        properties = {**GEP_INBOUNDS, "rawConstantIndices": indices, "elem_type": i8}
        return self.make(llvm.GEPOp, (pointer, *map(self.int, operands)), PTR, properties).results[0]

    def load(self, pointer: SSAValue, type: Attribute = PTR, offset: int = 0) -> SSAValue:
        """Loads the value at `pointer` plus `offset` bytes."""
        return self.make(llvm.LoadOp, (self.offset(pointer, offset),), type, {"ordering": NOT_ATOMIC}).results[0]

    def store(self, value: SSAValue, pointer: SSAValue, offset: int = 0) -> None:
        """Writes the value at `pointer` plus `offset` bytes."""
        self.make(llvm.StoreOp, (value, self.offset(pointer, offset)), None, {"ordering": NOT_ATOMIC})

    def copy(self, target: SSAValue, source: SSAValue, size: int) -> None:
        """Copies `size` bytes; the two do not overlap, or are the same."""
        self.copy_bytes(target, source, self.int(size))

    def copy_bytes(self, target: SSAValue, source: SSAValue, size: SSAValue) -> None:
        """As `copy`, of a number of bytes known at run time."""
        volatile = self.int(0, i1)
        self.add(llvm.CallIntrinsicOp("llvm.memmove.p0.p0.i64", [target, source, size, volatile], []))

    def slot(self, words: int = 1) -> SSAValue:
        """So many times eight bytes on the stack, in the function's first block."""
        one = llvm.ConstantOp(IntegerAttr(words, i64), i64)
        return self.at_start(one, llvm.AllocaOp(one, PTR))

    def at_start(self, *ops: Operation) -> SSAValue:
        """Inserts ops at the start of the function's first block; returns the last one's result."""
        entry = self.region.blocks[0]
        for op in ops:
            op.location = self.location
        if entry.first_op is None:
            entry.add_ops(ops)
        else:
            entry.insert_ops_before(ops, entry.first_op)
        return ops[-1].results[0]

    def compare(self, a: SSAValue, b: SSAValue, predicate: llvm.ICmpPredicateFlag) -> SSAValue:
        """Emits a comparison of integers or pointers."""
        return self.make(llvm.ICmpOp, (a, b), i1, {"predicate": integer(predicate.to_int(), i64)}).results[0]

    def call(self, callee: str, arguments: Sequence[SSAValue], result: Attribute | None) -> Operation:
        """Emits a call of a function of the module."""
        properties: dict[str, Attribute] = {
            **CALL,
            "callee": SymbolRefAttr(callee),
            SEGMENTS: i32_array(len(arguments), 0),
        }
        return self.make(llvm.CallOp, arguments, result, properties)

    def branch(self, target: Block, *arguments: SSAValue) -> None:
        """Ends the block."""
        self.add(llvm.BrOp(target, *arguments))

    def branch_if(self, condition: SSAValue, then: Block, otherwise: Block) -> None:
        """Ends the block with a two-way branch to blocks without arguments."""
        self.add(llvm.CondBrOp(condition, then, [], otherwise, []))

    def give(self, value: SSAValue) -> None:
        """Ends the block with a return."""
        self.add(llvm.ReturnOp(value))


def function(name: str, arguments: Sequence[Attribute], *, external: bool = False) -> llvm.FuncOp:
    """Returns a function of these arguments that returns a status (i32), with an empty first block."""
    return llvm.FuncOp(
        name,
        llvm.LLVMFunctionType(list(arguments), i32),
        llvm.LinkageAttr("external" if external else "internal"),
        body=Region(Block(arg_types=arguments)),
    )
