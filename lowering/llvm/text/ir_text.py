"""Writes types, constants, parameter attributes and names of overloaded intrinsics in LLVM IR."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute

from ....support.diagnostics import error_at
from ....support.memoize import memoized
from ....support.source_text import text_bytes
from ..convert.types import is_vector

_FLOAT_NAMES: dict[type[Attribute], str] = {
    BFloat16Type: "bfloat",
    Float16Type: "half",
    Float32Type: "float",
    Float64Type: "double",
}
_MANGLED_FLOATS = {"bfloat": "bf16", "half": "f16", "float": "f32", "double": "f64"}


@memoized
def type_text(type_: Attribute) -> str:
    """Returns the type as LLVM IR writes it; raises `MirError` for a type that is not LLVM's."""
    match type_:
        case IntegerType():
            return f"i{type_.width.data}"
        case llvm.LLVMPointerType():
            space = type_.addr_space
            return f"ptr addrspace({space.data})" if isinstance(space, IntAttr) and space.data else "ptr"
        case llvm.LLVMVoidType():
            return "void"
        case llvm.LLVMArrayType():
            return f"[{type_.size.data} x {type_text(type_.type)}]"
        case llvm.LLVMStructType():
            return f"{{ {', '.join(type_text(part) for part in type_.types)} }}" if type_.types else "{}"
        case llvm.LLVMFunctionType():
            inputs = [type_text(part) for part in type_.inputs] + (["..."] if type_.is_variadic else [])
            return f"{type_text(type_.output)} ({', '.join(inputs)})"
        case _ if is_vector(type_) and type_.get_num_dims() == 1:
            return f"<{type_.get_shape()[0]} x {type_text(type_.element_type)}>"
        case _ if type(type_) in _FLOAT_NAMES:
            return _FLOAT_NAMES[type(type_)]
        case _:
            raise error_at(None, f"type {type_} is not LLVM's", "run lower-std-to-llvm before translating")


def escaped(text: str) -> str:
    """Escapes text for between LLVM's double quotes."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in text_bytes(text)
    )


def symbol(name: str) -> str:
    """Returns a symbol as LLVM writes it, in quotes where it must."""
    plain = name.replace("_", "a").replace(".", "a").replace("$", "a").replace("-", "a")
    return name if plain.isascii() and plain.isalnum() and not name[:1].isdigit() else f'"{escaped(name)}"'


# Constants


def float_text(value: float, type_: Attribute) -> str:
    """Returns a float by its bits: exact, infinities and NaNs included."""
    match type_:
        case Float32Type() | Float64Type():
            # LLVM writes f32 as the f64 of the same value.
            if isinstance(type_, Float32Type):
                value = _nearest_f32(value)
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        case Float16Type():
            return f"0xH{_f16_bits(value):04X}"
        case _:
            return f"0xR{bf16_bits(value):04X}"


def _nearest_f32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _f16_bits(value: float) -> int:
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def bf16_bits(value: float) -> int:
    """Rounds to the nearest bf16, ties to even, by way of f32's bits."""
    bits = int(struct.unpack("<I", struct.pack("<f", _nearest_f32(value)))[0])
    if value != value:
        return (bits >> 16) | 0x40
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def scalar_text(value: int | float, type_: Attribute) -> str:
    """Returns a number of a scalar type."""
    if isinstance(type_, IntegerType):
        if type_.width.data == 1:
            return "true" if int(value) & 1 else "false"
        return str(int(value))
    return float_text(float(value), type_)


def constant_text(value: Attribute, type_: Attribute) -> str:
    """Returns the constant `value` of type `type_`, without the type."""
    match value:
        case IntegerAttr():
            return scalar_text(value.value.data, type_)
        case FloatAttr():
            return float_text(value.value.data, type_)
        case DenseIntOrFPElementsAttr() if is_vector(type_):
            element = type_.element_type
            name = type_text(element)
            if value.is_splat():
                (number,) = value.get_values()[:1]
                return f"splat ({name} {scalar_text(_number(number), element)})"
            return f"<{', '.join(f'{name} {scalar_text(_number(number), element)}' for number in value.get_values())}>"
        case _:
            raise error_at(None, f"constant {value} of type {type_} cannot be written in LLVM IR")


def _number(value: object) -> int | float:
    assert isinstance(value, int | float)
    return value


def global_initializer(op: llvm.GlobalOp) -> str | None:
    """Returns type and value of a global, None where it is defined elsewhere.

    Numbers are written as the bytes that they are in memory, which LLVM reads much faster than one by one.
    """
    value, type_ = op.value, op.global_type
    match value:
        case None:
            if "zero" in op.attributes:
                return f"{type_text(type_)} zeroinitializer"
            return None
        case StringAttr():
            return f'[{len(text_bytes(value.data))} x i8] c"{escaped(value.data)}"'
        case IntegerAttr() | FloatAttr():
            return f"{type_text(type_)} {constant_text(value, type_)}"
        case DenseIntOrFPElementsAttr():
            data = dense_bytes(value)
            # hex() puts its separator between bytes only; the first one is put here.
            octets = "\\" + data.hex("\\") if data else ""
            return f'[{len(data)} x i8] c"{octets}"'
        case _:
            raise error_at(op, f"a global cannot be initialized with {value}", "use a number, a string or dense<…>")


def dense_bytes(value: DenseIntOrFPElementsAttr) -> bytes:
    """Returns the elements as stored in memory: little endian, a boolean in a byte."""
    element = value.get_element_type()
    if isinstance(element, IntegerType) and element.width.data == 1:
        return bytes(byte & 1 for byte in value.data.data)
    return value.data.data


# Attributes of parameters

_PLAIN = (
    "noalias",
    "nonnull",
    "noundef",
    "readonly",
    "readnone",
    "writeonly",
    "returned",
    "signext",
    "zeroext",
    "inreg",
)


def attribute_text(attrs: DictionaryAttr) -> str:
    """` noalias align 64 …`: the attributes of a parameter or result whose names start with `llvm.`."""
    words: list[str] = []
    for key, value in attrs.data.items():
        name = key.removeprefix("llvm.")
        if name in _PLAIN and isinstance(value, UnitAttr):
            words.append(name)
        elif name == "nocapture":
            words.append("captures(none)")
        elif name == "align" and isinstance(value, IntegerAttr):
            words.append(f"align {value.value.data}")
        elif name in ("dereferenceable", "dereferenceable_or_null") and isinstance(value, IntegerAttr):
            words.append(f"{name}({value.value.data})")
        elif key.startswith("llvm."):
            raise error_at(None, f"unknown parameter attribute '{key}'", f"known are {', '.join(_PLAIN)}, align, …")
    return "".join(f" {word}" for word in words)


# Intrinsics

_RESULT = -1
_OVERLOADS: dict[str, tuple[int, ...]] = {
    "masked.load": (_RESULT, 0),
    "masked.store": (0, 1),
    "masked.gather": (_RESULT, 0),
    "masked.scatter": (0, 1),
    "masked.expandload": (_RESULT,),
    "masked.compressstore": (0,),
    "memcpy": (0, 1, 2),
    "memmove": (0, 1, 2),
    "memset": (0, 2),
    "powi": (_RESULT, 1),
    "ldexp": (_RESULT, 1),
    "is.fpclass": (0,),
    "fptosi.sat": (_RESULT, 0),
    "fptoui.sat": (_RESULT, 0),
    "vector.reduce.fadd": (1,),
    "vector.reduce.fmul": (1,),
    "lifetime.start": (0,),
    "lifetime.end": (0,),
    "prefetch": (0,),
    "stacksave": (_RESULT,),
    "stackrestore": (0,),
    "sadd.with.overflow": (0,),
    "uadd.with.overflow": (0,),
    "smul.with.overflow": (0,),
    "umul.with.overflow": (0,),
}
"""Which operands (or the result) an overloaded intrinsic is named after, where it is not simply the result."""
_PLAIN_INTRINSICS = ("assume", "donothing", "trap", "debugtrap", "expect", "readcyclecounter", "sideeffect")
_BY_FIRST_OPERAND = "vector.reduce."


def mangled_type(type_: Attribute) -> str:
    """Returns a type as a part of an intrinsic's name: `v4f32`, `p0`, `i64`."""
    if is_vector(type_):
        return f"v{type_.get_shape()[0]}{mangled_type(type_.element_type)}"
    if isinstance(type_, llvm.LLVMPointerType):
        return f"p{type_.addr_space.data}" if isinstance(type_.addr_space, IntAttr) else "p0"
    text = type_text(type_)
    return _MANGLED_FLOATS.get(text, text)


def intrinsic_suffixes(name: str, operands: Sequence[Attribute], result: Attribute | None) -> str:
    """Returns the suffix of an overloaded intrinsic's name for these types; "" if the name has it already."""
    base = name.removeprefix("llvm.")
    if base in _PLAIN_INTRINSICS or base.startswith(("x86.", "aarch64.", "nvvm.")):
        return ""
    positions = _OVERLOADS.get(base)
    if positions is None:
        by_result = (_RESULT,) if result is not None else ()
        positions = (0,) if base.startswith(_BY_FIRST_OPERAND) else by_result
    types = [result if position == _RESULT else operands[position] for position in positions]
    suffix = "".join(f".{mangled_type(type_)}" for type_ in types if type_ is not None)
    return "" if base.endswith(suffix) else suffix
