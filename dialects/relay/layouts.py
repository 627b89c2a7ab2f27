"""Defines layout rules, which propagate layouts through operators (TVM's FInferCorrectLayout).

A value has a layout once an operator that names one (`data_layout="NCHW"`) produced or consumed it. From the layouts of
an operator's arguments, a rule computes those of its result; and when arguments arrive in other layouts than they were
written in, the attributes with which the operator computes the same there:

    sum(x, axis=1) of x: NCHW  ->  sum(x, axis=3) of x: NHWC
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from .operator import Attrs, AttrValue, Operator
from .operators import LAYOUT_RULES, Registry
from .operators.common.layout_strings import Layout, parse_layout

SCALAR = Layout("", ())
"""The layout of a tensor without dimensions; also of an argument whose layout is of no matter."""


@dataclass(frozen=True)
class LayoutUse:
    """One use of an operator, tuple arguments flattened (`counts`: the tensors of each argument).

    `types` and `old` are the arguments' types and layouts as the program was written, None for an unknown layout.
    `new` are the arguments' present layouts, and None while only the written ones are asked for; with `new`, no layout in
    `old` is None.
    """

    attrs: Attrs
    counts: Sequence[int]
    types: Sequence[Attribute]
    old: Sequence[Layout | None]
    new: Sequence[Layout] | None = None

    def shape(self, index: int) -> tuple[int, ...] | None:
        """Returns the written shape of an argument, sizes of run time as `DYNAMIC_INDEX`; None for no tensor."""
        type = self.types[index]
        return tuple(type.get_shape()) if isinstance(type, TensorType) else None


@dataclass(frozen=True)
class Layouts:
    """The layouts of an operator's arguments and results, and the attributes that it needs in them."""

    inputs: Sequence[Layout]
    outputs: Sequence[Layout]
    attrs: Mapping[str, AttrValue] = field(default_factory=dict[str, AttrValue])


LayoutRule: TypeAlias = Callable[[LayoutUse], Layouts | None]
"""None where no layout follows: the operator then takes its arguments as they were written."""

_LAYOUT_RULES: Registry[LayoutRule] = Registry("the layout rule of", LAYOUT_RULES)
layout_rule = _LAYOUT_RULES.of_operators
"""Registers a function as the layout rule of operators, each of which may have one: `@layout_rule("exp")`."""


def layout_rule_of(operator: Operator) -> LayoutRule | None:
    """Returns the layout rule of an operator; None for one that takes its arguments as they were written."""
    return _LAYOUT_RULES.find(operator.name)


def of_dims(dims: Sequence[tuple[str, int | None]]) -> Layout | None:
    """Returns the layout of these dimensions; None where an axis comes twice or has inner blocks only."""
    text = "".join(letter if block is None else f"{block}{letter.lower()}" for letter, block in dims)
    return parse_layout(text) if dims else SCALAR


def place_of(layout: Layout, letter: str) -> int | None:
    """Returns the dimension that holds an axis whole; None where it is split or missing."""
    places = layout.places(letter)
    return places[0] if len(places) == 1 else None


def last_dims(layout: Layout, count: int) -> Layout | None:
    """Returns the layout of the last `count` dimensions, which broadcasting aligns.

    None where they split an axis off.
    """
    return of_dims(layout.dims[len(layout.dims) - count :]) if count <= len(layout.dims) else None


def expanded(layout: Layout, like: Layout) -> Layout | None:
    """Returns the layout with the axes in front that only `like` has."""
    missing = [(letter, None) for letter in like.axes if letter not in layout.axes]
    return of_dims([*missing, *layout.dims])


def is_transform(source: Layout, target: Layout, shape: Sequence[int]) -> bool:
    """Returns whether a tensor can be brought into another layout, new axes in front included."""
    if source == target:
        return True
    if not set(source.axes) <= set(target.axes) or len(shape) != len(source.dims):
        return False
    sizes = source.logical(shape)
    for letter in target.axes:
        size, block = sizes.get(letter, 1), target.block(letter)
        if block != 1 and (size == DYNAMIC_INDEX or size % block):
            return False
    return True


def transformed_like(old: Layout, reference: Layout, changed: Layout) -> Layout | None:
    """Changes `old` as `reference` changed to `changed`: as NCHW became NHWC, CHW becomes NHWC.

    The last dimensions of `old` and `reference` are the same ones, whatever the names of their axes. None where they do not
    match.
    """
    if not old.dims:
        return old
    shared = min(len(old.dims), len(reference.dims))
    names: dict[str, str] = {}
    for (mine, block), (letter, other_block) in zip(old.dims[-shared:], reference.dims[-shared:], strict=True):
        if block != other_block or names.setdefault(letter, mine) != mine:
            return None
    if len(set(names.values())) != len(names):
        return None
    if shared < len(old.dims) and {letter for letter, _ in old.dims[:-shared]} & set(names.values()):
        return None
    taken = {letter for letter, _ in old.dims}
    for letter in reference.axes:
        if letter not in names:
            free = [letter, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
            names[letter] = next((name for name in free if name not in taken), "")
            taken.add(names[letter])
    if not set(changed.axes) <= set(names) or "" in names.values():
        return None
    return of_dims([(names[letter], block) for letter, block in changed.dims])


def blocks_of_one(target: Layout, old: Layout, shape: Sequence[int]) -> Layout | None:
    """Returns `target` with blocks of 1 where the tensor of layout `old` has one element, or no axis.

    A tensor that is broadcast along C stays broadcast along NCHW1c.
    """
    sizes = old.logical(shape)
    return of_dims(
        [(letter, 1 if block is not None and sizes.get(letter, 1) == 1 else block) for letter, block in target.dims]
    )
