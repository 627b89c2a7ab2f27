"""TOPI's functions of convolutions, one for each layout, on the operators of Relay.

topi.nn.conv2d_nchw(x, w, stride, padding, dilation)     nn.conv2d(x, w, …, data_layout="NCHW", kernel_layout="OIHW")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..relay.expr import RelayExpr
from ..relay.op import find
from .padding import numbers_of, shape_of

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}

KERNELS = {
    "NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO",
}  # fmt: skip
"""The layout of the weights that TOPI takes with each layout of the data."""


def _conv(
    rank: int,
    data: RelayExpr,
    kernel: RelayExpr,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    layouts: tuple[str, str],
    out_dtype: str | None,
) -> RelayExpr:
    of, size = layouts[1], shape_of(kernel)
    padding = numbers_of(padding, [size[of.index(axis)] for axis in _SPATIAL[rank]], dilation)
    return find(f"nn.conv{rank}d")(
        data, kernel, strides, padding, dilation, groups, data_layout=layouts[0], kernel_layout=of, out_dtype=out_dtype
    )


def _conv1d(
    data: RelayExpr,
    kernel: RelayExpr,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> RelayExpr:
    layouts = data_layout, kernel_layout or KERNELS[data_layout]
    return _conv(1, data, kernel, strides, padding, dilation, groups, layouts, out_dtype)


def _conv2d(
    input: RelayExpr,
    filter: RelayExpr,
    strides: Any,
    padding: Any,
    dilation: Any,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> RelayExpr:
    layouts = data_layout, kernel_layout or KERNELS[data_layout]
    return _conv(2, input, filter, strides, padding, dilation, 1, layouts, out_dtype)


def _in_layout(layout: str) -> Callable[..., RelayExpr]:
    """Returns the function of two dimensions that takes neither groups nor layouts."""

    def function(
        Input: RelayExpr, Filter: RelayExpr, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
    ) -> RelayExpr:
        return _conv(2, Input, Filter, stride, padding, dilation, 1, (layout, KERNELS[layout]), out_dtype)

    return function


def _in_layout_1d(layout: str) -> Callable[..., RelayExpr]:
    def function(
        data: RelayExpr,
        kernel: RelayExpr,
        strides: Any = 1,
        padding: Any = "VALID",
        dilation: Any = 1,
        out_dtype: str | None = None,
    ) -> RelayExpr:
        return _conv(1, data, kernel, strides, padding, dilation, 1, (layout, KERNELS[layout]), out_dtype)

    return function


def _grouped_1d(layout: str) -> Callable[..., RelayExpr]:
    def function(
        data: RelayExpr,
        kernel: RelayExpr,
        strides: Any = 1,
        padding: Any = "VALID",
        dilation: Any = 1,
        groups: int = 1,
        out_dtype: str | None = None,
    ) -> RelayExpr:
        return _conv(1, data, kernel, strides, padding, dilation, groups, (layout, KERNELS[layout]), out_dtype)

    return function


def _grouped(rank: int, layout: str) -> Callable[..., RelayExpr]:
    """Returns the function of several groups in a layout; all of three dimensions take groups."""

    def function(
        Input: RelayExpr,
        Filter: RelayExpr,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        out_dtype: str | None = None,
    ) -> RelayExpr:
        return _conv(rank, Input, Filter, stride, padding, dilation, groups, (layout, KERNELS[layout]), out_dtype)

    return function


def _depthwise_conv2d_nchw(
    Input: RelayExpr, Filter: RelayExpr, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> RelayExpr:
    channels, multiplier, *size = shape_of(Filter)
    weight = find("reshape")(Filter, (channels * multiplier, 1, *size))
    padding = numbers_of(padding, size, dilation)
    return find("nn.conv2d")(Input, weight, stride, padding, dilation, channels, out_dtype=out_dtype)


def _depthwise_conv2d_nhwc(
    Input: RelayExpr,
    Filter: RelayExpr,
    stride: Any,
    padding: Any,
    dilation: Any,
    kernel_layout: str = "HWOI",
    out_dtype: str | None = None,
) -> RelayExpr:
    shape = shape_of(Filter)
    height, width = (shape[kernel_layout.index(axis)] for axis in "HW")
    channels, multiplier = shape_of(Input)[-1], 1
    for size in shape:
        multiplier *= size
    multiplier //= height * width * channels
    order = [kernel_layout.index(axis) for axis in "HWOI"]
    weight = find("reshape")(find("transpose")(Filter, order), (height, width, 1, channels * multiplier))
    padding = numbers_of(padding, [height, width], dilation)
    return find("nn.conv2d")(
        Input,
        weight,
        stride,
        padding,
        dilation,
        channels,
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype=out_dtype,
    )


def _depthwise_conv2d_backward_input_nhwc(
    Filter: RelayExpr, Out_grad: RelayExpr, oshape: Sequence[int], ishape: Sequence[int], stride: Any, padding: Any
) -> RelayExpr:
    height, width, channels, multiplier = shape_of(Filter)
    sides, strides = _sides(numbers_of(padding, [height, width], 1), 2), _pair(stride)
    weight = find("reshape")(find("transpose")(Filter, (2, 3, 0, 1)), (channels * multiplier, 1, height, width))
    left = [
        int(ishape[1 + axis]) - ((int(oshape[1 + axis]) - 1) * strides[axis] - sides[axis] - sides[2 + axis] + size)
        for axis, size in enumerate((height, width))
    ]
    result = find("nn.conv2d_transpose")(
        find("transpose")(Out_grad, (0, 3, 1, 2)), weight, strides, sides, 1, channels, channels=channels,
        kernel_size=(height, width), output_padding=tuple(left),
    )  # fmt: skip
    return find("transpose")(result, (0, 2, 3, 1))


def _depthwise_conv2d_backward_weight_nhwc(
    Input: RelayExpr, Out_grad: RelayExpr, oshape: Sequence[int], fshape: Sequence[int], stride: Any, padding: Any
) -> RelayExpr:
    height, width, channels, multiplier = (int(size) for size in fshape)
    batch, rows, columns, _ = (int(size) for size in oshape)
    sides, (down, along) = _sides(numbers_of(padding, [height, width], 1), 2), _pair(stride)
    padded = find("nn.pad")(Input, ((0, 0), (sides[0], sides[2]), (sides[1], sides[3]), (0, 0)))
    grad = find("reshape")(Out_grad, (batch, rows, columns, channels, multiplier))
    taps: list[RelayExpr] = []
    for y in range(height):
        for x in range(width):
            ends = y + (rows - 1) * down + 1, x + (columns - 1) * along + 1
            seen = find("strided_slice")(padded, (0, y, x, 0), (batch, *ends, channels), (1, down, along, 1))
            seen = find("expand_dims")(seen, -1)
            taps.append(find("sum")(find("multiply")(seen, grad), (0, 1, 2)))
    return find("reshape")(find("stack")(taps, 0), (height, width, channels, multiplier))


def _pair(value: Any) -> tuple[int, int]:
    return (int(value), int(value)) if hasattr(value, "__index__") else (int(value[0]), int(value[1]))


def _sides(padding: Any, rank: int) -> tuple[int, ...]:
    """Returns the padding at the beginning of each axis, then at the end of each."""
    sizes = (int(padding),) * rank if hasattr(padding, "__index__") else tuple(int(size) for size in padding)
    return sizes * 2 if len(sizes) == rank else sizes


def _transposed(rank: int) -> Callable[..., RelayExpr]:
    """Returns the transposed convolution of a rank: `conv2d_transpose_nchw` and the like."""

    def function(
        data: RelayExpr,
        kernel: RelayExpr,
        stride: Any,
        padding: Any,
        out_dtype: str,
        output_padding: Any,
        groups: int = 1,
    ) -> RelayExpr:
        inputs, outputs, *size = shape_of(kernel)
        assert inputs == shape_of(data)[1]
        padding = numbers_of(padding, size, 1)
        return find(f"nn.conv{rank}d_transpose")(
            data, kernel, stride, padding, 1, groups, channels=outputs * groups, kernel_size=tuple(size),
            output_padding=output_padding, out_dtype=out_dtype,
        )  # fmt: skip

    return function


def _conv2d_nhwc(
    Input: RelayExpr,
    Filter: RelayExpr,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> RelayExpr:
    return _conv(2, Input, Filter, stride, padding, dilation, 1, ("NHWC", "HWIO"), out_dtype)


def _winograd(layout: str) -> Callable[..., RelayExpr]:
    """Returns the function of a layout whose weights are not transformed.

    The compiler chooses how it is computed.
    """

    def function(
        data: RelayExpr,
        weight: RelayExpr,
        strides: Any,
        padding: Any,
        dilation: Any,
        out_dtype: str | None = None,
        pre_computed: bool = False,
    ) -> RelayExpr:
        if pre_computed:
            raise TypeError("a Winograd convolution takes weights as they are here: pre_computed=False")
        return _conv(2, data, weight, strides, padding, dilation, 1, (layout, KERNELS[layout]), out_dtype)

    return function


def _conv2d_blocked(
    data: RelayExpr,
    kernel: RelayExpr,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> RelayExpr:
    size = shape_of(kernel)
    inner = f"OIHW{size[4]}i{size[5]}o"
    return find("nn.contrib_conv2d_NCHWc")(
        data, kernel, stride, numbers_of(padding, size[2:4], dilation), dilation, 1, size[0] * size[5],
        (size[2], size[3]), layout, inner, out_layout, out_dtype,
    )  # fmt: skip


def _deformable(layout: str) -> Callable[..., RelayExpr]:
    def function(
        data: RelayExpr,
        offset: RelayExpr,
        kernel: RelayExpr,
        strides: Any,
        padding: Any,
        dilation: Any,
        deformable_groups: int,
        groups: int,
        out_dtype: str | None = None,
    ) -> RelayExpr:
        of = KERNELS[layout]
        shape = shape_of(kernel)
        size = tuple(shape[of.index(axis)] for axis in "HW")
        return find("nn.deformable_conv2d")(
            data, offset, kernel, strides, numbers_of(padding, size, dilation), dilation, deformable_groups, groups,
            shape[of.index("O")], size, layout, of, "", out_dtype,
        )  # fmt: skip

    return function


def _correlation_nchw(
    data1: RelayExpr,
    data2: RelayExpr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
) -> RelayExpr:
    return find("nn.correlation")(
        data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply, "NCHW"
    )


def _dilation2d(layout: str) -> Callable[..., RelayExpr]:
    def function(
        input: RelayExpr,
        filter: RelayExpr,
        stride: Any,
        padding: Any,
        dilations: Any,
        out_dtype: str | None = None,
    ) -> RelayExpr:
        of = "IHW" if layout == "NCHW" else "HWI"
        shape = shape_of(filter)
        padding = numbers_of(padding, [shape[of.index(axis)] for axis in "HW"], dilations)
        return find("image.dilation2d")(input, filter, stride, padding, dilations, layout, of, out_dtype)

    return function


CONVOLUTIONS: dict[str, Callable[..., Any]] = {
    "image.dilation2d_nchw": _dilation2d("NCHW"),
    "image.dilation2d_nhwc": _dilation2d("NHWC"),
    "nn.conv1d": _conv1d,
    "nn.conv1d_ncw": _in_layout_1d("NCW"),
    "nn.conv1d_nwc": _in_layout_1d("NWC"),
    "nn.conv1d_transpose_ncw": _transposed(1),
    "nn.conv2d": _conv2d,
    "nn.conv2d_NCHWc": _conv2d_blocked,
    "nn.conv2d_hwcn": _in_layout("HWCN"),
    "nn.conv2d_nchw": _in_layout("NCHW"),
    "nn.conv2d_nhwc": _conv2d_nhwc,
    "nn.conv2d_transpose_nchw": _transposed(2),
    "nn.conv2d_winograd_nchw": _winograd("NCHW"),
    "nn.conv2d_winograd_nhwc": _winograd("NHWC"),
    "nn.conv3d_ncdhw": _grouped(3, "NCDHW"),
    "nn.conv3d_ndhwc": _grouped(3, "NDHWC"),
    "nn.conv3d_transpose_ncdhw": _transposed(3),
    "nn.correlation_nchw": _correlation_nchw,
    "nn.deformable_conv2d_nchw": _deformable("NCHW"),
    "nn.deformable_conv2d_nhwc": _deformable("NHWC"),
    "nn.depthwise_conv2d_backward_input_nhwc": _depthwise_conv2d_backward_input_nhwc,
    "nn.depthwise_conv2d_backward_weight_nhwc": _depthwise_conv2d_backward_weight_nhwc,
    "nn.depthwise_conv2d_nchw": _depthwise_conv2d_nchw,
    "nn.depthwise_conv2d_nhwc": _depthwise_conv2d_nhwc,
    "nn.group_conv1d_ncw": _grouped_1d("NCW"),
    "nn.group_conv1d_nwc": _grouped_1d("NWC"),
    "nn.group_conv1d_transpose_ncw": _transposed(1),
    "nn.group_conv2d_nchw": _grouped(2, "NCHW"),
    "nn.group_conv2d_nhwc": _grouped(2, "NHWC"),
    "nn.group_conv2d_transpose_nchw": _transposed(2),
    "nn.group_conv3d_transpose_ncdhw": _transposed(3),
}
"""Functions of Relay expressions, by TOPI's names."""
