"""Names of `tvm.relay`: walks over dataflow, loops, weights stored transposed, TVM's doors."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack import MirError, relay
from mirstack.api.relay.data_dep_optimization import simplify_fc_transpose
from mirstack.api.relay.loops import foreach, while_loop

FLOATS = np.random.default_rng(0).random((64, 32), dtype="float32")


def run(function: relay.Function, *args: Any) -> Any:
    return relay.create_executor("debug").evaluate(function)(*args).numpy()


def test_mixed_mode_walks_do_not_recurse() -> None:
    x = relay.var("x", shape=(2,))
    value: relay.Expr = x
    for _ in range(3000):
        value = relay.add(value, relay.const(1.0))

    class Rewriter(relay.MixedModeMutator):
        def rewrite_call(self, call: relay.Call, post: relay.Call) -> relay.Expr:
            return relay.subtract(*post.args) if call.op.name == "add" else post

        def rewrite_tuple(self, tup: relay.Tuple, post: relay.Tuple) -> relay.Expr:
            return relay.Tuple([*post.fields, x])

    class Counter(relay.MixedModeVisitor):
        calls = 0

        def visit_call(self, call: relay.Call) -> None:
            self.calls += 1
            super().visit_call(call)

    rewritten = Rewriter().visit(relay.Tuple([value, value]))
    assert relay.analysis.list_op_freqs(mirstack.IRModule.from_expr(rewritten)) == {"subtract": 3000}
    assert len(rewritten.fields) == 3 and rewritten[0] is rewritten[1]
    counter = Counter()
    counter.visit(relay.Function([x], value))
    assert counter.calls == 3000
    with pytest.raises(ValueError, match="visit_limit is an integer from 1 on"):
        relay.MixedModeVisitor(0)


def test_loops() -> None:
    i = relay.var("i", shape=(), dtype="int32")
    numbers = relay.var("numbers", shape=(relay.Any(), 1), dtype="int32")

    def body(i: Any, numbers: Any) -> list[Any]:
        return [i + relay.const(1), relay.concatenate([numbers, relay.reshape(i, (1, 1))], axis=0)]

    loop = while_loop(lambda i, numbers: relay.less(i, relay.const(4)), [i, numbers], body)
    first = relay.var("first", shape=(), dtype="int32")
    counted = relay.TupleGetItem(loop(first, relay.const(np.zeros((1, 1), "int32"))), 1)
    assert run(relay.Function([first], counted), np.array(1, "int32")).ravel().tolist() == [0, 1, 2, 3]

    total, rows = relay.var("total", shape=(32,)), relay.var("rows", shape=(64, 32))
    summed = foreach(rows, [total], lambda row, total: [total + row])
    called = summed(relay.const(0), relay.zeros((32,), "float32"))
    result = run(relay.Function([rows], relay.TupleGetItem(called, 1)), FLOATS)
    np.testing.assert_allclose(result, FLOATS.sum(0), rtol=1e-5)


@pytest.mark.parametrize("segments", [None, 4])
def test_segment_sum(segments: int | None) -> None:
    data, ids = relay.var("data", shape=(5, 2)), relay.var("ids", shape=(5,), dtype="int32")
    numbers, rows = FLOATS[:5, :2], np.array([0, 0, 1, 1, 3], "int32")
    wanted = np.zeros((4, 2), "float32")
    np.add.at(wanted, rows, numbers)
    found = run(relay.Function([data, ids], relay.segment_sum(data, ids, segments)), numbers, rows)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_weights_stored_transposed() -> None:
    x, w, v = relay.var("x", shape=(1, 64)), relay.var("w", shape=(64, 32)), relay.var("v", shape=(32, 4))
    hidden = relay.nn.relu(relay.nn.dense(x, relay.transpose(w, axes=[1, 0])))
    function = relay.Function([x, w, v], relay.nn.dense(hidden, relay.transpose(v, axes=[1, 0])))
    assert relay.analysis.search_fc_transpose(function) == ["w", "v"]
    params = {"w": FLOATS, "v": np.ascontiguousarray(FLOATS[:32, :4])}
    new, turned = simplify_fc_transpose.convert(function, params)
    assert "transpose" not in new.astext() and set(turned) == {"w.T", "v.T"}
    expected = run(function, FLOATS[:, :1].T, *params.values())
    np.testing.assert_allclose(run(new, FLOATS[:, :1].T, turned["w.T"], turned["v.T"]), expected, rtol=1e-5)
    module = relay.transform.SimplifyFCTranspose(["w"])(mirstack.IRModule.from_expr(function))
    assert [p.name_hint for p in module["main"].params] == ["x", "w.T", "v"]


def test_quantize_by_tvms_names() -> None:
    x, w = relay.var("x", shape=(1, 32)), relay.var("w", shape=(64, 32))
    module = mirstack.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    with pytest.raises(MirError, match="ranges follow from samples, and there is no dataset"):
        relay.quantize.quantize(module, {"w": FLOATS})
    with relay.quantize.qconfig(calibrate_mode="kl_divergence", skip_dense_layer=False):
        assert relay.quantize.current_qconfig().calibrate_mode == "kl_divergence"
        quantized = relay.quantize.quantize(module, {"w": FLOATS}, [{"x": FLOATS[:1]}, {"x": FLOATS[1:2]}])
    assert relay.quantize.current_qconfig().calibrate_mode == "global_scale"
    assert relay.analysis.list_op_freqs(quantized)["qnn.dense"] == 1
    with pytest.raises(MirError, match="qconfig has no setting 'nbit'"):
        relay.quantize.qconfig(nbit=8)


def test_other_names() -> None:
    assert relay.ShapeVar("n").kind == relay.TypeKind.ShapeVar
    assert relay.DataFlowPattern is relay.dataflow_pattern.DFPattern
    assert relay.pretty_print(relay.const(1)) == relay.const(1).astext(show_meta_data=False)
    assert relay.vision.nms.non_max_suppression and relay.vision.multibox.multibox_prior
    x = relay.var("x", shape=(2, 3, 4))
    reshaped: Any = relay.testing.run_infer_type(relay.reverse_reshape(x, (-1, 0))).checked_type
    assert reshaped.concrete_shape == (6, 4)
    assert relay.param_dict.load_param_dict(relay.param_dict.save_param_dict({"a": FLOATS})).keys() == {"a"}


def test_from_onnx_with_tvms_arguments() -> None:
    helper = library("onnx.helper", "onnx")
    TensorProto = helper.TensorProto
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    module, params = relay.frontend.from_onnx(helper.make_model(graph), {"x": (2, 3)})
    assert params == {} and module["main"].params[0].checked_type.concrete_shape == (2, 3)
