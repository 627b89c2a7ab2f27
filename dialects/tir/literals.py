"""Writes numbers as TVMScript has them: `T.float32(0.1)`, `T.int64(4)`, an int32 as it is."""

from __future__ import annotations

import struct

_SHORT_DIGITS = {"float32": ("f", 6), "float16": ("e", 3)}
_LEAST_INT32 = -(1 << 31)


def float_literal(value: float, dtype: str) -> str:
    """Returns a float constant, `T.float32(0.1)`: as a short decimal where that is the same float.

    TVM keeps the decimal that was written.
    """
    if value != value or value in (float("inf"), float("-inf")):
        return f'T.{dtype}("{value}")'
    if dtype in _SHORT_DIGITS:
        code, digits = _SHORT_DIGITS[dtype]
        short = float(f"{value:.{digits}g}")
        try:
            if struct.unpack(code, struct.pack(code, short))[0] == value:
                value = short
        except OverflowError:
            pass
    text = f"{value:.17g}"
    # Python's -0 is the integer 0.
    return f"T.{dtype}({'-0.0' if text == '-0' else text})"


def integer_literal(value: int, dtype: str) -> str:
    """Returns an integer constant: an int32 as it is, others with their dtype.

    -2147483648 is read as the negation of an int64, so the int32 has its dtype, too.
    """
    if dtype == "int32" and value != _LEAST_INT32:
        return str(value)
    return f"T.bool({bool(value)})" if dtype == "bool" else f"T.{dtype}({value})"
