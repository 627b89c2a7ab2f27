"""Manages the memory of a Relay program: contexts of calls, prepared tensors, arrays of results."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...llvm.jit.call import address_of
from ...relay.functions.calling_convention import (
    CONSTANTS,
    CONTEXT_BYTES,
    DEPTH,
    END,
    GROWN,
    PREPARED,
    STACK_LIMIT,
    TOP,
    WORD,
)
from ...relay.memory.alignment import ALIGNMENT, align
from ..program import DYNAMIC
from .executable import Array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

LARGE_BYTES = 1 << 20
"""Outputs from this size on are used again when the caller has dropped them."""
MOST_ARENA = 1 << 30
"""Bytes of heap that a context keeps between calls at most, beyond what is planned."""
KEPT = 2
"""How many arrays an output keeps: the one that the caller still looks at, and the one to write next."""
STACK_MARGIN = 256 * 1024
"""Bytes kept free below the limit, for kernels and signal handlers."""

_LOCAL = threading.local()


def allocator() -> Callable[[tuple[int, ...] | int, DTypeLike], Array]:
    """Returns what makes arrays that nothing has written yet.

    With `MIRSTACK_POISON` in the environment each of their bytes is 127, so that what code leaves unwritten shows. An array that
    numpy makes often has the memory, and the numbers, of the one that was dropped last.
    """
    return _poisoned if os.environ.get("MIRSTACK_POISON") else np.empty


def _poisoned(shape: tuple[int, ...] | int, dtype: DTypeLike) -> Array:
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = 127
    return array


class Prepared:
    """Holds tensors that were computed from constants, now or before, and the table of their addresses.

    Memory that is `cleared` has the same bytes between tensors, and where none is written, every time.
    """

    def __init__(self, sizes: Sequence[int], contents: Sequence[Array] = (), *, cleared: bool = False):
        self.bytes = sum(sizes)
        self.tensors = [*contents]
        """The bytes of each."""
        if not contents:
            starts = list(accumulate(map(align, sizes), initial=ALIGNMENT))
            memory = (np.zeros if cleared else allocator())(starts[-1], np.uint8)
            first = -address_of(memory) % ALIGNMENT - ALIGNMENT
            self.tensors = [
                memory[first + start : first + start + size] for start, size in zip(starts, sizes, strict=False)
            ]
        self.places = list(map(address_of, self.tensors))
        self.table = (ctypes.c_void_p * max(1, len(sizes)))(*self.places)
        self.address = ctypes.addressof(self.table)


class Link(ctypes.Structure):
    """A context as `lowering/runtime/call.ll` keeps it while no call uses it."""

    _fields_ = (
        ("next", ctypes.c_void_p), ("thread", ctypes.c_int64), ("table", ctypes.c_void_p), ("depth", ctypes.c_void_p),
        ("grown", ctypes.c_void_p),
    )  # fmt: skip


class Context:
    """The memory of one call at a time.

    It is the heap's first chunk, the words that the code keeps there, and the table of addresses that the code is called with, the
    first of which is that of the words. The table has `arguments` more words; to its end direct calls write descriptors of inputs.
    """

    def __init__(self, arena: int, tables: tuple[int, int], arguments: int):
        self.arena, self.tables, self.arguments = arena, tables, arguments
        self.memory = allocator()(arena + ALIGNMENT, np.uint8)
        start = -(-address_of(self.memory) // ALIGNMENT) * ALIGNMENT
        self.words = (ctypes.c_uint64 * (CONTEXT_BYTES // WORD))()
        self.words[TOP // WORD] = start
        self.words[END // WORD] = start + arena
        self.words[CONSTANTS // WORD], self.words[PREPARED // WORD] = tables
        self.address = ctypes.addressof(self.words)
        self.table = (ctypes.c_uint64 * (1 + arguments))(self.address)
        self.table_address = ctypes.addressof(self.table)
        self.thread = 0
        """The thread that called last."""
        self.link = Link(None, 0, self.table_address, self.address + DEPTH, self.address + GROWN)
        self.link_address = ctypes.addressof(self.link)

    def enter(self, thread: int) -> None:
        """Another thread is to call: its stack is another."""
        self.words[STACK_LIMIT // WORD] = stack_limit()
        self.thread = self.link.thread = thread

    def grown(self) -> Context:
        """Returns the context for the thread's next call, larger where this call had to allocate memory."""
        more: int = self.words[GROWN // WORD]
        if more == 0:
            return self
        self.words[GROWN // WORD] = 0
        if self.arena + more > MOST_ARENA:
            return self
        larger = Context(self.arena + more, self.tables, self.arguments)
        larger.enter(self.thread)
        return larger


class Output:
    """Arrays for one output.

    Large ones that the caller has dropped are used again: fresh memory costs the operating system as much time to clear as a simple
    kernel takes.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]):
        self.shape, self.dtype = shape, dtype
        self.bytes = dtype.itemsize * prod(shape)
        self.large = self.bytes >= LARGE_BYTES
        self.given: list[Array] = []
        self.new = allocator()

    def maker(self) -> tuple[Callable[..., Array], tuple[object, ...]]:
        """Returns the function that creates the arrays of `take`, and its arguments."""
        return (self.take, ()) if self.large else (self.new, (self.shape, self.dtype))

    def read(self, array: Array) -> Array:
        """Returns the tensor, which was written in place."""
        return array

    def take(self) -> Array:
        """Returns an array that nobody else holds."""
        if not self.large:
            return self.new(self.shape, self.dtype)
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
        array = self.new(self.shape, self.dtype)
        self.given = [*self.given[1 - KEPT :], array]
        return array


class DynamicOutput:
    """An output whose shape is known after the call: native code returns the address of its descriptor."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]):
        self.shape, self.dtype = shape, dtype
        self._last = Output((0,), dtype)
        self.new = allocator()
        self._words = ctypes.c_uint64 * (1 + shape.count(DYNAMIC))

    def maker(self) -> tuple[Callable[..., Array], tuple[object, ...]]:
        """Returns the function that creates an array, and its arguments; the shape is not known yet."""
        return self.new, (None, self.dtype)

    def take(self) -> Array:
        """Returns a place for the address."""
        return np.empty(1, np.uint64)

    def read(self, place: Array) -> Array:
        """Returns a copy of the tensor, whose memory is about to be freed."""
        return self.copy(int(place[0]))

    def copy(self, descriptor: int) -> Array:
        """Returns a copy of the tensor whose descriptor is at an address."""
        data, *sizes = self._words.from_address(descriptor)
        extents = iter(sizes)
        shape = tuple([next(extents) if e == DYNAMIC else e for e in self.shape])
        last = self._last
        if last.shape != shape:
            last = self._last = Output(shape, self.dtype)
        result = last.take()
        ctypes.memmove(address_of(result), data, result.nbytes)
        return result


def output_of(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Output | DynamicOutput:
    """Returns the output of this type."""
    return DynamicOutput(shape, dtype) if DYNAMIC in shape else Output(shape, dtype)


def stack_limit() -> int:
    """Returns the lowest address that native code may use on this thread's stack."""
    limit = getattr(_LOCAL, "limit", None)
    if limit is None:
        limit = _LOCAL.limit = _lowest_address() + STACK_MARGIN
    return limit


def _lowest_address() -> int:
    """Returns the end of this thread's stack, as the system's thread library tells it."""
    library = ctypes.CDLL(None)
    library.pthread_self.restype = ctypes.c_void_p
    thread = ctypes.c_void_p(library.pthread_self())
    if sys.platform == "darwin":
        library.pthread_get_stackaddr_np.restype = ctypes.c_void_p
        library.pthread_get_stacksize_np.restype = ctypes.c_size_t
        top = library.pthread_get_stackaddr_np(thread)
        return top - library.pthread_get_stacksize_np(thread)
    attributes = ctypes.create_string_buffer(256)
    address, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.pthread_getattr_np(thread, attributes)
    library.pthread_attr_getstack(attributes, ctypes.byref(address), ctypes.byref(size))
    library.pthread_attr_destroy(attributes)
    return address.value or 0
