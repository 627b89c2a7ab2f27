"""Arrays by TVM's names: `nd.array(…)` holds a numpy array, which compiled functions write in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray as NumpyArray

from ..dialects.array import ArrayHolder, numpy_dtype
from ..support.arguments import check_text, integer, items


@dataclass(frozen=True)
class Device:
    """A device by TVM's name and number; the CPU is the only one."""

    type: str = "cpu"
    index: int = 0

    def __repr__(self) -> str:
        return f"{self.type}({self.index})"


def cpu(dev_id: int = 0) -> Device:
    """The CPU."""
    return Device("cpu", dev_id)


def virtual_device(device: Device | str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns the attribute `VirtualDevice(…)` of Relay's text for a device, a device's name, or itself.

    Raises ValueError for a name that is not a device's.
    """
    if device is None or isinstance(device, Mapping):
        return device
    type, index = (device.type, device.index) if isinstance(device, Device) else (device, 0)
    number = _DEVICE_TYPES.get(type)
    if number is None:
        raise ValueError(f"there is no device {type!r}; there are {', '.join(_DEVICE_TYPES)}")
    return {"node": "VirtualDevice", "device_type": number, "virtual_device_id": index}


_DEVICE_TYPES = {"cpu": 1, "llvm": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10, "ext_dev": 12}
"""The numbers of devices in TVM's and DLPack's files; programs run on the CPU, whatever device they name."""


class NDArray(ArrayHolder):
    """An array; `numpy()` returns a copy that may be written to."""

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

    @property
    def device(self) -> Device:
        """Returns the device that holds the array."""
        return Device()

    @property
    def storage(self) -> NumpyArray[Any]:
        """The array itself, as compiled functions take it."""
        return self._array

    def numpy(self) -> NumpyArray[Any]:
        """The array as numpy's."""
        return self._array.copy()

    asnumpy = numpy

    def copyfrom(self, source_array: object) -> NDArray:
        """Takes over the elements of another array. Raises ValueError for one of another shape."""
        other = as_numpy(source_array)
        if other.shape != self.shape:
            raise ValueError(f"an array of shape {self.shape} cannot hold one of shape {other.shape}")
        self._array[...] = other
        return self

    def copyto(self, target: NDArray | Device) -> NDArray:
        """Copies the elements to another array, or to a new one."""
        return array(self._array) if isinstance(target, Device) else target.copyfrom(self)

    def __getitem__(self, item: Any) -> Any:
        return self._array[item]

    def __setitem__(self, item: Any, value: Any) -> None:
        self._array[item] = as_numpy(value)

    def __len__(self) -> int:
        return len(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumpyArray[Any]:
        return self._array.copy() if dtype is None else self._array.astype(dtype)

    def __str__(self) -> str:
        return str(self._array)

    def __repr__(self) -> str:
        return f"NDArray({self._array!r})"


def array(arr: object, device: Device | None = None) -> NDArray:
    """Creates an array from a numpy array, a list or a number (rank 0).

    Raises TypeError for a value that holds no numbers.
    """
    return NDArray(np.asarray(as_numpy(arr), order="C"))


def empty(shape: int | Sequence[int], dtype: str = "float32", device: Device | None = None) -> NDArray:
    """Creates an array of zeros, to be written to.

    Raises TypeError and ValueError for a value that is not a shape, TypeError for a name that is not a dtype's.
    """
    sizes = items(shape, "shape", "sizes") if isinstance(shape, Iterable) else [shape]
    dims = [integer(size, "a size of the shape", 0) for size in sizes]
    check_text(dtype, "dtype", "the name of a dtype, such as 'float32'")
    try:
        kind = numpy_dtype(dtype)
    except TypeError:
        raise TypeError(f"{dtype!r} is not a dtype, such as 'float32'") from None
    return NDArray(np.zeros(dims, kind))


def as_numpy(value: object) -> NumpyArray[Any]:
    """The value as a numpy array that nobody else writes to. Raises TypeError for what holds no numbers."""
    result: NumpyArray[Any] = value.numpy() if isinstance(value, NDArray) else np.array(value)
    if result.dtype.kind in "OUSMmc":
        if isinstance(value, int):
            raise TypeError(f"no dtype holds an integer of {value.bit_length()} bits: the largest has 64")
        raise TypeError(f"a tensor is of numbers, not of {value!r}")
    return result
