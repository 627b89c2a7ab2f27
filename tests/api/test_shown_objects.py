"""What a person sees of an object in a terminal and in a notebook says what it is."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import ir, nd, relay, rules, te, tir, transform
from mirstack.api.ir import instrument
from mirstack.api.relay import dataflow_pattern

MODULE = "def @main(%x: Tensor[(2, ?), float32]) { nn.relu(%x) }"

NAMESPACES = ("", "arith", "ir", "ir.instrument", "nd", "relay", "relay.analysis", "relay.dataflow_pattern", "relay.op", "relay.transform",
              "rules", "runtime", "script", "te", "tir", "tir.transform", "topi", "transform")  # fmt: skip

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
FUNCTION = re.compile(r"<(function|bound method) \S+ at 0x[0-9a-f]+>")


class NoCallback(dataflow_pattern.DFPatternCallback):
    """A rewrite without a pattern."""


class Watch(instrument.PassInstrument):
    """An instrument of a user."""


@cache
def objects() -> dict[str, Any]:
    """Returns one object of each class that people hold in their hands, by what it is shown as."""
    return {**_programs(), **_rules(), **_te(), **_schedules(), **_relay(), **_passes()}


def _module() -> mirstack.IRModule:
    return mirstack.IRModule.of_op(mirstack.parse(MODULE))


def _programs() -> dict[str, Any]:
    module = _module()
    built = mirstack.build(module)
    executable = mirstack.compile(module)
    return {
        "IRModule(@main)": module,
        "Executable(main(x: float32[2, ?]))": executable,
        "Param(name='x', shape=(2, '?'), dtype='float32'": executable.params[0],
        "InterpretedExecutable": mirstack.compile(module, target="interp"),
        "Module(main)": built,
        "PackedFunc(main(x))": built["main"],
        "NDArray(array([1, 2]": nd.array(np.array([1, 2], "int32")),
        "cpu(0)": mirstack.cpu(),
        "BenchmarkResult(": built.time_evaluator("main", number=1)(np.ones((2, 3), "float32")),
        "llvm -keys=cpu": mirstack.target.Target("llvm"),
    }


def _profile() -> Any:
    return mirstack.compile(_module(), profile=True).profile(np.ones((2, 3), "float32"), calls=2)


def _rules() -> dict[str, Any]:
    x, y = rules.values("x y")
    product = rules.op.multiply(x, y)
    rule = rules.rewrite("fma", rules.op.add(product, 1), x, where=[rules.one_use(product)])
    return {
        "%x": x,
        "multiply(%x, %y)": product,
        "%m = multiply(%x, %y)": product.named("m"),
        "not (is_float(%x) or %x.rank == 2) and $a in [1, -1]": ~(rules.is_float(x) | (x.rank == 2))
        & rules.attr("a").isin([1, -1]),
        "%x.shape[0:2]": x.shape[0:2],
        "(%x + 1) * 2": (x + 1) * 2,
        "%x if is_float(%x) else _": rules.ifelse(rules.is_float(x), x, rules.any_value()),
        "(%x,).0": rules.tuple_of(x).field(0),
        "%xs...": rules.run("xs"),
        "$s = %x.dtype": rules.let("s", x.dtype, attribute=True),
        "%s = const(1.0, %x.dtype)": rules.let("s", rules.const(1.0, x.dtype)),
        "fold(nn.dense(%x, %y, units=$u, **$rest))": rules.fold(
            rules.op.nn.dense(x, y, rules.rest("rest"), units=rules.attr("u"))
        ),
        "**_": rules.rest(""),
        "nn.dense": rules.op.nn.dense,
        "[add, subtract]$op": rules.one_of("add", "subtract", capture="op"),
        "$op(%x)": rules.one_of(capture="op")(x),
        "every op": rules.op,
        "RewriteOp(@fma)": rule,
        "RulesetOp(@both)": rules.ruleset("both", [rule]),
    }


def _te() -> dict[str, Any]:
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    schedule = te.create_schedule(b.op)
    builder = te.ir_builder.create()
    pointer = builder.allocate("float32", (4,), name="buf")
    return {
        "Tensor(shape=[4, 8], name=A, dtype=float32)": a,
        "PlaceholderOp(A)": a.op,
        "ComputeOp(B)": b.op,
        "k": k,
        "A[0, 1]": a[0, 1],
        "n": te.var("n"),
        "Schedule(A, B)": schedule,
        "stage(B)": schedule[b],
        "AxisReducer(sum)": te.sum,
        "IRBuilder(1 statement)": builder,
        "BufferVar(Buffer(buf: float32[4]))": pointer,
        'buf = T.allocate([4], "float32", "global")': builder.get(),
    }


def _schedules() -> dict[str, Any]:
    a = te.placeholder((4,), name="A")
    function = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1, name="B")])
    schedule = tir.Schedule(function)
    block = schedule.get_block("B")
    found: dict[str, Any] = {
        "PrimFunc(main)": function,
        "Schedule(main)": schedule,
        "b": block,
        "[l": schedule.get_loops(block),
        "[v": schedule.sample_perfect_tile(schedule.get_loops(block)[0], n=2),
        "# from tvm import tir\ndef apply_trace": schedule.trace,
        "State(main)": schedule.state,
    }
    with pytest.raises(mirstack.MirError) as refused:
        schedule.get_block("nope")
    return {**found, "ScheduleError(": refused.value}


def _relay() -> dict[str, Any]:
    function = _module()["main"]
    x = relay.var("x")
    data = relay.GlobalTypeVar("List")
    a = relay.TypeVar("A")
    nil = relay.Constructor("Nil", [], data)
    cons = relay.Constructor("Cons", [a, data(a)], data)
    some = relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternWildcard()])
    with pytest.raises(mirstack.MirError) as unknown:
        mirstack.parse(MODULE.replace("relu", "reluu"))
    return {
        "fn (%x: Tensor[(2, ?), float32]": function,
        "Op(nn.relu)": ir.Op.get("nn.relu"),
        "Attrs(axis=1)": relay.nn.softmax(x, axis=1).attrs,
        "1f": relay.const(1.0),
        "@main": relay.GlobalVar("main"),
        "Tensor[(2, 3), float32]": relay.TensorType((2, 3)),
        "Span(": function.span,
        "Cons": cons,
        "type List[A] { Nil, Cons(A, List[A]) }": relay.TypeData(data, [a], [nil, cons]),
        "Cons(%x, _)": some,
        "(_,)": relay.PatternTuple([relay.PatternWildcard()]),
        "Nil => 1f": relay.Clause(relay.PatternConstructor(nil), relay.const(1.0)),
        "BlockBuilder(IRModule(@main))": relay.BlockBuilder(_module()),
        "ExprVisitor()": relay.ExprVisitor(),
        "add(*, constant)": dataflow_pattern.wildcard() + dataflow_pattern.is_constant(),
        "NoCallback(no pattern)": NoCallback(),
        "MirError(": unknown.value,
        "Diagnostic(": unknown.value.diagnostics[0],
    }


def _passes() -> dict[str, Any]:
    with mirstack.timing() as spent:
        _module()
    return {
        "ConfiguredPass(fuse-ops)": relay.transform.FuseOps(),
        "Sequential(": transform.Sequential([relay.transform.FuseOps()]),
        "FunctionPass(": transform.function_pass(opt_level=1)(lambda function, _, __: function),
        "ModulePass(": transform.module_pass(opt_level=1)(lambda module, _: module),
        "PassInfo(": relay.transform.FuseOps().info,
        "PassContext(opt_level=3, disabled_pass=['FuseOps'], instruments=[Watch()])": transform.PassContext(
            opt_level=3, disabled_pass=["FuseOps"], instruments=[Watch()]
        ),
        "LayoutConfig(skip_layers=[0])": relay.transform.LayoutConfig([0]),
        "VerifyEach()": instrument.VerifyEach(),
        "PrintAfterAll()": instrument.PrintAfterAll(),
        "DumpIR(dump_dir='ir'": instrument.DumpIR("ir"),
        "CheckEach(seed=0": instrument.CheckEach(0),
        "Span(name=''": spent,
    }


def test_no_object_is_shown_by_its_address():
    for shown, each in objects().items():
        assert not ADDRESS.search(repr(each)), shown
        assert not ADDRESS.search(str(each)), shown
        assert repr(each).startswith(shown) or type(each).__name__ == shown, repr(each)


def test_a_profile_shows_its_table():
    profile = _profile()
    assert re.fullmatch(r"Profile\(main: \S+ ms a call, 1 kernel, 2 calls\)", repr(profile))
    html = profile._repr_html_()
    assert html.startswith("<table><caption>main: ") and "<td>fused_nn_relu</td>" in html and "<td>total</td>" in html


def _public() -> Iterator[tuple[str, Any]]:
    """Yields all names of the public modules, and what they are."""
    for space in NAMESPACES:
        module = importlib.import_module(f"mirstack.{space}".rstrip("."))
        # Names that are imported at first use are not all in `dir`.
        for name in sorted({*dir(module), *getattr(module, "__all__", ())}):
            if not name.startswith("_"):
                yield f"{module.__name__}.{name}", getattr(module, name)


def test_no_public_value_is_shown_by_its_address():
    """Functions are shown as Python shows them, by name; of everything else an address says nothing."""
    for name, value in _public():
        text = FUNCTION.sub("", repr(value))
        assert inspect.ismodule(value) or not ADDRESS.search(text), f"{name} is shown as {text}"


WITHOUT_OBJECTS = ("ArrayHolder", "IndexMap", "IntSet", "IterMapExpr", "ir_builder")
"""Base classes of arrays, sets and iteration maps, and classes that only name a constant and a function: nobody makes objects of them."""


def test_every_public_class_says_how_it_is_shown():
    for name, value in _public():
        if inspect.isclass(value) and value.__module__.startswith("mirstack") and value.__name__ not in WITHOUT_OBJECTS:
            assert value.__repr__ is not object.__repr__, name


def test_large_expressions_of_rules_are_shown_in_part():
    deep = wide = rules.values("x")
    for _ in range(5_000):
        deep = rules.op.exp(deep)
    for _ in range(60):
        wide = rules.op.add(wide, wide)
    for shown in (repr(deep), repr(wide)):
        assert "%…" in shown and len(shown) < 10_000


def test_functions_of_rules_have_names():
    assert rules.one_use.__name__ == "one_use"
    assert "one_use" in repr(rules.one_use) and rules.one_use.__doc__


@pytest.mark.parametrize("shown", ["IRModule(@main)", "Executable(main(x: float32[2, ?]))", "Schedule(main)"])
def test_notebooks_show_text_and_tables(shown: str):
    html = objects()[shown]._repr_html_()
    assert html.startswith(("<pre>", "<table>")) and "main" in html
    assert "%x: Tensor[(2, ?)" in html or "<td>(2, ?)</td>" in html or "T.Buffer((4,)" in html


def test_notebooks_show_rules_as_their_text():
    found: Mapping[str, Any] = _rules()
    rule = "rewrite @fma { add(%v0 = multiply(%x, %y), 1) =&gt; %x where one_use(%v0) }"
    assert found["RewriteOp(@fma)"]._repr_html_() == f"<pre>{rule}</pre>"
    assert found["RulesetOp(@both)"]._repr_html_() == f"<pre>ruleset @both {{\n  {rule}\n}}</pre>"


def test_notebooks_find_no_methods_in_expressions_of_rules():
    """They ask every object for methods; an expression has a member for each other name."""
    assert not hasattr(rules.values("x"), "_repr_html_") and not hasattr(rules.op, "_ipython_display_")


def test_markup_in_names_is_escaped():
    text = "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) } // <script>\n"
    module = mirstack.IRModule.of_op(mirstack.parse(text))
    assert "<script>" not in module._repr_html_()
    from mirstack.support.notebook import table_html, text_html

    assert text_html("a < b & c") == "<pre>a &lt; b &amp; c</pre>"
    assert "<td>&lt;b&gt;</td>" in table_html("t", ["c"], [["<b>"]])
