"""Writes chains of operators that rules and combining passes match, for random programs to contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .graphs import Builder, Known


def _arithmetic(b: Builder, x: Known) -> None:
    """Adds binary operators with constants, scalar ones or stretched by an operator."""
    for _ in range(b.rng.randint(2, 4)):
        number = b.rng.choice((0, 1, 2, 3))
        c = b.scalar(x, number)
        shape = x.value.shape
        if b.rng.random() < 0.3:
            c = b.use("full", {"shape": shape, "dtype": x.value.dtype.name}, b.scalar(x, number))
        elif b.rng.random() < 0.3:
            name = b.rng.choice(("zeros_like", "ones_like"))
            c, number = b.use(name, {}, x), 1 if name == "ones_like" else 0
        name = b.rng.choice(("add", "subtract", "multiply", "divide" if number else "add"))
        left = name in ("add", "multiply") and b.rng.random() < 0.3
        x = b.use(name, {}, *((c, x) if left else (x, c)))
        if not x.is_small:
            return


def _casts(b: Builder, x: Known) -> None:
    for _ in range(b.rng.randint(2, 3)):
        x = b.use(
            "cast",
            {"dtype": b.rng.choice(("float32", "float64", "float16", "int8", "int32", "int64", x.value.dtype.name))},
            x,
        )
        if b.rng.random() < 0.4:
            x = b.use("clip", {"a_min": -2.0 if x.value.dtype.kind != "u" else 0.0, "a_max": 3.0}, x)


def _shapes(b: Builder, x: Known) -> None:
    for _ in range(b.rng.randint(2, 4)):
        axes = list(range(x.value.ndim))
        b.rng.shuffle(axes)
        match b.rng.randrange(4):
            case 0:
                x = b.use("reshape", {"newshape": (-1,)}, x)
            case 1 if axes:
                x = b.use("transpose", {"axes": tuple(axes)}, x)
            case 2 if x.value.ndim < 5:
                x = b.use("expand_dims", {"axis": b.rng.randint(0, x.value.ndim), "num_newaxis": 1}, x)
            case _:
                x = b.use("reshape", {"newshape": (*reversed(x.value.shape),)}, x)


def _layouts(b: Builder, x: Known) -> None:
    x = b.adapted(x, (1, 4, 2, 3), x.value.dtype.name)
    layout = "NCHW"
    for _ in range(b.rng.randint(2, 3)):
        other = b.rng.choice([o for o in ("NCHW", "NHWC", "NCHW2c", "CHWN") if o != layout])
        x, layout = b.use("layout_transform", {"src_layout": layout, "dst_layout": other}, x), other
        if layout != "NCHW2c" and b.rng.random() < 0.4:
            axes = b.rng.sample(range(4), 4)
            x, layout = b.use("transpose", {"axes": tuple(axes)}, x), "".join(layout[a] for a in axes)
            if layout not in ("NCHW", "NHWC", "CHWN"):
                return


def _square(b: Builder, x: Known) -> None:
    """Adds x² + y² + 2xy, in some order of summands and factors."""
    y = b.weights(x.value.shape, x.value.dtype)
    two = b.scalar(x, 2)
    xx, yy = b.use("multiply", {}, x, x), b.use("multiply", {}, y, y)
    orders = [(x, two, y), (x, y, two), (y, two, x), (two, x, y)]
    p, q, r = b.rng.choice(orders)
    xy = b.use("multiply", {}, b.use("multiply", {}, p, q), r)
    parts = b.rng.sample([xx, yy, xy], 3)
    b.use("add", {}, b.use("add", {}, parts[0], parts[1]), parts[2])


def _functions(b: Builder, x: Known) -> None:
    """Adds functions of others' results: a logarithm of a softmax, a quotient by a root."""
    if x.value.dtype.kind in "iu":
        x = b.use("cast", {"dtype": "float32"}, x)
    if x.value.ndim:
        b.use("log", {}, b.use("nn.softmax", {"axis": -1}, x))
    positive = b.use("add", {}, b.use("multiply", {}, x, x), b.scalar(x, 1))
    b.use("divide", {}, x, b.use("sqrt", {}, positive))


def _convolutions(b: Builder, x: Known) -> None:
    """Adds convolutions of one input, some of it padded before, some with a bias or a scale after."""
    x = b.adapted(x, (1, 4, 3, 3), "float32")
    pads = ((0, 0), (0, 0), (1, 0), (1, 1))
    if b.rng.random() < 0.5:
        x = b.use("nn.pad", {"pad_width": pads}, x, b.scalar(x, 0))
    if b.rng.random() < 0.3:
        x = b.use("multiply", {}, x, b.weights((4, 1, 1), x.value.dtype))
    size = b.rng.choice((1, 3))
    for _ in range(b.rng.randint(1, 4)):
        channels = b.rng.choice((2, 4))
        attrs = {"padding": (size // 2, size // 2), "channels": channels, "kernel_size": (size, size)}
        y = b.use("nn.conv2d", attrs, x, b.weights((channels, 4, size, size), x.value.dtype))
        if b.rng.random() < 0.6:
            y = b.use("add", {}, y, b.weights((channels, 1, 1), x.value.dtype))
        elif b.rng.random() < 0.5:
            y = b.use("nn.bias_add", {}, y, b.weights((channels,), x.value.dtype))
        if b.rng.random() < 0.5:
            y = b.use("nn.relu", {}, y)
        if b.rng.random() < 0.3:
            b.use("multiply", {}, y, b.weights((channels, 1, 1), x.value.dtype))


def _pooling(b: Builder, x: Known) -> None:
    x = b.adapted(x, (1, 2, 4, 4), "float32")
    name = b.rng.choice(("nn.avg_pool2d", "nn.max_pool2d"))
    value = 0 if name == "nn.avg_pool2d" else b.rng.choice((0, float(np.finfo(np.float32).min)))
    padded = b.use("nn.pad", {"pad_width": ((0, 0), (0, 0), (1, 1), (0, 1))}, x, b.scalar(x, value))
    attrs: dict[str, Any] = {"pool_size": (2, 2), "padding": (b.rng.randint(0, 1),)}
    if name == "nn.avg_pool2d":
        attrs["count_include_pad"] = b.rng.random() < 0.5
    b.use(name, attrs, padded)


def _dense_layers(b: Builder, x: Known) -> None:
    x = b.adapted(x, (2, 4), b.rng.choice(("float32", "float64")))
    for _ in range(b.rng.randint(2, 4)):
        units = b.rng.choice((3, 3, 2))
        y = b.use("nn.dense", {"units": units}, x, b.weights((units, 4), x.value.dtype))
        if b.rng.random() < 0.5:
            y = b.use(b.rng.choice(("add", "nn.bias_add")), {}, y, b.weights((units,), x.value.dtype))


def _products(b: Builder, x: Known) -> None:
    x = b.adapted(x, (2, 3, 4), "float32")
    for _ in range(b.rng.randint(2, 4)):
        y = b.use("nn.batch_matmul", {"transpose_b": True}, x, b.weights((2, b.rng.choice((2, 5)), 4), x.value.dtype))
        if b.rng.random() < 0.4:
            b.use("tanh", {}, y)


def _atrous(b: Builder, x: Known) -> None:
    """Adds a dilated convolution by way of batches."""
    x = b.adapted(x, (1, 4, 4, 2), "float32")
    moved = b.use(
        "nn.space_to_batch_nd",
        {"block_shape": (2, 2), "paddings": ((2, 2), (2, 2)), "pad_value": b.rng.choice((0.0, 1.0))},
        x,
    )
    attrs = {"channels": 3, "kernel_size": (3, 3), "data_layout": "NHWC", "kernel_layout": "HWIO"}
    conv = b.use("nn.conv2d", attrs, moved, b.weights((3, 3, 2, 3), x.value.dtype))
    b.use("nn.batch_to_space_nd", {"block_shape": (2, 2), "crops": ((0, b.rng.randint(0, 1)), (0, 0))}, conv)


def _quantized(b: Builder, x: Known) -> None:
    """Adds integers between quantize and dequantize."""
    x = b.adapted(x, (2, 4), "float32")
    scale, zero = b.constant(np.array(0.05, np.float32)), b.constant(np.array(b.rng.choice((0, 3)), np.int32))
    q = b.use("qnn.quantize", {"out_dtype": b.rng.choice(("int8", "uint8"))}, x, scale, zero)
    y = b.use("qnn.dequantize", {}, q, scale, zero)
    b.use(b.rng.choice(("argmax", "argmin", "argsort", "nn.relu")), {}, y)
    b.use("qnn.quantize", {"out_dtype": "int8"}, b.use("reshape", {"newshape": (-1,)}, y), scale, zero)


def memory(b: Builder) -> None:
    """Adds a tensor in memory of its own, which is freed once the tensor has been read."""
    shape = b.rng.choice(((3,), (2, 4), ()))
    size = b.constant(np.array(64, np.int64))
    dims = b.constant(np.array(shape, np.int64))
    storage = b.bare("memory.alloc_storage", {}, size, dims, size)
    offset = b.constant(np.array(b.rng.choice((0, 8)), np.int64))
    tensor = b.bare("memory.alloc_tensor", {"assert_shape": shape, "dtype": "float32"}, storage, offset, dims)
    b.use(b.rng.choice(("exp", "negative", "copy")), {}, tensor)
    b.bare("memory.kill", {}, tensor)


IDIOMS: tuple[Callable[[Builder, Known], None], ...] = (
    _arithmetic, _arithmetic, _casts, _shapes, _layouts, _square, _functions, _convolutions, _pooling, _dense_layers,
    _products, _atrous, _quantized,
)  # fmt: skip
