"""Texts of kernels: xDSL's generic form without indentation."""

from __future__ import annotations

from io import StringIO

import pytest
from mirstack.lowering.cache.kernel_text import KernelText
from mirstack.parser import parse_mir
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.printer import Printer

KERNELS = {
    "relay": "def @main(%x: Tensor[(4, 8), float32]) { nn.softmax(nn.relu(%x)) }",
    "tir": """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.if_then_else(v < 4, A[v], 0.0)
""",
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_as_xdsl(kernel: str) -> None:
    """Only the spaces at the beginnings of lines differ."""
    module = parse_mir(KERNELS[kernel])
    text, stream = KernelText(), StringIO()
    Printer(stream=stream, print_generic_format=True).print_op(module)
    expected = [line.lstrip() for line in stream.getvalue().splitlines()]
    assert text(module).splitlines() == expected
    assert text(module).splitlines() == expected  # once more, with attributes that are known


def test_signs_of_zero() -> None:
    """Attributes that are equal have texts of their own."""
    text = KernelText()
    positive, negative = (ConstantOp(FloatAttr(value, f32)) for value in (0.0, -0.0))
    assert text(positive) != text(negative)
