"""The gradients of operators, by name: `Operator.gradient` finds them here.

Each is the chain rule for one operator: from what went in (`args`), what came out (`result`) and the gradient of what came
out (`gradient`), the gradient of each argument. Where TVM registers one (its `_tensor_grad` module), the operators are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import pi, prod, sqrt

from ..gradient import Backward, Gradient, Term
from .nn_conv import spatial_padding

GRADIENTS: dict[str, Gradient] = {}


def gradient(*names: str) -> Callable[[Gradient], Gradient]:
    """Enters a function as the gradient of operators."""

    def enter(function: Gradient) -> Gradient:
        GRADIENTS.update(dict.fromkeys(names, function))
        return function

    return enter


def unary(name: str, derivative: Callable[[Term, Term, Term], Term]) -> None:
    """An elementwise operator, by (gradient, argument, result) to the argument's gradient."""
    GRADIENTS[name] = lambda use: [derivative(use.gradient, use.args[0], use.result)]


# Elementwise ---------------------------------------------------------------------------------------------------------

unary("exp", lambda g, x, y: g * x.of("exp"))
unary("log", lambda g, x, y: g * x.ones / x)
unary("log2", lambda g, x, y: g * x.ones / (x.number(2).of("log") * x))
unary("log10", lambda g, x, y: g * x.ones / (x.number(10).of("log") * x))
unary("sqrt", lambda g, x, y: g * 0.5 * x.of("power", -0.5))
unary("rsqrt", lambda g, x, y: g * -0.5 * x.of("power", -1.5))
unary("sin", lambda g, x, y: g * x.of("cos"))
unary("cos", lambda g, x, y: g * (-x.ones * x.of("sin")))
unary("tan", lambda g, x, y: g / (x.of("cos") * x.of("cos")))
unary("sinh", lambda g, x, y: g * x.of("cosh"))
unary("cosh", lambda g, x, y: g * x.of("sinh"))
unary("tanh", lambda g, x, y: g * (y.ones - y * y))
unary("asin", lambda g, x, y: g * x.ones / (x.ones - x * x).of("sqrt"))
unary("acos", lambda g, x, y: g * (-x.ones / (x.ones - x * x).of("sqrt")))
unary("atan", lambda g, x, y: g * x.ones / (x.ones + x.of("power", 2)))
unary("asinh", lambda g, x, y: g * x.ones / (x.of("power", 2) + x.ones).of("sqrt"))
unary("acosh", lambda g, x, y: g * x.ones / (x.of("power", 2) - x.ones).of("sqrt"))
unary("atanh", lambda g, x, y: g * x.ones / (x.ones - x.of("power", 2)))
unary("erf", lambda g, x, y: g * (2 / sqrt(pi)) * (-(x * x)).of("exp"))
unary("sigmoid", lambda g, x, y: g * y * (y.ones - y))
unary("negative", lambda g, x, y: -g)
unary("copy", lambda g, x, y: g)


@gradient("floor", "ceil", "round", "trunc", "sign")
def _steps(use: Backward) -> Sequence[Term]:
    """Flat but for its steps."""
    return [use.args[0].zeros]


@gradient("abs")
def _abs(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    ones = x.ones
    return [x.of("less", x.zeros).of("where", -ones * use.gradient, ones * use.gradient)]


@gradient("nn.relu")
def _relu(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    zeros = x.zeros
    return [x.of("less", zeros).of("where", zeros, x.ones * use.gradient)]


@gradient("nn.leaky_relu")
def _leaky_relu(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    return [x.of("less", x.zeros).of("where", use.gradient * use.attrs.alpha, use.gradient)]


@gradient("clip")
def _clip(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    low, high = (x.number(bound).of("broadcast_to_like", x) for bound in (use.attrs.a_min, use.attrs.a_max))
    zeros, ones = x.zeros, x.ones
    inside = x.of("less", low).of("where", zeros, ones * use.gradient)
    return [high.of("less", x).of("where", zeros, inside)]


@gradient("cast")
def _cast(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("cast_like", use.args[0])]


@gradient("cast_like")
def _cast_like(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("cast_like", use.args[0]), use.args[1].zeros]


@gradient("zeros_like", "ones_like")
def _fill_like(use: Backward) -> Sequence[Term]:
    return [use.args[0].zeros]


@gradient("zeros", "ones")
def _fill(use: Backward) -> Sequence[Term]:
    return [arg.zeros for arg in use.args]


@gradient("arange")
def _arange(use: Backward) -> Sequence[Term]:
    """Of start + i * step: every element moves with the start, the one at i by i with the step; none with the stop."""
    start, stop, step = use.args
    places = use.gradient.ones.of("cumsum", axis=0, exclusive=True)
    shares = use.gradient.of("sum"), (use.gradient * places).of("sum")
    return [shares[0].of("cast_like", start), stop.zeros, shares[1].of("cast_like", step)]


@gradient("full")
def _full(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("sum")]


@gradient("full_like")
def _full_like(use: Backward) -> Sequence[Term]:
    return [use.args[0].zeros, use.gradient.of("sum")]


# Broadcasting: what was repeated is summed. --------------------------------------------------------------------------


@gradient("add")
def _add(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("collapse_sum_like", arg) for arg in use.args]


@gradient("subtract")
def _subtract(use: Backward) -> Sequence[Term]:
    a, b = use.args
    return [use.gradient.of("collapse_sum_like", a), (-use.gradient).of("collapse_sum_like", b)]


@gradient("multiply")
def _multiply(use: Backward) -> Sequence[Term]:
    a, b = use.args
    return [(use.gradient * b).of("collapse_sum_like", a), (use.gradient * a).of("collapse_sum_like", b)]


@gradient("divide")
def _divide(use: Backward) -> Sequence[Term]:
    a, b = use.args
    below = -(use.gradient * use.result / b)
    return [(use.gradient / b).of("collapse_sum_like", a), below.of("collapse_sum_like", b)]


@gradient("power")
def _power(use: Backward) -> Sequence[Term]:
    a, b = use.args
    base = use.gradient * b * a.of("power", b - b.ones)
    exponent = use.gradient * a.of("log") * use.result
    return [base.of("collapse_sum_like", a), exponent.of("collapse_sum_like", b)]


@gradient("maximum", "minimum")
def _extremum(use: Backward) -> Sequence[Term]:
    """To the one that was taken; to the first of equals."""
    a, b = use.args
    zeros = use.gradient.zeros
    test = "less" if use.op.OPERATOR.name == "maximum" else "greater"
    second = a.of(test, b)
    shares = second.of("where", zeros, use.gradient), second.of("where", use.gradient, zeros)
    return [share.of("collapse_sum_like", arg) for share, arg in zip(shares, use.args, strict=True)]


@gradient("where")
def _where(use: Backward) -> Sequence[Term]:
    condition, a, b = use.args
    zeros = use.gradient.zeros
    taken, other = condition.of("where", use.gradient, zeros), condition.of("where", zeros, use.gradient)
    return [condition.zeros, taken.of("collapse_sum_like", a), other.of("collapse_sum_like", b)]


@gradient(
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not",
)  # fmt: skip
def _truth(use: Backward) -> Sequence[Term]:
    return [arg.zeros for arg in use.args]


@gradient("collapse_sum_like")
def _collapse_sum_like(use: Backward) -> Sequence[Term]:
    x, like = use.args
    return [use.gradient.of("broadcast_to_like", x), like.zeros]


@gradient("broadcast_to_like")
def _broadcast_to_like(use: Backward) -> Sequence[Term]:
    x, like = use.args
    return [use.gradient.of("collapse_sum_like", x), like.zeros]


@gradient("broadcast_to")
def _broadcast_to(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("collapse_sum_like", use.args[0])]


# Reductions: what was summed is repeated. ----------------------------------------------------------------------------


def _reduced_axes(use: Backward) -> list[int]:
    """The axes that a reduction takes away, in order."""
    rank = len(use.args[0].shape)
    given: int | Sequence[int] | None = use.attrs.axis
    axes = [given] if isinstance(given, int) else list(given or ())
    chosen = {axis % rank for axis in axes}
    if use.attrs.exclude:
        return [axis for axis in range(rank) if axis not in chosen]
    return sorted(chosen) if chosen else list(range(rank))


def _expanded(use: Backward, term: Term) -> Term:
    """A reduction's result, or its gradient, with the reduced axes back, of size 1."""
    if not use.attrs.keepdims:
        for axis in _reduced_axes(use):
            term = term.of("expand_dims", axis=axis)
    return term


@gradient("sum")
def _sum(use: Backward) -> Sequence[Term]:
    return [_expanded(use, use.gradient).of("broadcast_to_like", use.args[0])]


@gradient("mean")
def _mean(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    share = 1 / prod(x.shape[axis] for axis in _reduced_axes(use))
    return [(_expanded(use, use.gradient) * share).of("broadcast_to_like", x)]


@gradient("max", "min")
def _max(use: Backward) -> Sequence[Term]:
    """Shared among the equal ones."""
    (x,) = use.args
    best = _expanded(use, use.result).of("broadcast_to_like", x)
    share = _expanded(use, use.gradient).of("broadcast_to_like", x)
    chosen = best.of("equal", x).of("cast_like", share)
    count = chosen.of("sum", axis=_reduced_axes(use), keepdims=True)
    return [chosen * share / count]


# Shapes --------------------------------------------------------------------------------------------------------------


@gradient("reshape", "reshape_like", "nn.batch_flatten", "squeeze", "expand_dims")
def _reshape(use: Backward) -> Sequence[Term]:
    shaped, *likes = use.args
    return [use.gradient.of("reshape_like", shaped), *(like.zeros for like in likes)]


@gradient("transpose")
def _transpose(use: Backward) -> Sequence[Term]:
    axes: Sequence[int] | None = use.attrs.axes
    if not axes:
        return [use.gradient.of("transpose")]
    back = [0] * len(axes)
    for place, axis in enumerate(axes):
        back[axis % len(axes)] = place
    return [use.gradient.of("transpose", axes=back)]


@gradient("concatenate")
def _concatenate(use: Backward) -> Sequence[Term]:
    axis: int = use.attrs.axis % len(use.result.shape)
    sizes: list[int] = [field.get_shape()[axis] for field in use.args[0].fields]
    if len(sizes) == 1:
        return [use.tuple([use.gradient])]
    ends = list(accumulate(sizes[:-1]))
    return [use.gradient.of("split", indices_or_sections=ends, axis=axis)]


@gradient("split")
def _split(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("concatenate", axis=use.attrs.axis)]


# Layers --------------------------------------------------------------------------------------------------------------


@gradient("nn.bias_add")
def _bias_add(use: Backward) -> Sequence[Term]:
    data, _ = use.args
    bias = use.gradient.of("sum", axis=[use.attrs.axis], exclude=True)
    return [use.gradient.of("collapse_sum_like", data), bias]


@gradient("nn.dense")
def _dense(use: Backward) -> Sequence[Term]:
    data, weight = use.args
    g = use.gradient
    to_data = g.of("nn.dense", weight.of("transpose"), units=weight.shape[1])
    rows, inputs = _matrix(g), _matrix(data)
    to_weight = rows.of("transpose").of("nn.dense", inputs.of("transpose"), units=data.shape[-1])
    return [to_data.of("collapse_sum_like", data), to_weight.of("collapse_sum_like", weight)]


def _matrix(x: Term) -> Term:
    """The rows of a dense layer, one below the other."""
    return x if len(x.shape) == 2 else x.of("reshape", newshape=[-1, x.shape[-1]])


@gradient("nn.matmul", "nn.batch_matmul")
def _matmul(use: Backward) -> Sequence[Term]:
    a, b = use.args
    name, g = use.op.OPERATOR.name, use.gradient
    across_a, across_b = bool(use.attrs.transpose_a), bool(use.attrs.transpose_b)
    to_a = (
        b.of(name, g, transpose_a=across_b, transpose_b=True)
        if across_a
        else g.of(name, b, transpose_a=False, transpose_b=not across_b)
    )
    to_b = (
        g.of(name, a, transpose_a=True, transpose_b=across_a)
        if across_b
        else a.of(name, g, transpose_a=not across_a, transpose_b=False)
    )
    return [to_a.of("collapse_sum_like", a), to_b.of("collapse_sum_like", b)]


@gradient("nn.softmax")
def _softmax(use: Backward) -> Sequence[Term]:
    g, y = use.gradient, use.result
    return [(g - (g * y).of("sum", axis=[use.attrs.axis], keepdims=True)) * y]


@gradient("nn.log_softmax")
def _log_softmax(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    soft = x.of("nn.softmax", axis=use.attrs.axis)
    g = use.gradient / soft
    return [(g - (g * soft).of("sum", axis=[use.attrs.axis], keepdims=True)) * soft]


@gradient("nn.cross_entropy")
def _cross_entropy(use: Backward) -> Sequence[Term]:
    predicted, wanted = use.args
    g = use.gradient / float(predicted.shape[0])
    return [-g * wanted / predicted, -g * predicted.of("log")]


@gradient("nn.cross_entropy_with_logits")
def _cross_entropy_with_logits(use: Backward) -> Sequence[Term]:
    predicted, wanted = use.args
    g = use.gradient / float(predicted.shape[0])
    return [-g * wanted, -g * predicted]


@gradient("nn.conv2d")
def _conv2d(use: Backward) -> Sequence[Term]:
    data, weight = use.args
    attrs = use.attrs
    if attrs.data_layout != "NCHW" or attrs.kernel_layout != "OIHW" or (attrs.out_layout or "NCHW") != "NCHW":
        raise use.refuse("the layouts must be NCHW and OIHW", "convert-layout gives a convolution that layout")
    kernel, (out_height, out_width) = weight.shape[2:], use.gradient.shape[2:]
    pads = [sum(pair) for pair in zip(*(spatial_padding(attrs.padding, 2) or ((0, 0), (0, 0))), strict=True)]
    sizes = [
        (count - 1) * attrs.strides[n] - pads[n] + (kernel[n] - 1) * attrs.dilation[n] + 1
        for n, count in enumerate((out_height, out_width))
    ]
    common: dict[str, Sequence[int] | int] = {
        "strides": attrs.strides, "padding": attrs.padding, "dilation": attrs.dilation, "groups": attrs.groups,
    }  # fmt: skip
    left = [data.shape[2 + n] - size for n, size in enumerate(sizes)]
    if data.dtype != use.gradient.dtype or weight.dtype != use.gradient.dtype:
        data, weight = (x.of("cast", dtype=use.gradient.dtype) for x in (data, weight))
    # In a depthwise convolution with several filters for a channel, these stand side by side.
    several = weight.shape[0] != use.gradient.shape[1]
    if several:
        weight = weight.of("reshape", newshape=[use.gradient.shape[1], 1, *kernel])
    to_data = use.gradient.of("nn.conv2d_transpose", weight, output_padding=left, **common)
    # Its kernel_layout is the data's, its out_layout the weight's.
    to_weight = use.gradient.of(
        "nn.conv2d_backward_weight",
        data,
        channels=weight.shape[0],
        kernel_size=list(kernel),
        kernel_layout="NCHW",
        out_layout="OIHW",
        **common,
    )
    return [to_data, to_weight.of("reshape", newshape=list(use.args[1].shape)) if several else to_weight]


@gradient("nn.max_pool2d", "nn.avg_pool2d")
def _pool2d(use: Backward) -> Sequence[Term]:
    given = use.op.given()
    return [use.gradient.of(f"{use.op.OPERATOR.name}_grad", use.args[0], **given)]


@gradient("nn.global_avg_pool2d")
def _global_avg_pool2d(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    layout: str = use.attrs.layout
    size = [x.shape[layout.index(axis)] for axis in "HW"]
    return [use.gradient.of("nn.avg_pool2d_grad", x, pool_size=size, layout=layout)]
