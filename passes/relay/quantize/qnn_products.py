"""Lowering of quantized products, such as `qnn.dense` and `qnn.conv2d`, to plain operators.

As TVM's canonicalizations: the sum of (a - z) * (w - y) is the plain product of the integers, less y times sums of a, less z
times sums of w, plus z * y for each term. Terms with a zero point of 0 fall away, so that the product stays on 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import SSAValue

from ....dialects.relay.emit import Emitter
from ....dialects.relay.ir import ConstantOp
from ....dialects.relay.operator import AttrValue, OperatorOp
from .affine_types import dtype_of, rank_of, scalar_of
from .qnn_requantize import is_scalar

Term = Callable[[], SSAValue]


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    return tuple(value.type.get_shape())


def _is_zero_point(value: SSAValue) -> bool:
    """Returns whether a zero point is one known number."""
    return rank_of(value) == 0 and scalar_of(value) is not None


def _times(make: Emitter, zero_point: SSAValue, sums: SSAValue) -> SSAValue:
    return sums if is_scalar(zero_point, 1) else make.call("multiply", zero_point, sums)


def _combine(
    make: Emitter, zero_points: tuple[SSAValue, SSAValue], product: SSAValue, of_data: Term, of_weight: Term, count: int
) -> SSAValue:
    """Subtracts the terms of the zero points (of the data, of the weight) from a product of `count` terms."""
    data, weight = zero_points
    known = _is_zero_point(data) and _is_zero_point(weight)
    if is_scalar(weight, 0):
        return product if is_scalar(data, 0) else make.call("subtract", product, of_weight())
    if known and is_scalar(data, 0):
        return make.call("subtract", product, of_data())
    both = (scalar_of(data) or 0) * (scalar_of(weight) or 0) * count
    if known:
        constant = make.constant(both, "int32")
    else:
        constant = make.call("multiply", make.constant(count, "int32"), make.call("multiply", data, weight))
    rest = make.call("subtract", product, of_data())
    return make.call("add", rest, make.call("subtract", constant, of_weight()))


def _sum(make: Emitter, x: SSAValue, axes: list[int], keepdims: bool) -> SSAValue:
    return make.call("sum", make.call("cast", x, dtype="int32"), axis=axes, keepdims=keepdims)


def centered_product(op: OperatorOp, make: Emitter, name: str, axis: int) -> SSAValue:
    """Builds operator `name` on both tensors less their zero points, in int32.

    The weight's zero points are along its `axis`.
    """
    data, weight, data_zero, weight_zero = op.args[:4]
    x = make.call("subtract", make.call("cast", data, dtype="int32"), make.call("cast", data_zero, dtype="int32"))
    w = make.call("cast", weight, dtype="int32")
    zero = make.call("cast", weight_zero, dtype="int32")
    if rank_of(weight_zero) == 0 or _shape(weight_zero) == (1,):
        w = make.call("subtract", w, zero)
    else:
        w = make.call("nn.bias_add", w, make.call("negative", zero), axis=axis)
    return make.call(name, x, w, **{"out_dtype": "int32", **op.given()})


@dataclass(frozen=True)
class Sides:
    """Data and weight of a product, with their zero points."""

    data: SSAValue
    weight: SSAValue
    data_zero: SSAValue
    weight_zero: SSAValue

    @staticmethod
    def of(op: OperatorOp, make: Emitter, unsigned: bool) -> Sides:
        """Returns the sides of an operator.

        `unsigned`: bytes as VNNI multiplies them, data from 0 and weights around 0.

        Shifted by 128, with their zero points, they represent the same numbers. Only if the weight is constant, which is then
        shifted, and summed, when compiling.
        """
        sides = Sides(*op.args[:4])
        if not unsigned or not isinstance(sides.weight.owner, ConstantOp):
            return sides
        types = (dtype_of(sides.data), dtype_of(sides.weight))
        if rank_of(sides.data_zero) != 0 or not _is_zero_point(sides.weight_zero):
            return sides
        if not all(name in ("int8", "uint8") for name in types):
            return sides
        if types[0] == "int8":
            sides = replace(sides, data=_moved(make, sides.data, 128), data_zero=_shifted(make, sides.data_zero, 128))
        if types[1] == "uint8":
            moved = _moved(make, sides.weight, -128)
            sides = replace(sides, weight=moved, weight_zero=_shifted(make, sides.weight_zero, -128))
        return sides

    @staticmethod
    def plain(op: OperatorOp, make: Emitter) -> Sides | None:
        """Returns the shifted sides of a product of signed bytes that are not quantized.

        None for other dtypes, and for weights that are not constant.
        """
        data, weight = op.args[:2]
        signed = dtype_of(data) == dtype_of(weight) == "int8" and op.attrs().out_dtype == "int32"
        if not signed or not isinstance(weight.owner, ConstantOp):
            return None
        return Sides(_moved(make, data, 128), weight, make.constant(128, "int32"), make.constant(0, "int32"))


def _moved(make: Emitter, x: SSAValue, by: int) -> SSAValue:
    wide = make.call("add", make.call("cast", x, dtype="int32"), make.constant(by, "int32"))
    return make.call("cast", wide, dtype="uint8" if by > 0 else "int8")


def _shifted(make: Emitter, zero_point: SSAValue, by: int) -> SSAValue:
    """Returns a zero point and a number: where data is quantized by its own range, the sum is computed."""
    known = scalar_of(zero_point)
    if known is None:
        return make.call("add", zero_point, make.constant(by, "int32"))
    return make.constant(int(known) + by, "int32")


def lower_dense(op: OperatorOp, make: Emitter, unsigned: bool = False) -> SSAValue | None:
    """`qnn.dense` by `nn.dense`."""
    if rank_of(op.args[0]) != 2 or DYNAMIC_INDEX in _shape(op.args[1]) or not _in_int32(op):
        return centered_product(op, make, "nn.dense", 0)
    return _dense(op, make, Sides.of(op, make, unsigned))


def lower_plain_dense(op: OperatorOp, make: Emitter) -> SSAValue | None:
    """`nn.dense` of signed bytes and constant weights by one of unsigned bytes; None for others."""
    static = rank_of(op.args[0]) == 2 and DYNAMIC_INDEX not in _shape(op.args[1])
    sides = Sides.plain(op, make) if static else None
    return None if sides is None else _dense(op, make, sides)


def _dense(op: OperatorOp, make: Emitter, sides: Sides) -> SSAValue:
    data, weight, data_zero, weight_zero = sides.data, sides.weight, sides.data_zero, sides.weight_zero
    units, count = _shape(weight)
    product = make.call("nn.dense", data, weight, **{"out_dtype": "int32", **op.given()})

    def of_data() -> SSAValue:
        sums = _sum(make, data, [1], True)
        if not _is_zero_point(weight_zero):
            sums = make.call("repeat", sums, repeats=units, axis=1)
        return make.call("multiply", weight_zero, sums)

    def of_weight() -> SSAValue:
        return make.call("multiply", data_zero, _sum(make, weight, [1], False))

    return _combine(make, (data_zero, weight_zero), product, of_data, of_weight, count)


def lower_batch_matmul(op: OperatorOp, make: Emitter) -> SSAValue | None:
    """`qnn.batch_matmul` by `nn.batch_matmul`."""
    x, y, x_zero, y_zero = op.args[:4]
    attrs = op.attrs()
    count, columns = _shape(x)[2], _shape(y)[1]
    plain = attrs.transpose_b and not attrs.transpose_a and rank_of(x_zero) == 0 and rank_of(y_zero) == 0
    if not plain or DYNAMIC_INDEX in (count, columns) or not _in_int32(op):
        return centered_product(op, make, "nn.batch_matmul", 1 if attrs.transpose_b else 2)
    product = make.call("nn.batch_matmul", x, y, **{"out_dtype": "int32", **op.given()})

    def of_data() -> SSAValue:
        return make.call("multiply", y_zero, _sum(make, x, [2], True))

    def of_weight() -> SSAValue:
        sums = make.call("multiply", x_zero, _sum(make, y, [2], True))
        return make.call("reshape", sums, newshape=[0, 1, columns])

    return _combine(make, (x_zero, y_zero), product, of_data, of_weight, count)


def lower_conv2d_transpose(op: OperatorOp, make: Emitter) -> SSAValue | None:
    """`qnn.conv2d_transpose` by `nn.conv2d_transpose` of int32."""
    layout: str = op.attrs().kernel_layout
    axis = layout.find("O" if layout.isupper() else "?")
    return None if axis < 0 else centered_product(op, make, "nn.conv2d_transpose", axis)


def lower_conv2d(op: OperatorOp, make: Emitter, unsigned: bool = False) -> SSAValue | None:
    """Lowers `qnn.conv2d` to `nn.conv2d`, on 8 bits if it is over all channels or over each one.

    Returns None for layouts in blocks.
    """
    attrs = op.attrs()
    layout: str = attrs.kernel_layout
    if not attrs.data_layout.isupper() or not layout.isupper():
        return None
    weight_zero = op.args[3]
    depthwise: bool = attrs.groups != 1 and attrs.channels == attrs.groups
    dilated = tuple(attrs.dilation) != (1, 1) and not is_scalar(weight_zero, 0)
    repeated = depthwise and not _is_zero_point(weight_zero) and _shape(op.args[1])[layout.index("I")] != 1
    static = DYNAMIC_INDEX not in (*_shape(op.args[1]), _shape(op.args[0])[attrs.data_layout.index("C")])
    if repeated and rank_of(weight_zero) == 1:
        return None
    if (
        dilated
        or repeated
        or (attrs.groups != 1 and not depthwise and not is_scalar(weight_zero, 0))
        or not static
        or not _in_int32(op)
        or attrs.out_layout
        or not _can_pad(op)
    ):
        return _convolution_in_int32(op, make)
    # Each channel for itself has no dot products.
    return _Convolution(op, make, depthwise, Sides.of(op, make, unsigned and not depthwise)).lowered()


def lower_plain_conv2d(op: OperatorOp, make: Emitter) -> SSAValue | None:
    """Lowers `nn.conv2d` of signed bytes and constant weights to one of unsigned bytes.

    Returns None for others, and for depthwise ones.
    """
    attrs = op.attrs()
    plain = attrs.data_layout.isupper() and attrs.kernel_layout.isupper() and not attrs.out_layout
    depthwise = attrs.groups != 1 and attrs.channels == attrs.groups
    if (
        not plain
        or depthwise
        or DYNAMIC_INDEX in (_shape(op.args[0])[attrs.data_layout.index("C")], *_shape(op.args[1]))
    ):
        return None
    sides = Sides.plain(op, make)
    return None if sides is None else _Convolution(op, make, depthwise, sides).lowered()


def _in_int32(op: OperatorOp) -> bool:
    return op.attrs().out_dtype in (None, "", "int32")


def _can_pad(op: OperatorOp) -> bool:
    """Returns whether the data's dtype can hold its zero point, with which it is padded.

    A zero point that is only known at run time is assumed to fit.
    """
    zero = scalar_of(op.args[2])
    if zero is None or not any(op.attrs().padding):
        return True
    dtype = dtype_of(op.args[0])
    bits, signed = int(dtype.lstrip("uint")), not dtype.startswith("u")
    least = -(2 ** (bits - 1)) if signed else 0
    return least <= zero < least + 2**bits


def _convolution_in_int32(op: OperatorOp, make: Emitter) -> SSAValue:
    data, weight, data_zero, weight_zero = op.args[:4]
    axis = op.attrs().kernel_layout.index("O")
    if not (_is_zero_point(data_zero) and _is_zero_point(weight_zero)):
        flat = make.call("reshape", weight_zero, newshape=[-1])
        behind = 3 - axis
        weight_zero = make.call("expand_dims", flat, axis=1, num_newaxis=behind) if behind else flat
    sides: list[SSAValue] = []
    for value, zero in ((data, data_zero), (weight, weight_zero)):
        wide = make.call("cast", value, dtype="int32")
        if not is_scalar(zero, 0):
            wide = make.call("subtract", wide, make.call("cast", zero, dtype="int32"))
        sides.append(wide)
    return make.call("nn.conv2d", *sides, **{"out_dtype": "int32", **op.given()})


class _Convolution:
    """One `qnn.conv2d` with all that its terms need."""

    def __init__(self, op: OperatorOp, make: Emitter, depthwise: bool, sides: Sides):
        self.op, self.make, self.depthwise = op, make, depthwise
        self.attrs = op.attrs()
        self.data, self.weight = sides.data, sides.weight
        self.data_zero, self.weight_zero = sides.data_zero, sides.weight_zero
        self.channel_axis: int = self.attrs.data_layout.index("C")
        extents = dict(zip(self.attrs.kernel_layout, _shape(self.weight), strict=True))
        self.window = (extents["H"], extents["W"])
        self.out_channels, self.multiplier = extents["O"], extents["I"]

    def lowered(self) -> SSAValue:
        make = self.make
        if not (_is_zero_point(self.data_zero) and _is_zero_point(self.weight_zero)):
            flat = make.call("reshape", self.weight_zero, newshape=[-1])
            behind = 3 - self.channel_axis
            self.weight_zero = make.call("expand_dims", flat, axis=1, num_newaxis=behind) if behind else flat
        channels = _shape(self.data)[self.channel_axis]
        self.data = self.padded()
        given: dict[str, AttrValue] = {"out_dtype": "int32", **self.op.given(), "padding": (0, 0, 0, 0)}
        product = make.call("nn.conv2d", self.data, self.weight, **given)
        height, width = self.window
        count = height * width * (1 if self.depthwise else channels // self.attrs.groups)
        zero_points = (self.data_zero, self.weight_zero)
        return _combine(make, zero_points, product, self.of_data, self.of_weight, count)

    def padded(self) -> SSAValue:
        """Returns the data with its padding: zero points, which represent 0."""
        padding = tuple(self.attrs.padding)
        top, left, bottom, right = padding * (4 // len(padding))
        if not any((top, left, bottom, right)):
            return self.data
        widths = {"H": (top, bottom), "W": (left, right)}
        pad_width = [widths.get(axis, (0, 0)) for axis in self.attrs.data_layout]
        return self.make.call("nn.pad", self.data, self.data_zero, pad_width=pad_width)

    def of_data(self) -> SSAValue:
        """The weight's zero point times the sum of each window of the data."""
        make = self.make
        sums = make.call("cast", self.data, dtype="int32")
        if not self.depthwise:
            sums = make.call("sum", sums, axis=[self.channel_axis], keepdims=True)
        size = self.window[0] * self.window[1]
        if size != 1:
            # A pool returns means: multiplied by the window's size they are the sums.
            sums = make.call("multiply", sums, make.constant(size, "int32"))
        if size != 1 or tuple(self.attrs.strides) != (1, 1):
            sums = make.call(
                "nn.avg_pool2d", sums, pool_size=self.window, strides=self.attrs.strides, dilation=self.attrs.dilation,
                padding=(0, 0), layout=self.attrs.data_layout,
            )  # fmt: skip
        zero = self.weight_zero
        if self.depthwise:
            if not _is_zero_point(zero):
                zero = make.call("repeat", zero, repeats=1, axis=0)
            sums = _times(make, zero, sums)
            if self.multiplier != 1:
                sums = make.call("repeat", sums, repeats=self.multiplier, axis=self.channel_axis)
            return sums
        if not _is_zero_point(zero):
            sums = make.call("repeat", sums, repeats=self.out_channels, axis=self.channel_axis)
        return _times(make, zero, sums)

    def of_weight(self) -> SSAValue:
        """The data's zero point times the sum of each channel's weight."""
        kept = "OI" if self.depthwise else "O"
        axes = [i for i, axis in enumerate(self.attrs.kernel_layout) if axis not in kept]
        sums = _sum(self.make, self.weight, axes, False)
        shape = [1, 1, 1, 1]
        shape[self.channel_axis] = self.out_channels * (self.multiplier if self.depthwise else 1)
        return _times(self.make, self.data_zero, self.make.call("reshape", sums, newshape=shape))
