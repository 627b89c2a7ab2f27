"""Arrays under TVM's names: `nd.array(…)` holds a numpy array on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray as NumpyArray


class NDArray:
    """An array; `numpy()` gives a copy that may be written to."""

    __slots__ = ("_array",)

    def __init__(self, array: NumpyArray[Any]):
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        return self._array.shape

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        return self._array.dtype.name

    def numpy(self) -> NumpyArray[Any]:
        """The array as numpy's."""
        return self._array.copy()

    asnumpy = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumpyArray[Any]:
        return self._array.copy() if dtype is None else self._array.astype(dtype)

    def __repr__(self) -> str:
        return f"NDArray({self._array!r})"


def array(value: object) -> NDArray:
    """An array of a numpy array, a list or a number."""
    return NDArray(np.array(value))


def as_numpy(value: object) -> NumpyArray[Any]:
    """The value as a numpy array that nobody else writes to. Raises TypeError for what holds no numbers."""
    result: NumpyArray[Any] = value.numpy() if isinstance(value, NDArray) else np.array(value)
    if result.dtype.kind in "OUSMmc":
        raise TypeError(f"a tensor is of numbers, not of {value!r}")
    return result
