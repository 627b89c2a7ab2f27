"""The address of an array's data, as fast as Python can tell it.

`array.ctypes.data` and `__array_interface__` build objects for every call and cost a microsecond. CPython's numpy keeps the
address at a fixed place behind the object's header, which is read here; that it is the right place is checked once, when
this is imported, and the slow way is taken where it is not.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_DATA_OFFSET = object.__basicsize__
"""Bytes from the start of an array object to its data pointer: the header that every object has."""

_read = ctypes.c_void_p.from_address


def _fast(array: NDArray[np.generic]) -> int:
    return _read(id(array) + _DATA_OFFSET).value or 0


def _portable(array: NDArray[np.generic]) -> int:
    return int(array.__array_interface__["data"][0])


def _fast_is_right() -> bool:
    if sys.implementation.name != "cpython":
        return False
    probes = (np.zeros(3), np.zeros((2, 5), "int8")[1:], np.zeros(4, "float32")[2:])
    return all(_fast(probe) == _portable(probe) for probe in probes)


address_of: Callable[[NDArray[np.generic]], int] = _fast if _fast_is_right() else _portable
"""The address of the first element of an array."""
