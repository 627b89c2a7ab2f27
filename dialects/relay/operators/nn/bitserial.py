"""Defines bit-serial products of numbers of few bits: packing into words, dense layers, convolutions.

    bitpack:         data (N,C,H,W), bits=2, pack_axis=1, bit_axis=2 -> (N,C/8,2,H,W) of uint8
    bitserial_dense: data (M,K), weight (N,K) -> (M,N)

With `unipolar` a weight's bits count as -1 and 1 rather than 0 and 1: a weight w of n bits represents 2w - (2^n - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.layout_strings import layout
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import (
    axis_of,
    divide_dims,
    dtype_attr,
    dtype_of,
    is_multiple,
    multiply_dims,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.te_computes import compute_of
from ..conv.convolution import check_window, convolve, places_must_be, spatial_padding, window_count

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

SOURCE = "https://arxiv.org/abs/1810.11066"
WORDS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
"""The bits of the words that bits are packed into."""


def _word(rel: Relation, name: str) -> int:
    """Returns the width of a word of the dtype attribute `name`."""
    dtype = rel.attrs[name]
    if dtype not in WORDS:
        raise rel.fail(f"{rel.operator.name}: {name}={dtype!r} must be one of {', '.join(WORDS)}")
    return WORDS[dtype]


def _integers(rel: Relation, *indices: int) -> None:
    for index in indices:
        if not dtype_of(rel.tensor(index)).startswith(("int", "uint")):
            raise rel.fail(
                f"{rel.operator.name}: {show_argument(rel, index)} must be of an integer dtype", argument=index
            )


def _bits(rel: Relation, *names: str) -> None:
    for name in names:
        if not 0 < rel.attrs[name] <= 8:
            raise rel.fail(f"{rel.operator.name}: {name}={rel.attrs[name]} must be from 1 to 8")


def _pack_relation(rel: Relation) -> None:
    data, attrs = rel.tensor(0), rel.attrs
    _integers(rel, 0)
    _bits(rel, "bits")
    width, shape = _word(rel, "pack_type"), list(shape_of(data))
    axis = axis_of(rel, attrs.pack_axis, len(shape), "pack_axis")
    place = axis_of(rel, attrs.bit_axis, len(shape) + 1, "bit_axis", "the result")
    if not is_multiple(shape[axis], width):
        raise rel.fail(
            f"nn.bitpack: {show_argument(rel, 0)} has {shape[axis]} elements along axis {axis}, not a multiple of {width}",
            argument=0,
        )
    shape[axis] = divide_dims(shape[axis], width)
    shape.insert(place, attrs.bits)
    rel.set_result(tensor_type(shape, attrs.pack_type))


def _pack(attrs: Attrs, x: Array) -> Array:
    width, dtype = WORDS[attrs.pack_type], numpy_type(attrs.pack_type)
    axis: int = attrs.pack_axis % x.ndim
    planes = [(x.astype(np.int64) >> bit) & 1 for bit in range(attrs.bits)]
    stacked = np.stack(planes, 0).astype(np.uint64)
    words = stacked.reshape(*stacked.shape[: axis + 1], x.shape[axis] // width, width, *stacked.shape[axis + 2 :])
    # The first element is the highest bit.
    weights = np.uint64(1) << np.arange(width - 1, -1, -1, dtype=np.uint64)
    packed = (words * weights.reshape(-1, *[1] * (x.ndim - axis - 1))).sum(axis + 2, dtype=np.uint64)
    return np.moveaxis(packed, 0, attrs.bit_axis % (x.ndim + 1)).astype(dtype)


def _te_pack(attrs: Attrs, x: Tensor) -> Tensor:
    dtype: str = attrs.pack_type
    width = WORDS[dtype]
    rank = len(x.shape)
    axis: int = attrs.pack_axis % rank
    place: int = attrs.bit_axis % (rank + 1)
    shape: list[Any] = list(x.shape)
    shape[axis] = shape[axis] // width if isinstance(shape[axis], int) else te.floordiv(shape[axis], width)
    shape.insert(place, attrs.bits)
    k = te.reduce_axis((0, width), name="k")

    def body(*i: Expr) -> Any:
        at: list[Any] = [*i[:place], *i[place + 1 :]]
        at[axis] = at[axis] * width + k
        element: Expr = x(*at)
        shift: Expr = i[place]
        bit = (element.astype("int64") >> shift.astype("int64")) & te.const(1, "int64")
        return te.sum(bit.astype(dtype) << te.convert(width - 1 - k).astype(dtype), axis=k)

    return te.compute(shape, body, name="T_bitpack")


define(
    "nn.bitpack", ("data",), _pack_relation, OpPattern.INJECTIVE,
    numpy=_pack,
    compute=lambda attrs, xs, out: [_te_pack(attrs, xs[0])],
    attributes=(
        attr("bits", 1), attr("pack_axis", 1), attr("bit_axis", -1), attr("pack_type", None, "str"),
        attr("name", "BitPack"),
    ),
    doc="The lowest `bits` bits of numbers, each bit of a row of them packed into words, the first number highest.",
    source=SOURCE,
)  # fmt: skip


def _weights(attrs: Attrs, w: Array, channels: int, bits: int) -> Array:
    """Returns the numbers that a weight, or its bits packed along two axes, represents.

    `channels` is the axis of words, `bits` that of bits.
    """
    count: int = attrs.weight_bits
    if bits >= 0:
        width = WORDS[attrs.pack_dtype]
        planes = np.moveaxis(w, bits, -1).astype(np.uint64)
        shifts = np.arange(width - 1, -1, -1, dtype=np.uint64)
        spread = (
            np.expand_dims(planes, channels + 1) >> shifts.reshape(-1, *[1] * (planes.ndim - channels - 1))
        ) & np.uint64(1)
        shape = [*planes.shape[:channels], planes.shape[channels] * width, *planes.shape[channels + 1 : -1]]
        w = (spread.astype(np.int64) << np.arange(count)).sum(-1).reshape(shape)
    values = w.astype(np.int64) & ((1 << count) - 1)
    return 2 * values - ((1 << count) - 1) if attrs.unipolar else values


def _te_weights(attrs: Attrs, w: Tensor, channels: int, bits: int) -> Tensor:
    """Computes the numbers that a weight represents (`_weights`), in int32."""
    count: int = attrs.weight_bits
    full = te.const((1 << count) - 1, "int32")

    def signed(value: Expr) -> Expr:
        return value * 2 - full if attrs.unipolar else value

    if bits < 0:
        return te.compute(w.shape, lambda *i: signed(w(*i).astype("int32") & full), name="T_bits")
    width, one = WORDS[attrs.pack_dtype], te.const(1, w.dtype)
    shape: list[Any] = [dim for axis, dim in enumerate(w.shape) if axis != bits]
    # The axis of the words, without that of the bits.
    place = channels
    shape[place] = shape[place] * width

    def body(*i: Expr) -> Expr:
        total: Any = te.const(0, "int32")
        at: list[Any] = list(i)
        shift = (width - 1 - te.floormod(at[place], width)).astype(w.dtype)
        at[place] = te.floordiv(at[place], width)
        for bit in range(count):
            found = (w(*at[:bits], bit, *at[bits:]) >> shift) & one
            total = total + (found.astype("int32") << bit)
        return signed(total)

    return te.compute(shape, body, name="T_bits")


def _te_values(x: Tensor, bits: int) -> Tensor:
    """Returns the lowest bits of numbers, int32."""
    mask = te.const((1 << bits) - 1, "int32")
    return te.compute(x.shape, lambda *i: x(*i).astype("int32") & mask, name="T_values")


def _dense_relation(rel: Relation) -> None:
    data, weight, attrs = rank_must_be(rel, 0, 2), rank_must_be(rel, 1, 2, 3), rel.attrs
    _integers(rel, 0, 1)
    _bits(rel, "data_bits", "weight_bits")
    width = _word(rel, "pack_dtype")
    rows, inner = shape_of(data)
    shape = shape_of(weight)
    packed = len(shape) == 3
    own = multiply_dims(shape[-1], width) if packed else shape[-1]
    if not same_dim(own, inner) or (packed and not same_dim(shape[1], attrs.weight_bits)):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 1)} does not fit {show_argument(rel, 0)}", argument=1)
    if not is_multiple(inner, width):
        raise rel.fail(
            f"{rel.operator.name}: the {inner} columns are not a multiple of the {width} bits of {attrs.pack_dtype}"
        )
    units = shape[0] if attrs.units is None else attrs.units
    if not same_dim(units, shape[0]):
        raise rel.fail(f"{rel.operator.name}: units={units}, but {show_argument(rel, 1)} makes {shape[0]}")
    rel.set_result(tensor_type([rows, units], dtype_attr(rel, "out_dtype", "int16")))


def _dense(attrs: Attrs, x: Array, w: Array) -> Array:
    values = x.astype(np.int64) & ((1 << attrs.data_bits) - 1)
    weights = _weights(attrs, w, 1, 1 if w.ndim == 3 else -1)
    return (values @ weights.T).astype(numpy_type(attrs.out_dtype or "int16"))


def _te_dense(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    weights = _te_weights(attrs, xs[1], 1, 1 if len(xs[1].shape) == 3 else -1)
    plain = Attrs({"units": None, "out_dtype": attrs.out_dtype or "int16"})
    return compute_of("nn.dense")(plain, [_te_values(xs[0], attrs.data_bits), weights], out)


define(
    "nn.bitserial_dense", ("data", "weight"), _dense_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_dense,
    compute=_te_dense,
    attributes=(
        attr("units", None, "int", printed=True), attr("data_bits", 1), attr("weight_bits", 1),
        attr("pack_dtype", "uint32", printed=True), attr("out_dtype", "int16", printed=True), attr("unipolar", True),
    ),
    doc="`nn.dense` of numbers of few bits; the weight may be packed.",
    source=SOURCE,
)  # fmt: skip

_KERNELS = {"NCHW": ("OIHW", 1), "NHWC": ("HWIO", 2)}
"""The kernel's layout, and the axis of its input channels, by the data's layout."""


def _conv_relation(rel: Relation) -> None:
    attrs, name = rel.attrs, rel.operator.name
    check_window(rel, 2, "strides", "kernel_size")
    if attrs.data_layout not in _KERNELS:
        raise rel.fail(f"{name}: data_layout={attrs.data_layout!r} must be NCHW or NHWC")
    _integers(rel, 0, 1)
    _bits(rel, "activation_bits", "weight_bits")
    width = _word(rel, "pack_dtype")
    data, weight = rank_must_be(rel, 0, 4), rank_must_be(rel, 1, 4, 5)
    of, (kernel, channels) = layout(attrs.data_layout), _KERNELS[attrs.data_layout]
    sizes, shape = of.logical(shape_of(data)), list(shape_of(weight))
    if len(shape) == 5:
        count = shape.pop()
        if not same_dim(count, attrs.weight_bits):
            raise rel.fail(
                f"{name}: {show_argument(rel, 1)} has {count} bits, not weight_bits={attrs.weight_bits}", argument=1
            )
        shape[channels] = multiply_dims(shape[channels], width)
    own = layout(kernel).logical(shape)
    wanted = {"I": sizes["C"], "H": attrs.kernel_size[0], "W": attrs.kernel_size[1]}
    wanted["O"] = own["O"] if attrs.channels is None else attrs.channels
    if not all(same_dim(own[axis], wanted[axis]) for axis in own):
        raise rel.fail(
            f"{name}: {show_argument(rel, 1)} does not fit {show_argument(rel, 0)}, channels and kernel_size",
            argument=1,
        )
    if not is_multiple(sizes["C"], width):
        raise rel.fail(
            f"{name}: the {sizes['C']} channels are not a multiple of the {width} bits of {attrs.pack_dtype}"
        )
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    result = {"N": sizes["N"], "C": wanted["O"]}
    for n, axis in enumerate("HW"):
        result[axis] = window_count(sizes[axis], before[n], after[n], attrs.kernel_size[n], attrs.strides[n], 1)
    places_must_be(rel, result, "HW", 1)
    rel.set_result(tensor_type(of.physical(result), dtype_attr(rel, "out_dtype", "int16")))


def _plain(attrs: Attrs) -> Attrs:
    """Returns the attributes of the convolution of unpacked numbers."""
    rest = {"dilation": (1, 1), "groups": 1, "channels": None, "out_layout": "", "kernel_size": None}
    return Attrs(
        {**attrs, **rest, "kernel_layout": _KERNELS[attrs.data_layout][0], "out_dtype": attrs.out_dtype or "int16"}
    )


def _conv(attrs: Attrs, x: Array, w: Array) -> Array:
    kernel, channels = _KERNELS[attrs.data_layout]
    values = layout(attrs.data_layout).to_logical(x, "NCHW").astype(np.int64) & ((1 << attrs.activation_bits) - 1)
    weights = layout(kernel).to_logical(_weights(attrs, w, channels, 4 if w.ndim == 5 else -1), "OIHW")
    result = convolve(values, weights, _plain(attrs), np.dtype(np.int64)).astype(numpy_type(attrs.out_dtype or "int16"))
    return layout(attrs.data_layout).from_logical(result, "NCHW")


def _te_conv(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    channels = _KERNELS[attrs.data_layout][1]
    weights = _te_weights(attrs, xs[1], channels, 4 if len(xs[1].shape) == 5 else -1)
    return compute_of("nn.conv2d")(_plain(attrs), [_te_values(xs[0], attrs.activation_bits), weights], out)


define(
    "nn.bitserial_conv2d", ("data", "weight"), _conv_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_conv,
    compute=_te_conv,
    attributes=(
        attr("strides", (1, 1)), attr("padding", (0, 0)), attr("kernel_size", (3, 3)), attr("channels", None, "int"),
        attr("activation_bits", 1), attr("weight_bits", 1), attr("data_layout", "NCHW"), attr("kernel_layout", "OIHW"),
        attr("pack_dtype", "uint32", printed=True), attr("out_dtype", "int16", printed=True), attr("unipolar", True),
    ),
    doc="`nn.conv2d` of numbers of few bits; the weight may be packed (bits last).",
    source=SOURCE,
)  # fmt: skip
