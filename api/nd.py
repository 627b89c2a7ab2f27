"""Arrays by TVM's names: `nd.array(…)` holds a numpy array, which compiled functions write in place.

The devices are those of `device`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray as NumpyArray

from ..dialects.array import ArrayHolder, numpy_dtype
from ..support.arguments import check_text, integer, items
from ..support.public_names import public_names
from .device import (
    Device,
    cl,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    opencl,
    require_here,
    rocm,
    vpi,
    vulkan,
    webgpu,
)


def virtual_device(device: Device | str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns the attribute `VirtualDevice(…)` of Relay's text for a device, a device's name, or itself.

    Raises ValueError for a name that is not a device's.
    """
    if device is None or isinstance(device, Mapping):
        return device
    found = Device.of(device)
    return {"node": "VirtualDevice", "device_type": found.device_type, "virtual_device_id": found.device_id}


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

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copies the elements to another array, or to a new one."""
        return array(self._array, target) if isinstance(target, Device) else target.copyfrom(self)

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one object."""
        return self is other

    def to_dlpack(self) -> Any:
        """Returns the memory as a capsule of DLPack, which another library takes over."""
        return self._array.__dlpack__()

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self._array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

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


def array(arr: object, device: Device | None = None, mem_scope: str | None = None) -> NDArray:
    """Creates an array from a numpy array, a list or a number (rank 0); `mem_scope` is ignored.

    Raises TypeError for a value that holds no numbers, ValueError for a device that is not there.
    """
    require_here(device)
    return NDArray(np.asarray(as_numpy(arr), order="C"))


def empty(
    shape: int | Sequence[int], dtype: str = "float32", device: Device | None = None, mem_scope: str | None = None
) -> NDArray:
    """Creates an array of zeros, to be written to.

    Raises TypeError and ValueError for a value that is not a shape, TypeError for a name that is not a dtype's.
    """
    require_here(device)
    sizes = items(shape, "shape", "sizes") if isinstance(shape, Iterable) else [shape]
    dims = [integer(size, "a size of the shape", 0) for size in sizes]
    check_text(dtype, "dtype", "the name of a dtype, such as 'float32'")
    try:
        kind = numpy_dtype(dtype)
    except TypeError:
        raise TypeError(f"{dtype!r} is not a dtype, such as 'float32'") from None
    return NDArray(np.zeros(dims, kind))


def from_numpy(array: object) -> NDArray:
    """Returns a numpy array as an NDArray of the same memory. Raises TypeError for another value."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy takes a numpy array, not {type(array).__name__}; nd.array takes lists and numbers")
    return NDArray(cast("NumpyArray[Any]", array))


def from_dlpack(dltensor: object) -> NDArray:
    """Returns another library's tensor as an NDArray of the same memory.

    Raises TypeError for what has no DLPack, ValueError for memory of another device.
    """
    if not hasattr(dltensor, "__dlpack__"):
        raise TypeError(f"from_dlpack takes a tensor with DLPack, not {type(dltensor).__name__}")
    try:
        return NDArray(np.from_dlpack(cast("Any", dltensor)))
    except (BufferError, RuntimeError) as error:
        raise ValueError(f"this {type(dltensor).__name__} cannot be read through DLPack: {error}") from None


def as_numpy(value: object) -> NumpyArray[Any]:
    """The value as a numpy array that nobody else writes to. Raises TypeError for what holds no numbers."""
    result: NumpyArray[Any] = value.numpy() if isinstance(value, NDArray) else np.array(value)
    if result.dtype.kind in "OUSMmc":
        if isinstance(value, int):
            raise TypeError(f"no dtype holds an integer of {value.bit_length()} bits: the largest has 64")
        raise TypeError(f"a tensor is of numbers, not of {value!r}")
    return result


__all__ = [
    "Device", "NDArray", "array", "as_numpy", "cl", "cpu", "cuda", "device", "empty", "ext_dev", "from_dlpack", "from_numpy", "gpu", "hexagon", "metal",
    "opencl", "rocm", "virtual_device", "vpi", "vulkan", "webgpu",
]  # fmt: skip


__dir__ = public_names(__name__)
