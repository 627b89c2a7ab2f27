"""Parses layouts such as NCHW, NHWC, NCHW16c, OIHW16i16o, and defines `layout_transform`.

A capital letter is an axis; a number with the small letter is an inner block of that axis, so that in NCHW16c the axis C
is split into C (outer) and 16c (inner). The *logical* shape has one dimension for each capital letter.

    layout_transform: data (N,C,H,W), src_layout="NCHW", dst_layout="NCHW16c" -> (N,C/16,H,W,16)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from .....support.text import natural
from ...operator import Attrs, OpPattern, Relation, attr, define
from ._lazy import te
from .numpy_meanings import Array
from .relations import divide_dims, is_multiple, multiply_dims, rank_must_be, same_dim, shape_of, tensor_type
from .sources import TVM

if TYPE_CHECKING:
    from ....te.builder import Tensor

Dims: TypeAlias = "Sequence[Any]"
"""Dimensions: integers (`?` as ANY), or TE expressions."""


@dataclass(frozen=True)
class Layout:
    """A parsed layout: for each dimension its axis (a capital letter) and the size of an inner block."""

    text: str
    dims: tuple[tuple[str, int | None], ...]

    @property
    def axes(self) -> str:
        """The axes, in the order of their outer dimensions."""
        return "".join(letter for letter, block in self.dims if block is None)

    def places(self, axis: str) -> list[int]:
        """Returns the dimensions that hold an axis, outermost first."""
        outer = [d for d, (letter, block) in enumerate(self.dims) if letter == axis and block is None]
        return outer + [d for d, (letter, block) in enumerate(self.dims) if letter == axis and block is not None]

    def block(self, axis: str) -> int:
        """Returns the product of the sizes of the inner blocks of an axis."""
        return prod(block or 1 for letter, block in self.dims if letter == axis)

    def logical(self, shape: Dims) -> dict[str, Any]:
        """Returns the size of each axis of a tensor of this layout."""
        return {axis: _times(*(shape[d] for d in self.places(axis))) for axis in self.axes}

    def physical(self, sizes: Mapping[str, Any]) -> list[Any]:
        """Returns the shape of a tensor of this layout whose axes have these sizes."""
        return [_over(sizes[letter], self.block(letter)) if b is None else b for letter, b in self.dims]

    def to_logical(self, x: Array, axes: str) -> Array:
        """Returns the array with one dimension for each of `axes`, in that order."""
        order = [d for axis in axes for d in self.places(axis)]
        sizes = self.logical(x.shape)
        return x.transpose(order).reshape([sizes[axis] for axis in axes])

    def from_logical(self, x: Array, axes: str) -> Array:
        """Returns the inverse of `to_logical`."""
        places = [d for axis in axes for d in self.places(axis)]
        shape = self.physical(dict(zip(axes, x.shape, strict=True)))
        x = x.reshape([shape[d] for d in places])
        return x.transpose([places.index(d) for d in range(len(places))])

    def indices(self, at: Mapping[str, Any]) -> list[Any]:
        """Returns the indices in this layout of the element with the logical indices `at` (TE expressions)."""
        result: list[Any] = [None] * len(self.dims)
        for axis in self.axes:
            index = at[axis]
            outer, *inner = self.places(axis)
            for place in reversed(inner):
                block = self.dims[place][1] or 1
                result[place] = te.floormod(index, block)
                index = te.floordiv(index, block)
            result[outer] = index
        return result

    def logical_indices(self, indices: Dims) -> dict[str, Any]:
        """Returns the inverse of `indices`."""
        result: dict[str, Any] = {}
        for axis in self.axes:
            outer, *inner = self.places(axis)
            index = indices[outer]
            for place in inner:
                index = index * self.dims[place][1] + indices[place]
            result[axis] = index
        return result


def _times(*factors: Any) -> Any:
    if len(factors) == 1:
        return factors[0]
    if all(isinstance(f, int) for f in factors):
        return multiply_dims(*factors)
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


def _over(size: Any, block: int) -> Any:
    if block == 1:
        return size
    return divide_dims(size, block) if isinstance(size, int) else te.floordiv(size, block)


@cache
def parse_layout(text: str) -> Layout | None:
    """Parses a layout such as NCHW16c; returns None for other text."""
    if not re.fullmatch(r"([A-Z]|[0-9]+[a-z])+", text):
        return None
    dims: list[tuple[str, int | None]] = []
    for letter, block, inner in re.findall(r"([A-Z])|([0-9]+)([a-z])", text):
        size = None if letter else natural(block)
        if size is None and not letter:
            return None
        dims.append((letter or inner.upper(), size))
    outer = [letter for letter, block in dims if block is None]
    well_formed = len(set(outer)) == len(outer) and all(letter in outer and block != 0 for letter, block in dims)
    return Layout(text, tuple(dims)) if well_formed else None


def layout(text: str) -> Layout:
    """Returns a layout that a relation has accepted."""
    found = parse_layout(text)
    if found is None:
        raise ValueError(f"{text!r} is not a layout")
    return found


def checked_layout(rel: Relation, name: str, axes: str, default: str = "") -> Layout:
    """Returns the layout attribute `name` (`default` where unset).

    Fails unless it has exactly the axes `axes`, in any order.
    """
    text: str = rel.attrs[name] or default
    found = parse_layout(text)
    if found is None or sorted(found.axes) != sorted(axes):
        raise rel.fail(
            f"{rel.operator.name}: {name}={text!r} is not a layout of the axes {', '.join(axes)}",
            f"write for example {axes}, or {axes}16{axes[1].lower()} with blocks of 16 of {axes[1]}",
        )
    return found


def logical_sizes(rel: Relation, index: int, of: Layout) -> dict[str, int]:
    """Returns the size of each axis of argument `index`, a tensor of that layout.

    Fails when the rank or a block does not fit.
    """
    type = rank_must_be(rel, index, len(of.dims))
    for (letter, block), dim in zip(of.dims, shape_of(type), strict=True):
        if block is not None and not same_dim(dim, block):
            raise rel.fail(
                f"{rel.operator.name}: argument '{rel.operator.arguments[index]}' has {dim} where its layout {of.text}"
                f" has a block of {block} of axis {letter}",
                argument=index,
            )
    return of.logical(shape_of(type))


def laid_out(rel: Relation, sizes: Mapping[str, int], to: Layout, element: Attribute) -> TensorType[Attribute]:
    """Returns the type of a tensor of a layout. Fails when a block does not divide its axis."""
    for axis in to.axes:
        if not is_multiple(sizes[axis], to.block(axis)):
            raise rel.fail(
                f"{rel.operator.name}: axis {axis} has {sizes[axis]} elements, which the blocks of layout {to.text}"
                f" ({to.block(axis)}) do not divide"
            )
    return tensor_type(to.physical(sizes), element)


def _transform_relation(rel: Relation) -> None:
    src = parse_layout(rel.attrs.src_layout)
    if src is None:
        raise rel.fail(
            f"layout_transform: src_layout={rel.attrs.src_layout!r} is not a layout, such as NCHW or NCHW16c"
        )
    dst = checked_layout(rel, "dst_layout", src.axes)
    sizes = logical_sizes(rel, 0, src)
    rel.set_result(laid_out(rel, sizes, dst, rel.tensor(0).element_type))


def _transform(attrs: Attrs, x: Array) -> Array:
    src, dst = layout(attrs.src_layout), layout(attrs.dst_layout)
    return dst.from_logical(src.to_logical(x, src.axes), src.axes)


def _te_transform(attrs: Attrs, x: Tensor) -> Tensor:
    src, dst = layout(attrs.src_layout), layout(attrs.dst_layout)
    shape = dst.physical(src.logical(x.shape))
    return te.compute(shape, lambda *i: x(*src.indices(dst.logical_indices(i))), name="T_layout_trans")


define(
    "layout_transform", ("data",), _transform_relation, OpPattern.INJECTIVE,
    numpy=_transform,
    compute=lambda attrs, xs, out: [_te_transform(attrs, xs[0])],
    attributes=(attr("src_layout", kind="str"), attr("dst_layout", kind="str")),
    doc="The tensor in another layout; blocks (16c) are split off and merged.",
    source=TVM.format("layout_transform"),
)  # fmt: skip
