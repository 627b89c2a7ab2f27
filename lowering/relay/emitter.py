"""A small builder for LLVM-dialect code of many blocks: each method appends one op at the current place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerAttr, IntegerType, LocationAttr, SymbolRefAttr, i1, i8, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

PTR = llvm.LLVMPointerType()


class Emitter:
    """Appends to `block`; every op gets `location`."""

    def __init__(self, region: Region):
        self.region = region
        self.block = region.blocks[0]
        self.location: LocationAttr = UNKNOWN_LOC

    def new_block(self, *types: Attribute) -> Block:
        """A further block of the function, with arguments; emission stays where it is."""
        block = Block(arg_types=types)
        self.region.add_block(block)
        return block

    def add(self, op: Operation) -> Operation:
        """Appends the op."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Appends the op and gives its one result."""
        return self.add(op).results[0]

    def int(self, value: int, type: IntegerType = i64) -> SSAValue:
        """An integer constant."""
        return self.value(llvm.ConstantOp(IntegerAttr(value, type), type))

    def offset(self, pointer: SSAValue, offset: int) -> SSAValue:
        """`pointer` plus a number of bytes."""
        return pointer if offset == 0 else self.value(llvm.GEPOp(pointer, [offset], i8, inbounds=True))

    def load(self, pointer: SSAValue, type: Attribute = PTR, offset: int = 0) -> SSAValue:
        """The value at `pointer` plus `offset` bytes."""
        return self.value(llvm.LoadOp(self.offset(pointer, offset), type))

    def store(self, value: SSAValue, pointer: SSAValue, offset: int = 0) -> None:
        """Writes the value at `pointer` plus `offset` bytes."""
        self.add(llvm.StoreOp(value, self.offset(pointer, offset)))

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
        """Puts ops at the start of the function's first block; gives the last one's result."""
        entry = self.region.blocks[0]
        for op in ops:
            op.location = self.location
        if entry.first_op is None:
            entry.add_ops(ops)
        else:
            entry.insert_ops_before(ops, entry.first_op)
        return ops[-1].results[0]

    def compare(self, a: SSAValue, b: SSAValue, predicate: llvm.ICmpPredicateFlag) -> SSAValue:
        """An integer or pointer comparison."""
        return self.value(llvm.ICmpOp(a, b, IntegerAttr(predicate.to_int(), i64)))

    def call(self, callee: str, arguments: Sequence[SSAValue], result: Attribute | None) -> Operation:
        """A call of a function of the module."""
        return self.add(llvm.CallOp(SymbolRefAttr(callee), *arguments, return_type=result))

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
    """A function of the given argument types that returns a status (i32), with an empty first block."""
    return llvm.FuncOp(
        name,
        llvm.LLVMFunctionType(list(arguments), i32),
        llvm.LinkageAttr("external" if external else "internal"),
        body=Region(Block(arg_types=arguments)),
    )
