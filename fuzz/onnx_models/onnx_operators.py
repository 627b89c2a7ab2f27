"""Draws nodes of further operators of ONNX and of com.microsoft.

They are recurrent and quantized layers, loops, scatters, sequences and losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from .writer import GraphText, GraphValue, ModelWriter, NoUse, define

MICROSOFT = "com.microsoft."


def _image(w: ModelWriter, ranks: Sequence[int] = (4,)) -> GraphValue:
    return w.pick(lambda value: value.dtype == "float32" and value.rank in ranks)


def _small(w: ModelWriter) -> GraphValue:
    """Draws a value of float32 and maps it to (-1, 1)."""
    x = w.pick(lambda value: value.dtype == "float32")
    return w.result("Tanh", [x], x.dtype, x.shape)[0]


def _like(
    w: ModelWriter, op: str, x: GraphValue, inputs: Sequence[GraphValue | None], **attributes: object
) -> list[GraphValue]:
    """Writes a node whose result has the type of `x`, and is not exact."""
    return w.result(op, inputs, x.dtype, x.shape, exact=False, magnitude=4.0, **attributes)


def _same(
    w: ModelWriter,
    op: str,
    x: GraphValue,
    inputs: Sequence[GraphValue | None],
    shape: Sequence[int],
    **attributes: object,
) -> list[GraphValue]:
    """Writes a node that moves elements of `x`."""
    return w.result(op, inputs, x.dtype, shape, exact=x.exact, magnitude=x.magnitude, **attributes)


# Element by element --------------------------------------------------------------------------------------------------


@define("Tan", "Asin", "Acos", "Sinh", "Cosh", "Asinh", "Atanh", since=9)
def _bounded(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _small(w)
    half = w.weight("float32", (), np.array(0.5, "float32"))
    return _like(w, op, x, [w.result("Mul", [x, half], x.dtype, x.shape)[0]])


@define("Acosh", since=9)
def _acosh(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _small(w)
    return _like(
        w, op, x, [w.result("Add", [x, w.weight("float32", (), np.array(2.5, "float32"))], x.dtype, x.shape)[0]]
    )


@define("IsNaN", "IsInf", since=10)
def _is(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32")
    return w.result(op, [x], "bool", x.shape, exact=True)


@define("Shrink", since=9)
def _shrink(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(exact=True)
    if x.dtype != "float32":
        raise NoUse
    return w.result(op, [x], x.dtype, x.shape, exact=True, magnitude=x.magnitude + 1, bias=0.25, lambd=1.5)


@define("Mod", since=10)
def _mod(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype in ("int32", "int64"))
    divisor = w.weight(x.dtype, (), np.array(w.rng.choice((2, 3, 5)), x.dtype))
    return w.result(op, [x, divisor], x.dtype, x.shape, exact=True, magnitude=5)


@define("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def _bitwise(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype in ("int32", "int64"))
    y = w.weight(x.dtype, x.shape[-1:])
    return w.result(op, [x, y], x.dtype, x.shape, exact=True, magnitude=2 * x.magnitude + 16)


@define("Sum", "Mean", since=8)
def _of_many(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32")
    others = [w.weight(x.dtype, x.shape) for _ in range(w.rng.randint(0, 2))]
    exact = x.exact and op == "Sum"
    return w.result(op, [x, *others], x.dtype, x.shape, exact=exact, magnitude=x.magnitude + 4 * len(others))


@define("PRelu", since=9)
def _prelu(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank >= 2)
    slope = w.weight(x.dtype, (x.shape[1], *(1 for _ in x.shape[2:])))
    return w.result(op, [x, slope], x.dtype, x.shape, exact=x.exact and x.magnitude < 8, magnitude=4 * x.magnitude)


@define("Identity", "Dropout")
def _unchanged(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32")
    return _same(w, op, x, [x], x.shape)


@define("CastLike", since=15)
def _cast_like(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.exact and value.magnitude < 100)
    y = w.pick(lambda value: value.dtype in ("float32", "float64", "int64", "int32"))
    return w.result(op, [x, y], y.dtype, x.shape, exact=True, magnitude=x.magnitude)


# Shapes and indices --------------------------------------------------------------------------------------------------


@define("Shape")
def _shape(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.rank > 0)
    return w.result(op, [x], "int64", (x.rank,), exact=True, magnitude=700)


@define("Size")
def _size(w: ModelWriter, op: str) -> list[GraphValue]:
    return w.result(op, [w.pick()], "int64", (), exact=True, magnitude=700)


@define("ConstantOfShape", since=9)
def _constant_of_shape(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.rank > 0)
    sizes = w.result("Shape", [x], "int64", (x.rank,))[0]
    return w.result(op, [sizes], "float32", x.shape, exact=True)


@define("EyeLike", since=9)
def _eye_like(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(2, 2)
    return w.result(op, [x], x.dtype, x.shape, exact=True, magnitude=1, k=w.rng.randint(-2, 2))


@define("GatherElements", since=11)
def _gather_elements(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    axis = w.rng.randrange(x.rank)
    shape = [w.rng.randint(1, 4) if place == axis else w.rng.randint(1, size) for place, size in enumerate(x.shape)]
    size = x.shape[axis]
    places = np.array([w.rng.randint(-size, size - 1) for _ in range(prod(shape))], "int64").reshape(shape)
    return _same(w, op, x, [x, w.weight("int64", shape, places)], shape, axis=axis)


@define("GatherND", since=11)
def _gather_nd(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    depth, count = w.rng.randint(1, x.rank), w.rng.randint(1, 4)
    places = np.array([[w.rng.randint(-size, size - 1) for size in x.shape[:depth]] for _ in range(count)], "int64")
    return _same(w, op, x, [x, w.weight("int64", places.shape, places)], (count, *x.shape[depth:]))


@define("ScatterElements", since=11)
def _scatter_elements(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    axis = w.rng.randrange(x.rank)
    # No place twice, so that the order in which they are written does not count.
    rows = w.rng.sample(range(x.shape[axis]), w.rng.randint(1, x.shape[axis]))
    shape = [len(rows) if place == axis else size for place, size in enumerate(x.shape)]
    places = np.broadcast_to(np.expand_dims(np.array(rows), [p for p in range(x.rank) if p != axis]), shape)
    given = [x, w.weight("int64", shape, places.astype("int64")), w.weight(x.dtype, shape)]
    kinds = ("none", "add") if w.opset >= 16 else ("none",)
    reduction = {"reduction": w.rng.choice(kinds)} if w.opset >= 16 else {}
    return w.result(op, given, x.dtype, x.shape, exact=x.exact, magnitude=x.magnitude + 4, axis=axis, **reduction)


@define("ScatterND", since=11)
def _scatter_nd(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    rows = w.rng.sample(range(x.shape[0]), w.rng.randint(1, x.shape[0]))
    places = w.weight("int64", (len(rows), 1), np.array(rows, "int64").reshape(-1, 1))
    return w.result(
        op, [x, places, w.weight(x.dtype, (len(rows), *x.shape[1:]))], x.dtype, x.shape, exact=x.exact, magnitude=x.magnitude + 4
    )  # fmt: skip


@define("Compress", since=11)
def _compress(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    axis = w.rng.randrange(x.rank)
    kept = np.array([w.rng.random() < 0.6 for _ in range(x.shape[axis])])
    kept[0] = True
    shape = [int(kept.sum()) if place == axis else size for place, size in enumerate(x.shape)]
    return _same(w, op, x, [x, w.weight("bool", kept.shape, kept)], shape, axis=axis)


@define("ReverseSequence", since=10)
def _reverse_sequence(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(2)
    lengths = [w.rng.randint(1, x.shape[0]) for _ in range(x.shape[1])]
    return _same(w, op, x, [x, w.ints(lengths)], x.shape, batch_axis=1, time_axis=0)


@define("SpaceToDepth")
def _space_to_depth(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w)
    n, c, h, width = x.shape
    if h % 2 or width % 2:
        raise NoUse
    return _same(w, op, x, [x], (n, 4 * c, h // 2, width // 2), blocksize=2)


@define("SequenceAt", since=11)
def _sequence_at(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    name = w.node("SequenceConstruct", [x, w.weight(x.dtype, x.shape)])[0]
    sequence = GraphValue(name, x.dtype, x.shape)
    return _same(w, op, x, [sequence, w.weight("int64", (), np.array(-w.rng.randint(1, 2)))], x.shape)


@define("ConcatFromSequence", since=11)
def _concat_from_sequence(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    sequence = GraphValue(w.node("SplitToSequence", [x], axis=0)[0], x.dtype, x.shape)
    return _same(w, op, x, [sequence], x.shape, axis=0)


# Layers --------------------------------------------------------------------------------------------------------------


@define("Hardmax", since=13)
def _hardmax(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1, exact=True)
    return w.result(op, [x], x.dtype, x.shape, exact=True, magnitude=1, axis=w.rng.randrange(x.rank))


@define("LpNormalization", "MeanVarianceNormalization", since=13)
def _normalized(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w)
    shifted = w.result(
        "Add",
        [x, w.weight("float32", x.shape, np.arange(prod(x.shape), dtype="float32").reshape(x.shape))],
        x.dtype,
        x.shape,
    )[0]
    axis = w.rng.randrange(4)
    given = {"axis": axis, "p": w.rng.randint(1, 2)} if op == "LpNormalization" else {"axes": [0, 2, 3]}
    if op != "LpNormalization" and x.shape[0] * x.shape[2] * x.shape[3] == 1:
        raise NoUse
    return _like(w, op, x, [shifted], **given)


@define("GroupNormalization", since=21)
def _group_normalization(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w, (3, 4))
    size = (x.shape[1],)
    return _like(w, op, x, [x, w.weight("float32", size), w.weight("float32", size)], num_groups=1, epsilon=0.5)


@define("LRN")
def _lrn(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w)
    return _like(w, op, x, [x], size=w.rng.choice((1, 3)), alpha=0.1, bias=2.0)


@define("ConvTranspose", since=11)
def _conv_transpose(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w, (3, 4))
    kernel = [w.rng.randint(1, 3) for _ in x.shape[2:]]
    stride, channels = w.rng.randint(1, 2), w.rng.randint(1, 3)
    sizes = [(size - 1) * stride + taps for size, taps in zip(x.shape[2:], kernel, strict=True)]
    weight = w.weight("float32", (x.shape[1], channels, *kernel))
    return w.result(op, [x, weight], "float32", (x.shape[0], channels, *sizes), strides=[stride] * len(kernel))


@define("LpPool", "GlobalLpPool", since=11)
def _lp_pool(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w)
    if op == "GlobalLpPool":
        return w.result(op, [x], "float32", (*x.shape[:2], 1, 1), p=2)
    kernel = [w.rng.randint(1, min(2, size)) for size in x.shape[2:]]
    sizes = [size - taps + 1 for size, taps in zip(x.shape[2:], kernel, strict=True)]
    return w.result(op, [x], "float32", (*x.shape[:2], *sizes), kernel_shape=kernel, p=2)


@define("GridSample", since=20)
def _grid_sample(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w)
    grid = w.weight("float32", (x.shape[0], 2, 3, 2))
    padding, corners = w.rng.choice(("zeros", "border", "reflection")), w.rng.randint(0, 1)
    shape = (*x.shape[:2], 2, 3)
    return w.result(op, [x, grid], "float32", shape, mode="linear", padding_mode=padding, align_corners=corners)


@define("LSTM", "GRU", "RNN")
def _recurrent(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank == 3)
    gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], w.rng.randint(1, 4)
    directions = w.rng.randint(1, 2)
    steps, batch, size = x.shape
    given = [w.weight("float32", (directions, gates * hidden, each)) for each in (size, hidden)]
    bias = w.weight("float32", (directions, 2 * gates * hidden)) if w.rng.random() < 0.5 else None
    direction = "bidirectional" if directions == 2 else w.rng.choice(("forward", "reverse"))
    shape = (steps, directions, batch, hidden)
    return w.result(
        op, [x, *given, bias][: 4 if bias else 3], "float32", shape, hidden_size=hidden, direction=direction
    )


@define("Loop", since=11)
def _loop(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.exact and value.magnitude < 50)
    trips = w.rng.randint(1, 4)
    count = w.weight("int64", (), np.array(trips))
    body = GraphText(
        f"body (int64 i, bool c, float[{','.join(str(size) for size in x.shape)}] h) => (bool d, o, r)"
        f" {{ d = Identity (c) o = Add (h, {x.name}) r = Neg (o) }}"
    )
    go_on = w.weight("bool", (), np.array(True))
    names = w.node(op, [count, go_on, x], 2, body=body)
    magnitude = x.magnitude * (trips + 1)
    return [
        GraphValue(names[0], x.dtype, x.shape, True, magnitude),
        GraphValue(names[1], x.dtype, (trips, *x.shape), True, magnitude),
    ]


@define("Scan", since=11)
def _scan(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.exact and value.magnitude < 50 and value.rank >= 1)
    row = ",".join(str(size) for size in x.shape[1:])
    start = w.weight("float32", x.shape[1:])
    type_ = f"float[{row}]" if row else "float"
    body = GraphText(f"body ({type_} h, {type_} e) => (o, r) {{ o = Add (h, e) r = Identity (o) }}")
    names = w.node(op, [start, x], 2, num_scan_inputs=1, body=body)
    magnitude = 4 + x.magnitude * x.shape[0]
    return [
        GraphValue(names[0], x.dtype, x.shape[1:], True, magnitude),
        GraphValue(names[1], x.dtype, x.shape, True, magnitude),
    ]


# Quantized -----------------------------------------------------------------------------------------------------------


@define("QuantizeLinear", since=10)
def _quantize(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(exact=True)
    if x.dtype != "float32":
        raise NoUse
    # A power of two: quotients are exact.
    scale = w.weight("float32", (), np.array(w.rng.choice((0.125, 0.5, 1.0)), "float32"))
    dtype = w.rng.choice(("int8", "uint8"))
    zero = w.weight(dtype, (), np.array(w.rng.randint(0, 9), dtype))
    bytes_ = w.result(op, [x, scale, zero], dtype, x.shape, exact=True, magnitude=255)[0]
    return [bytes_, *w.result("DequantizeLinear", [bytes_, scale, zero], "float32", x.shape, exact=True, magnitude=256)]


@define("DequantizeLinear", since=13)
def _dequantize(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype in ("int8", "uint8") and value.rank >= 1)
    axis = w.rng.randrange(x.rank)
    scale = w.weight("float32", (x.shape[axis],))
    return w.result(op, [x, scale], "float32", x.shape, axis=axis)


@define("DynamicQuantizeLinear", since=11)
def _dynamic_quantize(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.exact)
    names = w.node(op, [x], 3)
    # Rounding of quotients may differ in the last bit: only scale and zero point are compared.
    return [GraphValue(names[1], "float32", (), False), GraphValue(names[2], "uint8", (), True, 255)]


@define("MatMulInteger", since=10)
def _matmul_integer(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "uint8" and value.rank >= 2)
    y = w.weight("int8", (x.shape[-1], w.rng.randint(1, 5)))
    zero = w.weight("uint8", (), np.array(3, "uint8"))
    return w.result(op, [x, y, zero], "int32", (*x.shape[:-1], y.shape[1]), exact=True, magnitude=1e5)


# Losses --------------------------------------------------------------------------------------------------------------


@define("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", since=13)
def _loss(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank in (2, 3))
    shape = (x.shape[0], *x.shape[2:])
    classes = np.array([w.rng.randrange(x.shape[1]) for _ in range(prod(shape))], "int64").reshape(shape)
    reduction = w.rng.choice(("mean", "sum", "none"))
    result = shape if reduction == "none" else ()
    return w.result(op, [x, w.weight("int64", shape, classes)], "float32", result, reduction=reduction)


# Operators of com.microsoft --------------------------------------------------------------------------------------------


@define("Microsoft.Gelu", "Microsoft.FastGelu", "Microsoft.QuickGelu", "Microsoft.BiasGelu")
def _gelu(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank >= 1)
    inputs = [x, w.weight("float32", x.shape[-1:])] if op.endswith("BiasGelu") else [x]
    return _like(w, MICROSOFT + op.partition(".")[2], x, inputs)


@define("Microsoft.FusedMatMul")
def _fused_matmul(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank in (2, 3))
    turned = w.rng.randint(0, 1)
    *batch, rows, inner = x.shape if not turned else (*x.shape[:-2], x.shape[-1], x.shape[-2])
    y = w.weight("float32", (inner, w.rng.randint(1, 5)))
    shape = (*batch, rows, y.shape[1])
    return w.result(MICROSOFT + "FusedMatMul", [x, y], "float32", shape, transA=turned, alpha=0.5)


@define("Microsoft.SkipLayerNormalization", "Microsoft.SkipSimplifiedLayerNormalization")
def _skip(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank == 3)
    size = x.shape[-1:]
    inputs = [x, w.weight("float32", x.shape), w.weight("float32", size)]
    if op == "Microsoft.SkipLayerNormalization":
        inputs.append(w.weight("float32", size))
    return _like(w, MICROSOFT + op.partition(".")[2], x, inputs, epsilon=0.5)


@define("Microsoft.FusedConv")
def _fused_conv(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _image(w)
    weight, bias = w.weight("float32", (3, x.shape[1], 1, 1)), w.weight("float32", (3,))
    shape = (x.shape[0], 3, *x.shape[2:])
    return w.result(
        MICROSOFT + "FusedConv", [x, weight, bias], "float32", shape, activation="Relu", kernel_shape=[1, 1]
    )


@define("Microsoft.MultiHeadAttention")
def _attention(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank == 3)
    heads = 2 if x.shape[2] % 2 == 0 else 1
    tokens = w.rng.randint(1, 4)
    keys = [w.weight("float32", (x.shape[0], tokens, x.shape[2])) for _ in range(2)]
    return _like(w, MICROSOFT + "MultiHeadAttention", x, [x, *keys], num_heads=heads)


@define("Microsoft.MatMulNBits")
def _matmul_nbits(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank >= 2)
    units, inner = w.rng.randint(1, 5), x.shape[-1]
    packed = np.array([w.rng.randint(0, 255) for _ in range(units * 8)], "uint8").reshape(units, 1, 8)
    inputs = [x, w.weight("uint8", packed.shape, packed), w.weight("float32", (units,))]
    shape = (*x.shape[:-1], units)
    return w.result(MICROSOFT + "MatMulNBits", inputs, "float32", shape, K=inner, N=units, bits=4, block_size=16)
