"""`lower-relay-to-llvm`: the functions around the kernels become LLVM functions over one arena.

What runs before it: every operator is a `call_tir` of a kernel of the module, generic functions are specialized, and
the kernels are LLVM functions, called with the addresses of their tensors.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir as relay
from ....passes.relay.common.call_graph import called_by, recursive_functions
from ....support.diagnostics import error_at, source_position
from ....support.edit import erase_op
from ....support.source_text import text_bytes
from ....support.walk import all_ops, walk_ops
from ...llvm.convert.converter import MESSAGES
from ...tir.signature import SHAPE, SIGNATURE, KernelSignature
from ..kernels.shape_function import ShapeFunction
from ..memory import heap
from ..memory.frame import Frame
from ..memory.row_layouts import check_layouts
from .adt import DataTypes
from .calling_convention import ENTRY, FINISH, PREPARE
from .emitter import PTR, RelayEmitter
from .flat_values import leaves_of, on_heap
from .function_lowering import LoweredModule, RelayFunctionLowering
from .kernel_call import Kernel
from .match_cast import insert_match_casts
from .prepare_constants import (  # fmt: skip
    FAILS,
    KERNEL,
    PREPARE_BODY,
    PREPARE_ONLY,
    PREPARED,
    Preparation,
    prepared_attr,
    pure_kernels,
    strides_of,
)
from .profile_hooks import ProfileHooks

CONSTANTS = "mirstack.constants"
"""Module attribute: the arrays that the context's table of constants must hold, in order."""

MEMORY = "mirstack.memory"
"""Module attribute: `arena`, the bytes that the entry's frames take; `lower_bound`, the most that lives at one time."""


@dataclass(frozen=True)
class LowerRelayToLLVM(ModulePass):
    """Lower Relay's functions to LLVM functions that call the kernels over one arena."""

    name = "lower-relay-to-llvm"

    entry: str = "main"
    """The function that Python calls."""
    profile: bool = False
    """Record when kernels run."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.ops if isinstance(f, relay.FuncOp)}
        if not functions:
            return
        if self.entry not in functions:
            raise error_at(op, f"the module has no function @{self.entry}", f"it has {', '.join(functions)}")
        reachable = _reachable(functions, self.entry)
        messages: dict[str, StringAttr] = {}
        strides = {f.sym_name.data: steps for f in op.ops if isinstance(f, llvm.FuncOp) and (steps := strides_of(f))}
        for name in reachable:
            check_layouts(functions[name], strides)
        kernels, data_types = _kernels(op), DataTypes(op)
        for name in reachable:
            insert_match_casts(functions[name], functions, data_types)
        unit = LoweredModule(
            op,
            data_types,
            kernels,
            recursive_functions({name: functions[name] for name in reachable}),
            any(isinstance(inner, relay.RefOp) for name in reachable for inner in walk_ops(functions[name])),
            lambda message, where: _status(messages, message, where),
            hooks=ProfileHooks() if self.profile else None,
        )
        preparation = Preparation(_preparable(op, kernels).__contains__)
        for name in reachable:
            preparation.take_from(functions[name])
        for name in reachable:
            RelayFunctionLowering(unit, name, functions[name]).run()
        watched = _WATCHED.get()
        if watched is not None:
            watched |= unit.frames
        entries, ret_type = [_entry(functions[self.entry], self.entry, ENTRY)], functions[self.entry].ret_type
        prepare = preparation.function()
        if prepare is not None:
            shared = len(unit.constants)
            RelayFunctionLowering(unit, PREPARE_BODY, prepare).run()
            entries.append(_entry(prepare, PREPARE_BODY, PREPARE))
            op.attributes[PREPARED] = prepared_attr(preparation.sizes)
            op.attributes[PREPARE_ONLY] = IntegerAttr(len(unit.constants) - shared, 64)
            prepare.erase()
        _bound_optimizing(unit.functions)
        for function in list(op.ops):
            if isinstance(function, relay.FuncOp | relay.TypeDataOp):
                erase_op(function)
        op.body.block.add_ops([*unit.functions, *entries, *([_finish()] if on_heap(ret_type) else [])])
        heap.add_heap(op)
        if unit.hooks is not None:
            unit.hooks.add_to(op)
        op.attributes[CONSTANTS] = ArrayAttr(list(unit.constants))
        op.attributes[MEMORY] = _memory_report(unit, self.entry, {n: called_by(functions[n]) for n in reachable})
        known = op.attributes.get(MESSAGES)
        table = dict(known.data) if isinstance(known, DictionaryAttr) else {}
        op.attributes[MESSAGES] = DictionaryAttr({**table, **messages})


_WATCHED: ContextVar[dict[str, Frame] | None] = ContextVar("watched frames", default=None)


@contextmanager
def watching_frames() -> Generator[dict[str, Frame]]:
    """While inside, the frames of functions that are lowered are kept, by name."""
    frames: dict[str, Frame] = {}
    token = _WATCHED.set(frames)
    try:
        yield frames
    finally:
        _WATCHED.reset(token)


def _reachable(functions: dict[str, relay.FuncOp], entry: str) -> list[str]:
    """Returns the functions that the entry may come to call, the entry first."""
    found = {entry: None}
    pending = [entry]
    while pending:
        for name in called_by(functions[pending.pop()]):
            if name in functions and name not in found:
                found[name] = None
                pending.append(name)
    return list(found)


def _kernels(module: ModuleOp) -> dict[str, Kernel]:
    """Returns the LLVM functions of the module by name, and makes them internal.

    Only Relay's functions call them from now on, so that LLVM may drop unused ones, and inline those without loops; a loop nest at each
    of its calls would make compile time grow with the square of a model's depth.
    """
    kernels: dict[str, Kernel] = {}
    for op in module.ops:
        if isinstance(op, llvm.FuncOp) and (op.body.blocks or KERNEL in op.attributes):
            name = op.sym_name.data
            signature, shape = KernelSignature.of(op), ShapeFunction.of(op)
            fails = may_fail(op)
            if KERNEL not in op.attributes:
                op.linkage = llvm.LinkageAttr("internal")
            if signature is not None and len(op.body.blocks) > 1:
                op.no_inline = UnitAttr()
            if signature is not None and not signature.symbols and shape is None:
                signature = None
            status = op.function_type.output == i32
            kernels[name] = Kernel(name, status, status and fails, len(op.function_type.inputs), signature, shape)
            for key in (SIGNATURE, SHAPE):
                op.attributes.pop(key, None)
    return kernels


def may_fail(kernel: llvm.FuncOp) -> bool:
    """Returns whether a function may return a status other than 0."""
    declared = kernel.attributes.get(KERNEL)
    if isinstance(declared, DictionaryAttr):
        return FAILS in declared.data
    ends = [op for block in kernel.body.blocks if isinstance(op := block.last_op, llvm.ReturnOp)]
    return not all(_is_zero(op.arg) for op in ends)


def _is_zero(value: SSAValue | None) -> bool:
    constant = None if value is None else value.owner
    return (
        isinstance(constant, llvm.ConstantOp)
        and isinstance(constant.value, IntegerAttr)
        and constant.value.value.data == 0
    )


def _status(messages: dict[str, StringAttr], message: str, where: Operation) -> int:
    """Returns the status of this message at this place, computed as the kernels' statuses are."""
    position = source_position(where.location)
    text = message if position is None else f"{position[0]}:{position[1]}:{position[2]}: error: {message}"
    code = (zlib.crc32(text_bytes(text)) & 0x7FFFFFFF) or 1
    messages[str(code)] = StringAttr(text)
    return code


def _preparable(module: ModuleOp, kernels: dict[str, Kernel]) -> set[str]:
    """Returns the kernels that may run before the program does: they only compute, and cannot fail."""
    pure = pure_kernels(module)
    return {name for name, kernel in kernels.items() if name in pure and not kernel.fails and kernel.signature is None}


MANY_ADDRESSES = 128
"""Parameters and results of a function, each loaded, kept and stored again: from so many on it is not optimized."""
MANY_OPS = 4096
"""Ops of a function for which it is not optimized either: kernels are called one after the other in a few great blocks."""
MANY_CALLS = 24
"""Calls in a function, of kernels mostly, beside which it is quick however it is written."""
MANY_FUNCTIONS = 16
"""Functions from which on LLVM does not inline them into each other."""


def _bound_optimizing(functions: list[llvm.FuncOp]) -> None:
    """Keeps LLVM's time linear in large programs, where what it would gain is nothing beside the kernels.

    Of functions that call one another each was optimized again in all those that it had been put into.
    """
    for function in functions:
        ops = all_ops(function)
        calls = sum(type(op) is llvm.CallOp for op in ops)
        once = function.sym_name.data == PREPARE_BODY
        if (
            once
            or calls > MANY_CALLS
            or len(ops) > MANY_OPS
            or len(function.function_type.inputs.data) > MANY_ADDRESSES
        ):
            _take_as_written(function)
        elif len(functions) > MANY_FUNCTIONS:
            function.no_inline = UnitAttr()


def _take_as_written(function: llvm.FuncOp) -> None:
    """Keeps LLVM from optimizing a function, because it compares all accesses with each other."""
    function.no_inline = function.optimize_none = UnitAttr()


def _entry(function: relay.FuncOp, name: str, symbol: str) -> llvm.FuncOp:
    """Returns the function `symbol` that Python calls: it reads all addresses from a table.

    It calls the function and frees the heap; results with `?` are on the heap, which `FINISH` frees later.
    """
    count = sum(len(leaves_of(p.type, p)) for p in function.params) + len(leaves_of(function.ret_type))
    region = Region(Block(arg_types=[PTR]))
    emit = RelayEmitter(region)
    table = emit.block.args[0]
    context = emit.load(table)
    saved = heap.mark(emit, context)
    for k, word in enumerate(saved):
        emit.store(word, context, heap.BASE + 8 * k)
    arguments = [emit.load(table, PTR, 8 + 8 * k) for k in range(count)]
    status = emit.call(name, [context, *arguments], i32).results[0]
    if not on_heap(function.ret_type):
        heap.release(emit, context, saved)
    emit.give(status)
    entry = llvm.FuncOp(symbol, llvm.LLVMFunctionType([PTR], i32), llvm.LinkageAttr("external"), body=region)
    if count >= MANY_ADDRESSES:
        _take_as_written(entry)
    return entry


def _finish() -> llvm.FuncOp:
    """Returns the function of a context that frees the heap as it was before the call."""
    region = Region(Block(arg_types=[PTR]))
    emit = RelayEmitter(region)
    context = emit.block.args[0]
    heap.release(emit, context, (emit.load(context, PTR, heap.BASE), emit.load(context, i64, heap.BASE + 8)))
    emit.give(emit.int(0, i32))
    return llvm.FuncOp(FINISH, llvm.LLVMFunctionType([PTR], i32), llvm.LinkageAttr("external"), body=region)


def _memory_report(unit: LoweredModule, entry: str, calls: dict[str, list[str]]) -> DictionaryAttr:
    """Returns the bytes of the arena: of all frames along the deepest chain of calls.

    Of functions that call themselves one frame is counted; frames of deeper calls come from malloc, and what a call needed of these is
    in the next call's first chunk.
    """

    def along(measure: dict[str, int]) -> int:
        total: dict[str, int] = {}
        for name in reversed(_topological(entry, calls, unit.recursive)):
            inner = [total[c] for c in calls.get(name, ()) if c in total]
            total[name] = measure.get(name, 0) + max(inner, default=0)
        return total[entry]

    def frame_bytes(pick: str) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for name, frame in unit.frames.items():
            owner = name.split(".fn")[0]
            size = frame.plan.size if pick == "size" else frame.plan.lower_bound
            sizes[owner] = sizes.get(owner, 0) + _rounded(frame, size)
        return sizes

    return DictionaryAttr(
        {
            "arena": IntegerAttr(along(frame_bytes("size")), 64),
            "lower_bound": IntegerAttr(along(frame_bytes("bound")), 64),
        }
    )


def _rounded(frame: Frame, size: int) -> int:
    return 0 if frame.is_empty else size


def _topological(entry: str, calls: dict[str, list[str]], recursive: set[str]) -> list[str]:
    """Callers before callees; calls between recursive functions are left out."""
    order: list[str] = []
    seen: set[str] = set()
    pending: list[tuple[str, bool]] = [(entry, False)]
    while pending:
        name, finished = pending.pop()
        if finished:
            order.append(name)
            continue
        if name in seen:
            continue
        seen.add(name)
        pending.append((name, True))
        pending += [(c, False) for c in calls.get(name, ()) if c in calls and not {c, name} <= recursive]
    return order[::-1]
