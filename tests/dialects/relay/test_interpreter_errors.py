"""What Relay's interpreter says of IR that no parser makes: passes may, and nothing that runs ends in a traceback."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.interpreter import AdtValue, flatten, interpret
from mirstack.dialects.relay.operator import get_operator, operator_class
from mirstack.dialects.relay.operators.common.relations import tensor_type
from mirstack.support.diagnostics import MirError
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Block, Operation, Region

VECTOR = tensor_type((2,), "float32")
X = np.ones(2, np.float32)


def use(name: str, *args: object, type: object = VECTOR) -> Operation:
    operator = get_operator(name)
    assert operator is not None
    return operator_class(operator)(args, type=type)  # type: ignore[arg-type]


def message(block: Block, ops: Sequence[Operation], *others: Operation) -> str:
    """What running `main`, of this body, on a vector says."""
    block.add_ops(ops)
    module = ModuleOp([*others, ir.FuncOp("main", ["x"], [], ret_type=VECTOR, body=Region(block))])
    with pytest.raises(MirError) as error:
        interpret(module, "main", [X])
    return str(error.value)


@pytest.fixture
def block() -> Block:
    return Block(arg_types=[VECTOR])


def test_a_value_used_before_it_is_computed(block: Block):
    first = use("nn.relu", block.args[0])
    second = use("nn.relu", first)
    assert "this value is used before it is computed" in message(block, [second, first, ir.ReturnOp(second)])


def test_a_block_without_return(block: Block):
    assert "a block ends without relay.return" in message(block, [use("nn.relu", block.args[0])])


def test_an_op_of_another_dialect(block: Block):
    number = ConstantOp.from_int_and_width(1, i32)
    assert "Relay's interpreter has no meaning for 'arith.constant'" in message(
        block, [number, ir.ReturnOp(block.args[0])]
    )


def test_a_result_that_is_not_of_its_type(block: Block):
    wrong = use("nn.relu", block.args[0], type=tensor_type((3,), "float32"))
    assert "nn.relu gives float32[2], but its type is Tensor[(3), float32]" in message(
        block, [wrong, ir.ReturnOp(wrong)]
    )


def test_a_call_of_a_tensor(block: Block):
    call = ir.CallOp(block.args[0], [block.args[0]])
    assert "float32[2] is called, but is not a function" in message(block, [call, ir.ReturnOp(call)])


def test_a_vector_as_condition(block: Block):
    choice = ir.IfOp(block.args[0], Region(Block()), Region(Block()), VECTOR)
    assert "the condition of an if must be a scalar, not float32[2]" in message(block, [choice, ir.ReturnOp(choice)])


def test_a_read_of_a_tensor(block: Block):
    read = ir.RefReadOp(block.args[0])
    assert "float32[2] is not a reference" in message(block, [read, ir.ReturnOp(read)])


def test_a_function_that_is_not_there(block: Block):
    call = ir.CallTirOp("g", [block.args[0]], VECTOR)
    assert "the module has no function 'g'" in message(block, [call, ir.ReturnOp(call)])


def test_a_tuple_given_to_a_tir_function(block: Block):
    fields = ir.TupleOp([block.args[0]])
    call = ir.CallTirOp("g", [fields], VECTOR)
    other = ir.FuncOp("g", ["x"], [], ret_type=VECTOR, body=Region(Block(arg_types=[VECTOR])))
    assert "argument 0 of call_tir(@g, …) is not a tensor" in message(block, [fields, call, ir.ReturnOp(call)], other)


def test_a_result_that_holds_no_tensor():
    with pytest.raises(MirError) as error:
        flatten((X, AdtValue("List", "Nil", ())))
    assert "the result holds Nil(), which is not a tensor" in str(error.value)
