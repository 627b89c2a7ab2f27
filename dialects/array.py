"""Defines constant arrays as an attribute that holds numpy data without copying it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from xdsl.ir import Data, Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .array_box import ArrayBox, ArrayHolder, laid_out, numpy_dtype, storage_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MIRSTACK", "ArrayBox", "ArrayHolder", "ArrayValueAttr", "laid_out", "numpy_dtype", "storage_of"]


@irdl_attr_definition
class ArrayValueAttr(Data[ArrayBox]):
    """`#mirstack.array<"float32", [2, 3], "base64 of the bytes in row-major little-endian order">`."""

    name = "mirstack.array"

    @staticmethod
    def of(array: NDArray[np.generic], origin: tuple[str, str] | None = None) -> ArrayValueAttr:
        """Returns an attribute of the array; the array must not be written to afterwards."""
        return ArrayValueAttr(ArrayBox(array, origin))

    @staticmethod
    def of_scalar(value: float, dtype: str) -> ArrayValueAttr:
        """Returns an attribute of one number, see `ArrayBox.scalar`."""
        return ArrayValueAttr(ArrayBox.scalar(value, dtype))

    @property
    def array(self) -> NDArray[np.generic]:
        """Returns the data, row-major contiguous."""
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
            parser.raise_error(f"this is not an array of {dtype} of shape {shape}: {exception}")

    def print_parameter(self, printer: Printer) -> None:
        array = self.array
        with printer.in_angle_brackets():
            printer.print_string_literal(array.dtype.name)
            printer.print_string(f", [{', '.join(map(str, array.shape))}], ")
            # As it is: base64 has nothing to escape, and looking for it takes minutes in a model's weights.
            octets = array.reshape(-1).view("uint8").data
            printer.print_string(f'"{base64.b64encode(octets).decode("ascii")}"')


MIRSTACK = Dialect("mirstack", [], [ArrayValueAttr])
"""Attributes that belong to no one level of the IR."""
