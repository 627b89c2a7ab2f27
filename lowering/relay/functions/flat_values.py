"""Flattens a Relay value for native code: a list of pointers, one for each leaf of its type.

A tensor of known shape is a pointer to its data (row-major, bool as one byte). A tensor with a dimension `?` is a pointer
to its descriptor on the call's heap: the data's address, then the extent of each `?`, eight bytes each. A tuple is the
leaves of its fields, one after the other. A closure, a value of a data type and a reference are pointers to a box on the
call's heap.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, BFloat16Type, FixedBitwidthType, IntegerType, TensorType, TupleType
from xdsl.ir import Attribute, SSAValue

from ....dialects.relay.types import AdtType, FuncType, RefType, TypeVarType, UnknownType
from ....support.diagnostics import error_at
from .calling_convention import WORD as WORD


@dataclass(frozen=True)
class TensorLeaf:
    """A tensor of this shape, of `bytes` bytes."""

    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class DynamicTensorLeaf:
    """A tensor with dimensions known only at run time, which are DYNAMIC_INDEX in `shape`."""

    shape: tuple[int, ...]
    item_bytes: int


@dataclass(frozen=True)
class BoxLeaf:
    """A closure, a value of a data type, or a reference."""


Leaf = TensorLeaf | DynamicTensorLeaf | BoxLeaf


def item_bytes(dtype: Attribute) -> int:
    """Bytes of one element in memory; bool takes one."""
    match dtype:
        case IntegerType():
            return max(1, dtype.width.data // 8)
        case BFloat16Type():
            return 2
        case FixedBitwidthType():
            return max(1, dtype.bitwidth // 8)
        case _:
            raise TypeError(f"{dtype} is not an element type of a tensor")


def leaves_of(type: Attribute, where: SSAValue | None = None) -> tuple[Leaf, ...]:
    """Returns the leaves of a type. Raises MirError at `where` for one that inference left open."""
    match type:
        case TensorType():
            shape, size = type.get_shape(), item_bytes(type.element_type)
            if DYNAMIC_INDEX in shape:
                return (DynamicTensorLeaf(shape, size),)
            count = 1
            for extent in shape:
                count *= extent
            return (TensorLeaf(shape, count * size),)
        case TupleType():
            return tuple(leaf for field in type.types.data for leaf in leaves_of(field, where))
        case FuncType() | AdtType() | RefType():
            return (BoxLeaf(),)
        case UnknownType():
            raise error_at(
                where, "the type of this value is not known", "annotate a parameter so that it can be inferred"
            )
        case TypeVarType():
            raise error_at(
                where,
                f"the generic type {type.var_name.data} is not known here",
                "call the function from an entry with concrete types",
            )
        case _:
            raise error_at(where, f"native code has no form for the type {type}")


def has_box(type: Attribute) -> bool:
    """Returns whether a value of the type holds a box, which may hold on to memory of any tensor."""
    return any(isinstance(leaf, BoxLeaf) for leaf in leaves_of(type))


def on_heap(type: Attribute) -> bool:
    """Returns whether a value of the type is, in part, on the call's heap."""
    return any(not isinstance(leaf, TensorLeaf) for leaf in leaves_of(type))
