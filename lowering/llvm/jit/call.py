"""Calls compiled functions from Python with numpy or DLPack arrays, without copying.

A `NativeFunction` checks dtype, shape and layout of its arguments, takes the addresses and jumps: about a microsecond
plus half a microsecond an array. The GIL is released meanwhile, and several threads may call at once.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from ....support.diagnostics import Diagnostic, MirError, file_loc
from ....support.text import counted, with_article

_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
"""Bits of `ndarray.flags.num` (numpy's C API, "Array flags")."""

_C_TYPES: dict[str, type[ctypes._SimpleCData[Any]]] = {  # pyright: ignore[reportPrivateUsage]
    **{"bool": ctypes.c_bool, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32},
    **{"int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32},
    **{"uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double},
}


@dataclass(frozen=True)
class ArraySpec:
    """A parameter that is the address of an array. A string in `shape` names a size that calls may choose."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]
    is_output: bool = False
    """Whether the function writes to it."""
    alignment: int = 1
    """What the address must be a multiple of, beyond what the dtype needs."""


@dataclass(frozen=True)
class ScalarSpec:
    """A parameter that is a number."""

    name: str
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class SizeSpec:
    """A parameter that is the value of a size named in array shapes; callers do not pass it. It is an i64."""

    name: str


ParameterSpec = ArraySpec | ScalarSpec | SizeSpec


class NativeFunction:
    """A function at an address, called as `f(*arrays_and_scalars)` in the order of its specs.

    It returns what the native function returns, or None where that is only a status; a status that is not 0 is raised as
    `MirError` with its text from `messages`. `keep_alive` holds what the code needs (its `CompiledModule`, constants).
    With `no_overlap`, an output that shares memory with another argument is refused.
    """

    def __init__(
        self,
        address: int,
        parameters: Sequence[ParameterSpec],
        *,
        name: str = "function",
        messages: Mapping[int, str] | None = None,
        result: np.dtype[Any] | None = None,
        keep_alive: object = None,
        no_overlap: bool = True,
    ) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.messages = dict(messages or {})
        self.keep_alive = keep_alive
        self._returns_status = result is None
        c_types = [self._c_type(parameter) for parameter in parameters]
        restype = ctypes.c_int32 if result is None else _scalar_type(name, result)
        self._function = ctypes.CFUNCTYPE(restype, *c_types)(address)
        self._taken = [parameter for parameter in parameters if not isinstance(parameter, SizeSpec)]
        sizes = {size for p in self.parameters if isinstance(p, ArraySpec) for size in p.shape if isinstance(size, str)}
        for parameter in parameters:
            if isinstance(parameter, SizeSpec) and parameter.name not in sizes:
                raise ValueError(f"{name}: no array of the parameters has the size '{parameter.name}'")
        plans = [_Plan.of(parameter) for parameter in self.parameters]
        self._plan = [(plan.kind, plan, plan.dtype, plan.shape, plan.flags) for plan in plans]
        self._symbolic = bool(sizes)
        self._aligned = any(plan.alignment > 1 for plan in plans)
        arrays = [(place, plan) for place, plan in enumerate(plans) if plan.kind == _ARRAY]
        self._pairs = [
            (place, other, plan, other_plan)
            for place, plan in arrays
            for other, other_plan in arrays
            if no_overlap and plan.is_output and other != place and not (other_plan.is_output and other < place)
        ]

    @staticmethod
    def _c_type(parameter: ParameterSpec) -> type[ctypes._SimpleCData[Any]]:  # pyright: ignore[reportPrivateUsage]
        match parameter:
            case ArraySpec():
                return ctypes.c_void_p
            case SizeSpec():
                return ctypes.c_int64
            case ScalarSpec():
                return _scalar_type(parameter.name, parameter.dtype)

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function. Raises TypeError or ValueError that names a parameter that does not fit."""
        if len(arguments) != len(self._taken):
            names = ", ".join(parameter.name for parameter in self._taken)
            raise TypeError(
                f"{self.name} takes {counted(len(self._taken), 'argument')} ({names}), not {len(arguments)}"
            )
        native: list[Any] = []
        append = native.append
        alive: list[object] = []
        sizes: dict[str, int] = {}
        given = iter(arguments)
        for kind, plan, dtype, shape, flags in self._plan:
            if kind == _ARRAY:
                array = next(given)
                if (
                    type(array) is not ndarray
                    or array.dtype is not dtype
                    or array.shape != shape
                    or array.flags.num & flags != flags
                ):
                    array = self._accept(array, plan.spec, sizes)
                    alive.append(array)
                append(address_of(array))
            elif kind == _SCALAR:
                append(_scalar(self.name, plan, next(given)))
            else:
                append(plan.name)
        if self._symbolic:
            native = [sizes[value] if isinstance(value, str) else value for value in native]
        if self._aligned:
            self._check_alignment(native)
        if self._pairs:
            self._check_overlap(native, sizes)
        code = self._function(*native)
        if not self._returns_status:
            return code
        if code:
            raise self.failure(code)
        return None

    def failure(self, code: int) -> MirError:
        """Returns the error of the status `code`."""
        return MirError(diagnostic_of(self.messages.get(code, f"{self.name} failed with status {code}")))

    def _accept(self, given: Any, spec: ArraySpec, sizes: dict[str, int]) -> NDArray[Any]:
        """Returns `given` as a numpy array that fits. Raises the error that says why it does not."""
        where = f"{self.name}: parameter '{spec.name}'"
        array: Any = given
        if not isinstance(array, np.ndarray):
            if not hasattr(array, "__dlpack__"):
                raise TypeError(
                    f"{where} takes an array, not {type(given).__name__}; numpy.asarray(…, dtype='{spec.dtype}') makes one"
                )
            try:
                array = np.from_dlpack(array)
            except (BufferError, RuntimeError, TypeError, ValueError) as error:
                raise TypeError(f"{where} cannot read this {type(given).__name__} without a copy: {error}") from None
        if array.dtype != spec.dtype:
            raise TypeError(f"{where} has dtype {spec.dtype}, got {array.dtype}; .astype('{spec.dtype}') converts")
        if len(array.shape) != len(spec.shape):
            raise ValueError(f"{where} has shape {_shape(spec.shape)}, got {_shape(array.shape)}")
        for dimension, (expected, actual) in enumerate(zip(spec.shape, array.shape, strict=True)):
            if isinstance(expected, str):
                if sizes.setdefault(expected, actual) != actual:
                    raise ValueError(
                        f"{where} has shape {_shape(spec.shape)}, got {_shape(array.shape)}: "
                        f"{expected} is {sizes[expected]} in an earlier argument"
                    )
            elif expected != actual:
                raise ValueError(
                    f"{where} has shape {_shape(spec.shape)}, got {_shape(array.shape)}: dimension {dimension} differs"
                )
        flags = array.flags
        if not flags.c_contiguous:
            raise ValueError(f"{where} must be C-contiguous; numpy.ascontiguousarray(…) makes it so")
        if not flags.aligned:
            raise ValueError(f"{where} must be aligned to its dtype; .copy() makes it so")
        if spec.is_output and not flags.writeable:
            raise ValueError(f"{where} is written to, and the array is read-only; pass one that can be written")
        return array

    def _check_alignment(self, native: Sequence[Any]) -> None:
        for (kind, plan, *_), address in zip(self._plan, native, strict=True):
            if kind == _ARRAY and address & (plan.alignment - 1):
                raise ValueError(
                    f"{self.name}: parameter '{plan.name}' must lie at a multiple of {plan.alignment} bytes; "
                    "pass an array that is allocated so"
                )

    def _check_overlap(self, native: Sequence[Any], sizes: Mapping[str, int]) -> None:
        """Checks that outputs share no memory with other arguments, as compiled code assumes."""
        for one, other, plan, other_plan in self._pairs:
            start, other_start = native[one], native[other]
            if start < other_start + (other_plan.nbytes or other_plan.extent(sizes)) and other_start < start + (
                plan.nbytes or plan.extent(sizes)
            ):
                raise ValueError(
                    f"{self.name}: parameters '{plan.name}' and '{other_plan.name}' share memory, "
                    f"and '{plan.name}' is written to; pass a copy"
                )


_word = ctypes.c_size_t.from_address


def _data_field() -> int | None:
    """Returns the offset of the data's address in an array object; None where it cannot be found.

    numpy's C API fixes the field right after the object's header; it is tried before it is relied on.
    """
    offset = object.__basicsize__
    for sample in (np.zeros(3), np.arange(12, dtype=np.int8)[5:], np.zeros((2, 2), dtype=np.float32)):
        if _word(id(sample) + offset).value != sample.__array_interface__["data"][0]:
            return None
    return offset


_DATA = _data_field()


def address_of(array: NDArray[Any]) -> int:
    """Returns the address of an array's first element."""
    if _DATA is None:
        return int(array.__array_interface__["data"][0])
    return _word(id(array) + _DATA).value


_ARRAY, _SCALAR, _SIZE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Plan:
    """The facts about a parameter that a call needs, flat and ready."""

    kind: int
    name: str
    spec: Any
    dtype: Any = None
    shape: Any = None
    flags: int = 0
    alignment: int = 1
    is_output: bool = False
    nbytes: int = 0
    """Bytes of an array whose sizes are all known, otherwise 0."""

    def extent(self, sizes: Mapping[str, int]) -> int:
        """Returns the bytes of the array when named sizes have these values."""
        return (
            math.prod(sizes[size] if isinstance(size, str) else size for size in self.spec.shape) * self.dtype.itemsize
        )

    @staticmethod
    def of(parameter: ParameterSpec) -> _Plan:
        match parameter:
            case ArraySpec():
                flags = _C_CONTIGUOUS | _ALIGNED | (_WRITEABLE if parameter.is_output else 0)
                known = tuple(size for size in parameter.shape if isinstance(size, int))
                # No shape equals None: arrays with sizes to find out take the careful way.
                shape = known if len(known) == len(parameter.shape) else None
                return _Plan(
                    _ARRAY,
                    parameter.name,
                    parameter,
                    np.dtype(parameter.dtype),
                    shape,
                    flags,
                    parameter.alignment,
                    parameter.is_output,
                    math.prod(known) * np.dtype(parameter.dtype).itemsize if shape is not None else 0,
                )
            case ScalarSpec():
                return _Plan(_SCALAR, parameter.name, parameter, np.dtype(parameter.dtype))
            case SizeSpec():
                return _Plan(_SIZE, parameter.name, parameter)


def _scalar_type(name: str, dtype: np.dtype[Any]) -> type[ctypes._SimpleCData[Any]]:  # pyright: ignore[reportPrivateUsage]
    found = _C_TYPES.get(np.dtype(dtype).name)
    if found is None:
        raise TypeError(f"'{name}' is a scalar of dtype {dtype}, which cannot be passed by value; pass an array of it")
    return found


def _scalar(function: str, plan: _Plan, given: Any) -> int | float | bool:
    """Returns a Python number that fits the parameter."""
    kind = plan.dtype.kind
    if isinstance(given, np.ndarray | np.generic):
        if given.ndim:
            raise TypeError(f"{function}: parameter '{plan.name}' is a number, got an array of shape {given.shape}")
        given = given.item()
    if kind == "f" and isinstance(given, int | float):
        return float(given)
    if kind == "b" and isinstance(given, int) and given in (0, 1):
        return bool(given)
    if kind in "iu" and isinstance(given, int):
        limits = np.iinfo(plan.dtype)
        if not limits.min <= given <= limits.max:
            raise ValueError(f"{function}: parameter '{plan.name}' is {given}, which {plan.dtype} does not hold")
        return given
    raise TypeError(
        f"{function}: parameter '{plan.name}' takes {with_article(str(plan.dtype))}, not {type(given).__name__} {given!r}"
    )


def _shape(shape: Sequence[int | str]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


_LOCATED = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): error: (?P<message>.*)", re.DOTALL)


def diagnostic_of(text: str) -> Diagnostic:
    """Returns the diagnostic that a message of `converter.MESSAGES` was made from."""
    found = _LOCATED.fullmatch(text)
    if found is None:
        return Diagnostic(text)
    return Diagnostic(found["message"], file_loc(found["file"], int(found["line"]), int(found["column"])))


def messages_of(module: Any) -> dict[int, str]:
    """Returns the messages of the status codes of a converted module's functions."""
    from xdsl.dialects.builtin import DictionaryAttr, StringAttr

    from ..convert.converter import MESSAGES

    table = module.attributes.get(MESSAGES)
    if not isinstance(table, DictionaryAttr):
        return {}
    return {int(code): text.data for code, text in table.data.items() if isinstance(text, StringAttr)}
