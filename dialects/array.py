"""Constant arrays as an attribute: numpy data, held once, whatever its size."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from xdsl.ir import Data, Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


HASHED_ITEMS = 64


class ArrayBox:
    """A numpy array with value equality: same dtype, same shape, same bytes. The digest is computed once, when first asked for.

    `origin` is (side file, name in it) for an array that was read from one, which is then written as a reference.
    """

    __slots__ = ("_digest", "array", "origin")

    def __init__(self, array: NDArray[np.generic], origin: tuple[str, str] | None = None):
        import numpy as np

        self.array = np.ascontiguousarray(array).reshape(array.shape)
        self.origin = origin
        self._digest: bytes | None = None

    @property
    def digest(self) -> bytes:
        """A hash of dtype, shape and contents."""
        if self._digest is None:
            hasher = hashlib.blake2b(f"{self.array.dtype.name}{self.array.shape}".encode(), digest_size=16)
            hasher.update(self.array.reshape(-1).view("uint8").data)
            self._digest = hasher.digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayBox):
            return False
        if self.array is other.array:
            return True
        same_type = self.array.shape == other.array.shape and self.array.dtype == other.array.dtype
        return same_type and self.digest == other.digest

    def __hash__(self) -> int:
        # The beginning tells most arrays apart without reading a large, perhaps mapped, one whole.
        beginning = self.array.reshape(-1)[:HASHED_ITEMS].tobytes()
        return hash((self.array.shape, self.array.dtype.name, beginning))


@irdl_attr_definition
class ArrayValueAttr(Data[ArrayBox]):
    """`#mirstack.array<"float32", [2, 3], "base64 of the bytes in row-major little-endian order">`."""

    name = "mirstack.array"

    @staticmethod
    def of(array: NDArray[np.generic], origin: tuple[str, str] | None = None) -> ArrayValueAttr:
        """An attribute of the array; the array must not be written to afterwards."""
        return ArrayValueAttr(ArrayBox(array, origin))

    @property
    def array(self) -> NDArray[np.generic]:
        """The data, row-major contiguous."""
        return self.data.array

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ArrayBox:
        import numpy as np

        with parser.in_angle_brackets():
            dtype = parser.parse_str_literal()
            parser.parse_punctuation(",")
            shape = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_punctuation(",")
            encoded = parser.parse_str_literal()
        try:
            data = np.frombuffer(base64.b64decode(encoded, validate=True), numpy_dtype(dtype))
            return ArrayBox(data.reshape(shape))
        except (ValueError, TypeError) as exception:
            parser.raise_error(f"this is no array of {dtype} of shape {shape}: {exception}")

    def print_parameter(self, printer: Printer) -> None:
        array = self.array
        with printer.in_angle_brackets():
            printer.print_string_literal(array.dtype.name)
            printer.print_string(f", [{', '.join(map(str, array.shape))}], ")
            printer.print_string_literal(base64.b64encode(array.tobytes()).decode())


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """The numpy dtype TVM calls `name`, bfloat16 and float8 included (through ml_dtypes). Raises TypeError for a name that is none."""
    import numpy as np

    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


MIRSTACK = Dialect("mirstack", [], [ArrayValueAttr])
"""Attributes that belong to no one level of the IR."""
