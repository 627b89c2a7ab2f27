"""Rules that programs register for operators: `Legalize`, `AlterOpLayout`, `TempOpAttr`."""

from __future__ import annotations

from typing import Any

import mirstack
import pytest
from mirstack import MirError, ir, relay
from mirstack.api.relay import op, testing, transform

x = relay.var("x", shape=(1, 64, 8, 8))
w = relay.var("w", shape=(64, 64, 3, 3))


def convolution(data: relay.Expr = x) -> relay.Call:
    return relay.nn.conv2d(data, w, channels=64, kernel_size=(3, 3), padding=(1, 1))


def run(module_pass: Any, value: relay.Expr) -> relay.Function:
    found = module_pass(mirstack.IRModule.from_expr(relay.Function([x, w], value)))["main"]
    assert isinstance(found, relay.Function)
    return found


def expected(value: relay.Expr) -> relay.Function:
    return run(mirstack.transform.InferType(), value)


def test_legalize_by_a_registered_rule() -> None:
    def rule(attrs: Any, inputs: Any, types: Any) -> relay.Expr:
        assert [type.concrete_shape for type in types] == [(1, 64, 8, 8), (64, 64, 3, 3), (1, 64, 8, 8)]
        return relay.nn.conv2d(inputs[0], relay.multiply(relay.const(2.0), inputs[1]), **attrs)

    doubled = relay.nn.conv2d(x, relay.multiply(relay.const(2.0), w), channels=64, kernel_size=(3, 3), padding=(1, 1))
    with testing.TempOpAttr("nn.conv2d", "FTVMLegalize", rule):
        found = run(transform.Legalize(), relay.nn.relu(convolution()))
        assert op.get("nn.conv2d").get_attr("FTVMLegalize") is rule
    ir.assert_structural_equal(found, expected(relay.nn.relu(doubled)))
    assert not op.get("nn.conv2d").has_attr("FTVMLegalize")
    with testing.TempOpAttr("nn.conv2d", "FTVMLegalize", lambda *_: None):
        ir.assert_structural_equal(run(transform.Legalize(), convolution()), expected(convolution()))


def test_layouts_of_a_registered_rule_run_on() -> None:
    def rule(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> relay.Expr:
        assert tinfos[0].shape[1] == 64 and tinfos[1].dtype == "float32" and out_type.dtype == "float32"
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return relay.nn.conv2d(*inputs, **{**attrs, **layouts})

    with testing.TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", rule):
        found = run(transform.AlterOpLayout(), convolution(relay.nn.relu(convolution())))
    counts = relay.analysis.list_op_freqs(mirstack.IRModule.from_expr(found))
    assert counts == {"layout_transform": 3, "nn.conv2d": 2, "nn.relu": 1}
    blocked = run(transform.AlterOpLayout("haswell"), convolution())
    assert "contrib_conv2d_NCHWc" in blocked.astext()


def test_other_expressions_replace_the_call() -> None:
    def rule(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> relay.Expr:
        return relay.nn.conv2d(inputs[0], relay.multiply(inputs[1], relay.const(2.0)), **attrs)

    with testing.TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", rule):
        found = run(transform.AlterOpLayout(), convolution())
    doubled = relay.nn.conv2d(x, relay.multiply(w, relay.const(2.0)), channels=64, kernel_size=(3, 3), padding=(1, 1))
    ir.assert_structural_equal(found, expected(doubled))


def test_registration() -> None:
    relu = op.get("nn.relu")

    @op.register_legalize("nn.relu")
    def rule(attrs: Any, inputs: Any, types: Any) -> relay.Expr:
        return relay.maximum(inputs[0], relay.const(0.0))

    try:
        ir.register_op_attr("nn.relu", "FTVMLegalize", lambda *_: None, level=5)
        assert relu.get_attr("FTVMLegalize") is rule
        found = run(transform.Legalize(), relay.nn.relu(convolution()))
        assert "maximum" in found.astext()
        relu.set_attr("FTVMLegalize", lambda *_: 3)
        with pytest.raises(MirError, match=r"the rule of nn.relu returns an expression or None, not 3"):
            run(transform.Legalize(), relay.nn.relu(convolution()))
    finally:
        relu.reset_attr("FTVMLegalize")
    assert relu.get_attr("TOpPattern") == op.OpPattern.ELEMWISE
    with pytest.raises(MirError, match="no pass asks an operator for 'FPrimalGradient'"):
        ir.register_op_attr("nn.relu", "FPrimalGradient", print)
    with pytest.raises(MirError, match="no operator has rules under the name 'FTVMTestLegalize'"):
        transform.Legalize("FTVMTestLegalize")
