"""Defines TIR's types: buffers, handles, regions, reducers; and TVM's names for scalar types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from typing_extensions import TypeIs
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NoneType,
    Signedness,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def

from ...support.diagnostics import Diagnostic, MirError
from ...support.text import did_you_mean, natural
from ..interned import integer, string, vector_type

Dim: TypeAlias = "IntegerAttr | NoneType"
"""One extent or stride of a buffer: a number (`8` is i32, `T.int64(8)` i64), or NoneType for an operand."""

DYNAMIC = NoneType()

I1 = IntegerType(1)
I32 = IntegerType(32)
I64 = IntegerType(64)
F32 = Float32Type()

_FLOATS: dict[str, Attribute] = {
    "float16": Float16Type(),
    "bfloat16": BFloat16Type(),
    "float32": F32,
    "float64": Float64Type(),
    "e4m3_float8": Float8E4M3FNType(),
    "e5m2_float8": Float8E5M2Type(),
    "float8_e4m3fnuz": Float8E4M3FNUZType(),
    "float8_e5m2fnuz": Float8E5M2FNUZType(),
    "float8_e8m0fnu": Float8E8M0FNUType(),
    "float4_e2m1fn": Float4E2M1FNType(),
}
_FLOAT_ALIASES = {"float8_e4m3fn": "e4m3_float8", "float8_e5m2": "e5m2_float8"}
"""Newer names of dtypes, which are ml_dtypes' as well."""
FLOAT_LIMITS = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308,
    "e4m3_float8": 448.0, "e5m2_float8": 57344.0, "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0, "float8_e8m0fnu": 2.0**127,
    "float4_e2m1fn": 6.0,
}  # fmt: skip
"""Greatest finite value of each float dtype."""
_FLOAT_NAMES = {type: name for name, type in _FLOATS.items()}


@irdl_attr_definition
class HandleType(ParametrizedAttribute, TypeAttribute):
    """A pointer: `T.handle`, or `T.handle("float32", "global")` if its element type and scope are known.

    `pointee` is NoneType for an opaque handle and UnitAttr for `T.handle("void")`; `scope` is "" when not given.
    """

    name = "tir.handle"
    pointee: Attribute = param_def()
    scope: StringAttr = param_def()

    @staticmethod
    def get(pointee: Attribute | None = None, scope: str = "") -> HandleType:
        return HandleType(pointee or NoneType(), StringAttr(scope))


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """A multi-dimensional buffer: extents, element type and storage scope.

    Extents that are not numbers are NoneType; the op that defines the buffer holds them as operands, with the strides,
    the element offset and the alignment. A buffer that is a function's parameter has only numbers and is compact.
    """

    name = "tir.buffer"
    shape: ArrayAttr = param_def()
    dtype: Attribute = param_def()
    scope: StringAttr = param_def()

    @staticmethod
    def get(shape: Sequence[Dim | int], dtype: Attribute, scope: str = "global") -> BufferType:
        dims = [integer(d, I32) if isinstance(d, int) else d for d in shape]
        return BufferType(ArrayAttr(dims), dtype, string(scope))

    @property
    def rank(self) -> int:
        return len(self.shape.data)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """Returns the extents as numbers, or None when one of them is symbolic."""
        dims = [d.value.data for d in self.shape.data if isinstance(d, IntegerAttr)]
        return tuple(dims) if len(dims) == len(self.shape.data) else None


@irdl_attr_definition
class RegionType(ParametrizedAttribute, TypeAttribute):
    """A box of a buffer: the result of `tir.buffer_region`, operand of reads, writes and match_buffer."""

    name = "tir.region"


@irdl_attr_definition
class ReducerType(ParametrizedAttribute, TypeAttribute):
    """A commutative reducer with its identity, `T.comm_reducer`."""

    name = "tir.reducer"


@irdl_attr_definition
class StringType(ParametrizedAttribute, TypeAttribute):
    """A string immediate among a call's arguments."""

    name = "tir.string"


@irdl_attr_definition
class TargetAttr(ParametrizedAttribute):
    """A compilation target: the argument of `T.target({"kind": "llvm", …})` or `T.target("llvm")`."""

    name = "tir.target_config"
    config: Attribute = param_def()


@irdl_attr_definition
class MetadataAttr(ParametrizedAttribute):
    """`metadata["runtime.NDArray"][0]`: an object that TVM's printer left out of the text."""

    name = "tir.metadata"
    kind: StringAttr = param_def()
    index: IntAttr = param_def()


@irdl_attr_definition
class NameAttr(ParametrizedAttribute):
    """A buffer or variable in an annotation, by its name in the text: `{"layout_free_placeholders": [C]}`."""

    name = "tir.name"
    value: StringAttr = param_def()


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """The node of `T.attr` that is neither a scalar nor a buffer: an iteration variable or a target."""

    name = "tir.token"


USUAL_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64) if (kind, bits) != ("float", 8)),
    "bfloat16",
    "handle",
)
"""The dtypes that a misspelt one is compared with."""

_OTHER_NAMES = {
    "float": "float32", "double": "float64", "half": "float16", "int": "int32", "uint": "uint32", "long": "int64",
    "short": "int16", "char": "int8", "byte": "uint8", "bf16": "bfloat16",
}  # fmt: skip
"""C's and Python's names of dtypes."""


@lru_cache(maxsize=512)
def dtype_to_type(dtype: str) -> Attribute:
    """Returns the type TVM calls `dtype`: "int32", "bool", "bfloat16", "float32x4", "handle", "void"…

    Raises MirError for an unknown name.
    """
    dtype = _FLOAT_ALIASES.get(dtype, dtype)
    if dtype in _FLOATS:
        return _FLOATS[dtype]
    if dtype == "int32":
        return I32
    if dtype in ("bool", "uint1"):
        return I1
    if dtype == "handle":
        return HandleType.get()
    if dtype in ("", "void"):
        return NoneType()
    scalar, _, lanes = dtype.partition("x")
    if lanes:
        scalable = lanes.startswith("vscalex")
        count = natural(lanes.removeprefix("vscalex"))
        if count:
            scales = ArrayAttr([IntegerAttr(int(scalable), I1)])
            return VectorType(dtype_to_type(scalar), [count], scales)
    else:
        for prefix, signedness in (("int", Signedness.SIGNLESS), ("uint", Signedness.UNSIGNED)):
            bits = natural(dtype.removeprefix(prefix)) if dtype.startswith(prefix) else None
            if bits and bits <= 128:
                return IntegerType(bits, signedness)
    raise MirError(
        Diagnostic(f"unknown dtype {dtype!r}{did_you_mean(_OTHER_NAMES.get(dtype, dtype), USUAL_DTYPES)}").with_note(
            "a dtype is written like int32, uint8, bool, float16, bfloat16, float32x4 or handle"
        )
    )


_KINDS = {
    "tir.buffer": "a buffer",
    "tir.region": "a region",
    "tir.reducer": "a reducer",
    "tir.string": "a string",
    "tir.token": "an iteration variable or target",
}


def type_to_dtype(type: Attribute) -> str:
    """Returns TVM's name of a scalar, vector or handle type, the inverse of `dtype_to_type`.

    For other types it returns words for messages.
    """
    match type:
        case IntegerType():
            bits = type.width.data
            if bits == 1:
                return "bool"
            return f"{'uint' if type.signedness.data is Signedness.UNSIGNED else 'int'}{bits}"
        case VectorType():
            scalable = "vscalex" if any(s.value.data for s in type.scalable_dims.data) else ""
            return f"{type_to_dtype(type.element_type)}x{scalable}{type.shape.data[0].data}"
        case HandleType():
            return "handle"
        case NoneType():
            return "void"
        case _:
            # Not a scalar: its name in messages.
            return _FLOAT_NAMES.get(type) or _KINDS.get(type.name) or str(type)


def is_vector(kind: Attribute) -> TypeIs[VectorType[Attribute]]:
    """Returns True for a vector type; faster than `isinstance`, which checks virtual subclasses."""
    return type(kind) is VectorType


def lanes_of(type: Attribute) -> int:
    """Returns the number of elements of a value of this type: 1 for a scalar."""
    return type.shape.data[0].data if is_vector(type) else 1


def is_scalable(type: Attribute) -> bool:
    """Returns True if the number of elements is an unknown multiple of `lanes_of` (`T.vscale() * 4`)."""
    return is_vector(type) and any(s.value.data for s in type.scalable_dims.data)


def element_of(type: Attribute) -> Attribute:
    """Returns the element type of a vector type, otherwise the type itself."""
    return type.element_type if is_vector(type) else type


def with_lanes(element: Attribute, lanes: int, scalable: bool = False) -> Attribute:
    """Returns `element` for one lane, a vector of it for more (or for an unknown number)."""
    if lanes == 1 and not scalable:
        return element
    return vector_type(element, lanes, scalable)


def with_lanes_of(element: Attribute, type: Attribute) -> Attribute:
    """Returns `element` with as many lanes as `type` has."""
    return with_lanes(element, lanes_of(type), is_scalable(type)) if is_vector(type) else element


def limit(name: str, type: Attribute) -> int | float:
    """Returns the `min_value`, `max_value` or `infinity` of a dtype. Raises KeyError for one without."""
    if isinstance(type, IntegerType):
        bits = type.width.data
        low, high = (0, (1 << bits) - 1) if is_unsigned(type) else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        return {"min_value": low, "max_value": high}[name]
    greatest = FLOAT_LIMITS[type_to_dtype(type)]
    return {"min_value": -greatest, "max_value": greatest, "infinity": float("inf")}[name]


def is_unsigned(type: Attribute) -> bool:
    """Returns True if values of the type (or its elements) are unsigned integers; bool counts as unsigned."""
    element = element_of(type)
    return isinstance(element, IntegerType) and (
        element.signedness.data is Signedness.UNSIGNED or element.width.data == 1
    )
