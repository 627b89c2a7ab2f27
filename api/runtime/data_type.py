"""`DataType`: the parts of a dtype's text, `int8x4` is 4 lanes of 8 bits."""

from __future__ import annotations

import re
from enum import IntEnum

from ...support.diagnostics import Diagnostic, MirValueError
from ...support.public_names import public_names


class DataTypeCode(IntEnum):
    """The kind of a dtype's elements."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3Float = 6
    E5M2Float = 7


_CODES = {
    "int": DataTypeCode.INT, "uint": DataTypeCode.UINT, "float": DataTypeCode.FLOAT, "handle": DataTypeCode.HANDLE, "bfloat": DataTypeCode.BFLOAT,
    "e4m3_float": DataTypeCode.E4M3Float, "e5m2_float": DataTypeCode.E5M2Float, "bool": DataTypeCode.UINT, "": DataTypeCode.HANDLE,
    "void": DataTypeCode.HANDLE,
}  # fmt: skip
_DEFAULT_BITS = {"handle": 64, "bool": 1, "": 0, "void": 0, "e4m3_float": 8, "e5m2_float": 8}


class DataType(str):
    """A dtype: its text, and `type_code`, `bits` and `lanes`.

    DataType("int8x4").lanes      # 4
    """

    __slots__ = ("bits", "lanes", "type_code")

    type_code: DataTypeCode
    bits: int
    lanes: int

    def __new__(cls, type_str: str) -> DataType:
        """Reads a dtype's text. Raises MirError (a ValueError) for another."""
        made = super().__new__(cls, type_str)
        found = re.fullmatch(r"(e4m3_float|e5m2_float|[a-z]*)([0-9]*)(?:x([1-9][0-9]*))?", made)
        if found is None or found[1] not in _CODES or not (found[2] or found[1] in _DEFAULT_BITS):
            raise MirValueError(
                Diagnostic(f"'{type_str}' is not a dtype").with_note(
                    "dtypes are float32, int8x4, bool, handle and so on"
                )
            )
        made.type_code = _CODES[found[1]]
        made.bits = int(found[2]) if found[2] else _DEFAULT_BITS[found[1]]
        made.lanes = int(found[3] or 1)
        return made

    def itemsize(self) -> int:
        """Returns the number of bytes of one value, all lanes together."""
        return -(-self.bits * self.lanes // 8)

    def with_lanes(self, lanes: int) -> DataType:
        """Returns the dtype with another number of lanes."""
        element = self.partition("x")[0]
        return DataType(element if lanes == 1 else f"{element}x{lanes}")


class ShapeTuple(tuple[int, ...]):
    """A tuple of extents."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ShapeTuple({list(self)})"


__dir__ = public_names(__name__)
