"""The verifier asks type relations whether an operator's types are right."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.operator import OperatorOp, get_operator, operator_class
from mirstack.dialects.relay.types import UNKNOWN
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, f32, i32
from xdsl.ir import Attribute, Block, Region


def module(name: str, arguments: list[Attribute], result: Attribute, **attrs: int) -> ModuleOp:
    """@main returns one use of an operator."""
    operator = get_operator(name)
    assert operator is not None
    block = Block(arg_types=arguments)
    op: OperatorOp = operator_class(operator)(block.args, attrs, result)
    block.add_ops([op, ir.ReturnOp(op.result)])
    names = [f"x{i}" for i in range(len(arguments))]
    return ModuleOp([ir.FuncOp("main", names, [], ret_type=UNKNOWN, body=Region(block))])


T23, T24, T2 = TensorType(f32, [2, 3]), TensorType(f32, [2, 4]), TensorType(f32, [2])


@pytest.mark.parametrize(
    ("name", "arguments", "result", "message"),
    [
        ("add", [T23, T23], T24, r"the result of add is Tensor\[\(2, 3\), float32\], not Tensor\[\(2, 4\), float32\]"),
        ("add", [T23, T23], TensorType(i32, [2, 3]), "dtype int32 against float32"),
        ("add", [T23, T24], T23, "do not broadcast: dimension 1 is 3 against 4"),
        ("concatenate", [T23], T23, "must be a tuple of tensors"),
        ("exp", [T23, T23], T23, "exp takes 1 argument"),
        ("concatenate", [T23, T23], T23, r"\(\*data\), not 2: a tuple, as in concatenate\(\(%a, %b\)\)"),
    ],
)
def test_refused(name: str, arguments: list[Attribute], result: Attribute, message: str) -> None:
    with pytest.raises(MirError, match=message):
        verify(module(name, arguments, result))


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ([T23, T23], T23),
        ([T23, T23], UNKNOWN),
        ([UNKNOWN, T23], T24),
        ([T23, T23], TensorType(f32, [DYNAMIC_INDEX, 3])),
    ],
)
def test_accepted(arguments: list[Attribute], result: Attribute) -> None:
    for _ in range(2):
        verify(module("add", arguments, result))
