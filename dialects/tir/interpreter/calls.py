"""Calls as closures: intrinsics, C's mathematics, other functions of the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....support.diagnostics import error_at
from ....support.text import counted
from ..buffer import LoadOp
from ..expr import CallOp
from ..intrinsics import HORIZONTAL, check_call
from ..stmt import PrimFuncOp
from ..types import BufferType, HandleType, ReducerType, RegionType, StringType, TokenType, element_of, lanes_of
from .buffers import argument_view
from .compiler import Compiler, Functions, handles
from .frame import Frame, Step, run_all
from .intrinsics import extern_function, float_call, integer_call, reinterpret
from .memory import view_of
from .scalar import scalar_or_array
from .values import Pointer, Value, View, dtype_of, integer_limits, is_integer, is_vector, scalar_of

# Calls that have no effect on values.
_NOTHING = frozenset(
    ["start_profile_intrinsic", "end_profile_intrinsic", "assume", "prefetch", "tvm_global_barrier_kinit"]
)
# Calls that return their first argument.
_IDENTITY = frozenset(["likely", "tvm_thread_invariant"])


class Returned(Exception):
    """`T.ret(value)` was reached."""

    def __init__(self, value: Value):
        super().__init__()
        self.value = value


@handles(CallOp)
def compile_call(c: Compiler, op: CallOp) -> Step | None:
    name, result = op.intrinsic.data, None if op.result is None else c.slot(op.result)
    if op.callee is None:
        check_call(name, op.arguments, None if op.result is None else op.result.type, op)
    arguments = [c.slot(a) for a in op.arguments]
    if op.callee is not None:
        return _call_function(c, op, arguments, result)
    if name in _NOTHING:
        return None
    if name in _IDENTITY:
        if op.result is not None:
            c.alias(op.result, op.arguments[0])
        return None
    if name == "ret":
        return _return(op, arguments)
    if name == "address_of":
        return _address_of(c, op, result)
    if name == "tvm_access_ptr":
        return _access_ptr(op, arguments, result)
    if name == "tvm_storage_sync":
        return _sync(op)
    constant = _constant_call(op)
    if constant is not None:
        if result is not None:
            c.template[result] = constant
        return None
    function, skipped = _function(op)
    if function is None or result is None:
        return _unknown(op)
    used = arguments[skipped:]

    def step(f: Frame) -> None:
        f.v[result] = function(*(f.v[a] for a in used))

    return step


def _unknown(op: CallOp) -> Step:
    """Returns a step that raises the error when it runs."""
    name = op.intrinsic.data
    if name in ("call_extern", "call_pure_extern", "call_llvm_pure_intrin", "call_llvm_intrin"):
        what = f"external function '{_string(op.arguments[0]) if op.arguments else '?'}'"
    else:
        what = f"intrinsic 'T.{name}'"

    def step(f: Frame) -> None:
        raise error_at(
            op,
            f"the interpreter does not run the {what}",
            "it runs TIR's scalar intrinsics, C's mathematics by call_extern, and functions of the module",
        )

    return step


def _string(value: SSAValue) -> str:
    literal = getattr(value.owner, "value", None)
    return str(getattr(literal, "data", "?"))


def _function(op: CallOp) -> tuple[Callable[..., Any] | None, int]:
    """Returns (the call's function, the number of leading arguments that it does not take)."""
    name = op.intrinsic.data
    if op.result is None or not op.arguments:
        return None, 0
    result = op.result.type
    if name in ("call_extern", "call_pure_extern", "call_llvm_pure_intrin", "call_llvm_intrin"):
        function = extern_function(_string(op.arguments[0]))
        skipped = 2 if "llvm" in name else 1
        if function is None or is_integer(element_of(result)):
            return None, 0
        dtype = dtype_of(result, op)
        return lambda *values: scalar_or_array(np.asarray(function(*values)).astype(dtype)), skipped
    operand = op.arguments[0].type
    if isinstance(operand, StringType | TokenType | RegionType | ReducerType | BufferType):
        return None, 0
    if name == "reinterpret":
        if isinstance(result, HandleType) or isinstance(operand, HandleType):
            return (_null, 0) if isinstance(result, HandleType) and is_integer(operand) else (None, 0)
        return reinterpret(operand, result, op), 0
    if name in ("vectorlow", "vectorhigh", "vectorcombine"):
        return _halves(name), 0
    if name == "vector_dot":
        return _dot(dtype_of(result, op)), 0
    if name in HORIZONTAL:
        return _across_lanes(name), 0
    if name == "large_uint_imm":
        return _joined_halves, 0
    if name == "isnullptr":
        return _is_null, 0
    function = integer_call(name, result, operand, op) or float_call(name, operand, op)
    return function, 0


def _joined_halves(low: Any, high: Any) -> Any:
    return (high << 32) | low


def _is_null(pointer: Value) -> bool:
    return pointer is None


def _null(address: Value) -> None:
    """Checks the handle of an address, of which only 0, the null pointer, is supported."""
    return


def _halves(name: str) -> Callable[..., Any]:
    def combine(a: Any, b: Any) -> Any:
        return np.concatenate(np.broadcast_arrays(a, b), axis=-1)

    def low(a: Any) -> Any:
        return scalar_or_array(a[..., : a.shape[-1] // 2])

    def high(a: Any) -> Any:
        return scalar_or_array(a[..., a.shape[-1] // 2 :])

    return {"vectorcombine": combine, "vectorlow": low, "vectorhigh": high}[name]


def _dot(dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Returns the function that adds products of groups of lanes to the first vector's lanes."""

    def dot(sums: Any, a: Any, b: Any) -> Any:
        products = np.asarray(a).astype(dtype) * np.asarray(b).astype(dtype)
        groups = products.reshape(*products.shape[:-1], sums.shape[-1], -1)
        return sums + groups.sum(axis=-1, dtype=dtype)

    return dot


def _across_lanes(name: str) -> Callable[..., Any]:
    """Returns the function that combines all lanes in processors' order: halves with halves."""
    combine = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[name.rpartition("_")[2]]

    def apply(a: Any) -> Any:
        while a.shape[-1] > 1:
            half = a.shape[-1] // 2
            a = np.concatenate((combine(a[..., :half], a[..., half : 2 * half]), a[..., 2 * half :]), axis=-1)
        return scalar_or_array(a[..., 0])

    return apply


def _constant_call(op: CallOp) -> Value:
    """Returns the value of a call that is always the same, None for others."""
    name = op.intrinsic.data
    if op.result is None:
        return None
    if name == "type_annotation":
        return ()
    type = op.result.type
    if name == "vscale":
        return 1  # the shortest scalable vectors; a program must do with any
    if name not in ("min_value", "max_value", "infinity", "undef"):
        return None
    dtype = dtype_of(type, op)
    if name == "infinity":
        return dtype.type(np.inf)
    if name == "undef":
        return scalar_of(0, type, op) if not is_vector(type) else None
    if is_integer(type):
        low, high = (0, 1) if dtype.kind == "b" else integer_limits(type)
        return scalar_of(low if name == "min_value" else high, type, op)
    import ml_dtypes

    module: Any = ml_dtypes  # its finfo has no types
    limits = module.finfo(dtype)
    return dtype.type(limits.min if name == "min_value" else limits.max)


def _return(op: CallOp, arguments: list[int]) -> Step:
    def step(f: Frame) -> None:
        if f.mask is not None:
            raise error_at(op, "T.ret stands under a condition that differs between parallel iterations")
        raise Returned(f.v[arguments[0]] if arguments else None)

    return step


def _sync(op: CallOp) -> Step | None:
    """Threads run one after the other: to wait for each other would need all of them at once."""
    if not _in_threads(op):
        return None

    def step(f: Frame) -> None:
        raise error_at(
            op,
            "the interpreter runs threads one after the other, so it cannot run T.tvm_storage_sync",
            "run the program as it is before synchronization is inserted",
        )

    return step


def _in_threads(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if parent.name == "tir.for" and "thread" in parent.properties:
            return True
        op, parent = parent, parent.parent_op()
    return any(each.name in ("tir.launch_thread", "tir.attr") for each in op.walk())


def _address_of(c: Compiler, op: CallOp, result: int | None) -> Step:
    load = op.arguments[0].owner
    if not isinstance(load, LoadOp) or result is None:
        raise error_at(op, "T.address_of takes an element of a buffer")
    buffer, indices = c.slot(load.buffer), [c.slot(i) for i in load.indices]

    def step(f: Frame) -> None:
        view: View = f.v[buffer]
        offset = view.offset
        for index, stride in zip(indices, view.strides, strict=True):
            offset = offset + f.v[index] * stride
        f.v[result] = Pointer(view.storage, offset)

    return step


def _access_ptr(op: CallOp, arguments: list[int], result: int | None) -> Step:
    if len(arguments) < 3 or result is None:
        raise error_at(op, "T.tvm_access_ptr takes a type, a handle, an offset, an extent and an access mask")
    data, offset = arguments[1], arguments[2]

    def step(f: Frame) -> None:
        pointer = f.v[data]
        if not isinstance(pointer, Pointer):
            raise error_at(op, "the second argument of T.tvm_access_ptr is not a handle to memory")
        f.v[result] = Pointer(pointer.storage, pointer.offset + f.v[offset])

    return step


def _call_function(c: Compiler, op: CallOp, arguments: list[int], result: int | None) -> Step:
    assert op.callee is not None
    name = op.callee.string_value()
    callee = c.functions.named(name)
    if callee is None:
        raise error_at(op, f"there is no function '{name}' in this module")
    if len(callee.params) != len(arguments):
        raise error_at(op, f"function '{name}' takes {counted(len(callee.params), 'argument')}, not {len(arguments)}")

    def step(f: Frame) -> None:
        values = [f.v[a] for a in arguments]
        if any(isinstance(v, np.ndarray) for v in values):
            raise error_at(op, f"the arguments of '{name}' differ between parallel iterations")
        value = run_function(c.functions, callee, values)
        if result is not None:
            f.v[result] = value

    return step


def run_function(functions: Functions, func: PrimFuncOp, values: list[Value]) -> Any:
    """Runs a function on interpreter values: views, pointers, arrays for handles, scalars."""
    compiled = functions.compiled(func)
    frame = Frame(compiled.template, compiled.plan.rank)
    for number, (slot, param, value) in enumerate(zip(compiled.params, func.params, values, strict=True)):
        if isinstance(param.type, BufferType):
            value = _buffer_argument(func, number, value)
        frame.v[slot] = value
    with np.errstate(all="ignore"):
        try:
            run_all(compiled.steps, frame)
        except Returned as returned:
            return returned.value
    return None


def _buffer_argument(func: PrimFuncOp, number: int, value: Value) -> View:
    """Returns an array, or the memory of a pointer, as the buffer of a parameter."""
    type, name = func.params[number].type, func.param_names.data[number].data
    assert isinstance(type, BufferType)
    shape, dtype, lanes = type.static_shape or (), dtype_of(type.dtype, func), lanes_of(type.dtype)
    if isinstance(value, View):
        value = value.array
    if isinstance(value, Pointer):
        return view_of(value.storage, dtype, shape, None, value.offset, lanes, func)
    if not isinstance(value, np.ndarray):
        raise error_at(func, f"parameter '{name}' takes an array, not {value.__class__.__name__}")
    view = argument_view(value, dtype, lanes, name, func)
    if view.shape != shape:
        raise error_at(func, f"parameter '{name}' has shape {shape}, but its array has {view.shape}")
    return view
