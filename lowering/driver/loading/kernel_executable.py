"""Calls a TIR or TE entry, or a `func.func`, in native code.

It takes the addresses of buffers, scalars and symbolic sizes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ....dialects.array_box import numpy_dtype
from ....support.diagnostics import MirError
from ...llvm.jit.call import address_of, diagnostic_of
from ...llvm.jit.load import CompiledModule
from ...mangle_symbols import linked_name
from ...runtime import use_threads
from ...tir.signature import BufferParam, HandleParam, KernelSignature, ScalarParam, Size, known_strides
from ..program import KernelProgram
from .executable import Array, Executable, Param, as_array, as_scalar, check_array, wrong_count

C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double,
}  # fmt: skip
"""How a scalar of each dtype is passed."""


class KernelExecutable(Executable):
    """A compiled TIR or TE function, or `func.func`; buffers are written in place."""

    def __init__(self, program: KernelProgram, code: CompiledModule, threads: int | None):
        self.name = program.entry
        self.kind = program.kind
        self._code = code
        self._threads = threads
        self._signature = signature = program.signature
        self._messages = program.messages
        self._places = program.places
        every = [param_of(param) for param in signature.params]
        self.params, self._results = every[: len(every) - program.results], every[len(every) - program.results :]
        self.returns = tuple(param.dtype for param in self._results)
        types = [_c_type(param, program) for param in signature.params]
        symbols = [ctypes.c_int64] * len(signature.symbols)
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *types, *symbols)(code.address(linked_name(self.name)))
        self._static = not signature.symbols
        self._profile_facts = program.profile
        if program.profile is not None:
            from ...runtime.profile import recorded

            self._call = recorded(self._call, len(signature.symbols))

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            args = self._in_order(args, named)
        params = self.params
        if len(args) != len(params):
            raise wrong_count(self.name, [param.name for param in params], len(args))
        results = [np.zeros((), numpy_dtype(param.dtype)) for param in self._results]
        passed: list[int | float] = []
        arrays: dict[str, Array] = {}
        scalars: dict[str, int] = {}
        every = zip((*args, *results), (*params, *self._results), self._signature.params, strict=True)
        for value, param, kind in every:
            if isinstance(kind, ScalarParam):
                scalar = as_scalar(value, param)
                passed.append(scalar)
                if isinstance(scalar, int):
                    scalars[param.name] = scalar
                continue
            array = as_array(value, param)
            if isinstance(kind, BufferParam):
                check_array(array, param, writable=kind.writes)
                arrays[param.name] = array
            passed.append(address_of(array))
        check_overlap(params, arrays)
        if not self._static:
            passed += bind_sizes(self._signature, arrays, scalars, self._places).values()
        use_threads(self._threads)
        status = self._call(*passed)
        if status != 0:
            raise MirError(diagnostic_of(self._messages.get(status, f"{self.name} failed with status {status}")))
        # As the interpreter returns them: integers as Python's, floats of their own precision.
        scalars_out = tuple(array.item() if array.dtype.kind in "iub" else array[()] for array in results)
        return scalars_out if len(scalars_out) > 1 else scalars_out[0] if scalars_out else None


def check_overlap(params: Sequence[Param], arrays: Mapping[str, Array]) -> None:
    """Raises ValueError where a written buffer shares memory with another, which compiled code excludes."""
    written = [param.name for param in params if param.is_output and param.name in arrays]
    for name in written:
        start, end = byte_bounds(arrays[name])
        for other, array in arrays.items():
            begin, behind = byte_bounds(array)
            if other != name and start < behind and begin < end:
                raise ValueError(f"'{name}' is written, but shares memory with '{other}'; pass a copy")


def bind_sizes(
    signature: KernelSignature, arrays: Mapping[str, Array], scalars: Mapping[str, int], places: Mapping[str, str]
) -> dict[str, int]:
    """Returns the symbolic sizes of a call. Raises MirError, at the parameter, where they do not fit."""
    strides = {name: [s // a.itemsize for s in a.strides] for name, a in arrays.items()}
    return signature.bind({name: a.shape for name, a in arrays.items()}, scalars, strides, places)


def param_of(param: BufferParam | ScalarParam | HandleParam) -> Param:
    """Returns a parameter of a signature as executables show it."""
    match param:
        case BufferParam():
            shape = tuple(map(_extent, param.shape))
            stated = param.strides or ()
            is_open = not all(isinstance(stride, int) for stride in stated)
            open_strides = tuple(s if isinstance(s, int) else None for s in stated) if is_open else ()
            return Param(
                param.name, shape, param.dtype, param.writes, strides=known_strides(param), open_strides=open_strides
            )
        case ScalarParam():
            return Param(param.name, (), param.dtype, is_scalar=True)
        case HandleParam():
            return Param(param.name, (), "handle")


def _extent(size: Size) -> int | str:
    """Returns a size as a number, a name, or an expression in Python's syntax."""
    if isinstance(size, int | str):
        return size
    operator, left, right = size
    if operator in ("min", "max"):
        return f"{operator}({_extent(left)}, {_extent(right)})"
    return f"({_extent(left)} {operator} {_extent(right)})"


def _c_type(param: BufferParam | ScalarParam | HandleParam, program: KernelProgram) -> Any:
    """Returns the ctypes type of a parameter. Raises MirError, at it, for float16 and bfloat16."""
    if not isinstance(param, ScalarParam):
        return ctypes.c_void_p
    found = C_TYPES.get(param.dtype)
    if found is None:
        place = program.places.get(param.name)
        message, note = unpassed_scalar(program.entry, param.dtype)
        located = diagnostic_of(message if place is None else f"{place}: error: {message}")
        raise MirError(located.with_note(note))
    return found


def unpassed_scalar(entry: str, dtype: str) -> tuple[str, str]:
    """Returns the message and the note for a scalar parameter for which Python has no type."""
    return f"{entry} takes a scalar of dtype {dtype}, which Python cannot pass", "pass it as a buffer of one element"
