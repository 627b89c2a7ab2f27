"""A Relay entry in native code: one call with a table of addresses."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute

from ..dialects.array import ArrayValueAttr, numpy_dtype
from ..dialects.tir.types import type_to_dtype
from ..lowering.llvm.call import address_of, diagnostic_of
from ..lowering.llvm.jit import CompiledModule
from ..lowering.pipeline import Options
from ..lowering.relay.extents import MOST_EXTENT
from ..lowering.relay.heap import CONSTANTS as CONSTANTS_AT
from ..lowering.relay.heap import CONTEXT_BYTES, DEPTH, END, GROWN, SIZES, STACK_LIMIT, TOP
from ..lowering.relay.heap import PREPARED as PREPARED_AT
from ..lowering.relay.leaves import WORD
from ..lowering.relay.lower_relay_to_llvm import CONSTANTS, ENTRY, FINISH, MEMORY
from ..lowering.relay.memory_plan import ALIGNMENT, align
from ..lowering.relay.prepare import PREPARE, PREPARE_ONLY, PREPARED
from ..support.diagnostics import MirError
from ..support.words import counted
from .entry import Arguments, rebuild, result_tensors
from .executable import Array, Executable, Param, as_array, check_array
from .native import messages_of
from .stack import stack_limit
from .threads import use_threads

LARGE_BYTES = 1 << 20
"""Outputs from this size on are used again when the caller has dropped them."""
MOST_ARENA = 1 << 30
"""Bytes of heap that a context keeps between calls at most, beyond what is planned."""
KEPT = 2
"""How many arrays an output keeps: the one that the caller still looks at, and the one to write next."""


class RelayExecutable(Executable):
    """A compiled Relay entry. `arena_bytes` is what a call's tensors take besides inputs, results and constants;
    `arena_lower_bound` is the most of it that is needed at one time."""

    kind = "relay"

    def __init__(
        self,
        options: Options,
        params: Sequence[Param],
        arguments: Arguments,
        result: Attribute,
        module: ModuleOp,
        code: CompiledModule,
        threads: int | None,
    ):
        self.name = options.entry
        self.params = params
        self._arguments = arguments if arguments.has_tuples else None
        self._code = code
        self._threads = threads
        # A prototype of its own, so that no other use of the address can change how it is called.
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address(ENTRY))
        self._messages = messages_of(module)
        self._result_type = result
        self._outputs = [_output(tuple(t.get_shape()), _dtype(t)) for t in result_tensors(result)]
        dynamic = any(isinstance(output, _DynamicOutput) for output in self._outputs)
        finish = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
        self._finish = finish(code.address(FINISH)) if dynamic else None
        self._single = isinstance(result, TensorType)
        self._inputs = [(param, tuple(param.shape), numpy_dtype(param.dtype)) for param in params]
        self._constants = [_contiguous(attr) for attr in _constants(module)]
        self._constant_table = (ctypes.c_void_p * max(1, len(self._constants)))(*map(address_of, self._constants))
        memory = module.attributes[MEMORY]
        assert isinstance(memory, DictionaryAttr)
        self.arena_bytes, self.arena_lower_bound = (_number(memory, key) for key in ("arena", "lower_bound"))
        self._prepared = _Prepared(module)
        self._tables = (ctypes.addressof(self._constant_table), self._prepared.address)
        self._prepare(module)
        self._table_type = ctypes.c_uint64 * (1 + len(self._inputs) + len(self._outputs))
        # Contexts that no call is using; list.pop and append are atomic, so that threads share it without a lock.
        self._idle: list[_Context] = []

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants that calls read as they are."""
        return sum(array.nbytes for array in self._constants)

    @property
    def prepared_bytes(self) -> int:
        """Bytes of what was computed from constants when the code was loaded, such as packed weights."""
        return self._prepared.bytes

    def __call__(self, *args: Any) -> Any:
        inputs = self._inputs
        if self._arguments is not None:
            args = tuple(self._arguments.flat(args))
        if len(args) != len(inputs):
            names = ", ".join(param.name for param in self.params)
            raise TypeError(f"{self.name} takes {counted(len(inputs), 'argument')} ({names}), not {len(args)}")
        arrays: list[Array] = []
        addresses: list[int] = []
        descriptors: list[ctypes.Array[ctypes.c_uint64]] = []
        for value, (param, shape, dtype) in zip(args, inputs, strict=True):
            usual = type(value) is np.ndarray and value.dtype == dtype and value.shape == shape
            if not (usual and value.flags.c_contiguous):
                value = as_array(value, param)
                check_array(value, param)
            arrays.append(value)
            if "?" in shape:
                descriptors.append(_descriptor(value, param))
                addresses.append(ctypes.addressof(descriptors[-1]))
            else:
                addresses.append(address_of(value))
        outputs = [output.take() for output in self._outputs]
        try:
            context = self._idle.pop()
        except IndexError:
            context = _Context(self.arena_bytes, self._tables)
        context.words[STACK_LIMIT // WORD] = stack_limit()
        table = self._table_type(context.address, *addresses, *map(address_of, outputs))
        use_threads(self._threads)
        status = self._call(ctypes.addressof(table))
        if status != 0:
            context.words[DEPTH // WORD] = 0
        elif self._finish is not None:
            outputs = [output.read(array) for output, array in zip(self._outputs, outputs, strict=True)]
        if self._finish is not None:
            self._finish(context.address)
        sizes = [ctypes.c_int64(context.words[SIZES // WORD + k]).value for k in range(2)]
        self._idle.append(context.grown())
        if status != 0:
            message = self._messages.get(status, f"{self.name} failed with status {status}")
            for size in sizes:
                message = message.replace("{size}", str(size), 1)
            raise MirError(diagnostic_of(message))
        return outputs[0] if self._single else rebuild(self._result_type, list(outputs))

    def _prepare(self, module: ModuleOp) -> None:
        """Computes what depends on constants only; gives constants up that nothing needs from then on."""
        if not self._prepared.places:
            return
        context = _Context(0, self._tables)
        context.words[STACK_LIMIT // WORD] = stack_limit()
        table = (ctypes.c_uint64 * (1 + len(self._prepared.places)))(context.address, *self._prepared.places)
        use_threads(self._threads)
        status: int = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self._code.address(PREPARE))(
            ctypes.addressof(table)
        )
        if status != 0:
            raise MirError(diagnostic_of(self._messages.get(status, f"{self.name} failed with status {status}")))
        unused = module.attributes[PREPARE_ONLY]
        assert isinstance(unused, IntegerAttr)
        for index in range(len(self._constants) - unused.value.data, len(self._constants)):
            self._constant_table[index] = None
        del self._constants[len(self._constants) - unused.value.data :]


class _Prepared:
    """The memory of what is computed from constants when the code is loaded, and the table of addresses for the code."""

    def __init__(self, module: ModuleOp):
        attr = module.attributes.get(PREPARED)
        sizes = (
            [item.value.data for item in attr.data if isinstance(item, IntegerAttr)]
            if isinstance(attr, ArrayAttr)
            else []
        )
        starts = list(accumulate(map(align, sizes), initial=0))
        self.bytes = sum(sizes)
        self.memory = np.empty(starts[-1] + ALIGNMENT, np.uint8)
        base = -(-address_of(self.memory) // ALIGNMENT) * ALIGNMENT
        self.places = [base + start for start in starts[:-1]]
        self.table = (ctypes.c_void_p * max(1, len(sizes)))(*self.places)
        self.address = ctypes.addressof(self.table)


class _Context:
    """What one call at a time works with: the heap's first chunk and the words that the code keeps there."""

    def __init__(self, arena: int, tables: tuple[int, int]):
        self.arena, self.tables = arena, tables
        self.memory = np.empty(arena + ALIGNMENT, np.uint8)
        start = -(-address_of(self.memory) // ALIGNMENT) * ALIGNMENT
        self.words = (ctypes.c_uint64 * (CONTEXT_BYTES // WORD))()
        self.words[TOP // WORD] = start
        self.words[END // WORD] = start + arena
        self.words[CONSTANTS_AT // WORD], self.words[PREPARED_AT // WORD] = tables
        self.address = ctypes.addressof(self.words)

    def grown(self) -> _Context:
        """The context for the next call: with a larger first chunk where this call had to ask for memory."""
        more: int = self.words[GROWN // WORD]
        if more == 0:
            return self
        self.words[GROWN // WORD] = 0
        if self.arena + more > MOST_ARENA:
            return self
        return _Context(self.arena + more, self.tables)


class _DynamicOutput:
    """An output of which the shape is known after the call: native code gives the address of its descriptor."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]):
        self.shape, self.dtype = shape, dtype
        self._last = _Output((0,), dtype)

    def take(self) -> Array:
        """A place for the address."""
        return np.empty(1, np.uint64)

    def read(self, place: Array) -> Array:
        """A copy of the tensor, whose memory is about to be given back."""
        count = 1 + self.shape.count(DYNAMIC_INDEX)
        data, *sizes = (ctypes.c_uint64 * count).from_address(int(place[0]))
        extents = iter(sizes)
        shape = tuple(next(extents) if e == DYNAMIC_INDEX else e for e in self.shape)
        last = self._last
        if last.shape != shape:
            last = self._last = _Output(shape, self.dtype)
        result = last.take()
        ctypes.memmove(address_of(result), data, result.nbytes)
        return result


class _Output:
    """Arrays for one output. Large ones that the caller has dropped are handed out again: fresh memory costs the
    operating system as much time to clear as a simple kernel takes."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]):
        self.shape, self.dtype = shape, dtype
        self.large = dtype.itemsize * int(np.prod(shape, dtype=np.int64)) >= LARGE_BYTES
        self.given: list[Array] = []

    def read(self, array: Array) -> Array:
        """The tensor, which was written where it was wanted."""
        return array

    def take(self) -> Array:
        """An array that nobody else holds."""
        if not self.large:
            return np.empty(self.shape, self.dtype)
        for _ in range(len(self.given)):
            try:
                array = self.given.pop(0)
            except IndexError:  # another thread took it
                break
            # Held by `array` and by the call of getrefcount alone: no name, no view and no DLPack tensor is left.
            if sys.getrefcount(array) == 2:
                self.given.append(array)
                return array
            self.given.append(array)
        array = np.empty(self.shape, self.dtype)
        self.given = [*self.given[1 - KEPT :], array]
        return array


def _output(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> _Output | _DynamicOutput:
    return _DynamicOutput(shape, dtype) if DYNAMIC_INDEX in shape else _Output(shape, dtype)


def _descriptor(array: Array, param: Param) -> ctypes.Array[ctypes.c_uint64]:
    """What native code knows of a tensor with `?`: its address, then the extent of each `?`."""
    extents = [given for given, declared in zip(array.shape, param.shape, strict=True) if declared == "?"]
    for axis, extent in enumerate(array.shape):
        if extent > MOST_EXTENT:
            raise ValueError(f"dimension {axis} of '{param.name}' is {extent}; native code counts up to {MOST_EXTENT}")
    return (ctypes.c_uint64 * (1 + len(extents)))(address_of(array), *extents)


def _constants(module: ModuleOp) -> list[ArrayValueAttr]:
    table = module.attributes[CONSTANTS]
    assert isinstance(table, ArrayAttr)
    return [attr for attr in table.data if isinstance(attr, ArrayValueAttr)]


def _contiguous(attr: ArrayValueAttr) -> Array:
    """The constant's data where native code can read it. Data of a side file stays mapped where it is aligned."""
    array = attr.array
    if address_of(array) % array.dtype.itemsize == 0:
        return array
    return array.copy()


def _dtype(type: TensorType[Attribute]) -> np.dtype[np.generic]:
    return numpy_dtype(type_to_dtype(type.element_type))


def _number(attrs: DictionaryAttr, key: str) -> int:
    value = attrs.data[key]
    assert isinstance(value, IntegerAttr)
    return value.value.data
