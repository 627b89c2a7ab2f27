"""Defines the gradients of elementwise operators, reductions, shapes and dense layers.

Each is the chain rule for one operator: from its arguments (`args`), its result (`result`) and the gradient of the result
(`gradient`), the gradient of each argument. Where TVM registers one (its `_tensor_grad` module), the operators are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from math import pi, prod, sqrt

from xdsl.dialects.builtin import DYNAMIC_INDEX

from ...gradient import Backward, Gradient, Sizes, Term, gradient


def unary(name: str, derivative: Callable[[Term, Term, Term], Term]) -> None:
    """Registers the gradient of an elementwise operator, from (gradient, argument, result)."""
    gradient(name)(lambda use: [derivative(use.gradient, use.args[0], use.result)])


def _undone_by(name: str) -> Gradient:
    """Returns the gradient of an operator that another one undoes, given the first argument."""
    return lambda use: [use.gradient.of(name, use.args[0]), *(arg.zeros for arg in use.args[1:])]


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
unary("fast_exp", lambda g, x, y: g * y)
unary("fast_tanh", lambda g, x, y: g * (y.ones - y * y))
unary("fast_erf", lambda g, x, y: g * (2 / sqrt(pi)) * (-(x * x)).of("exp"))
for _name in (
    "annotation.checkpoint", "annotation.compiler_begin", "annotation.compiler_end", "annotation.stop_fusion",
    "annotation.bitpack_start", "annotation.bitpack_end", "device_copy", "on_device",
):  # fmt: skip
    unary(_name, lambda g, x, y: g)


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


gradient("cast", "cast_like")(_undone_by("cast_like"))


@gradient(
    "zeros_like", "ones_like", "zeros", "ones", "dyn.zeros", "dyn.ones", "shape_of", "vm.shape_of", "ndarray_size", "all",
    "any", "isfinite", "isinf", "isnan", "argmax", "argmin", "argsort", "argwhere", "searchsorted", "unravel_index",
    "invert_permutation", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
    "floor_divide", "trunc_divide", "vision.multibox_prior", "floor", "ceil", "round", "nearbyint", "trunc", "sign", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not",
)  # fmt: skip
def _constant(use: Backward) -> Sequence[Term]:
    """Returns zeros: the result does not depend on the arguments, or only in steps."""
    return [arg.zeros for arg in use.args]


@gradient("arange")
def _arange(use: Backward) -> Sequence[Term]:
    """Differentiates start + i * step, by start and by step; the stop has no influence."""
    start, stop, step = use.args
    places = use.gradient.ones.of("cumsum", axis=0, exclusive=True)
    shares = use.gradient.of("sum"), (use.gradient * places).of("sum")
    return [shares[0].of("cast_like", start), stop.zeros, shares[1].of("cast_like", step)]


@gradient("full")
def _full(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("sum")]


@gradient("dyn.full")
def _full_of_shape(use: Backward) -> Sequence[Term]:
    return [use.gradient.of("sum"), use.args[1].zeros]


@gradient("full_like")
def _full_like(use: Backward) -> Sequence[Term]:
    return [use.args[0].zeros, use.gradient.of("sum")]


# Broadcasting: gradients of repeated elements are summed. --------------------------------------------------------------------------


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


@gradient("floor_mod", "mod", "trunc_mod")
def _remainder(use: Backward) -> Sequence[Term]:
    """Differentiates a - quotient * b, where the quotient is constant except for its steps."""
    a, b = use.args
    quotient = "floor_divide" if use.op.OPERATOR.name == "floor_mod" else "trunc_divide"
    to_b = -(use.gradient * a.of(quotient, b))
    return [use.gradient.of("collapse_sum_like", a), to_b.of("collapse_sum_like", b)]


@gradient("ewise_fma")
def _fma(use: Backward) -> Sequence[Term]:
    a, b, c = use.args
    g = use.gradient
    shares = g * b, g * a, g
    return [share.of("collapse_sum_like", arg) for share, arg in zip(shares, (a, b, c), strict=True)]


@gradient("power")
def _power(use: Backward) -> Sequence[Term]:
    a, b = use.args
    base = use.gradient * b * a.of("power", b - b.ones)
    exponent = use.gradient * a.of("log") * use.result
    return [base.of("collapse_sum_like", a), exponent.of("collapse_sum_like", b)]


@gradient("maximum", "minimum")
def _extremum(use: Backward) -> Sequence[Term]:
    """Passes the gradient to the argument that was taken; of equal ones to the first."""
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


gradient("collapse_sum_like", "collapse_sum_to")(_undone_by("broadcast_to_like"))
gradient("broadcast_to_like", "broadcast_to", "dyn.broadcast_to")(_undone_by("collapse_sum_like"))


@gradient("meshgrid")
def _meshgrid(use: Backward) -> Sequence[Term]:
    """Sums each result's gradient over all axes except that of its vector, which it repeats."""
    (vectors,) = use.args
    count = len(vectors.fields)
    own = list(range(count))
    if use.attrs.indexing == "xy" and count > 1:
        own[:2] = 1, 0
    return [
        use.tuple(
            [
                use.gradient.field(k)
                .summed([a for a in range(count) if a != own[k]], False)
                .of("reshape_like", vectors.field(k))
                for k in range(count)
            ]
        )
    ]


@gradient("einsum")
def _einsum(use: Backward) -> Sequence[Term]:
    """Computes each operand's gradient by an einsum with the operand and the result exchanged."""
    equation: str = use.attrs.equation.replace(" ", "")
    given, arrow, output = equation.partition("->")
    words = given.split(",")
    if not arrow:
        output = "".join(sorted(c for c in set(given) if c != "," and given.count(c) == 1))
    if "." in equation or any(len(set(word)) < len(word) for word in words):
        raise use.refuse(
            "an operand repeats a letter, or leaves some unnamed", "take the diagonal, or name the axes, first"
        )
    operands = [use.args[0].field(k) for k in range(len(words))]
    return [use.tuple([_of_operand(use.gradient, output, words, operands, k) for k in range(len(words))])]


def _of_operand(g: Term, output: str, words: Sequence[str], operands: Sequence[Term], k: int) -> Term:
    own, like = words[k], operands[k]
    factors = [(output, g), *((word, x) for n, (word, x) in enumerate(zip(words, operands, strict=True)) if n != k)]
    named = set("".join(word for word, _ in factors))
    kept = "".join(c for c in own if c in named)
    values = Term(g.emitter, g.emitter.tuple([x.value for _, x in factors]))
    result = values.of("einsum", equation=f"{','.join(word for word, _ in factors)}->{kept}")
    for axis, letter in enumerate(own):
        if letter not in named:
            result = result.of("expand_dims", axis=axis)
    return result.of("broadcast_to_like" if kept != own else "collapse_sum_like", like)


# Reductions: gradients of summed elements are repeated. ----------------------------------------------------------------------------


def _reduced_axes(use: Backward) -> list[int]:
    """Returns the axes that a reduction removes, in order."""
    rank = len(use.args[0].shape)
    given: int | Sequence[int] | None = use.attrs.axis
    axes = [given] if isinstance(given, int) else list(given or ())
    chosen = {axis % rank for axis in axes}
    if use.attrs.exclude:
        return [axis for axis in range(rank) if axis not in chosen]
    return sorted(chosen) if chosen else list(range(rank))


def _expanded(use: Backward, term: Term) -> Term:
    """Restores the reduced axes, of size 1, in a reduction's result or its gradient."""
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
    return [_expanded(use, use.gradient).over_count(x, _reduced_axes(use)).of("broadcast_to_like", x)]


@gradient("max", "min")
def _max(use: Backward) -> Sequence[Term]:
    """Divides the gradient among the equal largest (or smallest) elements."""
    (x,) = use.args
    best = _expanded(use, use.result).of("broadcast_to_like", x)
    share = _expanded(use, use.gradient).of("broadcast_to_like", x)
    chosen = best.of("equal", x).of("cast_like", share)
    count = chosen.of("sum", axis=_reduced_axes(use), keepdims=True)
    return [chosen * share / count]


@gradient("variance")
def _variance(use: Backward) -> Sequence[Term]:
    x, mean = use.args
    less = int(bool(use.attrs.unbiased))
    share = (_expanded(use, use.gradient) * (x - mean)).over_count(x, _reduced_axes(use), less, 2)
    return [share, (-share).of("collapse_sum_like", mean)]


@gradient("prod")
def _prod(use: Backward) -> Sequence[Term]:
    """Multiplies by the product of all other elements, before and after it: a 0 is harmless."""
    (x,) = use.args
    axes, rank = _reduced_axes(use), len(x.shape)
    order = [axis for axis in range(rank) if axis not in axes] + axes
    rows = x.of("transpose", axes=order).of("reshape", newshape=[-1, prod(x.shape[axis] for axis in axes)])
    before = rows.of("cumprod", axis=1, exclusive=True)
    behind = rows.of("reverse", axis=1).of("cumprod", axis=1, exclusive=True).of("reverse", axis=1)
    others = (before * behind).of("reshape_like", x.of("transpose", axes=order))
    others = others.of("transpose", axes=[order.index(axis) for axis in range(rank)])
    return [others * _expanded(use, use.gradient)]


@gradient("cumsum")
def _cumsum(use: Backward) -> Sequence[Term]:
    """Sums the gradients from each element on: it is in its own sum and all later ones."""
    (x,) = use.args
    axis = 0 if use.attrs.axis is None else use.attrs.axis % len(x.shape)
    back = use.gradient.of("reverse", axis=axis).of("cumsum", axis=axis, exclusive=use.attrs.exclusive)
    return [back.of("reverse", axis=axis).of("reshape_like", x).of("cast_like", x)]


# Shapes --------------------------------------------------------------------------------------------------------------


gradient(
    "reshape", "reshape_like", "nn.batch_flatten", "squeeze", "expand_dims", "contrib_reverse_reshape", "vm.reshape_tensor",
    "dyn.reshape", "dyn.squeeze", "dyn.expand_dims",
)(_undone_by("reshape_like"))  # fmt: skip


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
    sizes = [Sizes(field.get_shape())[axis] for field in use.args[0].fields[:-1]]
    if not sizes:
        return [use.tuple([use.gradient])]
    return [use.gradient.of("split", indices_or_sections=list(accumulate(sizes)), axis=axis)]


@gradient("stack")
def _stack(use: Backward) -> Sequence[Term]:
    count, axis = len(use.args[0].fields), use.attrs.axis % len(use.result.shape)
    parts = use.gradient.of("split", indices_or_sections=count, axis=axis)
    return [use.tuple([parts.field(k).of("squeeze", axis=[axis]) for k in range(count)])]


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
    """Returns the rows of a dense layer, one below the other."""
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


@gradient("nn.softmax", "nn.fast_softmax")
def _softmax(use: Backward) -> Sequence[Term]:
    g, y = use.gradient, use.result
    return [(g - (g * y).of("sum", axis=[use.attrs.axis], keepdims=True)) * y]


@gradient("nn.log_softmax")
def _log_softmax(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    soft = x.of("nn.softmax", axis=use.attrs.axis)
    g = use.gradient / soft
    return [(g - (g * soft).of("sum", axis=[use.attrs.axis], keepdims=True)) * soft]


def _over_rows(g: Term, x: Term) -> Term:
    """Returns a scalar over the number of rows of a matrix."""
    rows = x.type.get_shape()[0]
    return g / float(rows) if rows != DYNAMIC_INDEX else g / x.ones.of("mean", axis=[1]).of("sum")


@gradient("nn.cross_entropy")
def _cross_entropy(use: Backward) -> Sequence[Term]:
    predicted, wanted = use.args
    g = _over_rows(use.gradient, predicted)
    return [-g * wanted / predicted, -g * predicted.of("log")]


@gradient("nn.cross_entropy_with_logits")
def _cross_entropy_with_logits(use: Backward) -> Sequence[Term]:
    predicted, wanted = use.args
    g = _over_rows(use.gradient, predicted)
    return [-g * wanted, -g * predicted]


WITHOUT: dict[str, tuple[str, ...]] = {
    "it computes on integers, or on the bits of numbers": (
        "annotation.cast_hint", "fixed_point_multiply", "fixed_point_multiply_per_axis", "nn.bitpack",
        "nn.bitserial_conv2d", "nn.bitserial_dense", "nn.matmul_nbits", "qnn.*", "random.multinomial", "random.threefry_generate",
        "random.threefry_split", "reinterpret",
    ),
    "other operators are lowered to it": ("memory.*", "nn.contrib_*"),
    "it chooses boxes or rows, how many depends on the numbers": (
        "sparse_fill_empty_rows", "sparse_reshape", "unique", "vision.all_class_non_max_suppression",
        "vision.get_valid_counts", "vision.multibox_transform_loc", "vision.non_max_suppression", "vision.proposal",
        "vision.regular_non_max_suppression",
    ),
    "it is a gradient itself, and second derivatives of layers are not written": (
        "nn.avg_pool2d_grad", "nn.conv2d_backward_weight", "nn.max_pool2d_grad",
    ),
    "none is written": (
        "cumprod", "dft", "dyn.image.resize2d", "image.*", "nn.avg_pool3d", "nn.correlation", "nn.deformable_conv2d",
        "nn.max_pool3d", "nn.sparse_add", "nn.sparse_conv2d", "nn.sparse_dense", "nn.sparse_transpose", "stft",
        "vision.roi_align", "vision.roi_pool",
    ),
}  # fmt: skip
"""The operators without a gradient, by the reason; `*` matches any suffix."""


def why_not(name: str) -> str:
    """Returns the reason why an operator has no gradient; "" for one that nobody listed."""
    return next((why for why, names in WITHOUT.items() if any(fnmatchcase(name, pattern) for pattern in names)), "")
