"""`relay.transform` beside the passes of the registry: gradients, recasting, passes on expressions, what TVM has as functions."""

from __future__ import annotations

import inspect
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import IRModule, relay, transform
from mirstack.passes.pass_info import pass_info
from mirstack.support.diagnostics import MirError

passes = relay.transform


def values(function: Any, *inputs: Any) -> Any:
    """What a function gives, interpreted."""
    return mirstack.compile(IRModule.from_expr(function), target="interp")(*inputs)


def var(name: str = "x", shape: tuple[int, ...] = (2, 3)) -> Any:
    return relay.var(name, shape=shape)


def count(expr: Any, name: str) -> int:
    return relay.analysis.list_op_freqs(IRModule.from_expr(expr)).get(name, 0)


# What TVM 0.16 documents: names, order and defaults of the options, and from which level a Sequential runs the pass.
# `constants_only` is ours.
_STRICT = "strict_math=False"
"""An option of ours, not TVM's: rules marked `fast` are left out."""
SIGNATURES = {
    "AlterOpLayout": ("cpu", 3), "BackwardFoldScaleAxis": ("constants_only=False", 3), "BatchingOps": ("", 0), "CanonicalizeCast": ("", 3),
    "CanonicalizeOps": (_STRICT, 3), "CombineParallelBatchMatmul": ("min_num_branches=3", 4),
    "CombineParallelConv2D": ("min_num_branches=3", 4), "CombineParallelDense": ("min_num_branches=3, to_batch=True", 4),
    "ConvertLayout": ("desired_layouts, skip_layers=()", 3), "DeadCodeElimination": ("inline_once=False, ignore_impurity=False", 1),
    "DefuseOps": ("", 3), "DynamicToStatic": ("", 2), "EliminateCommonSubexpr": ("fskip=None", 3),
    "EtaExpand": ("expand_constructor=False, expand_global_var=False", 1),
    "FakeQuantizationToInteger": ("hard_fail=False, use_qat=False, optional_qnn_ops=None", 0), "FastMath": (_STRICT, 4),
    "FirstOrderGradient": ("", 0), "FlattenAtrousConv": (_STRICT, 0), "FoldConstant": ("fold_qnn=False", 2),
    "FoldExplicitPadding": (_STRICT, 0), "FoldScaleAxis": ("", 0), "ForwardFoldScaleAxis": ("constants_only=False", 3),
    "FuseOps": ("fuse_opt_level=-1, max_depth=256", 0), "InferType": ("fresh=False", 0), "Inline": ("", 1),
    "LambdaLift": ("", 1), "Legalize": ("legalize_map_attr_name=FTVMLegalize", 1), "MergeComposite": ("pattern_table", 0),
    "PartialEvaluate": ("", 1), "RemoveUnusedFunctions": ("entry_functions=None", 1), "SimplifyExpr": (_STRICT, 0),
    "SimplifyInference": (_STRICT, 0), "SplitArgs": ("max_function_args", 1), "ToANormalForm": ("", 1),
    "ToBasicBlockNormalForm": ("", 1), "ToGraphNormalForm": ("", 1),
    "ToMixedPrecision": ("mixed_precision_type=float16, missing_op_mode=1, keep_orig_output_dtype=False", 0),
}  # fmt: skip
GIVEN: dict[str, Any] = {
    "ConvertLayout": {"nn.conv2d": ["NHWC", "default"]},
    "MergeComposite": [],
    "SplitArgs": 3,
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_and_levels_are_tvms(name: str) -> None:
    make = getattr(passes, name)
    assert name in dir(passes)
    parameters = inspect.signature(make).parameters.values()
    shown = [p.name if p.default in (p.empty, "") else f"{p.name}={p.default}" for p in parameters]
    assert ", ".join(shown) == SIGNATURES[name][0]
    made = make(GIVEN[name]) if name in GIVEN else make()
    assert (made.info.name, made.info.opt_level) == (name, SIGNATURES[name][1])


def test_what_runs_before() -> None:
    assert pass_info("div-to-mul").required == ("InferType", "FoldConstant")
    assert pass_info("fake-quantization-to-integer").required == ("InferType", "DivToMul")
    assert pass_info("to-mixed-precision").required == ()
    assert transform.Sequential([], 0, "s", ["InferType"], False).info.required == ("InferType",)
    assert repr(passes.FastMath()) == "ConfiguredPass(fast-math)"


def test_gradients() -> None:
    x, w = var(), var("w", (4, 3))
    dense = relay.Function([x, w], relay.sum(relay.nn.dense(x, w)))
    x0, w0 = np.arange(6, dtype="float32").reshape(2, 3), np.ones((4, 3), "float32")
    for mode in ("first_order", "higher_order"):
        result, (dx, dw) = values(passes.gradient(dense, mode=mode), x0, w0)
        assert np.allclose(result, (x0 @ w0.T).sum())
        assert np.allclose(dx, np.full((2, 3), 4)) and np.allclose(dw, np.tile(x0.sum(0), (4, 1)))


def test_gradients_of_higher_order() -> None:
    x, y = var(), var("y")
    square = relay.Function([y], y * y)
    x0 = np.arange(6, dtype="float32").reshape(2, 3)
    cell = relay.var("cell")
    through_a_cell = relay.Let(cell, relay.RefCreate(x), relay.RefRead(cell) * relay.const(3.0))
    mod = IRModule()
    name = relay.GlobalVar("square")
    mod[name] = relay.Function([y], y * y, relay.TensorType((2, 3)))
    for expr, given, derivative in (
        (relay.Function([x], relay.Call(square, [x])), None, 2 * x0),
        (relay.Function([x], through_a_cell), None, np.full((2, 3), 3)),
        (relay.Function([x], name(x) + x), mod, 2 * x0 + 1),
        (name, mod, 2 * x0),
    ):
        _, (dx,) = values(passes.gradient(expr, given), x0)
        assert np.allclose(dx, derivative)
    assert [v.name_hint for v in mod.get_global_vars()] == ["square"]


def test_errors_of_gradients() -> None:
    x, c = var(), relay.var("c", shape=(), dtype="bool")
    function = relay.Function([x], relay.exp(x))
    with pytest.raises(MirError, match="gradient has no mode 'second_order'") as error:
        passes.gradient(function, mode="second_order")
    assert 'it is "first_order" or "higher_order"' in str(error.value)
    with pytest.raises(MirError, match="gradient in mode first_order takes no module") as error:
        passes.gradient(function, IRModule(), "first_order")
    assert "FirstOrderGradient() is the pass on modules" in str(error.value)
    with pytest.raises(MirError, match="@f is a name of a function in a module") as error:
        passes.gradient(relay.GlobalVar("f"))
    assert "gradient(expr, mod) takes the module" in str(error.value)
    with pytest.raises(MirError, match=r"takes functions of operators and tuples only, not of 'relay\.if'"):
        passes.gradient(relay.Function([c, x], relay.If(c, x, relay.exp(x))))
    with pytest.raises(MirError, match=rf"{__file__}:\d+:1: error: cumprod has no gradient") as error:
        passes.gradient(relay.Function([x], relay.cumprod(x, axis=0)))
    assert "the result depends on it; docs/operators.md lists the operators that have one" in str(error.value)


def convolutions() -> Any:
    first = relay.nn.conv2d(var("a", (1, 3, 8, 8)), var("k", (4, 3, 3, 3)))
    return relay.nn.conv2d(relay.nn.relu(first), var("l", (4, 4, 3, 3)))


def test_recast() -> None:
    expr = convolutions()
    text = str(passes.recast(expr, "int8", "int32"))
    assert text.count('cast(%a, dtype="int8")') == 1 and text.count('out_dtype="int32"') == 2
    assert text.count('dtype="float32")') == 2 and relay.analysis.free_vars(passes.recast(expr, "int8", "int32")) == (
        relay.analysis.free_vars(expr)
    )
    function = relay.Function(relay.analysis.free_vars(expr), expr)
    first = str(passes.recast(function, "int8", "int32", skip_layers=[-1]))
    assert "cast(%a" in first and "cast(%l" not in first
    second = passes.recast(IRModule.from_expr(expr), "int8", "int32", skip_layers=[0])
    assert "cast(%l" in str(second) and "cast(%a" not in str(second)
    assert passes.InferType()(second)["main"].ret_type == relay.TensorType((1, 4, 4, 4), "float32")
    joined = passes.recast(relay.concatenate([var(), var("y")], 0), "float16", "float16", ["concatenate"])
    assert count(joined, "cast") == 3
    split = relay.split(var(shape=(4, 3)), 2).astuple()
    through = passes.recast(relay.concatenate(split, 0), "float16", "float16", ["concatenate"])
    assert count(through, "cast") == 3
    with pytest.raises(MirError, match=r"recast: there is no operator 'conv'"):
        passes.recast(expr, "int8", "int32", ["conv"])
    with pytest.raises(MirError, match="recast: split gives no tensor to be cast back"):
        passes.recast(split, "float16", "float16", ["split"])


def test_equal_expressions_but_those_to_be_skipped() -> None:
    x = var()
    expr = relay.exp(x) + relay.exp(x) + relay.log(x) + relay.log(x)
    mod = IRModule.from_expr(expr)
    kept = passes.EliminateCommonSubexpr(lambda e: isinstance(e, relay.Call) and e.op.name == "log")(mod)
    assert relay.analysis.list_op_freqs(kept) == {"exp": 1, "log": 2, "add": 3}
    assert relay.analysis.list_op_freqs(passes.EliminateCommonSubexpr()(mod)) == {"exp": 1, "log": 1, "add": 3}
    parts = relay.split(x, 3, axis=1).astuple()
    twice = relay.TupleGetItem(parts, 1) + relay.TupleGetItem(parts, 1) + relay.TupleGetItem(parts, 2)
    merged = passes.EliminateCommonSubexpr(lambda e: False)(IRModule.from_expr(twice))
    assert str(merged).count("%0.1") == 1 or str(merged).count(".1;") == 1
    random = relay.Tuple([relay.zeros((2,), "float32"), relay.zeros((2,), "float32")])
    assert count(passes.EliminateCommonSubexpr(lambda e: False)(IRModule.from_expr(random))["main"], "zeros") == 2


def test_passes_on_expressions() -> None:
    q = relay.var("q", shape=())
    folded = passes.FoldConstantExpr(relay.const(1.0) + relay.const(2.0) + q, IRModule())
    assert relay.analysis.free_vars(folded) == [q] and count(folded, "add") == 1
    mod = IRModule()
    two = relay.GlobalVar("two")
    mod[two] = relay.Function([], relay.const(2.0) + relay.const(0.0), relay.scalar_type("float32"))
    assert "@two()" in str(passes.FoldConstantExpr(two() + q, mod))
    assert isinstance(passes.ToANormalFormExpr(relay.exp(relay.log(var()))), relay.Let)
    function = passes.ToANormalFormExpr(relay.Function([q], relay.exp(q)))
    assert isinstance(function, relay.Function) and isinstance(function.body, relay.Let)
    assert passes.InferTypeLocal(relay.nn.dense(var(), var("w", (4, 3)))) == relay.TensorType((2, 4), "float32")
    with pytest.raises(MirError, match=r"nn\.dense"):
        passes.InferTypeLocal(relay.nn.dense(var(), var("w", (4, 5))))


def test_passes_that_are_several() -> None:
    x, s = var("x", (2, 3)), var("s", (3,))
    mod = IRModule.from_expr(relay.nn.dense(x * s, var("w", (4, 3))))
    with transform.PassContext(opt_level=3):
        text = str(passes.FoldScaleAxis()(mod))
    assert "multiply(%w" in text and "multiply(%x" not in text
    branches = relay.Tuple([relay.nn.dense(x, var(name, (4, 3))) for name in "abc"])
    for level, products in ((4, 1), (3, 0)):
        with transform.PassContext(opt_level=level):
            batched = passes.BatchingOps()(IRModule.from_expr(branches))
        assert relay.analysis.list_op_freqs(batched).get("nn.batch_matmul", 0) == products


def test_layers_that_keep_their_layout() -> None:
    mod = IRModule.from_expr(convolutions())
    convert = passes.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    assert str(convert(mod)).count('data_layout="NHWC"') == 2
    with passes.LayoutConfig(skip_layers=[0]):
        later = str(convert(mod))
        with passes.LayoutConfig():
            assert str(convert(mod)).count('data_layout="NHWC"') == 2
    assert later.count('data_layout="NHWC"') == 1 and "nn.conv2d(%a, %k, padding=" in later
    assert str(passes.ConvertLayout("nn.conv2d:NHWC,default", skip_layers=[0])(mod)) == later
    with pytest.raises(MirError, match="convert-layout: skip-layers are counted from 0"):
        passes.ConvertLayout("nn.conv2d:NHWC,default", skip_layers=[-1])(mod)


def test_legalizations_by_name() -> None:
    assert passes.Legalize().info.name == "Legalize"
    assert passes.Legalize("FTVMQnnLegalize").info.name == "QnnLegalize"
    assert passes.Legalize("FTVMQnnCanonicalize").info.name == "QnnCanonicalizeOps"
    with pytest.raises(MirError, match="no operator has rules under the name 'FTVM'") as error:
        passes.Legalize("FTVM")
    assert "there are rules under FTVMLegalize, FTVMQnnLegalize, FTVMQnnCanonicalize" in str(error.value)


def test_other_batch() -> None:
    x, w = var(), var("w", (4, 3))
    mod = IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    larger = passes.InferType()(passes.ChangeBatch({x: 0}, 8)(mod))
    assert larger["main"].ret_type == relay.TensorType((8, 4), "float32")
    assert passes.ChangeBatch({x: 0}).batch_size == 16
    with pytest.raises(MirError, match="%x has no dimension 2 to be a batch"):
        passes.ChangeBatch({x: 2})(mod)


def test_places_in_the_text() -> None:
    span = passes.AnnotateSpans()(IRModule.from_expr(relay.exp(var())))["main"].body.span
    assert span.source_name == "GeneratedSource" and span.line > 1


def test_functions_without_functions_as_values() -> None:
    real = relay.scalar_type("float32")
    f, v = relay.var("f", relay.FuncType([real], real)), relay.var("v", real)
    k, z = relay.var("k", real), relay.var("z", real)
    mod = IRModule()
    apply = relay.GlobalVar("apply")
    mod[apply] = relay.Function([f, v], f(v), real)
    result = passes.Defunctionalization(relay.Function([z], apply(relay.Function([k], relay.exp(k)), z)), mod)
    assert "fn (%k" not in str(result)
    assert len(mod.get_global_type_vars()) == 1 and len(mod.get_global_vars()) == 3
    mod["main"] = result
    ran = mirstack.compile(mod, target="interp")(np.float32(1))
    assert np.allclose(ran, np.exp(1))


def test_text_of_an_expression() -> None:
    weight = relay.const(np.ones((2, 2), "float32"))
    expr = relay.nn.dense(var(shape=(2, 2)), weight)
    assert "#[metadata]" in relay.astext(expr) and "#[metadata]" not in relay.astext(expr, show_meta_data=False)


def test_calls_of_any_arguments() -> None:
    pattern = relay.dataflow_pattern.is_op("add")(None)
    assert pattern.match(var() + var("y")) and not pattern.match(var() * var("y"))
    with pytest.raises(TypeError, match="None stands for any arguments, and then it is the only one"):
        relay.dataflow_pattern.is_op("add")(None, pattern)
    anything = relay.dataflow_pattern.wildcard()
    any_field = relay.dataflow_pattern.TupleGetItemPattern(anything)
    assert any_field.match(relay.TupleGetItem(relay.Tuple([var(), var("y")]), 1))


def test_what_is_fused_is_what_is_written_by_hand() -> None:
    """FuseOps gives the function that one would build with `with_attr`, whatever its variables are called."""
    a, b = relay.var("a", shape=(6, 4)), relay.var("b", shape=(4,))
    before = relay.Function([a, b], relay.tanh(relay.multiply(a, b)))
    fused = passes.InferType()(passes.FuseOps(fuse_opt_level=2)(passes.InferType()(IRModule.from_expr(before))))
    p, q = relay.var("p", shape=(6, 4)), relay.var("q", shape=(4,))
    kernel = relay.Function([p, q], relay.tanh(relay.multiply(p, q))).with_attr("Primitive", 1)
    u, v = relay.var("u", shape=(6, 4)), relay.var("v", shape=(4,))
    by_hand = passes.InferType()(IRModule.from_expr(relay.Function([u, v], relay.Call(kernel, [u, v]))))
    assert mirstack.ir.structural_equal(fused["main"], by_hand["main"])
    apart = passes.FuseOps(fuse_opt_level=0)(IRModule.from_expr(before))
    assert str(apart).count("Primitive=1") == 2
    assert not mirstack.ir.structural_equal(apart["main"], by_hand["main"])


def test_constants_are_folded_unless_that_is_disabled() -> None:
    weights = relay.const(np.array([[1, 2], [3, 4]], "float32"))
    x = relay.var("x", relay.TensorType([2, 2], "float32"))
    scaled = relay.subtract(relay.transpose(weights), relay.const(1, "float32"))
    mod = IRModule.from_expr(relay.Function([x], relay.nn.dense(x, scaled)))
    folded = passes.FoldConstant()(mod)
    assert relay.analysis.list_op_freqs(folded) == {"nn.dense": 1}
    (constant,) = relay.analysis.all_constants(folded["main"])
    assert np.array_equal(constant.data.numpy(), [[0, 2], [1, 3]])
    with transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
        kept = transform.Sequential([passes.InferType(), passes.FoldConstant()])(mod)
    assert relay.analysis.list_op_freqs(kept) == {"transpose": 1, "subtract": 1, "nn.dense": 1}
    assert kept["main"].ret_type == relay.TensorType([2, 2], "float32")
