"""Defines padding by a value, by the edge or by reflection, and moves between space, batch and depth.

pad:            data (2,3), pad_value (), pad_width=[[0,0],[1,2]] -> (2,6)
space_to_depth: data (N,C,H,W), block_size=2 -> (N, C*4, H/2, W/2)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, cast

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array
from ..common.relations import (
    ANY,
    add_dims,
    divide_dims,
    is_multiple,
    multiply_dims,
    rank_must_be,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.result_sizes import Requirement, ResultShapes
from ..common.sources import TVM_NN
from ..common.te_computes import Dim, constant, unflatten
from ..elementwise.unary import convert

if TYPE_CHECKING:
    from ....te.builder import Tensor

MODES = ("constant", "edge", "reflect")


def _pairs(rel: Relation, name: str) -> list[Any]:
    """Returns an attribute's entries, which should be pairs of numbers; None in place of any other."""
    entries: tuple[Any, ...] = rel.attrs[name]
    return [e if isinstance(e, tuple) and len(cast("tuple[Any, ...]", e)) == 2 else None for e in entries]


def _listed(value: Any) -> Any:
    return [_listed(v) for v in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def _padded(rel: Relation) -> None:
    """Sets the result: the data with `pad_width` added to each axis. Fails unless it has a pair for each."""
    data = rel.tensor(0)
    shape, widths = shape_of(data), _pairs(rel, "pad_width")
    if len(widths) != len(shape) or None in widths:
        raise rel.fail(
            f"{rel.operator.name}: pad_width={_listed(rel.attrs.pad_width)} must have a pair"
            f" (before, after) for each of the {len(shape)} axes of {show_argument(rel, 0)}"
        )
    dims = [add_dims(d, *w) for d, w in zip(shape, widths, strict=True)]
    if any(d < 0 and d != ANY for d in dims):
        raise rel.fail(f"{rel.operator.name}: pad_width cuts away more than there is of {show_argument(rel, 0)}")
    rel.set_result(tensor_type(dims, data.element_type))


def _check_repeated(rel: Relation) -> None:
    """Fails where the padding removes elements, or repeats those of an axis that has none."""
    for axis, (size, (low, high)) in enumerate(zip(shape_of(rel.tensor(0)), rel.attrs.pad_width, strict=True)):
        if min(low, high) < 0:
            raise rel.fail(
                f"{rel.operator.name}: pad_width={[low, high]} of axis {axis} cuts elements away, which only"
                " nn.pad with pad_mode 'constant' does"
            )
        if size == 0 and low + high > 0:
            raise rel.fail(f"{rel.operator.name}: axis {axis} of {show_argument(rel, 0)} has no elements to repeat")


def _pad_relation(rel: Relation) -> None:
    if rel.attrs.pad_mode not in MODES:
        raise rel.fail(f"nn.pad: pad_mode={rel.attrs.pad_mode!r} must be one of {', '.join(MODES)}")
    rank_must_be(rel, 1, 0)
    _padded(rel)
    if rel.attrs.pad_mode != "constant":
        _check_repeated(rel)


def pad_constant(x: Array, widths: Sequence[tuple[int, int]], value: Any) -> Array:
    """Pads `x` with `value`; a negative width removes elements."""
    x = x[tuple(slice(max(-low, 0), d - max(-high, 0)) for d, (low, high) in zip(x.shape, widths, strict=True))]
    return np.pad(x, [(max(low, 0), max(high, 0)) for low, high in widths], constant_values=value)


def _pad(attrs: Attrs, x: Array, value: Array) -> Array:
    if attrs.pad_mode == "constant":
        return pad_constant(x, attrs.pad_width, convert(value, x.dtype.name).item())
    return np.pad(x, attrs.pad_width, mode=attrs.pad_mode)


def _inner_index(mode: str, place: Any, size: Any, width: tuple[int, int]) -> Any:
    """Returns the index, along an axis of `size` elements, that a place beside or inside it repeats."""
    if mode == "edge":
        return te.max(te.min(place, size - 1), 0)
    # reflect does not repeat the edge element, symmetric does.
    skip = 0 if mode == "symmetric" else 1
    known = constant(size)
    if known is None or max(width) > known - skip:
        # Reflected more than once, or perhaps so: forwards and backwards again and again.
        period = 2 * (size - skip)
        if known is not None and 2 * (known - skip) == 0:
            return 0
        turned = te.floormod(place, period if known is not None else te.max(period, 1))
        return te.min(te.min(turned, period - 1 + skip - turned), size - 1)
    behind_start = te.max(place, skip - 1 - place)
    return te.min(behind_start, 2 * size - 1 - skip - behind_start)


def _te_pad(mode: str, widths: Sequence[tuple[int, int]], x: Tensor, value: Tensor | None) -> Tensor:
    def body(*i: Any) -> Any:
        places = [index - low for index, (low, _) in zip(i, widths, strict=True)]
        if value is None:
            return x(
                *(
                    p if width == (0, 0) else _inner_index(mode, p, d, width)
                    for p, d, width in zip(places, x.shape, widths, strict=True)
                )
            )
        inside: list[Any] = []
        for place, size, (low, high) in zip(places, x.shape, widths, strict=True):
            inside += [place >= 0] if low > 0 else []
            inside += [place < size] if high > 0 else []
        element = x(*places)
        return te.if_then_else(te.all(*inside), element, value().astype(x.dtype)) if inside else element

    return te.compute(_padded_shape(widths, x), body, name="T_pad")


def _padded_shape(widths: Sequence[tuple[int, int]], x: Tensor) -> list[Dim]:
    return [low + d + high for d, (low, high) in zip(x.shape, widths, strict=True)]


def _pad_extents(mode: str, attrs: Attrs, x: Tensor) -> ResultShapes:
    """Computes the result's shape; a dimension of run time must have the elements that are repeated."""
    needed = [
        Requirement("within", 1, size, f"dimension {axis} of 'data' has no elements to repeat")
        for axis, (size, width) in enumerate(zip(x.shape, attrs.pad_width, strict=True))
        if mode != "constant" and sum(width) > 0 and not isinstance(size, int)
    ]
    return ResultShapes([_padded_shape(attrs.pad_width, x)], needed)


define(
    "nn.pad", ("data", "pad_value"), _pad_relation, OpPattern.INJECTIVE,
    numpy=_pad,
    compute=lambda attrs, xs, out: [
        _te_pad(attrs.pad_mode, attrs.pad_width, xs[0], xs[1] if attrs.pad_mode == "constant" else None)
    ],
    extents=lambda attrs, xs, out: _pad_extents(attrs.pad_mode, attrs, xs[0]),
    attributes=(attr("pad_width", kind="ints"), attr("pad_mode", "constant")),
    doc="Elements before and after each axis: `pad_value`, the edge's, or the reflection about the edge.",
    source=TVM_NN.format("pad"),
)  # fmt: skip


def _mirror_relation(rel: Relation) -> None:
    if rel.attrs.mode not in ("SYMMETRIC", "REFLECT"):
        raise rel.fail(f"nn.mirror_pad: mode={rel.attrs.mode!r} must be SYMMETRIC or REFLECT")
    _padded(rel)
    _check_repeated(rel)


define(
    "nn.mirror_pad", ("data",), _mirror_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: np.pad(x, attrs.pad_width, mode=attrs.mode.lower()),
    compute=lambda attrs, xs, out: [_te_pad(attrs.mode.lower(), attrs.pad_width, xs[0], None)],
    extents=lambda attrs, xs, out: _pad_extents(attrs.mode.lower(), attrs, xs[0]),
    attributes=(attr("mode", "SYMMETRIC"), attr("pad_width", kind="ints")),
    doc="The tensor reflected at its edges; SYMMETRIC repeats the edge elements, REFLECT does not.",
    source=TVM_NN.format("mirror_pad"),
)  # fmt: skip


def _blocks(rel: Relation, pairs: str) -> tuple[list[int], tuple[int, ...], list[tuple[int, int]]]:
    """Returns the data's shape, the block sizes, and the pairs of the attribute `pairs` per blocked axis."""
    shape, block, widths = list(shape_of(rel.tensor(0))), rel.attrs.block_shape, _pairs(rel, pairs)
    if not 0 < len(block) < len(shape) or any(b < 1 for b in block):
        raise rel.fail(f"{rel.operator.name}: block_shape={list(block)} must be positive, one for each spatial axis")
    if len(widths) != len(block) or None in widths:
        raise rel.fail(f"{rel.operator.name}: {pairs} must have a pair (before, after) for each entry of block_shape")
    return shape, block, widths


def _space_to_batch_relation(rel: Relation) -> None:
    shape, block, widths = _blocks(rel, "paddings")
    batch = shape[0]
    for axis, (size, (low, high)) in enumerate(zip(block, widths, strict=True), 1):
        padded = add_dims(shape[axis], low, high)
        if not is_multiple(padded, size):
            raise rel.fail(
                f"nn.space_to_batch_nd: axis {axis} has {padded} elements with padding, not a multiple of {size}"
            )
        shape[axis] = divide_dims(padded, size)
        batch = multiply_dims(batch, size)
    rel.set_result(tensor_type([batch, *shape[1:]], rel.tensor(0).element_type))


def _space_to_batch(attrs: Attrs, x: Array) -> Array:
    block = attrs.block_shape
    count = len(block)
    widths = [(0, 0), *attrs.paddings, *[(0, 0)] * (x.ndim - 1 - count)]
    x = pad_constant(x, widths, attrs.pad_value)
    split = [x.shape[0]]
    for axis, size in enumerate(block, 1):
        split += [x.shape[axis] // size, size]
    x = x.reshape(*split, *(rest := x.shape[1 + count :]))
    outer, inner = [1 + 2 * k for k in range(count)], [2 + 2 * k for k in range(count)]
    x = x.transpose(*inner, 0, *outer, *range(1 + 2 * count, x.ndim))
    return x.reshape(split[0] * prod(block), *x.shape[count + 1 : 2 * count + 1], *rest)


def _te_space_to_batch(attrs: Attrs, x: Tensor) -> Tensor:
    block = attrs.block_shape
    count = len(block)
    batch: Any = x.shape[0]
    shape = list(x.shape)
    for axis, (size, (low, high)) in enumerate(zip(block, attrs.paddings, strict=True), 1):
        shape[axis] = te.floordiv(x.shape[axis] + (low + high), size)
        shape[0] = shape[0] * size

    def body(*i: Any) -> Any:
        rest: Any = te.floordiv(i[0], batch)
        offsets: list[Any] = []
        for size in reversed(block):
            offsets.insert(0, te.floormod(rest, size))
            rest = te.floordiv(rest, size)
        places: list[Any] = [te.floormod(i[0], batch)]
        inside: list[Any] = []
        for axis, (size, (low, _)) in enumerate(zip(block, attrs.paddings, strict=True), 1):
            place = i[axis] * size + offsets[axis - 1] - low
            places.append(place)
            inside += [place >= 0, place < x.shape[axis]]
        element = x(*places, *i[1 + count :])
        return te.if_then_else(te.all(*inside), element, te.const(attrs.pad_value, x.dtype))

    return te.compute(shape, body, name="T_space_to_batch")


define(
    "nn.space_to_batch_nd", ("data",), _space_to_batch_relation, OpPattern.INJECTIVE,
    numpy=_space_to_batch,
    compute=lambda attrs, xs, out: [_te_space_to_batch(attrs, xs[0])],
    attributes=(attr("block_shape", kind="ints"), attr("paddings", kind="ints"), attr("pad_value", 0.0)),
    doc="Pads the spatial axes and moves the places within blocks of `block_shape` into the batch axis.",
    source=TVM_NN.format("space_to_batch_nd"),
)  # fmt: skip


def _batch_to_space_relation(rel: Relation) -> None:
    shape, block, crops = _blocks(rel, "crops")
    batch = shape[0]
    for axis, (size, (low, high)) in enumerate(zip(block, crops, strict=True), 1):
        shape[axis] = ANY if shape[axis] == ANY else shape[axis] * size - low - high
        # As in TVM, a batch that the blocks do not divide is rounded down.
        batch = divide_dims(batch, size)
    if any(d < 0 and d != ANY for d in shape):
        raise rel.fail(f"nn.batch_to_space_nd: crops={[list(c) for c in crops]} cut away more than there is")
    rel.set_result(tensor_type([batch, *shape[1:]], rel.tensor(0).element_type))


def _batch_to_space(attrs: Attrs, x: Array) -> Array:
    block, count = attrs.block_shape, len(attrs.block_shape)
    places = prod(block)
    batch = x.shape[0] // places
    rest = x.shape[1 + count :]
    x = x[: batch * places]
    x = x.reshape(*block, batch, *x.shape[1:])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    x = x.transpose(*order, *range(2 * count + 1, x.ndim))
    x = x.reshape(batch, *(x.shape[1 + 2 * a] * x.shape[2 + 2 * a] for a in range(count)), *rest)
    cuts = (slice(low, d - high) for d, (low, high) in zip(x.shape[1:], attrs.crops, strict=False))
    return np.ascontiguousarray(x[(slice(None), *cuts)])


def _te_batch_to_space(attrs: Attrs, x: Tensor) -> Tensor:
    block, count = attrs.block_shape, len(attrs.block_shape)
    shape: list[Any] = list(x.shape)
    for axis, (size, (low, high)) in enumerate(zip(block, attrs.crops, strict=True), 1):
        shape[axis] = x.shape[axis] * size - (low + high)
        shape[0] = te.floordiv(shape[0], size)
    batch = shape[0]

    def body(*i: Any) -> Any:
        offset: Any = te.const(0, "int32")
        places: list[Any] = []
        for axis, (size, (low, _)) in enumerate(zip(block, attrs.crops, strict=True), 1):
            place = i[axis] + low
            offset = offset * size + te.floormod(place, size)
            places.append(te.floordiv(place, size))
        return x(offset * batch + i[0], *places, *i[1 + count :])

    return te.compute(shape, body, name="T_batch_to_space")


define(
    "nn.batch_to_space_nd", ("data",), _batch_to_space_relation, OpPattern.INJECTIVE,
    numpy=_batch_to_space,
    compute=lambda attrs, xs, out: [_te_batch_to_space(attrs, xs[0])],
    attributes=(attr("block_shape", kind="ints"), attr("crops", kind="ints")),
    doc="The inverse of `nn.space_to_batch_nd`: places within blocks come from the batch axis, then `crops` are cut off.",
    source=TVM_NN.format("batch_to_space_nd"),
)  # fmt: skip


def _depth_relation(to_depth: bool) -> Any:
    def relation(rel: Relation) -> None:
        from ..common.layout_strings import checked_layout, laid_out, logical_sizes

        rank_must_be(rel, 0, 4)
        of = checked_layout(rel, "layout", "NCHW")
        sizes, block = logical_sizes(rel, 0, of), rel.attrs.block_size
        square = block * block
        if block < 1:
            raise rel.fail(f"{rel.operator.name}: block_size={block} must be positive")
        divided = ("H", "W") if to_depth else ("C",)
        for axis in divided:
            by = block if to_depth else square
            if not is_multiple(sizes[axis], by):
                raise rel.fail(f"{rel.operator.name}: axis {axis} of {show_argument(rel, 0)} is not a multiple of {by}")
        for axis in "HW":
            sizes[axis] = divide_dims(sizes[axis], block) if to_depth else multiply_dims(sizes[axis], block)
        sizes["C"] = multiply_dims(sizes["C"], square) if to_depth else divide_dims(sizes["C"], square)
        rel.set_result(laid_out(rel, sizes, of, rel.tensor(0).element_type))

    return relation


def _space_to_depth(attrs: Attrs, x: Array) -> Array:
    from ..common.layout_strings import layout

    of, b = layout(attrs.layout), attrs.block_size
    x = of.to_logical(x, "NCHW")
    n, c, h, w = x.shape
    order = (0, 1, 3, 5, 2, 4) if attrs.mode == "CRD" else (0, 3, 5, 1, 2, 4)
    x = x.reshape(n, c, h // b, b, w // b, b).transpose(order)
    return of.from_logical(x.reshape(n, c * b * b, h // b, w // b), "NCHW")


def _depth_to_space(attrs: Attrs, x: Array) -> Array:
    from ..common.layout_strings import layout

    of, b = layout(attrs.layout), attrs.block_size
    x = of.to_logical(x, "NCHW")
    n, c, h, w = x.shape
    if attrs.mode == "DCR":
        x = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return of.from_logical(x.reshape(n, c // (b * b), h * b, w * b), "NCHW")


def _te_depth(attrs: Attrs, x: Tensor, to_depth: bool) -> Tensor:
    from ..common.layout_strings import layout

    of, b = layout(attrs.layout), attrs.block_size
    sizes = of.logical(x.shape)
    channels = sizes["C"]
    new = dict(sizes)
    for axis in "HW":
        new[axis] = te.floordiv(sizes[axis], b) if to_depth else sizes[axis] * b
    new["C"] = channels * (b * b) if to_depth else te.floordiv(channels, b * b)

    def body(*i: Any) -> Any:
        at = of.logical_indices(i)
        if to_depth:
            if attrs.mode == "CRD":
                channel, row, column = unflatten(at["C"], (channels, b, b))
            else:
                row, column, channel = unflatten(at["C"], (b, b, channels))
            source = {"C": channel, "H": at["H"] * b + row, "W": at["W"] * b + column}
        else:
            place = te.floormod(at["H"], b) * b + te.floormod(at["W"], b)
            by_place = attrs.mode == "DCR"
            source = {
                "C": place * new["C"] + at["C"] if by_place else at["C"] * (b * b) + place,
                "H": te.floordiv(at["H"], b),
                "W": te.floordiv(at["W"], b),
            }
        return x(*of.indices({"N": at["N"], **source}))

    return te.compute(of.physical(new), body, name="T_space_to_depth" if to_depth else "T_depth_to_space")


define(
    "nn.space_to_depth", ("data",), _depth_relation(True), OpPattern.INJECTIVE,
    numpy=_space_to_depth,
    compute=lambda attrs, xs, out: [_te_depth(attrs, xs[0], True)],
    attributes=(attr("block_size", kind="int"), attr("layout", "NCHW"), attr("mode", "")),
    doc="Moves the places within blocks of the image into the channels; mode CRD: the place is the inner part of the channel.",
    source=TVM_NN.format("space_to_depth"),
)  # fmt: skip

define(
    "nn.depth_to_space", ("data",), _depth_relation(False), OpPattern.INJECTIVE,
    numpy=_depth_to_space,
    compute=lambda attrs, xs, out: [_te_depth(attrs, xs[0], False)],
    attributes=(attr("block_size", kind="int"), attr("layout", "NCHW"), attr("mode", "DCR")),
    doc="Moves channels into places within blocks of the image; mode DCR: the place is the outer part of the channel.",
    source=TVM_NN.format("depth_to_space"),
)  # fmt: skip
