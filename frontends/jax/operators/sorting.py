"""Sorts and largest elements."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import SSAValue

from ...common.refusal import Refused
from ..node import HloNode
from ..registry import operator
from .bodies import body_text


@operator("sort")
def sort(node: HloNode) -> list[SSAValue]:
    """Sorts tensors along an axis by the first ones, the keys."""
    axis, operands = node.int("dimension"), node.operands
    keys, ascending = _keys(node, len(operands))
    if len(operands) == 1:
        return [node.call("sort", _sortable(node, operands[0]), axis=axis, is_ascend=ascending)]
    # Stable sorts, by the last key first: equal elements of a key stay in the order of the later keys.
    order: SSAValue | None = None
    for key in reversed(operands[:keys]):
        key = _sortable(node, key)
        given = key if order is None else node.call("gather", key, order, axis=axis)
        places = node.call("argsort", given, axis=axis, is_ascend=ascending, dtype="int32")
        order = places if order is None else node.call("gather", order, places, axis=axis)
    assert order is not None
    if node.frame.importer.iotas.get(operands[-1]) == axis and len(operands) == 2:
        return [node.call("gather", operands[0], order, axis=axis), order]
    return [node.call("gather", each, order, axis=axis) for each in operands]


def _sortable(node: HloNode, value: SSAValue) -> SSAValue:
    return node.cast(value, "int8") if node.builder.dtype(value) == "bool" else value


def _keys(node: HloNode, count: int) -> tuple[int, bool]:
    """Returns how many tensors are keys, and whether they ascend. Raises Refused for another order."""
    (found,) = body_text(node, node.op.regions[0].block) or ["?"]
    for place in range(2 * count):
        # Zeros of both signs are equal, and each NaN is above all numbers, as in Relay's sorts.
        each = f"a{place}"
        found = found.replace(f"select(NE({each},{each}),nan,select(EQ({each},0.0),0.0,{each}))", each)
    for direction in ("LT", "GT"):
        for keys in range(1, count + 1):
            if found == _lexicographic(direction, keys):
                return keys, direction == "LT"
    raise Refused(f"it orders elements by {found}; only the order of numbers is known here")


def _lexicographic(direction: str, keys: int) -> str:
    """Returns the comparison of rows of keys: of the first ones that differ."""
    last = keys - 1
    found = f"{direction}(a{2 * last},a{2 * last + 1})"
    for key in reversed(range(last)):
        a, b = f"a{2 * key}", f"a{2 * key + 1}"
        found = f"or({direction}({a},{b}),and(EQ({a},{b}),{found}))"
    return found


@operator("chlo.top_k")
def top_k(node: HloNode) -> list[SSAValue]:
    """Returns the largest elements along the last axis, in order, and their places."""
    x = node.operands[0]
    attributes = node.attribute("composite_attributes")
    found = attributes.data.get("k") if isinstance(attributes, DictionaryAttr) else node.attribute("k")
    if not isinstance(found, IntegerAttr):
        raise Refused("the number of elements is known only at run time")
    count = found.value.data
    if count == 0:
        nothing = node.call("strided_slice", x, begin=[0], end=[0], strides=[1], axes=[node.builder.rank(x) - 1])
        return [nothing, node.call("cast", nothing, dtype="int32")]
    pair = node.call("topk", _sortable(node, x), k=count, axis=-1, is_ascend=False, dtype="int32", ret_type="both")
    return node.builder.tuple_parts(pair)
