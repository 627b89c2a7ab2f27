"""A Relay entry in native code: one call with a table of addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialects.array_box import numpy_dtype
from ....dialects.extents import MOST_EXTENT
from ....support.diagnostics import MirError
from ....support.text import counted
from ...llvm.jit.call import address_of, diagnostic_of
from ...llvm.jit.load import CompiledModule
from ...relay.functions.calling_convention import DEPTH, ENTRY, FINISH, SIZES, WORD, no_memory_for
from ...runtime import use_threads
from ..program import RelayProgram
from .arguments import Arguments, flatten_tree, rebuild
from .call_memory import Context, DynamicOutput, Output, Prepared, output_of
from .direct_call import DirectCall, direct_call
from .executable import Array, Executable, Param, as_array, check_array, wrong_count
from .preparation import CALL, constant_table, contiguous, prepare_constants

if TYPE_CHECKING:
    from ..specialize import Variants

_C_CONTIGUOUS = 0x0001
"""Bit of `ndarray.flags.num` (numpy's C API, "Array flags")."""


class OutOfMemoryError(MirError, MemoryError):
    """Python's MemoryError for a call's results or its arena, with the place and the bytes."""


class RelayExecutable(Executable):
    """A compiled Relay entry.

    `arena_bytes` is the memory of a call's tensors besides inputs, results and constants; `arena_lower_bound` is the most of it that
    is needed at one time.
    """

    kind = "relay"

    def __init__(self, program: RelayProgram, code: CompiledModule, threads: int | None):
        self.name, self.result_names = program.entry, program.result_names
        self._profile_facts = program.profile
        arguments = Arguments(program.entry, program.params)
        self.params = arguments.tensors
        self._arguments = arguments if arguments.has_tuples else None
        self._code = code
        self._threads = threads
        self._call = CALL(code.address(ENTRY))
        self._messages = program.messages
        self._result = program.result
        self._outputs = [output_of(tensor.shape, numpy_dtype(tensor.dtype)) for tensor in flatten_tree(program.result)]
        self.num_results = len(self._outputs)
        dynamic = any(isinstance(output, DynamicOutput) for output in self._outputs)
        finish = code.address(FINISH) if dynamic else None
        self._finish = None if finish is None else CALL(finish)
        self._single = not isinstance(program.result, tuple)
        self._nested = isinstance(program.result, tuple) and any(isinstance(f, tuple) for f in program.result)
        self._inputs = [(param, tuple(param.shape), numpy_dtype(param.dtype)) for param in self.params]
        self._descriptors = [_Descriptor.of(shape) for _, shape, _ in self._inputs]
        self._constants = [contiguous(box) for box in program.constants]
        self._constant_table = constant_table(self._constants)
        self.arena_bytes, self.arena_lower_bound = program.arena, program.lower_bound
        self._prepared = Prepared(program.prepared, [box.array for box in program.contents])
        self._tables = (ctypes.addressof(self._constant_table), self._prepared.address)
        if program.prepared and not program.contents:
            prepare_constants(program, code, self._tables, self._prepared.places, threads)
            self._drop_constants(program.prepare_only)
        # Contexts that no call is using; list.pop and append are atomic, so that threads share it without a lock.
        self._idle: list[Context] = []
        self._direct = self._make_direct(finish)
        self._own_call: Callable[..., Any] = _declined if self._direct is None else self._direct.call
        self._direct_call = self._own_call
        """Tried first: that of this code, or of a variant's."""
        self.variants: Variants | None = None
        """The code for sizes of open dimensions that calls often have."""

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants that calls read as they are."""
        return sum(array.nbytes for array in self._constants)

    @property
    def prepared_bytes(self) -> int:
        """Bytes of what was computed from constants when the code was loaded, such as packed weights."""
        return self._prepared.bytes

    @property
    def prepared(self) -> list[Array]:
        """The bytes of each tensor that was prepared of constants."""
        return self._prepared.tensors

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            args = self._in_order(args, named)
        if self._arguments is not None:
            args = tuple(self._arguments.flat(args))
        try:
            result = self._direct_call(*args)
            if result is NotImplemented and self.variants is not None:
                result = self._sized_call(args, self.variants)
            elif result is NotImplemented:
                result = self._careful_call(args)
        except OutOfMemoryError:
            raise
        except MemoryError:
            raise self._no_memory() from None
        return rebuild(self._result, list(result)) if self._nested else result

    def specialize(self, variants: Variants) -> None:
        """Lets calls count their sizes, and take the code for these when there is any."""
        self.variants = variants
        self._direct_call = _declined

    def _sized_call(self, args: Sequence[Any], variants: Variants) -> Any:
        """Calls the code for the sizes of the arguments, otherwise the open code."""
        sizes = variants.sizes_of(args)
        variant = None if sizes is None else variants.find(sizes)
        if variant is not None:
            # Tried first by the next call; it declines arguments of other sizes.
            self._direct_call = variant._direct_call
            result = self._direct_call(*args)
            return variant._careful_call(args) if result is NotImplemented else result
        start = perf_counter()
        result = self._own_call(*args)
        if result is NotImplemented:
            result = self._careful_call(args)
        if sizes is not None:
            variants.met(sizes, perf_counter() - start)
        return result

    def _careful_call(self, args: Sequence[Any]) -> Any:
        """Checks the arguments one by one, and calls the program; returns its array, or a tuple of them."""
        inputs = self._inputs
        if len(args) != len(inputs):
            raise wrong_count(self.name, [param.name for param in self.params], len(args))
        arrays: list[object] = []
        addresses: list[int] = []
        for value, (param, shape, dtype), described in zip(args, inputs, self._descriptors, strict=True):
            usual = type(value) is np.ndarray and value.dtype == dtype and value.flags.num & _C_CONTIGUOUS
            if not (usual and (value.shape == shape if described is None else described.fits(value.shape))):
                value = as_array(value, param)
                check_array(value, param)
                arrays.append(value)
            if described is not None:
                descriptor = described.make(value, param)
                arrays.append(descriptor)
                addresses.append(ctypes.addressof(descriptor))
            else:
                addresses.append(address_of(value))
        try:
            outputs = [output.take() for output in self._outputs]
            context = self._take_context()
        except MemoryError:
            raise self._no_memory() from None
        thread = get_ident()
        if context.thread != thread:
            context.enter(thread)
        for place, address in enumerate((*addresses, *map(address_of, outputs)), 1):
            context.table[place] = address
        use_threads(self._threads)
        status = self._call(context.table_address)
        if status != 0:
            raise self._failure(status, context)
        if self._finish is not None:
            try:
                outputs = [output.read(array) for output, array in zip(self._outputs, outputs, strict=True)]
            finally:
                self._finish(context.address)
                self._give_context(context)
        else:
            self._give_context(context)
        return outputs[0] if self._single else tuple(outputs)

    def _take_context(self) -> Context:
        """Returns a context that no call uses."""
        context = None if self._direct is None else self._direct.take()
        if context is None:
            try:
                context = self._idle.pop()
            except IndexError:
                descriptors = sum(1 + len(each.open) for each in self._descriptors if each is not None)
                words = len(self._inputs) + len(self._outputs) + descriptors
                context = Context(self.arena_bytes, self._tables, words)
        return context

    def _make_direct(self, finish: int | None) -> DirectCall | None:
        """Returns the direct call, made at load time (10 ms, once a process)."""
        return direct_call(
            self._code.address(ENTRY),
            finish,
            [(shape, dtype) for _, shape, dtype in self._inputs],
            self._outputs,
            single=self._single,
            threads=self._threads,
            keep_alive=(self._code, self._constants, self._constant_table, self._prepared),
        )

    def _give_context(self, context: Context) -> None:
        """Keeps a context for the next call."""
        context = context.grown()
        if self._direct is None:
            self._idle.append(context)
        else:
            self._direct.give(context)

    def _failure(self, status: int, context: Context) -> MirError:
        """Returns the error of a status other than 0; the context is then ready for the next call."""
        from ....dialects.relay.operators.common.result_sizes import with_sizes

        context.words[DEPTH // WORD] = 0
        if self._finish is not None:
            self._finish(context.address)
        message = self._messages.get(status, f"{self.name} failed with status {status}")
        sizes = [ctypes.c_int64(context.words[SIZES // WORD + number]).value for number in range(2)]
        self._give_context(context)
        return MirError(diagnostic_of(with_sizes(message, sizes)))

    def _no_memory(self) -> OutOfMemoryError:
        """Returns the error for results or an arena that no memory is had for, located where the entry is."""
        text = no_memory_for(self.name)
        found = next((message for message in self._messages.values() if message.endswith(text)), text)
        taken = sum(output.bytes for output in self._outputs if isinstance(output, Output))
        results = "results" if self._finish is None else "results of known sizes"
        return OutOfMemoryError(
            diagnostic_of(found).with_note(
                f"its {results} take {counted(taken, 'byte')}, its other tensors {counted(self.arena_bytes, 'byte')}"
            )
        )

    def _drop_constants(self, unused: int) -> None:
        """Drops the last `unused` constants, which nothing reads any more."""
        for index in range(len(self._constants) - unused, len(self._constants)):
            self._constant_table[index] = None
        del self._constants[len(self._constants) - unused :]


def _declined(*_: Any) -> Any:
    """Stands for the direct call where there is none."""
    return NotImplemented


@dataclass(frozen=True)
class _Descriptor:
    """The form of descriptors of a parameter with `?`: its address, then the extent of each `?`."""

    words: type[ctypes.Array[ctypes.c_uint64]]
    rank: int
    open: list[int]
    fixed: list[int]
    """The axes that are not open."""
    extents: list[int]
    """Those of the fixed axes."""

    @staticmethod
    def of(shape: Sequence[int | str]) -> _Descriptor | None:
        """Returns the form for a declared shape; None where nothing is open."""
        opened = [axis for axis, extent in enumerate(shape) if not isinstance(extent, int)]
        fixed = [axis for axis, extent in enumerate(shape) if isinstance(extent, int)]
        extents = [extent for extent in shape if isinstance(extent, int)]
        return _Descriptor(ctypes.c_uint64 * (1 + len(opened)), len(shape), opened, fixed, extents) if opened else None

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Returns whether a shape is as declared."""
        return len(shape) == self.rank and [shape[axis] for axis in self.fixed] == self.extents

    def make(self, array: Array, param: Param) -> ctypes.Array[ctypes.c_uint64]:
        """Returns the descriptor of an array."""
        shape = array.shape
        extents = [shape[axis] for axis in self.open]
        if max(extents) > MOST_EXTENT:
            axis = next(axis for axis, extent in enumerate(shape) if extent > MOST_EXTENT)
            raise ValueError(
                f"dimension {axis} of '{param.name}' is {shape[axis]}; native code counts up to {MOST_EXTENT}"
            )
        return self.words(address_of(array), *extents)
