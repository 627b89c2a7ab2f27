"""Lowers addresses of elements, and calls of functions: those of the module and external C functions."""

from __future__ import annotations

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr, StringAttr
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue

from ...dialects import tir
from ...dialects.tir.types import element_of
from ...support.diagnostics import error_at
from ...support.text import counted
from ..externs import refused
from .function import FunctionLowering
from .values import DYNAMIC, Index, Plain, Pointer, Ramp, convert_type


def at_offset(f: FunctionLowering, pointer: Pointer, element: Attribute, offset: Index) -> Pointer:
    """The address `offset` elements further on."""
    base = f.view(pointer, element)
    if offset.value == 0:
        return Pointer(base, element)
    type_ = MemRefType(element, [DYNAMIC], StridedLayoutAttr([1], None))
    moved = memref.ReinterpretCastOp.from_dynamic(
        base, [f.ssa(offset)], [f.ssa(Index.of(1))], [f.ssa(Index.of(1))], type_
    )
    return Pointer(f.cast(f.append(moved).result, LLVMPointerType()), None)


def address_of(f: FunctionLowering, op: tir.CallOp) -> None:
    """The address of an element, from the load that names it."""
    assert op.result is not None
    load = op.arguments[0].owner
    if not isinstance(load, tir.LoadOp):
        raise error_at(op, "T.address_of takes an element of a buffer, like T.address_of(A[0])")
    buffer = f.buffer(load.buffer)
    indices = [f.form(i) for i in load.indices]
    starts = [i.base if isinstance(i, Ramp) else f.index(v) for i, v in zip(indices, load.indices, strict=True)]
    offset = f.index_mul(f.linear(buffer, starts), Index.of(buffer.lanes))
    f.bind(op.result, at_offset(f, Pointer(buffer.base, buffer.element), buffer.element, offset))


def access_ptr(f: FunctionLowering, op: tir.CallOp) -> None:
    """tvm_access_ptr(type_annotation, data, offset, extent, rw_mask)."""
    assert op.result is not None
    annotation, data, offset = op.arguments[:3]
    pointer = f.form(data)
    owner = annotation.owner
    kind = annotation.type if not isinstance(owner, tir.CallOp) or owner.result is None else owner.result.type
    if not isinstance(pointer, Pointer):
        raise error_at(op, "T.tvm_access_ptr takes a buffer's data")
    element = convert_type(element_of(kind), op.result) if not isinstance(kind, tir.HandleType) else pointer.element
    if element is None:
        raise error_at(op, "the element type behind this T.tvm_access_ptr is not known")
    f.bind(op.result, at_offset(f, pointer, element, f.index(offset)))


def type_annotation(f: FunctionLowering, op: tir.CallOp) -> None:
    """Only its type is read."""


def call_extern(f: FunctionLowering, op: tir.CallOp) -> None:
    """A C function that the process provides: numbers by value, handles as addresses."""
    if not op.arguments or not isinstance(owner := op.arguments[0].owner, tir.ConstOp):
        raise error_at(op, "T.call_extern needs the function's name as a string")
    if not isinstance(owner.value, StringAttr):
        raise error_at(op, "T.call_extern needs the function's name as a string")
    name = owner.value.data
    if not name.isidentifier():
        raise refused(op, name)
    args = [f.plain(a) for a in op.arguments[1:]]
    result = None if op.result is None else convert_type(op.result.type, op.result)
    f.globals.declare(op, name, [a.type for a in args], result)
    call = f.append(func.CallOp(name, args, [] if result is None else [result]))
    if op.result is not None:
        value = call.results[0]
        f.bind(op.result, Pointer(value, None) if isinstance(value.type, LLVMPointerType) else Plain(value))


def call_function(f: FunctionLowering, op: tir.CallOp) -> None:
    """Calls a function of the module: buffers are passed as addresses, symbolic sizes after them."""
    assert op.callee is not None
    name = op.callee.root_reference.data
    callee = f.globals.functions.get(name)
    if callee is None:
        raise error_at(op, f"function '{name}' is not defined in this module")
    if callee.symbols:
        raise error_at(
            op,
            f"function '{name}' has symbolic sizes and cannot be called from compiled code",
            "inline it, or give it static shapes",
        )
    if len(callee.inputs) != len(op.arguments):
        raise error_at(
            op, f"function '{name}' takes {counted(len(callee.inputs), 'argument')}, not {len(op.arguments)}"
        )
    args: list[SSAValue] = []
    for argument, type_ in zip(op.arguments, callee.inputs, strict=True):
        if isinstance(argument.type, tir.BufferType):
            args.append(f.cast(f.buffer(argument).base, type_))
            continue
        form = f.form(argument)
        args.append(f.cast(form.base, type_) if isinstance(form, Pointer) else f.plain(argument))
    call = f.append(func.CallOp(name, args, [] if callee.output is None else [callee.output]))
    if op.result is not None:
        if callee.output is None:
            raise error_at(op, f"function '{name}' returns nothing, but its value is used")
        f.bind(op.result, Plain(call.results[0]))
