"""`qnn-canonicalize-ops` and `qnn-legalize`: plain operators that give the very integers, and what stays as it is."""

from __future__ import annotations

import re

import mirstack
import numpy as np
import pytest
from mirstack.dialects.array import ArrayValueAttr
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.relay.ir import ConstantOp, FuncOp
from mirstack.dialects.relay.operator import all_operators, is_operator
from mirstack.dialects.tir.types import type_to_dtype
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.relay.algebra.fold_constant import FoldConstant
from mirstack.passes.relay.quantize.affine_types import dtype_of
from mirstack.passes.relay.quantize.qnn_canonicalize_ops import LOWERINGS, RULES, QnnCanonicalizeOps
from mirstack.passes.relay.quantize.qnn_legalize import QnnLegalize
from mirstack.passes.rules import shipped_rules
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import TensorType
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

PARAMETERS = (
    "%x: Tensor[(2, 3, 4), int8]", "%y: Tensor[(2, 3, 4), int8]", "%u: Tensor[(2, 3, 4), uint8]",
    "%i: Tensor[(2, 3, 4), int32]", "%f: Tensor[(2, 3, 4), float32]", "%h: Tensor[(2, 3, 4), float16]",
    "%image: Tensor[(2, 4, 6, 6), uint8]", "%kernel: Tensor[(4, 4, 3, 3), int8]", "%each: Tensor[(4, 1, 3, 3), int8]",
    "%nhwc: Tensor[(2, 6, 6, 4), int8]", "%hwio: Tensor[(3, 3, 4, 5), int8]",
    "%fours: Tensor[(4), int32]", "%matrix: Tensor[(2, 4), uint8]", "%weight: Tensor[(5, 4), int8]", "%zero: int32",
    "%scales: Tensor[(3), float32]", "%zeros: Tensor[(3), int32]",
)  # fmt: skip


def program(expression: str) -> str:
    """A `main` that gives `expression`, with the parameters that it names."""
    named = re.findall(r"%\w+", expression)
    used = [p for p in PARAMETERS if p.partition(":")[0] in named]
    return f"def @main({', '.join(used)}) {{ {expression} }}"


def after(text: str, which: type[ModulePass] = QnnCanonicalizeOps) -> str:
    """The program after the pass; it must verify, round-trip and be as it is after the pass once more."""
    module = parse_mir(text)
    which().apply(Context(), module)
    assert find_errors(module) == []
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    which().apply(Context(), module)
    assert print_mir(module) == printed
    return printed


def outputs(text: str) -> list[np.ndarray]:
    """What `main` gives of random inputs."""
    rng = np.random.default_rng(0)
    module = parse_mir(text)
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    inputs: list[np.ndarray] = []
    for param in main.params:
        assert isinstance(param.type, TensorType)
        dtype, shape = type_to_dtype(param.type.element_type), param.type.get_shape()
        values = (
            rng.normal(0, 20, shape) if "float" in dtype else np.asarray(rng.integers(-128, 128, shape) if shape else 7)
        )
        inputs.append(
            np.asarray(np.abs(values) + 0.1 if "scales" in text and dtype == "float32" else values).astype(dtype)
        )
    return [np.asarray(o) for o in flatten(interpret(module, "main", inputs))]


EXACT = [
    "qnn.quantize(%f, 0.3f, 2)",
    'qnn.quantize(%f, 0.3f, 2, out_dtype="uint8")',
    'qnn.quantize(%f, 0.3f, 2, out_dtype="int32")',
    "qnn.quantize(%h, 0.5f, 2)",
    "qnn.quantize(%f, %scales, %zeros, axis=1)",
    "qnn.dequantize(%x, 0.3f, 2)",
    "qnn.dequantize(%u, %scales, %zeros, axis=1)",
    'qnn.dequantize(%x, 0.5f, 2, out_dtype="float16")',
    "qnn.requantize(%i, 0.3f, 5, 0.7f, 2)",
    "qnn.requantize(%i, 0.3f, 0, 0.3f, 0)",
    "qnn.requantize(%x, 0.3f, 0, 0.1f, 0)",
    'qnn.requantize(%x, 3f, 1, 0.1f, -3, out_dtype="int32")',
    'qnn.requantize(%x, 0.3f, 5, 0.7f, 2, rounding="TONEAREST")',
    'qnn.requantize(%x, 3f, 5, 0.7f, 2, rounding="TONEAREST", out_dtype="uint8")',
    'qnn.requantize(%x, 0.25f, 5, 0.5f, 2, compute_dtype="float32")',
    'qnn.requantize(%x, 0.25f, 5, 0.5f, 2, compute_dtype="float64", rounding="TONEAREST")',
    'qnn.requantize(%x, 0.5f, 5, 0.5f, 2, compute_dtype="float32", rounding="TONEAREST")',
    "qnn.requantize(%x, 0.3f, %zeros, 0.7f, 2, axis=1)",
    "qnn.add(%x, %y, 0.3f, 2, 0.4f, 3, 0.5f, 1)",
    "qnn.add(%x, %y, 0.5f, 0, 0.5f, 0, 0.5f, 0)",
    "qnn.subtract(%x, %y, 0.3f, 2, 0.4f, 3, 0.5f, 1)",
    "qnn.subtract(%u, %u, 0.3f, 2, 0.4f, 3, 0.5f, 0)",
    "qnn.mul(%x, %y, 0.3f, 2, 0.4f, 0, 0.5f, 1)",
    "qnn.concatenate((%x, %y), (0.5f, 0.3f), (1, 2), 0.5f, 1, axis=1)",
    "qnn.dense(%matrix, %weight, 0, 0, 1f, 1f, units=5)",
    "qnn.dense(%matrix, %weight, 3, 0, 1f, 1f, units=5)",
    "qnn.dense(%matrix, %weight, 0, 2, 1f, 1f, units=5)",
    "qnn.dense(%matrix, %weight, 3, 2, 1f, 1f, units=5)",
    "qnn.dense(%matrix, %weight, %zero, 2, 1f, 1f, units=5)",
    "qnn.batch_matmul(%x, %y, 0, 0, 1f, 1f, transpose_b=True)",
    "qnn.batch_matmul(%x, %y, 0, 4, 1f, 1f, transpose_b=True)",
    "qnn.batch_matmul(%x, %y, 3, 0, 1f, 1f, transpose_b=True)",
    "qnn.batch_matmul(%x, %y, 3, 4, 1f, 1f, transpose_b=True)",
    "qnn.batch_matmul(%x, %y, %zero, 4, 1f, 1f, transpose_b=True)",
    "qnn.batch_matmul(%x, %y, 3, 4, 1f, 1f, transpose_a=True, transpose_b=False)",
    "qnn.conv2d(%image, %kernel, 0, 0, 1f, 1f, kernel_size=[3, 3])",
    "qnn.conv2d(%image, %kernel, 3, 0, 1f, 1f, kernel_size=[3, 3], padding=[1, 1, 1, 1])",
    "qnn.conv2d(%image, %kernel, -3, 0, 1f, 1f, kernel_size=[3, 3], padding=[1, 1])",
    "qnn.conv2d(%image, %kernel, 1, 2, 1f, 1f, kernel_size=[3, 3], padding=[1, 0, 2, 1], strides=[2, 2])",
    "qnn.conv2d(%image, %kernel, 3, 2, 1f, 1f, kernel_size=[3, 3], dilation=[2, 2])",
    "qnn.conv2d(%image, %kernel, 3, 0, 1f, 1f, kernel_size=[3, 3], dilation=[2, 2])",
    "qnn.conv2d(%image, %kernel, %zero, 2, 1f, 1f, kernel_size=[3, 3], padding=[1, 1])",
    "qnn.conv2d(%image, %kernel, %zero, %fours, 1f, 1f, kernel_size=[3, 3])",
    "qnn.conv2d(%image, %kernel, %zero, %fours, 1f, 1f, kernel_size=[3, 3], dilation=[2, 2])",
    "qnn.conv2d(%image, %each, 3, 2, 1f, 1f, kernel_size=[3, 3], groups=4, channels=4, padding=[1, 1])",
    "qnn.conv2d(%image, %each, 3, %fours, 1f, 1f, kernel_size=[3, 3], groups=4, channels=4)",
    "qnn.conv2d(%image, %each, 3, 2, 1f, 1f, kernel_size=[3, 3], groups=4)",
    "qnn.conv2d(%image, %each, %zero, %zero, 1f, 1f, kernel_size=[3, 3], groups=4, channels=4)",
    'qnn.conv2d(%nhwc, %hwio, 3, 2, 1f, 1f, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")',
    "qnn.conv2d_transpose(%image, %kernel, 3, 2, 1f, 1f, kernel_size=[3, 3], channels=4)",
    "qnn.avg_pool2d(%image, 0.3f, 2, 0.5f, 3, pool_size=[2, 2], strides=[2, 2])",
    "qnn.avg_pool2d(%image, 0.3f, 2, 0.1f, 3, pool_size=[2, 2], padding=[1, 1, 1, 1], count_include_pad=True)",
    "qnn.leaky_relu(%x, 0.3f, 2, 0.5f, 3, alpha=0.2f)",
    "qnn.softmax(%x, 0.1f, 3, 0.01f, -128)",
    "qnn.softmax(%u, 0.9f, 3, 0.004f, 0, axis=1)",
    "qnn.hardswish(%x, 0.1f, 2, 0.05f, 3)",
    "qnn.exp(%x, 0.01f, 2, 0.05f, 3)",
    "qnn.sqrt(%x, 0.1f, 2, 0.05f, 3)",
    "qnn.rsqrt(%x, 0.1f, 2, 0.05f, 3)",
    "qnn.log(%u, 0.1f, 2, 0.05f, 3)",
    "qnn.erf(%x, 0.1f, 2, 0.01f, 3)",
    "qnn.sigmoid(%x, 0.1f, 2, 0.01f, 3)",
    "qnn.tanh(%x, 0.1f, 2, 0.01f, 3)",
    "qnn.abs(%x, 0.1f, 2, 0.2f, 3)",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXACT)
def test_the_same_integers(expression: str) -> None:
    text = program(expression)
    done = after(text)
    assert "qnn." not in done
    for old, new in zip(outputs(text), outputs(done), strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(new, old, err_msg=done)


@pytest.mark.parametrize(("data", "zero"), [("uint8", "%zero"), ("int8", "%zero"), ("int8", "3")])
def test_bytes_as_dot_products_take_them(data: str, zero: str) -> None:
    """Unsigned data by signed weights, where the zero point of the data is computed, too."""
    weight = 'cast(reshape(arange(0f, 20f, 1f), newshape=[5, 4]), dtype="uint8")'
    named = f", {zero}: int32" if zero.startswith("%") else ""
    text = f"def @main(%x: Tensor[(2, 4), {data}]{named}) {{ qnn.dense(%x, {weight}, {zero}, 128, 1f, 1f, units=5) }}"
    module = parse_mir(text)
    FoldConstant().apply(Context(), module)
    folded = print_mir(module)
    QnnCanonicalizeOps(unsigned=True).apply(Context(), module)
    done = print_mir(module)
    (product,) = (op for op in walk_ops(module) if is_operator(op, "nn.dense"))
    assert [dtype_of(each) for each in product.operands] == ["uint8", "int8"]
    # The weight's zero point is 0 after the shift, so that no sums of the data are needed.
    assert done.count("sum(") == 1
    np.testing.assert_array_equal(outputs(done)[0], outputs(folded)[0])


@pytest.mark.parametrize(
    "attributes",
    ["", ', rounding="TONEAREST"', ', compute_dtype="float64"', ', compute_dtype="float64", rounding="TONEAREST"'],
)
def test_a_scale_for_each_channel(attributes: str) -> None:
    """Constants along an axis: `fixed_point_multiply_per_axis`, or the same in int64 or floats."""
    text = program(f"qnn.requantize(%x, %scales, %zeros, 0.4f, 2, axis=1{attributes})")
    module = parse_mir(text)
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    scales = ConstantOp(ArrayValueAttr.of(np.array([0.5, 0.3, 2.0], np.float32)), main.params[1].type)
    first = main.body.block.first_op
    assert first is not None
    scales.location = first.location
    Rewriter.insert_op(scales, InsertPoint.before(first))
    main.params[1].replace_all_uses_with(scales.result)
    inputs = [
        np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4) * 10,
        np.zeros(3, np.float32),
        np.array([0, 3, -2], np.int32),
    ]
    before = flatten(interpret(module, "main", inputs))[0]
    QnnCanonicalizeOps().apply(Context(), module)
    assert find_errors(module) == []
    assert "qnn." not in print_mir(module) and ("per_axis" in print_mir(module)) == (not attributes)
    np.testing.assert_array_equal(flatten(interpret(module, "main", inputs))[0], before)


@pytest.mark.parametrize(
    "expression",
    [
        "qnn.requantize(%x, %scales, %zeros, 0.5f, 0, axis=1)",
        "qnn.softmax(%x, take(%scales, 0), 0, 0.01f, -128)",
        "qnn.concatenate((%x, %y), (take(%scales, 0), 0.3f), (1, 2), 0.5f, 1, axis=1)",
        "qnn.add(%x, %y, take(%scales, 0), 2, 0.4f, 3, 0.5f, 1)",
        "qnn.mul(%x, %y, take(%scales, 0), 2, 0.4f, 3, 0.5f, 1)",
        "qnn.leaky_relu(%x, take(%scales, 0), 2, 0.5f, 3)",
        "qnn.avg_pool2d(%image, take(%scales, 0), 2, 0.5f, 3, pool_size=[2, 2])",
    ],
)
def test_left_alone(expression: str) -> None:
    """Scales of run time have no fixed-point form."""
    text = program(expression)
    assert after(text) == print_mir(parse_mir(text))


@pytest.mark.parametrize(
    "expression",
    [
        "qnn.dense(%matrix, %weight, 3, 2, 1f, 1f, units=5)",
        "qnn.conv2d(%image, %kernel, 3, 2, 1f, 1f, kernel_size=[3, 3], padding=[1, 1])",
        'qnn.conv2d(%nhwc, %hwio, 3, 2, 1f, 1f, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")',
    ],
)
def test_legalized(expression: str) -> None:
    text = program(expression)
    done = after(text, QnnLegalize)
    assert "qnn." not in done and 'dtype="int16"' in done
    np.testing.assert_array_equal(outputs(done)[0], outputs(text)[0])


def test_the_tables_name_operators() -> None:
    operators = all_operators()
    assert set(LOWERINGS) <= set(operators)
    quantized = {name for name in operators if name.startswith("qnn.")}
    by_rules = {name.removeprefix("relay.") for name in shipped_rules(RULES).by_root}
    assert not by_rules & set(LOWERINGS)
    assert quantized - by_rules - set(LOWERINGS) == {
        "qnn.contrib_dense_pack", "qnn.simulated_quantize", "qnn.simulated_dequantize",
    }  # fmt: skip


WIDE = [
    ('qnn.quantize(%x, 0.5f, 16777217, out_dtype="int32")', [0.0, 1.0, -1.0], [16777217, 16777219, 16777215]),
    ('qnn.quantize(%x, 0.5f, 2147483647, out_dtype="int32")', [0.0, 1.0, -1.0], [2147483647, 2147483647, 2147483645]),
    ('qnn.requantize(%x, 0.5f, 0, 0.5f, 100, out_dtype="int8")', [2147483647, 20, -200], [127, 120, -100]),
    ('qnn.requantize(%x, 0.5f, 0, 0.25f, 2147483647, out_dtype="int32")', [15, 0, -3], [2147483647, 2147483647, 2147483641]),
    ('qnn.requantize(%x, 0.5f, 0, 0.25f, 16777217, out_dtype="int32", compute_dtype="float32")', [1, 0, -1], [16777219, 16777217, 16777215]),
    ('qnn.requantize(%x, 0.5f, 0, 0.5f, 0, out_dtype="int32", compute_dtype="float32")', [8388609, 0, -8388609], [8388609, 0, -8388609]),
    ('qnn.requantize(%x, 4f, 0, 1f, 16777216, out_dtype="int32", compute_dtype="float32")', [2**30, 0, -(2**30)], [2**31 - 1, 2**24, -(2**31)]),
]  # fmt: skip
"""Uses whose sums with the new zero point float32, or int32, does not hold, with numbers and what becomes of them."""


@pytest.mark.parametrize(("use", "given", "wanted"), WIDE)
def test_zero_points_are_added_exactly(use: str, given: list[float], wanted: list[int]) -> None:
    dtype = "float32" if "qnn.quantize" in use else "int32"
    module = mirstack.parse(f"def @main(%x: Tensor[(3), {dtype}]) {{ {use} }}")
    x = np.array(given, dtype)
    for run in (mirstack.compile(module, "interp"), mirstack.compile(module, opt_level=0), mirstack.compile(module)):
        assert np.asarray(run(x)).tolist() == wanted
