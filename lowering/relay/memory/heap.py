"""Emits the heap of one call of a Relay entry, a stack of frames, boxes and tensors of dynamic size.

The context that every function receives points to: the top, the end, the table of constants, the lowest stack address
that recursion may reach, the newest chunk, how many calls of recursive functions are open, the most bytes of chunks that were
taken at a time, the two sizes that a failed check compared, the top and end before the call, the table of what was prepared from constants
when the program was loaded (`prepare_constants.py`), and the bytes of chunks that are taken now. The first chunk is the arena that
the caller brings; when it is full a chunk is taken from malloc, and freed when the function that needed it returns.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i8, i64
from xdsl.ir import Block, Region, SSAValue

from ..functions.calling_convention import BASE as BASE
from ..functions.calling_convention import CHUNK, END, GROWN, TAKEN, TOP
from ..functions.calling_convention import CONSTANTS as CONSTANTS
from ..functions.calling_convention import DEPTH as DEPTH
from ..functions.calling_convention import PREPARED as PREPARED
from ..functions.calling_convention import SIZES as SIZES
from ..functions.calling_convention import STACK_LIMIT as STACK_LIMIT
from ..functions.emitter import PTR, RelayEmitter
from .alignment import ALIGNMENT

MOST_CALLS = 1 << 20
"""Nested calls that a program may make: LLVM makes loops of some recursion, which the stack's limit cannot see."""

CHUNK_BYTES = 1 << 16
"""A chunk from malloc holds at least this much, and as much as all before it, so that recursion seldom asks for one."""

MOST_CHUNK_BYTES = 1 << 24
"""From here on chunks grow no more."""

GROW = "mirstack_heap_grow"
RELEASE = "mirstack_heap_release"

Predicate = llvm.ICmpPredicateFlag


def take(emit: RelayEmitter, context: SSAValue, size: int, fail: Block) -> SSAValue:
    """Takes `size` bytes, aligned, from the top of the heap; jumps to `fail` when memory is out."""
    return take_bytes(emit, context, emit.int(-(-size // ALIGNMENT) * ALIGNMENT), fail)


def take_bytes(emit: RelayEmitter, context: SSAValue, size: SSAValue, fail: Block) -> SSAValue:
    """As `take`, of a number of bytes known at run time, which must be a multiple of the alignment."""
    top, end = emit.load(context, PTR, TOP), emit.load(context, i64, END)
    bottom = emit.value(llvm.PtrToIntOp(top))
    wanted = emit.value(llvm.AddOp(bottom, size))
    fits = emit.compare(wanted, end, Predicate("ule"))
    quick, slow, done = emit.new_block(), emit.new_block(), emit.new_block(PTR)
    emit.branch_if(fits, quick, slow)
    emit.block = quick
    emit.store(emit.value(llvm.GEPOp.from_mixed_indices(top, [size], i8, inbounds=True)), context, TOP)
    emit.branch(done, top)
    emit.block = slow
    fresh = emit.call(GROW, [context, size], PTR).results[0]
    given = emit.compare(emit.value(llvm.PtrToIntOp(fresh)), emit.int(0), Predicate("ne"))
    usable = emit.new_block()
    emit.branch_if(given, usable, fail)
    emit.block = usable
    emit.branch(done, fresh)
    emit.block = done
    return done.args[0]


def mark(emit: RelayEmitter, context: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns the top and the end now, to go back to with `release`."""
    return emit.load(context, PTR, TOP), emit.load(context, i64, END)


def release(emit: RelayEmitter, context: SSAValue, saved: tuple[SSAValue, SSAValue]) -> None:
    """Gives back all that was taken since `mark`; chunks from malloc too."""
    top, end = saved
    same = emit.compare(emit.load(context, i64, END), end, Predicate("eq"))
    slow, done = emit.new_block(), emit.new_block()
    emit.branch_if(same, done, slow)
    emit.block = slow
    emit.call(RELEASE, [context, end], None)
    emit.branch(done)
    emit.block = done
    emit.store(top, context, TOP)


def add_heap(module: ModuleOp) -> None:
    """Adds the functions that take a chunk from malloc and free chunks.

    A chunk begins with the chunk before it and with that one's end.
    """
    malloc = llvm.FuncOp("aligned_alloc", llvm.LLVMFunctionType([i64, i64], PTR), llvm.LinkageAttr("external"))
    free = llvm.FuncOp("free", llvm.LLVMFunctionType([PTR]), llvm.LinkageAttr("external"))
    declared = {op.sym_name.data for op in module.ops if isinstance(op, llvm.FuncOp)}
    for op in (malloc, free):
        if op.sym_name.data not in declared:
            module.body.block.add_op(op)
    module.body.block.add_ops([_grow(), _release()])


def _grow() -> llvm.FuncOp:
    """(context, size) to a pointer to `size` bytes of a new chunk, or null."""
    region = Region(Block(arg_types=[PTR, i64]))
    emit = RelayEmitter(region)
    context, size = emit.block.args
    taken = emit.load(context, i64, TAKEN)
    bounded = _larger(emit, taken, emit.int(MOST_CHUNK_BYTES), smaller=True)
    body = _larger(emit, _larger(emit, bounded, emit.int(CHUNK_BYTES)), size)
    whole = emit.value(llvm.AddOp(body, emit.int(ALIGNMENT)))
    chunk = emit.call("aligned_alloc", [emit.int(ALIGNMENT), whole], PTR).results[0]
    address = emit.value(llvm.PtrToIntOp(chunk))
    given = emit.compare(address, emit.int(0), Predicate("ne"))
    usable, out = emit.new_block(), emit.new_block()
    emit.branch_if(given, usable, out)
    emit.block = usable
    emit.store(emit.load(context, PTR, CHUNK), chunk)
    emit.store(emit.load(context, i64, END), chunk, 8)
    emit.store(chunk, context, CHUNK)
    now = emit.value(llvm.AddOp(taken, whole))
    emit.store(now, context, TAKEN)
    emit.store(_larger(emit, emit.load(context, i64, GROWN), now), context, GROWN)
    emit.store(emit.value(llvm.AddOp(address, whole)), context, END)
    first = emit.offset(chunk, ALIGNMENT)
    emit.store(emit.value(llvm.GEPOp.from_mixed_indices(first, [size], i8, inbounds=True)), context, TOP)
    emit.give(first)
    emit.block = out
    emit.give(chunk)
    return llvm.FuncOp(GROW, llvm.LLVMFunctionType([PTR, i64], PTR), llvm.LinkageAttr("internal"), body=region)


def _larger(emit: RelayEmitter, a: SSAValue, b: SSAValue, *, smaller: bool = False) -> SSAValue:
    """Returns the larger of two sizes, or the smaller one."""
    return emit.value(llvm.SelectOp(emit.compare(a, b, Predicate("ult" if smaller else "ugt")), a, b))


def _release() -> llvm.FuncOp:
    """(context, end): frees the newest chunks until the heap ends at `end`."""
    region = Region(Block(arg_types=[PTR, i64]))
    emit = RelayEmitter(region)
    context, end = emit.block.args
    test, turn, out = emit.new_block(), emit.new_block(), emit.new_block()
    emit.branch(test)
    emit.block = test
    emit.branch_if(emit.compare(emit.load(context, i64, END), end, Predicate("eq")), out, turn)
    emit.block = turn
    chunk = emit.load(context, PTR, CHUNK)
    whole = emit.value(llvm.SubOp(emit.load(context, i64, END), emit.value(llvm.PtrToIntOp(chunk))))
    emit.store(emit.value(llvm.SubOp(emit.load(context, i64, TAKEN), whole)), context, TAKEN)
    emit.store(emit.load(chunk, PTR), context, CHUNK)
    emit.store(emit.load(chunk, i64, 8), context, END)
    emit.call("free", [chunk], None)
    emit.branch(test)
    emit.block = out
    emit.add(llvm.ReturnOp())
    return llvm.FuncOp(RELEASE, llvm.LLVMFunctionType([PTR, i64]), llvm.LinkageAttr("internal"), body=region)
