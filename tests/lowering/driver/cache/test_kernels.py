"""Texts of kernels: they say all that a kernel is, as the op can be made again from its text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from mirstack.lowering.driver.cache.kernels import KernelText, places_of
from mirstack.parser import parse_mir
from mirstack.universe import dialect_factories
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, ModuleOp, StringAttr, f32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

KERNELS = {
    "relay": "def @main(%x: Tensor[(4, 8), float32]) { nn.softmax(nn.relu(%x)) }",
    "open": "def @main(%x: Tensor[(?, 8), float32]) { nn.max_pool1d(expand_dims(%x, axis=0), pool_size=[2]) }",
    "tir": """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.if_then_else(v < 4, A[v], 0.0)
""",
}


def read(text: str) -> Operation:
    """The op of a text."""
    context = Context()
    for name, factory in {**get_all_dialects(), **dialect_factories()}.items():
        context.register_dialect(name, factory)
    listed, tree = json.loads(text)
    attributes: list[Attribute] = []
    for each in listed:
        if isinstance(each, str):
            attributes.append(Parser(context, each).parse_attribute())
        elif isinstance(each, list):
            attributes.append(ArrayAttr([attributes[number] for number in each]))
        else:
            attributes.append(DictionaryAttr({key: attributes[number] for key, number in each.items()}))
    values: list[SSAValue] = []

    def declare(made: Sequence[SSAValue], hints: Any) -> None:
        for value, (_, hint) in zip(made, hints, strict=True):
            value.name_hint = hint
        values.extend(made)

    def block_of(args: Any, ops: Any) -> Block:
        block = Block(arg_types=[attributes[type] for type, _ in args])
        declare(block.args, args)
        block.add_ops([op_of(*op) for op in ops])
        return block

    def op_of(name: str, operands: Any, results: Any, properties: Any, others: Any, regions: Any) -> Operation:
        op = context.get_op(name).create(
            operands=[values[place] for place in operands],
            result_types=[attributes[type] for type, _ in results],
            properties={key: attributes[place] for key, place in properties},
            attributes={key: attributes[place] for key, place in others},
        )
        declare(op.results, results)
        for blocks in regions:
            op.add_region(Region([block_of(args, ops) for args, ops in blocks]))
        return op

    return op_of(*tree)


def generic(op: Operation) -> str:
    stream = StringIO()
    Printer(stream=stream, print_generic_format=True).print_op(op)
    return stream.getvalue()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_text_says_all(kernel: str) -> None:
    module = parse_mir(KERNELS[kernel])
    module.attributes["said"] = StringAttr("too")
    text = KernelText()
    written = text(module)
    assert generic(read(written)) == generic(module)
    assert text(module) == written, "once more, with attributes that are known"
    assert KernelText()(read(written)) == written


def test_places_are_left_out() -> None:
    above, below = (parse_mir(lines + KERNELS["relay"]) for lines in ("", "\n\n"))
    assert KernelText()(above) == KernelText()(below)
    assert places_of(above) != places_of(below)


def test_signs_of_zero() -> None:
    """Attributes that are equal have texts of their own."""
    text = KernelText()
    positive, negative = (ConstantOp(FloatAttr(value, f32)) for value in (0.0, -0.0))
    assert text(positive) != text(negative)


def test_which_operand_is_which() -> None:
    def difference(order: int) -> ModuleOp:
        names = ("%x", "%y")[::order]
        types = "%x: Tensor[(4), float32], %y: Tensor[(4), float32]"
        return parse_mir(f"def @main({types}) {{ subtract({', '.join(names)}) }}")

    assert KernelText()(difference(1)) != KernelText()(difference(-1))
