"""The intrinsics that `tir.call` names: what each does to memory and what dtype it has.

The names are those that TVMScript 0.16 prints behind `T.`.
"""

from __future__ import annotations

from enum import Enum, auto


class Effect(Enum):
    """What an intrinsic does besides giving a value."""

    PURE = auto()
    READ = auto()
    OPAQUE = auto()


# Unary mathematics: floats to floats of the same dtype.
UNARY_MATH = frozenset(
    [
        "exp",
        "exp2",
        "exp10",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "sigmoid",
        "floor",
        "ceil",
        "trunc",
        "round",
        "nearbyint",
        "fabs",
        "abs",
    ]
)
# Mathematics on two values of the same dtype.
BINARY_MATH = frozenset(["pow", "power", "atan2", "fmod", "hypot", "copysign", "nextafter", "ldexp"])
BITWISE = frozenset(["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"])
# Tests of one float, giving bool.
FLOAT_TESTS = frozenset(["isnan", "isinf", "isfinite"])
OTHER_PURE = frozenset(
    [
        "bitwise_not",
        "popcount",
        "clz",
        "q_multiply_shift",
        "q_multiply_shift_per_axis",
        "likely",
        "reinterpret",
        "large_uint_imm",
        "isnullptr",
        "call_pure_extern",
        "call_llvm_pure_intrin",
        "type_annotation",
        "vscale",
        "min_value",
        "max_value",
        "infinity",
        "undef",
        "ceildiv",
        "fma",
        "vectorlow",
        "vectorhigh",
        "vectorcombine",
        "address_of",
        "tvm_access_ptr",
        "tvm_thread_invariant",
        "target",
    ]
)
READING = frozenset(["tvm_struct_get", "lookup_param"])

PURE = UNARY_MATH | BINARY_MATH | BITWISE | FLOAT_TESTS | OTHER_PURE


def intrinsic_effect(name: str) -> Effect:
    """What calling `T.name` may do to memory; unknown intrinsics may do anything."""
    if name in PURE:
        return Effect.PURE
    return Effect.READ if name in READING else Effect.OPAQUE
