"""Defines boxes of numpy arrays that compare by value, and conversions of arrays, without xDSL.

What runs programs from the cache holds its constants in these boxes; in the IR they are attributes (`array.py`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


HASHED_ITEMS = 64

_SCALARS = {
    "bool": Struct("<?"), "float16": Struct("<e"), "float32": Struct("<f"), "float64": Struct("<d"),
    "int8": Struct("<b"), "int16": Struct("<h"), "int32": Struct("<i"), "int64": Struct("<q"),
    "uint8": Struct("<B"), "uint16": Struct("<H"), "uint32": Struct("<I"), "uint64": Struct("<Q"),
}  # fmt: skip


_ML_DTYPES = {
    **{
        name: name
        for name in ("bfloat16", "int2", "uint2", "int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")
    },
    **{name: name for name in ("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn")},
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
}
"""The dtypes that are those of ml_dtypes, and their names there."""


class ArrayBox:
    """A numpy array compared by value: same dtype, shape and bytes. The data is hashed once, at first use.

    `dtype` is numpy's name. `origin` is (side file, name in it) for an array read from a file, which is then
    written as a reference. A scalar created by `scalar` needs numpy only when its array is read.
    """

    __slots__ = ("_array", "_contents", "_packed", "dtype", "origin", "shape")

    def __init__(self, array: NDArray[np.generic], origin: tuple[str, str] | None = None):
        import numpy as np

        self._array: NDArray[np.generic] | None = np.ascontiguousarray(array).reshape(array.shape)
        self._packed = b""
        self._contents: bytes | None = None
        self.dtype: str = array.dtype.name
        self.shape: tuple[int, ...] = array.shape
        self.origin = origin

    @classmethod
    def scalar(cls, value: float, dtype: str) -> ArrayBox:
        """Creates an array of rank 0: an integer, a bool, or a float rounded to `dtype` (perhaps infinity)."""
        if dtype not in _SCALARS:
            import numpy as np

            return cls(np.array(value).astype(numpy_dtype(dtype)))
        box = cls.__new__(cls)
        try:
            box._packed = _SCALARS[dtype].pack(value)
        except OverflowError:
            box._packed = _SCALARS[dtype].pack(math.copysign(math.inf, value))
        box._array = box._contents = box.origin = None
        box.dtype, box.shape = dtype, ()
        return box

    @property
    def array(self) -> NDArray[np.generic]:
        """Returns the data, row-major contiguous."""
        if self._array is None:
            import numpy as np

            self._array = np.frombuffer(self._packed, numpy_dtype(self.dtype)).reshape(())
        return self._array

    def give_up(self) -> None:
        """Frees the data of a box that only garbage refers to; only its hash is needed from then on."""
        self._packed = self.beginning()
        self._array = None

    def item(self) -> float:
        """Returns the value of an array of one element, as a Python number."""
        if self._packed:
            return _SCALARS[self.dtype].unpack(self._packed)[0]
        return self.array.item()  # type: ignore[return-value]

    def beginning(self, count: int = HASHED_ITEMS) -> bytes:
        """Returns the bytes of the first elements: of an array of rank 0, all."""
        return self._packed or self.array.reshape(-1)[:count].tobytes()

    @property
    def label(self) -> str:
        """Returns a label for contents that are not printed: side file and name in it, otherwise the digest."""
        return ", ".join(f'"{part}"' for part in self.origin or (self.digest.hex(),))

    @property
    def digest(self) -> bytes:
        """Returns a hash of dtype, shape and contents."""
        return hashlib.sha256(f"{self.dtype}{self.shape}".encode() + self.contents).digest()[:16]

    @property
    def is_hashed(self) -> bool:
        """Returns whether the contents have been hashed."""
        return self._contents is not None

    @property
    def contents(self) -> bytes:
        """Returns the SHA-256 of the data, the fastest good hash: processors have instructions for it."""
        if self._contents is None:
            self._contents = hashlib.sha256(self._packed or self.array.reshape(-1).view("uint8").data).digest()
        return self._contents

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayBox):
            return False
        if self is other or (self._array is not None and self._array is other._array):
            return True
        return self.shape == other.shape and self.dtype == other.dtype and self.digest == other.digest

    def __hash__(self) -> int:
        # The beginning tells most arrays apart without reading a large, perhaps mapped, one whole.
        return hash((self.shape, self.dtype, self.beginning()))


def hashed(array: NDArray[np.generic]) -> ArrayBox:
    """Returns an array that has just been read, hashed while it is still in the processor's cache."""
    box = ArrayBox(array)
    _ = box.digest
    return box


class ArrayHolder:
    """An object that holds an array which compiled functions write in place, as `mirstack.nd.NDArray`."""

    __slots__ = ()

    @property
    def storage(self) -> NDArray[Any]:
        """Returns the array itself, as compiled functions take it."""
        raise NotImplementedError


def storage_of(value: object) -> Any:
    """Returns a compiled function's argument: the array of a holder, otherwise the value itself."""
    return value.storage if isinstance(value, ArrayHolder) else value


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """Returns the numpy dtype that TVM calls `name`, through ml_dtypes for those that numpy lacks.

    Raises TypeError for an unknown name.
    """
    import numpy as np

    if name in _ML_DTYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return np.dtype(name)


def laid_out(array: NDArray[np.generic], strides: Sequence[int]) -> NDArray[np.generic]:
    """Copies the array with these strides, in elements, into memory of the compact array that has them."""
    import numpy as np

    steps = list(zip(array.shape, strides, strict=True))
    elements = max(1 + sum((size - 1) * step for size, step in steps), *(size * step for size, step in steps), 1)
    memory = np.zeros(elements if array.size else 0, array.dtype)
    copy = np.ndarray(array.shape, array.dtype, memory, 0, [step * array.itemsize for step in strides])
    copy[...] = array
    return copy
