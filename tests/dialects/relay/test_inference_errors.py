"""What type inference says where types follow late, and where attributes are of the right kind but make no sense."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.infer.result import infer_result
from mirstack.dialects.relay.operator import get_operator, operator_class
from mirstack.dialects.relay.operators.common.relations import tensor_type
from mirstack.dialects.relay.types import UNKNOWN
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError
from xdsl.ir import Attribute, Block

X = "def @main(%x: Tensor[(2, 3), float32])"

ERRORS = [
    (f"{X} -> Tensor[(3), float32] {{ %x }}", "the result of @main must be Tensor[(3), float32], not Tensor[(2, 3), float32]"),
    (f"{X} -> Tensor[(3), float32] {{ %x }}", "note: what is returned, of type Tensor[(2, 3), float32], comes from here"),
    (f"{X} {{ @h(@g(%x)) }} def @h(%y: Tensor[(3), float32]) {{ %y }} def @g(%y: Tensor[(2, 3), float32]) {{ %y }}", "argument %y of @h must be Tensor[(3), float32], not Tensor[(2, 3), float32]"),
    (f"{X} {{ @g(%x) }} def @g(%y: Tensor[(2, 3), float32]) {{ let %z: Tensor[(3), float32] = @g(%y); %y }}", "note: declared here"),
    (f"{X} {{ @g(%x) }} def @g(%y: float32) {{ %y }}", "%y is declared here"),
    (f"{X} {{ fn (%h) {{ %h(%h) }} }}", "this call has no type: the type would contain itself"),
    (f"{X} {{ sum(%x, axis=[[0]]) }}", "sum: the attributes do not fit (axis=((0,),)): "),
    (f"{X} {{ tile(%x, reps=[[2]]) }}", "tile: the attributes do not fit (reps=((2,),)): "),
    (f"{X} {{ let %f = fn (%y) {{ @h(nn.relu(%y)) }}; %f(%x) }} def @h(%z: Tensor[(3), float32]) {{ %z }}", "the value here is Tensor[(2, 3), float32], but it is used as Tensor[(3), float32]"),
    (f"{X} {{ @g(%x) }} def @g(%y: Tensor[(2, 3), float32]) {{ let %z: Tensor[(3), float32] = @g(%y); %y }}", "the result of @g must be Tensor[(3), float32], not Tensor[(2, 3), float32]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_message(text: str, message: str):
    with pytest.raises(MirError) as error:
        parse_mir(text)
    assert message in str(error.value)


def test_intricate_patterns():
    """Whether a match leaves a value out is a question that can take exponential time; the search for one has a limit."""
    width = 20
    clauses = [", ".join("T" if i == j else "_" for i in range(width)) for j in range(width)]
    clauses.append(", ".join(["F"] * width))
    body = " ".join(f"({clause}) => {{ 1 }}," for clause in clauses)
    text = f"type B {{ T, F, }}\ndef @main(%t: ({', '.join(['B'] * width)})) {{ match (%t) {{ {body} }} }}"
    with pytest.raises(MirError) as error:
        mirstack.parse(text)
    message = "the patterns of this match are too intricate to see that none is left out; write match?"
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "attrs", "type", "message"),
    [
        ("nn.relu", {}, UNKNOWN, "the type of nn.relu's result does not follow from its arguments"),
        ("sum", {"axis": [[0]]}, tensor_type((2,), "float32"), "sum: the attributes do not fit: "),
    ],
)
def test_the_type_of_one_operator(name: str, attrs: dict[str, Any], type: Attribute, message: str):
    operator = get_operator(name)
    assert operator is not None
    op = operator_class(operator)([Block(arg_types=[type]).args[0]], attrs)
    with pytest.raises(MirError) as error:
        infer_result(op)
    assert message in str(error.value)


OPEN_SIZE = """@T.prim_func
def g(a: T.handle, b: T.handle):
    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (m,))
    B[0] = A[0]

def @main(%x: Tensor[(2), float32]) { call_tir(@g, %x) }
"""


def test_an_output_of_a_size_that_nothing_says():
    with pytest.raises(MirError) as error:
        mirstack.compile(mirstack.parse(OPEN_SIZE), "interp")(np.ones(2, np.float32))
    message = "the output Tensor[(?), float32] of @g has a size that does not follow from the arguments"
    assert message in str(error.value)


def test_open_dimensions_are_question_marks_in_messages() -> None:
    text = (
        "def @main(%d: Tensor[(3, 3), int64], %i: Tensor[(2, ?), int64], %u: Tensor[(2, ?), int64]) {"
        ' scatter_nd(%d, %i, %u, mode="add") }'
    )
    with pytest.raises(MirError) as error:
        parse_mir(text)
    assert "'updates' (Tensor[(2, ?), int64]) must have the shape (?,)" in str(error.value)


def test_result_of_negative_size() -> None:
    text = (
        "def @main(%x: Tensor[(1, 2, 3, 3), float32], %w: Tensor[(2, 4, 2, 2), float32]) {\n"
        "  nn.conv2d_transpose(%x, %w, padding=[4, 0], channels=4, kernel_size=[2, 2])\n}"
    )
    with pytest.raises(MirError) as error:
        mirstack.parse(text, name="a.mir")
    assert str(error.value).startswith(
        "a.mir:2:3: error: nn.conv2d_transpose: the result Tensor[(1, 4, -4, 4), float32] has the negative size -4"
    )
