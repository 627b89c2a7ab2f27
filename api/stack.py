"""How far down this thread's stack may grow: what native recursion compares its frame's address with."""

from __future__ import annotations

import ctypes
import sys
import threading

MARGIN = 256 * 1024
"""Bytes kept free below the limit, for kernels and signal handlers."""

_LOCAL = threading.local()


def stack_limit() -> int:
    """The lowest address that native code may use on this thread's stack."""
    limit = getattr(_LOCAL, "limit", None)
    if limit is None:
        limit = _LOCAL.limit = _lowest_address() + MARGIN
    return limit


def _lowest_address() -> int:
    """The end of this thread's stack, as the system's thread library tells it."""
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
