"""Entries of which it is not known what they return, or that return nothing although they say so."""

import mirstack
import pytest
from mirstack.support.diagnostics import MirError


def test_the_result_of_a_relay_entry_must_be_known():
    with pytest.raises(MirError, match="<string>:1:1: error: the type of what the entry returns is not known"):
        mirstack.compile(mirstack.parse("def @main(%x: Tensor[(2), float32]) { @main(%x) }"))


def test_a_tir_function_that_promises_a_value_returns_one():
    text = '@T.prim_func\ndef main(A: T.Buffer((8,), "float32")) -> T.int32:\n    A[0] = T.float32(1)\n'
    with pytest.raises(MirError, match="error: function 'main' is to return a value, but ends without one"):
        mirstack.compile(mirstack.parse(text))
