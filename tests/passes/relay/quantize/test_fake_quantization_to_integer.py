"""`fake-quantization-to-integer`: rules close to the real numbers, what it leaves alone, what it refuses with `hard-fail`."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.relay.ir import FuncOp
from mirstack.dialects.relay.operator import all_operators
from mirstack.dialects.tir.types import type_to_dtype
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.relay.quantize.fake_quantization import ALONE, OPTIONAL_RULES, RULES
from mirstack.passes.relay.quantize.fake_quantization_to_integer import FakeQuantizationToInteger
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.dialects.builtin import TensorType

X = "%x: Tensor[(1, 4, 6, 6), int8]"
REAL = "%0 = qnn.dequantize(%x, 0.5f, 2);"


def run(text: str, **options: object) -> str:
    """The program after the pass; it must verify and round-trip."""
    module = parse_mir(text, "p.mir")
    FakeQuantizationToInteger(**options).apply(Context(), module)  # type: ignore[arg-type]
    assert find_errors(module) == []
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    return printed


def outputs(text: str) -> list[np.ndarray]:
    """What `main` gives of small integers."""
    rng = np.random.default_rng(0)
    module = parse_mir(text)
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    inputs: list[np.ndarray] = []
    for param in main.params:
        assert isinstance(param.type, TensorType)
        dtype = type_to_dtype(param.type.element_type)
        inputs.append(rng.integers(-20, 20, param.type.get_shape()).astype(dtype))
    return [np.asarray(o) for o in flatten(interpret(module, "main", inputs))]


def test_the_tables_name_operators() -> None:
    assert {*RULES, *OPTIONAL_RULES, *ALONE} <= set(all_operators())
    assert set(RULES) >= ALONE


# What is computed of %0, and how it is quantized.
UNARY = {
    "reshape(%0, newshape=[4, 36])": "0.5f, 2",
    "transpose(%0, axes=[0, 2, 3, 1])": "0.5f, 1",
    "squeeze(%0, axis=[0])": "0.25f, 2",
    "strided_slice(%0, begin=[0, 0, 1, 1], end=[1, 4, 3, 5])": "0.5f, 2",
    "expand_dims(%0, axis=0)": "0.5f, 2",
    "nn.max_pool2d(%0, pool_size=[2, 2])": "0.5f, 2",
    "nn.batch_flatten(%0)": "0.5f, 2",
    "nn.depth_to_space(%0, block_size=2)": "0.5f, 2",
    "max(%0, axis=[1])": "0.5f, 2",
    "min(%0, axis=[1])": "0.5f, 2",
    "broadcast_to(%0, shape=[2, 4, 6, 6])": "0.5f, 2",
    "take(%0, 1, axis=1)": "0.5f, 2",
    'topk(%0, k=2, ret_type="values")': "0.5f, 2",
    "nn.avg_pool2d(%0, pool_size=[2, 2])": "0.5f, 5",
    "nn.global_avg_pool2d(%0)": "0.5f, 5",
    "nn.adaptive_avg_pool1d(max(%0, axis=[3]), output_size=[2])": "0.5f, 2",
    "mean(%0, axis=[1])": "0.5f, 2",
    "nn.relu(%0)": "0.5f, 2",
    "nn.leaky_relu(%0, alpha=0.5f)": "0.5f, 2",
    "nn.pad(%0, 1f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])": "0.5f, 2",
    "clip(%0, a_min=-2f, a_max=3f)": "0.5f, 2",
    "clip(%0, a_min=-1000f, a_max=1000f)": "0.5f, 2",
    "add(%0, 2f)": "0.5f, 2",
    "add(2f, %0)": "0.5f, 2",
    "subtract(%0, 2f)": "0.5f, 2",
    "multiply(%0, 2f)": "1f, 2",
    "minimum(%0, 2f)": "0.5f, 2",
    "maximum(%0, 2f)": "0.25f, 2",
    "sigmoid(%0)": "0.01f, -100",
    "tanh(%0)": "0.01f, 0",
    "abs(%0)": "0.5f, 0",
    "erf(%0)": "0.01f, 0",
    "sqrt(abs(%0))": "0.5f, 0",
    "exp(minimum(%0, 1f))": "0.5f, 0",
    "concatenate((%0, %0), axis=1)": "0.5f, 2",
    "split(%0, indices_or_sections=2, axis=1).1": "0.5f, 2",
    "split(%0, indices_or_sections=[1, 3], axis=1).1": "0.5f, 2",
}


@pytest.mark.parametrize("expression", UNARY)
def test_rules_of_one_tensor(expression: str) -> None:
    text = f'def @main({X}) {{ {REAL} qnn.quantize({expression}, {UNARY[expression]}, out_dtype="int8") }}'
    done = run(text, hard_fail=True)
    assert "dequantize" not in done
    (before,), (after,) = outputs(text), outputs(done)
    assert before.dtype == after.dtype
    # Each rounding in between may move a number by one.
    assert np.abs(before.astype(int) - after.astype(int)).max() <= 2, done


@pytest.mark.parametrize("attributes", ["", ", padding=[1, 1, 1, 1]", ", padding=[1, 1, 1, 1], count_include_pad=True"])
@pytest.mark.parametrize("scales", [("2f", "0.5f"), ("0.125f", "1f")])
def test_pooling_loses_less_than_a_step_of_the_result(attributes: str, scales: tuple[str, str]) -> None:
    """Elements are requantized before their mean is taken, and padding stands for the real number 0."""
    source, target = scales
    text = (
        f"def @main(%x: Tensor[(1, 3, 16, 16), int8]) {{ %0 = qnn.dequantize(%x, {source}, -12); "
        f'qnn.quantize(nn.avg_pool2d(%0, pool_size=[3, 3]{attributes}), {target}, 10, out_dtype="int8") }}'
    )
    done = run(text, hard_fail=True)
    assert "qnn.avg_pool2d" in done
    (before,), (after,) = outputs(text), outputs(done)
    assert np.abs(before.astype(int) - after.astype(int)).max() <= 1


PRODUCTS = {
    "nn.conv2d(%0, %1, kernel_size=[3, 3])": "(4, 4, 3, 3)",
    'nn.conv2d(transpose(%0, axes=[0, 2, 3, 1]), %1, kernel_size=[3, 3], data_layout="NHWC")': "(4, 4, 3, 3)",
    "nn.conv2d_transpose(%0, %1, channels=4, kernel_size=[3, 3])": "(4, 4, 3, 3)",
    "nn.dense(reshape(%0, newshape=[4, 36]), %1, units=4)": "(4, 36)",
    "nn.batch_matmul(squeeze(%0), %1, transpose_b=True)": "(4, 5, 6)",
    "nn.batch_matmul(squeeze(%0), %1)": "(4, 6, 5)",
    "nn.bias_add(nn.conv2d(%0, %1, kernel_size=[3, 3]), qnn.dequantize(%b, 0.125f, 0))": "(4, 4, 3, 3)",
    "nn.bias_add(nn.conv2d(%0, %1, kernel_size=[3, 3]), qnn.dequantize(%b, 0.5f, 1))": "(4, 4, 3, 3)",
    "add(nn.dense(reshape(%0, newshape=[4, 36]), %1, units=4), qnn.dequantize(%b, 0.125f, 0))": "(4, 36)",
}


@pytest.mark.parametrize("expression", PRODUCTS)
def test_products(expression: str) -> None:
    parameters = f"{X}, %w: Tensor[{PRODUCTS[expression]}, int8], %b: Tensor[(4), int32]"
    text = (
        f"def @main({parameters}) {{ {REAL} %1 = qnn.dequantize(%w, 0.25f, 3); "
        f'qnn.quantize({expression}, 16f, 1, out_dtype="int8") }}'
    )
    done = run(text, hard_fail=True)
    assert "dequantize" not in done and "qnn.requantize" in done
    (before,), (after,) = outputs(text), outputs(done)
    assert np.abs(before.astype(int) - after.astype(int)).max() <= 1, done


@pytest.mark.parametrize(
    "body",
    [
        "let %y = nn.relu(%0); qnn.quantize(nn.relu(%y), 0.5f, 2)",  # a variable
        "qnn.quantize(cos(%0), 0.5f, 2)",  # no rule
        "qnn.quantize(add(%0, %r), 0.5f, 2)",  # not quantized
        "qnn.quantize(add(1f, 2f), 0.5f, 2)",  # neither is
        "qnn.quantize(nn.softmax(%0), 0.5f, 2)",  # on demand
    ],
)
def test_left_alone(body: str) -> None:
    text = f"def @main({X}, %r: float32) {{ {REAL} {body} }}"
    assert run(text) == print_mir(parse_mir(text))


def test_on_demand() -> None:
    text = f"def @main({X}) {{ {REAL} qnn.quantize(nn.softmax(%0), 0.01f, 0) }}"
    assert "qnn.softmax(%x" in run(text, optional_qnn_ops=("nn.softmax",))


def test_one_by_one() -> None:
    """use-qat: an operator of dequantized arguments gives what is dequantized; one that needs to know the end stays."""
    text = f"def @main({X}) {{ {REAL} %1 = nn.relu(transpose(%0)); (cos(%1), nn.global_avg_pool2d(%0)) }}"
    done = run(text, use_qat=True)
    assert "transpose(%x)" in done and "maximum(" in done and "cos(" in done
    assert done.count("qnn.dequantize") == 2 and "nn.global_avg_pool2d" in done
    for before, after in zip(outputs(text), outputs(done), strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-6)
    assert run(done, use_qat=True) == done


@pytest.mark.parametrize(
    ("body", "options", "message"),
    [
        ("qnn.quantize(cos(%0), 0.5f, 2)", {}, "p.mir:1:92: error: cos has no rule to be done in integers"),
        ("qnn.quantize(cos(%0), 0.5f, 2)", {}, "note: hard-fail: this must be quantized in integers"),
        ("qnn.quantize(add(1f, 2f), 0.5f, 2)", {}, "add cannot be done in integers: neither argument is quantized"),
        ("qnn.quantize(nn.relu(1f), 0.5f, 2)", {}, "nn.relu cannot be done in integers: an argument is not quantized"),
        ("qnn.quantize((1f, 2f).0, 0.5f, 2)", {}, "tuple cannot be done in integers: a field is not quantized"),
        ("%0", {"optional_qnn_ops": ("no.op",)}, "optional-qnn-ops: there is no operator no.op"),
        (
            'qnn.quantize(cast(topk(%0, k=2, ret_type="indices"), dtype="float32"), 0.5f, 2)', {},
            "cast has no rule to be done in integers",
        ),
    ],
)  # fmt: skip
def test_refused(body: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(MirError) as error:
        run(f"def @main({X}) {{ {REAL} {body} }}", hard_fail=True, **options)
    assert message in str(error.value)
