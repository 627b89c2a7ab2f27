"""Computes casts from and to dtypes of 8 bits and less as tensor expressions on their bytes.

float8, float4, int4 and int2 have no arithmetic in processors: kernels hold an element of them in a byte, as `ml_dtypes` does, and see a
tensor of uint8. A cast decodes or encodes the byte by arithmetic on int32, which vectors have:

    e4m3_float8 s eeee mmm  →  float32:  reinterpret(eeeemmm << 20) · 2^120, with the sign; 1111111 is NaN
    float32  →  e4m3_float8:  the upper bits with another bias, rounded to nearest even; of small numbers those of |x| + 2^14

Source: https://onnx.ai/onnx/technical/float8.html, OCP Microscaling Formats (MX) Specification 1.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._lazy import te
from .te_computes import elementwise

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


@dataclass(frozen=True)
class FloatFormat:
    """A float of a sign, `exponent` bits and `mantissa` bits; `special` tells its NaN and infinity.

    "ieee": infinity and NaN are those of the greatest exponent. "fn": NaN has all bits set. "fnuz": NaN is the place of -0.
    "finite": there is neither; what is too large becomes the greatest, NaN a zero.
    """

    exponent: int
    mantissa: int
    bias: int
    special: str


FLOAT_FORMATS = {
    "e4m3_float8": FloatFormat(4, 3, 7, "fn"),
    "e5m2_float8": FloatFormat(5, 2, 15, "ieee"),
    "float8_e4m3fnuz": FloatFormat(4, 3, 8, "fnuz"),
    "float8_e5m2fnuz": FloatFormat(5, 2, 16, "fnuz"),
    "float4_e2m1fn": FloatFormat(2, 1, 1, "finite"),
}
"""The narrow floats that have a sign, by dtype."""

EXPONENT = "float8_e8m0fnu"
"""The dtype that is an exponent alone: 2^(byte - 127), NaN for 255."""

INTEGER_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
"""The narrow integers, by dtype."""

STORAGE = dict.fromkeys((*FLOAT_FORMATS, EXPONENT, *INTEGER_BITS), "uint8")
"""The dtypes of the bytes in which kernels hold narrow dtypes; an element is in a byte's lowest bits."""

WIDE = {dtype: "float32" if dtype not in INTEGER_BITS else "int8" for dtype in STORAGE}
"""The dtypes that element-wise operators compute in; an integer's result is then cut to its bits."""


def storage_dtype(dtype: str) -> str:
    """Returns the dtype in which kernels hold a tensor's elements: of narrow ones that of a byte."""
    return STORAGE.get(dtype, dtype)


def te_narrow_cast(x: Tensor, source: str, target: str) -> Tensor:
    """Returns `x`, bytes that hold `source` where that is narrow, as `target`, or the bytes that hold it."""
    return elementwise(lambda e: _cast(e, source, target), x, "T_cast")


def narrow_bits(value: float, dtype: str) -> int:
    """Returns the byte that holds a number of a narrow dtype, as a number of `storage_dtype`."""
    import numpy as np

    from ....array import numpy_dtype

    stored = np.asarray(value).astype(numpy_dtype(dtype)).view(STORAGE[dtype])
    return int(stored.item())


def _cast(x: Expr, source: str, target: str) -> Expr:
    if source == target:
        return x
    if source == EXPONENT:
        x = _from_exponent(x)
    elif source in FLOAT_FORMATS:
        x = _decoded(x, FLOAT_FORMATS[source])
    elif source in INTEGER_BITS:
        x = _extended(x, source)
    if target in INTEGER_BITS:
        return _cut(x, target)
    if target in FLOAT_FORMATS:
        return _encoded(x.astype("float32"), FLOAT_FORMATS[target])
    return _to_exponent(x.astype("float32")) if target == EXPONENT else x.astype(target)


def _cut(x: Expr, target: str) -> Expr:
    """Returns a number as a narrow integer: floats saturate, of integers the lowest bits count."""
    bits, is_signed = INTEGER_BITS[target], target.startswith("int")
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    wide = x.astype("int32")
    if "float" in x.dtype:
        wide = te.max(te.min(wide, _int(most)), _int(least))
    return (wide & _int((1 << bits) - 1)).astype("uint8")


def _extended(x: Expr, source: str) -> Expr:
    """Returns the int8 or uint8 that a byte of a narrow integer holds."""
    bits = INTEGER_BITS[source]
    low = x.astype("int32") & _int((1 << bits) - 1)
    return (
        (low - ((low >> _int(bits - 1)) << _int(bits))).astype("int8")
        if source.startswith("int")
        else low.astype("uint8")
    )


def _decoded(x: Expr, form: FloatFormat) -> Expr:
    """Returns the float32 that a byte of a narrow float holds."""
    width = form.exponent + form.mantissa
    byte = x.astype("int32") & _int((2 << width) - 1)
    rest = byte & _int((1 << width) - 1)
    # Subnormal numbers are subnormal numbers of float32 here, and become normal by the product.
    value = te.reinterpret("float32", rest << _int(23 - form.mantissa)) * _float(2.0 ** (127 - form.bias))
    infinite = ((1 << form.exponent) - 1) << form.mantissa
    nan = _float(float("nan"))
    if form.special == "ieee":
        beyond = te.Select(rest > _int(infinite), nan, _float(float("inf")))
        value = te.Select(rest >= _int(infinite), beyond, value)
    elif form.special == "fn":
        value = te.Select(te.equal(rest, _int((1 << width) - 1)), nan, value)
    signed = te.Select(te.equal(byte >> _int(width), _int(0)), value, te.const(0.0, "float32") - value)
    signed = te.Select(te.equal(byte, _int(1 << width)), _float(-0.0), signed)
    return te.Select(te.equal(byte, _int(1 << width)), nan, signed) if form.special == "fnuz" else signed


def _encoded(x: Expr, form: FloatFormat) -> Expr:
    """Returns the byte of a narrow float nearest to a float32, of two the even one."""
    bits = te.reinterpret("int32", x)
    rest = bits & _int(0x7FFFFFFF)
    width, shift = form.exponent + form.mantissa, 23 - form.mantissa
    moved = rest - _int((127 - form.bias) << 23)
    normal = (moved + _int((1 << (shift - 1)) - 1) + ((moved >> _int(shift)) & _int(1))) >> _int(shift)
    # The sum's unit is that of the subnormal numbers, to which it rounds.
    magic = 2.0 ** (24 - form.bias - form.mantissa)
    magic_bits = (24 - form.bias - form.mantissa + 127) << 23
    small = te.reinterpret("int32", te.reinterpret("float32", rest) + _float(magic)) - _int(magic_bits)
    code = te.Select(rest < _int((128 - form.bias) << 23), small, normal)
    all_set = (1 << width) - 1
    sign = te.Select(bits < _int(0), _int(1 << width), _int(0))
    is_nan = rest > _int(0x7F800000)
    match form.special:
        case "ieee":
            infinite = ((1 << form.exponent) - 1) << form.mantissa
            code = te.Select(is_nan, _int(infinite + (1 << (form.mantissa - 1))), te.min(code, _int(infinite)))
        case "fn":
            code = te.Select(is_nan, _int(all_set), te.min(code, _int(all_set)))
        case "finite":
            code = te.min(code, _int(all_set))
            return te.Select(is_nan, _int(1 << width) - sign, code | sign).astype("uint8")
        case _:
            beyond = te.any(is_nan, code > _int(all_set))
            signed = te.Select(te.equal(code, _int(0)), code, code | sign)
            return te.Select(beyond, _int(1 << width), signed).astype("uint8")
    return (code | sign).astype("uint8")


def _from_exponent(x: Expr) -> Expr:
    """Returns the float32 that an exponent means."""
    byte = x.astype("int32")
    # The least is a subnormal number of float32.
    value = te.reinterpret("float32", te.Select(te.equal(byte, _int(0)), _int(1 << 22), byte << _int(23)))
    return te.Select(te.equal(byte, _int(255)), _float(float("nan")), value)


def _to_exponent(x: Expr) -> Expr:
    """Returns the exponent of the power of two nearest to a float32, of two the upper one."""
    # Infinity and NaN become 255, of which the sum below does not overflow.
    bits = te.min(te.reinterpret("int32", x), _int(0x7F800000))
    nearest = (bits + _int(1 << 22)) >> _int(23)
    subnormal = te.Select(bits > _int(1 << 22), _int(1), _int(0))
    code = te.Select(bits < _int(1 << 23), subnormal, nearest)
    return te.Select(bits <= _int(0), _int(255), code).astype("uint8")


def _int(value: int) -> Expr:
    return te.const(value, "int32")


def _float(value: float) -> Expr:
    return te.const(value, "float32")
