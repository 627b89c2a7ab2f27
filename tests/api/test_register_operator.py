"""Operators of Relay that a Python program registers."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack import relay, te, transform
from mirstack.lowering.driver.cache.file_digests import FileDigests
from mirstack.lowering.driver.source import SourceText
from mirstack.support.diagnostics import MirError

pytestmark = pytest.mark.usefixtures("no_extensions")


def test_an_operator_of_elements() -> None:
    gelu = mirstack.register_operator(
        "reg.gelu",
        ("x",),
        attributes={"slope": 1.702},
        element=lambda x, slope: x * te.sigmoid(x * slope),
        gradient=lambda use: [use.gradient * use.result],
        doc="x * sigmoid(slope * x)",
    )
    x = relay.var("x", shape=(3, 4))
    mod = mirstack.IRModule.from_expr(relay.Function([x], relay.nn.relu(gelu(x, slope=2.0))))
    array = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    reference = np.maximum(array / (1 + np.exp(-2.0 * array)), 0)
    for target in ("cpu", "interp"):
        np.testing.assert_allclose(mirstack.compile(mod, target)(array), reference, rtol=2e-6)
    assert str(mod).count("reg.gelu(%x, slope=2f)") == 1
    assert "def @main" in str(transform.FirstOrderGradient()(transform.InferType()(mod)))


def test_an_operator_of_tensors() -> None:
    mirstack.register_operator(
        "reg.halves",
        attributes={"count": int, "scales": [1.0, 2.0]},
        compute=lambda x, count, scales: [
            te.compute((count, *x.shape[1:]), lambda i, *rest: x(i, *rest) * scales[0], name="a"),
            te.compute(x.shape, lambda *i: x(*i) * scales[1], name="b"),
        ],
        kind="injective",
    )
    program = mirstack.parse("def @main(%x: Tensor[(4, 2), float32]) { reg.halves(%x, count=2) }")
    x = np.arange(8, dtype="float32").reshape(4, 2)
    for target in ("cpu", "interp"):
        first, second = mirstack.compile(program, target)(x)
        np.testing.assert_array_equal(first, x[:2])
        np.testing.assert_array_equal(second, 2 * x)
    with pytest.raises(MirError, match=r"reg\.halves needs the attribute 'count', an integer"):
        mirstack.parse("def @main(%x: Tensor[(4, 2), float32]) { reg.halves(%x) }")


def test_numpy_and_types() -> None:
    text = SourceText("def @main(%x: Tensor[(3), float32]) { reg.sorted(%x) }", "a.mir", None)
    assert text.key(FileDigests(None)) is not None
    mirstack.register_operator("reg.sorted", ("x",), type="identity", numpy=lambda x: np.sort(x))
    mod = mirstack.parse("def @main(%x: Tensor[(3), float32]) { reg.sorted(%x) }")
    assert list(mirstack.compile(mod, "interp")(np.array([2, 1, 3], "float32"))) == [1, 2, 3]
    assert text.key(FileDigests(None)) is None  # Code of Python has no identity.
    with pytest.raises(MirError, match=r"reg\.sorted has no tensor expression, so it cannot be compiled"):
        mirstack.compile(mod)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"operator nn\.mine: names in 'nn\.' are mirstack's"):
        mirstack.register_operator("nn.mine", element=lambda x: x)
    with pytest.raises(ValueError, match="operator mine: names without a namespace are mirstack's"):
        mirstack.register_operator("mine", element=lambda x: x)
    with pytest.raises(ValueError, match="it has a compute, and a function of elements: give one of them"):
        mirstack.register_operator("reg.two", element=lambda x: x, compute=lambda x: x)
    with pytest.raises(ValueError, match="attributes of the kind list cannot be required"):
        mirstack.register_operator("reg.list", element=lambda x: x, attributes={"a": list})
    with pytest.raises(MirError, match=r"operator reg\.none: it computes nothing"):
        mirstack.register_operator("reg.none")
    mirstack.register_operator("reg.once", element=lambda data: data)
    with pytest.raises(MirError, match=r"operator reg\.once: an extension that is loaded has defined it"):
        mirstack.register_operator("reg.once", element=lambda data: data)
