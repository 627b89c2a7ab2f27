"""Every gradient of the operator table against central differences of the interpreter's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.relay.operator import all_operators, operator_class
from mirstack.dialects.relay.operators.gradients import GRADIENTS
from mirstack.parser import parse_mir
from mirstack.passes.relay.first_order_gradient import FirstOrderGradient
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from operator_uses import uses_of
from relay_typing import type_of
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

NARROW = ("asin", "acos", "atanh")
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "acosh", "power")
UNARY = (
    "exp", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
    "asinh", "acosh", "atanh", "erf", "sigmoid", "negative", "copy", "floor", "ceil", "round", "trunc", "sign", "abs",
    "nn.relu", "nn.softmax", "nn.log_softmax", "nn.batch_flatten", "transpose", "zeros_like", "ones_like",
)  # fmt: skip
BROADCAST = ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")
COMPARE = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
LOGIC = ("logical_and", "logical_or", "logical_xor")
X = "%x: Tensor[(2, 3), float64]"

# (operators that it covers, parameters, body); values are drawn for each parameter.
CASES: dict[str, tuple[str, str]] = {
    **{name: (X, f"{name}(%x)") for name in UNARY},
    **{name: (f"{X}, %y: Tensor[(4, 1, 3), float64]", f"{name}(%x, %y)") for name in BROADCAST},
    **{name: (f"{X}, %y: Tensor[(3), float64]", f'cast({name}(%x, %y), dtype="float64")') for name in COMPARE},
    **{name: (X, f'cast({name}(less(%x, 0f64), less(%x, 1f64)), dtype="float64")') for name in LOGIC},
    "logical_not": (X, 'cast(logical_not(less(%x, 0f64)), dtype="float64")'),
    "nn.leaky_relu": (X, "nn.leaky_relu(%x, alpha=0.1f)"),
    "clip": (X, "clip(%x, a_min=-0.5f, a_max=0.7f)"),
    "cast": (X, 'cast(cast(%x, dtype="float32"), dtype="float64")'),
    "cast_like": (f"{X}, %y: Tensor[(2), float64]", "cast_like(%x, %y)"),
    "zeros": (X, 'multiply(%x, add(zeros(shape=[3], dtype="float64"), %x))'),
    "ones": (X, 'multiply(%x, ones(shape=[3], dtype="float64"))'),
    "arange": ("%start: float64, %step: float64", 'arange(%start, 5f64, add(%step, 2f64), dtype="float64")'),
    "full": ("%x: float64", 'full(%x, shape=[2, 3], dtype="float64")'),
    "full_like": (f"{X}, %y: float64", "full_like(%x, %y)"),
    "where": (f"{X}, %y: Tensor[(3), float64]", "where(less(%x, 0f64), %x, %y)"),
    "collapse_sum_like": (f"{X}, %y: Tensor[(3), float64]", "collapse_sum_like(%x, %y)"),
    "broadcast_to_like": (f"{X}, %y: Tensor[(4, 2, 3), float64]", "broadcast_to_like(%x, %y)"),
    "broadcast_to": (X, "broadcast_to(%x, shape=[4, 2, 3])"),
    "sum": (X, "multiply(sum(%x, axis=[0]), sum(%x, axis=[0], exclude=True, keepdims=True))"),
    "mean": (X, "multiply(mean(%x, axis=[-1], keepdims=True), mean(%x))"),
    "max": (X, "max(%x, axis=[1])"),
    "min": (X, "min(%x, axis=[0, 1], keepdims=True)"),
    "reshape": (X, "multiply(reshape(%x, newshape=[3, 2]), 2f64)"),
    "reshape_like": (f"{X}, %y: Tensor[(6), float64]", "reshape_like(%x, %y)"),
    "squeeze": ("%x: Tensor[(2, 1, 3), float64]", "squeeze(%x, axis=[1])"),
    "expand_dims": (X, "expand_dims(%x, axis=1)"),
    "transpose with axes": ("%x: Tensor[(2, 3, 4), float64]", "transpose(%x, axes=[2, 0, -2])"),
    "concatenate": (f"{X}, %y: Tensor[(2, 1), float64]", "concatenate((%x, %y, multiply(%x, %x)), axis=-1)"),
    "concatenate one": (X, "concatenate((%x,), axis=0)"),
    "split": ("%x: Tensor[(2, 6), float64]", "%0 = split(%x, indices_or_sections=[1, 3], axis=1); (%0.2, exp(%0.0))"),
    "tuple in, tuple out": (
        "%t: (Tensor[(2), float64], Tensor[(3), float64])",
        "%0 = (%t.1, (%t, %t.0)); (%0.0, multiply(%0.1.1, %0.1.0.0))",
    ),
    "nn.bias_add": (f"{X}, %y: Tensor[(2), float64]", "nn.bias_add(%x, %y, axis=0)"),
    "nn.dense": (f"{X}, %y: Tensor[(4, 3), float64]", "nn.dense(%x, %y)"),
    "nn.dense of a vector": ("%x: Tensor[(3), float64], %y: Tensor[(4, 3), float64]", "nn.dense(%x, %y)"),
    "nn.dense of matrices": ("%x: Tensor[(2, 2, 3), float64], %y: Tensor[(4, 3), float64]", "nn.dense(%x, %y)"),
    "nn.cross_entropy": (f"{X}, %y: Tensor[(2, 3), float64]", "nn.cross_entropy(exp(%x), %y)"),
    "nn.cross_entropy_with_logits": (f"{X}, %y: Tensor[(2, 3), float64]", "nn.cross_entropy_with_logits(%x, %y)"),
    "nn.conv2d": (
        "%x: Tensor[(1, 2, 5, 6), float64], %w: Tensor[(4, 1, 3, 2), float64]",
        "nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2], groups=2, channels=4, kernel_size=[3, 2])",
    ),
    "nn.conv2d of several filters a channel": (
        "%x: Tensor[(1, 2, 4, 4), float64], %w: Tensor[(2, 3, 2, 2), float64]",
        "nn.conv2d(%x, %w, groups=2, channels=6, kernel_size=[2, 2])",
    ),
    "nn.max_pool2d": ("%x: Tensor[(1, 2, 5, 6), float64]", "nn.max_pool2d(%x, pool_size=[2, 3], strides=[2, 1])"),
    "nn.avg_pool2d": (
        "%x: Tensor[(1, 2, 5, 6), float64]",
        "nn.avg_pool2d(%x, pool_size=[2, 3], strides=[2, 1], padding=[1, 1, 0, 0])",
    ),
    "nn.global_avg_pool2d": ("%x: Tensor[(1, 2, 3, 4), float64]", "nn.global_avg_pool2d(%x)"),
    **{
        f"{name} {a} {b}": (
            f"%x: Tensor[({batch}{'3, 2' if a else '2, 3'}), float64], %y: Tensor[({batch}{'4, 3' if b else '3, 4'}), float64]",
            f"{name}(%x, %y, transpose_a={a}, transpose_b={b})",
        )
        for name, batch in (("nn.matmul", ""), ("nn.batch_matmul", "2, "))
        for a in (False, True)
        for b in (False, True)
    },
}  # fmt: skip


def test_every_gradient_has_a_case() -> None:
    assert {name.split(" ")[0] for name in CASES} >= set(GRADIENTS)


def draw(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Any:
    values = rng.uniform(-1.4, 1.4, shape)
    if name in NARROW:
        return values / 2
    return 1.2 + np.abs(values) if name in POSITIVE else values


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    parameters, body = CASES[name]
    text = f"def @main({parameters}) {{ {body} }}"
    before, after = parse_mir(text), parse_mir(text)
    FirstOrderGradient().apply(Context(), after)
    assert find_errors(after) == []
    rng = np.random.default_rng(0)
    if name == "tuple in, tuple out":
        leaves = [rng.standard_normal(2), rng.standard_normal(3)]
        pack: Any = lambda xs: [tuple(xs)]  # noqa: E731
    else:
        main = next(iter(before.ops))
        leaves = [draw(rng, p.type.get_shape(), name) for p in main.params]  # type: ignore[attr-defined]
        pack = list
    count = len(flatten(interpret(before, "main", pack(leaves))))
    results = flatten(interpret(after, "main", pack(leaves)))
    plain = flatten(interpret(before, "main", pack(leaves)))
    for value, wanted in zip(results[:count], plain, strict=True):
        np.testing.assert_array_equal(value, wanted)
    tolerance = 1e-3 if "float32" in body else 1e-6
    step = 1e-2 if "float32" in body else 1e-5
    for number, leaf in enumerate(leaves):
        expected = np.zeros_like(leaf)
        for place in np.ndindex(leaf.shape):
            sums: list[float] = []
            for sign in (1, -1):
                moved = [np.array(x) for x in leaves]
                moved[number][place] += sign * step
                sums.append(sum(float(r.sum()) for r in flatten(interpret(before, "main", pack(moved)))))
            expected[place] = (sums[0] - sums[1]) / (2 * step)
        np.testing.assert_allclose(results[count + number], expected, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_gradients_are_of_the_arguments_types(name: str) -> None:
    """Of every way in which an operator's case draws it: of several ranks and dtypes, results of other types than arguments."""
    for attrs, arguments in uses_of(name):
        module, inputs = one_use(name, attrs, arguments)
        try:
            FirstOrderGradient().apply(Context(), module)
        except MirError as error:
            assert f"{name} has no gradient here" in str(error), attrs
            continue
        assert find_errors(module) == []
        with np.errstate(all="ignore"):
            results = flatten(interpret(module, "main", list(inputs)))
        gradients = results[len(results) - len(inputs) :]
        assert [(g.dtype, g.shape) for g in gradients] == [(x.dtype, x.shape) for x in inputs], attrs


def test_integers_of_convolutions_with_wider_results() -> None:
    text = (
        "def @main(%x: Tensor[(1, 2, 3, 3), uint8], %w: Tensor[(2, 2, 2, 2), int8]) {"
        ' nn.conv2d(%x, %w, channels=2, kernel_size=[2, 2], out_dtype="int32") }'
    )
    module = parse_mir(text)
    FirstOrderGradient().apply(Context(), module)
    assert find_errors(module) == []
    x, w = np.ones((1, 2, 3, 3), np.uint8), np.ones((2, 2, 2, 2), np.int8)
    _, to_x, to_w = flatten(interpret(module, "main", [x, w]))
    assert (to_x.dtype, to_w.dtype) == (np.uint8, np.int8)
    assert to_x[0, 0].tolist() == [[2, 4, 2], [4, 8, 4], [2, 4, 2]]
    assert (to_w == 4).all()


def one_use(name: str, attrs: dict[str, Any], arguments: Sequence[Any]) -> tuple[ModuleOp, list[Any]]:
    """A program that is one operator, and its inputs."""
    block, inputs = Block(), list[Any]()

    def given(array: Any) -> SSAValue:
        inputs.append(array)
        return block.insert_arg(type_of(array), len(block.args))

    operands: list[SSAValue] = []
    for argument in arguments:
        if isinstance(argument, tuple):
            block.add_op(fields := ir.TupleOp([given(array) for array in argument]))
            operands.append(fields.result)
        else:
            operands.append(given(argument))
    block.add_op(op := operator_class(all_operators()[name])(operands, attrs))
    block.add_op(ir.ReturnOp(op.result))
    module = ModuleOp([ir.FuncOp("main", [f"x{n}" for n in range(len(inputs))], [], body=Region(block))])
    infer_types(module)
    return module, inputs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def @main(%x: float32) { if (less(%x, 0f)) { %x } else { exp(%x) } }",
            "takes functions of operators and tuples only, not of 'relay.if'\nnote: inline, partial-evaluate or",
        ),
        ("def @main(%x: Tensor[(3), float32]) { argsort(%x) }", "argsort has no gradient"),
        ("def @main(%r: ref(float32)) { 1f }", "only tensors and tuples of them have gradients, not ref(float32)"),
        (
            "def @main(%x: Tensor[(1, 4, 4, 2), float32], %w: Tensor[(3, 3, 2, 1), float32]) {"
            ' nn.conv2d(%x, %w, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO") }',
            "nn.conv2d has no gradient here: the layouts must be NCHW and OIHW\nnote: convert-layout gives",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(MirError) as error:
        FirstOrderGradient().apply(Context(), parse_mir(text))
    assert message in str(error.value)
