"""Tests the package from Python."""

import mirstack
import numpy as np
from mirstack import relay, transform
from mirstack_example.remove_copies import RemoveCopies


def test_operator() -> None:
    x = relay.var("x", shape=(4, 8))
    mod = mirstack.IRModule.from_expr(relay.Function([x], relay.example.softshrink(x, lambd=0.25)))
    array = np.linspace(-1, 1, 32, dtype="float32").reshape(4, 8)
    expected = array - np.clip(array, -0.25, 0.25)
    for target in ("cpu", "interp"):
        np.testing.assert_allclose(mirstack.compile(mod, target)(array), expected, atol=1e-7)


def test_gradient() -> None:
    op = mirstack.parse("def @main(%x: Tensor[(3), float32]) { example.softshrink(%x) }")
    mod = transform.Sequential([transform.InferType(), transform.FirstOrderGradient()])(mirstack.IRModule.of_op(op))
    _, (gradient,) = mirstack.compile(mod, "interp")(np.array([-1, 0.25, 2], "float32"))
    assert list(gradient) == [1, 0, 1]


def test_pass() -> None:
    mod = mirstack.IRModule.of_op(mirstack.parse("def @main(%x: Tensor[(3), float32]) { nn.relu(copy(%x)) }"))
    assert "copy" not in str(transform.Sequential([RemoveCopies])(mod))
