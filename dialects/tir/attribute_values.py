"""Converts Python values to the attributes of annotations, and back."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, IntegerType, StringAttr, f32
from xdsl.ir import Attribute

from .types import I1, I32, I64


def attribute_of(value: object) -> Attribute:
    """Returns a Python value as the attribute of its literal in text.

    Integers are int32 (int64 where they do not fit), floats float32. Raises TypeError for values that are not numbers, strings, lists,
    dictionaries or attributes.
    """
    match value:
        case Attribute():
            return value
        case bool():
            return IntegerAttr(int(value), I1)
        case int():
            if not -(1 << 63) <= value < 1 << 63:
                raise TypeError(f"{value} is not a number that fits into int64")
            return IntegerAttr(value, I32 if -(1 << 31) <= value < 1 << 31 else I64)
        case float():
            return FloatAttr(value, f32)
        case str():
            return StringAttr(value)
        case list() | tuple():
            return ArrayAttr([attribute_of(v) for v in cast("list[object]", value)])
        case dict():
            return DictionaryAttr({str(k): attribute_of(v) for k, v in cast("dict[object, object]", value).items()})
        case _:
            raise TypeError(f"{value!r} is not a number, string, list or dictionary")


def value_of(attribute: Attribute) -> Any:
    """Returns the Python value of an attribute that `attribute_of` creates; any other attribute itself."""
    match attribute:
        case IntegerAttr() if attribute.type == IntegerType(1):
            return bool(attribute.value.data)
        case IntegerAttr():
            return attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [value_of(item) for item in attribute.data]
        case DictionaryAttr():
            return {key: value_of(item) for key, item in attribute.data.items()}
        case _:
            return attribute
