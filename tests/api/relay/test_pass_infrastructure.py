"""Passes from Python: contexts, sequences, passes of functions, instruments, tracing and explaining."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import pytest
from mirstack import ir, relay, transform
from mirstack.api.ir.named_passes import make_pass
from mirstack.passes.pass_info import camel_case, pass_info
from mirstack.passes.registry import PASSES
from mirstack.support.diagnostics import MirError

instrument = ir.instrument


def program() -> mirstack.IRModule:
    x = relay.var("x", shape=(2,))
    return mirstack.IRModule.from_expr(relay.exp(relay.add(x, relay.add(relay.const(1.0), relay.const(2.0)))))


class Names(instrument.PassInstrument):
    """Notes what runs."""

    def __init__(self, *kept_out: str):
        self.seen: list[str] = []
        self.kept_out = kept_out

    def enter_pass_ctx(self) -> None:
        self.seen.append("enter")

    def exit_pass_ctx(self) -> None:
        self.seen.append("exit")

    def should_run(self, mod: mirstack.IRModule, info: transform.PassInfo) -> bool:
        return info.name not in self.kept_out

    def run_before_pass(self, mod: mirstack.IRModule, info: transform.PassInfo) -> None:
        assert isinstance(mod, mirstack.IRModule)
        self.seen.append(info.name)


def test_names_of_all_passes() -> None:
    assert camel_case("to-a-normal-form") == "ToANormalForm"
    assert camel_case("combine-parallel-conv2d") == "CombineParallelConv2D"
    names = [camel_case(entry.name) for entry in PASSES]
    assert len(set(names)) == len(names)
    for name in names:
        assert callable(getattr(transform, name))
        assert name in dir(transform)
    assert "FuseOps" in dir(relay.transform) and "VectorizeLoop" not in dir(relay.transform)
    with pytest.raises(AttributeError, match="has no pass 'Fuse'"):
        transform.Fuse  # noqa: B018
    with pytest.raises(AttributeError, match="has no pass 'VectorizeLoop'"):
        relay.transform.VectorizeLoop  # noqa: B018
    with pytest.raises(MirError, match="there is no pass 'FuseOp'; did you mean 'FuseOps'"):
        make_pass("FuseOp")


def test_levels_and_requirements_are_tvms() -> None:
    assert (pass_info("fold-constant").opt_level, pass_info("fuse-ops").opt_level) == (2, 0)
    assert pass_info("eliminate-common-subexpr").required == ("InferType",)
    assert transform.FuseOps(fuse_opt_level=1).info.name == "FuseOps"
    assert str(transform.FuseOps(1, max_depth=3).info) == "fuse-ops{fuse_opt_level=1 max_depth=3}"


@pytest.mark.parametrize(
    ("context", "folds"),
    [
        ({}, True),
        ({"opt_level": 1}, False),
        ({"opt_level": 1, "required_pass": ["FoldConstant"]}, True),
        ({"opt_level": 3, "disabled_pass": ["FoldConstant"]}, False),
        ({"opt_level": 3, "disabled_pass": ["fold-constant"]}, False),
        ({"required_pass": ["FoldConstant"], "disabled_pass": ["FoldConstant"]}, False),
    ],
)
def test_sequential_runs_what_the_context_enables(context: dict[str, Any], folds: bool) -> None:
    names = Names()
    with transform.PassContext(**context, instruments=[names]):
        result = transform.Sequential([transform.FoldConstant(), transform.FuseOps()])(program())
    assert (relay.analysis.list_op_freqs(result)["add"] == 1) is folds
    expected = ["enter", "sequential", *(["FoldConstant"] if folds else []), "InferType", "FuseOps", "exit"]
    assert names.seen == expected


def test_a_pass_leaves_its_module_alone() -> None:
    module = program()
    before = str(module)
    transform.Sequential([transform.InferType(), transform.FoldConstant(), transform.FuseOps()])(module)
    assert str(module) == before


def test_contexts_nest() -> None:
    assert transform.PassContext.current().opt_level == 2
    with transform.PassContext(opt_level=3) as outer:
        assert transform.PassContext.current() is outer
        with transform.PassContext(opt_level=0):
            assert transform.PassContext.current().opt_level == 0
        assert transform.PassContext.current() is outer
    assert transform.PassContext.current().opt_level == 2


def test_settings() -> None:
    with transform.PassContext(opt_level=0):
        assert str(transform.FuseOps()(program())).count("Primitive=1") == 3
    with transform.PassContext(config={"relay.FuseOps.max_depth": 1}):
        assert str(transform.FuseOps()(program())).count("Primitive=1") > 1
    assert str(transform.FuseOps(fuse_opt_level=-1)(program())).count("Primitive=1") == 1
    with pytest.raises(MirError, match=r"no setting 'relay.FuseOps.depth'; did you mean 'relay.FuseOps.max_depth'"):
        transform.PassContext(config={"relay.FuseOps.depth": 1})
    with pytest.raises(
        MirError, match="trace: there is no pass 'FuseOp' to tell something; did you mean 'FuseOps'"
    ) as error:
        transform.PassContext(config={"mirstack.trace": ["FuseOp"]})
    assert "it names some of CommonSubexpressionElimination, DeadOpElimination, ApplyRules" in str(error.value)
    with pytest.raises(MirError, match=r"mirstack\.explain: there is no pass 'cse' to tell something"):
        transform.PassContext(config={"mirstack.explain": "cse"})
    with pytest.raises(TypeError, match="disabled_pass holds names of passes, not 1"):
        transform.PassContext(disabled_pass=[1])  # type: ignore[list-item]
    assert "mirstack.trace" in transform.PassContext.list_configs()


def test_options_as_tvm_calls_them() -> None:
    layouts = {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]}
    text = str(transform.ConvertLayout(desired_layouts=layouts).module_pass)
    assert "nn.conv2d:NHWC,default;nn.max_pool2d:NHWC" in text
    assert (
        transform.ConvertLayout(layouts).info
        == transform.ConvertLayout("nn.conv2d:NHWC,default;nn.max_pool2d:NHWC").info
    )
    kept = str(transform.RemoveUnusedFunctions(["main", "f"]).info)
    assert kept.startswith("remove-unused-functions{entry_functions=")
    assert transform.RemoveUnusedFunctions(None).info == transform.RemoveUnusedFunctions().info
    with pytest.raises(TypeError, match="unexpected keyword argument 'level'"):
        transform.FuseOps(level=1)
    with pytest.raises(AttributeError, match="has no pass 'Nothing'"):
        relay.qnn.transform.Nothing  # noqa: B018


def test_passes_of_functions() -> None:
    @transform.module_pass(opt_level=2)
    def rename(mod: mirstack.IRModule, ctx: transform.PassContext) -> mirstack.IRModule:
        """Gives main another name."""
        assert ctx is transform.PassContext.current()
        return mirstack.IRModule({"other": mod["main"]})

    assert "def @other" in str(rename(program()))
    assert (rename.info.name, rename.info.opt_level) == ("rename", 2)

    @relay.transform.function_pass(opt_level=1, name="Twice")
    class Twice:
        """Applies each function to what it gives."""

        def __init__(self, times: int):
            self.times = times

        def transform_function(self, func: Any, mod: mirstack.IRModule, ctx: transform.PassContext) -> Any:
            body = func.body
            for _ in range(self.times):
                body = relay.sqrt(body)
            return relay.Function(func.params, body)

    twice: Any = Twice(2)
    assert twice.times == 2 and isinstance(twice, transform.FunctionPass)
    assert relay.analysis.list_op_freqs(twice(program()))["sqrt"] == 2
    with pytest.raises(ValueError, match="from which optimization level"):
        transform.module_pass(lambda mod, ctx: mod)
    with pytest.raises(TypeError, match="needs a method transform_module"):
        transform.module_pass(opt_level=0)(Names)
    wrong = transform.module_pass(lambda mod, ctx: None, opt_level=0)
    with pytest.raises(TypeError, match="must return an IRModule, not None"):
        wrong(program())
    wrong = transform.function_pass(lambda func, mod, ctx: None, opt_level=0)
    with pytest.raises(TypeError, match=r"must return a relay\.Function, not None"):
        wrong(program())
    with pytest.raises(TypeError, match="a pass runs on an IRModule"):
        transform.InferType()(relay.const(1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a Sequential holds passes, not 'FuseOps'"):
        transform.Sequential(["FuseOps"])  # type: ignore[list-item]


def test_an_instrument_keeps_a_pass_out() -> None:
    names = Names("FoldConstant")
    with transform.PassContext(instruments=[names]):
        assert relay.analysis.list_op_freqs(transform.FoldConstant()(program()))["add"] == 2
    with transform.PassContext(instruments=[names], required_pass=["FoldConstant"]):
        assert relay.analysis.list_op_freqs(transform.FoldConstant()(program()))["add"] == 1


def test_instruments_from_a_decorator() -> None:
    seen: list[str] = []

    @instrument.pass_instrument
    class Before:
        def run_before_pass(self, mod: mirstack.IRModule, info: transform.PassInfo) -> None:
            seen.append(info.name)

    with transform.PassContext(instruments=[Before()]) as context:
        transform.InferType()(program())
        context.override_instruments([])
        transform.InferType()(program())
    assert seen == ["InferType"]


def test_timing_printing_and_dumping(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timing = instrument.PassTimingInstrument()
    dump = instrument.DumpIR(tmp_path / "dump", refresh=True)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "007_old.mir").write_text("")
    (tmp_path / "dump" / "mine.txt").write_text("")
    passes = [transform.InferType(), transform.FoldConstant()]
    with transform.PassContext(
        instruments=[timing, dump, instrument.PrintBeforeAll(), instrument.PassPrintingInstrument([], ["InferType"])]
    ):
        transform.Sequential(passes)(program())
    lines = timing.render().splitlines()
    assert [line.split()[0] for line in lines] == ["stage", "infer-type", "fold-constant", "total"]
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names == [
        "000_input.mir", "001_infer-type.diff", "001_infer-type.mir", "002_fold-constant.diff", "002_fold-constant.mir",
        "mine.txt",
    ]  # fmt: skip
    diff = (tmp_path / "dump" / "002_fold-constant.diff").read_text()
    assert "-  %0 = add(1f /* ty=float32 */, 2f /* ty=float32 */) /* ty=float32 */;" in diff.splitlines()
    printed = capsys.readouterr()
    assert printed.err.count("// ----- IR before") == 2 and printed.out.count("// ----- IR after infer-type -----") == 1
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(MirError, match="cannot be written"),
        transform.PassContext(instruments=[instrument.DumpIR(tmp_path / "file")]),
    ):
        pass


def test_checking_and_verifying() -> None:
    other = transform.InferType()(mirstack.IRModule.from_expr(relay.log(relay.var("x", shape=(2,)))))

    @transform.module_pass(opt_level=0, name="Wrong")
    def wrong(mod: mirstack.IRModule, ctx: transform.PassContext) -> mirstack.IRModule:
        return other

    module = transform.InferType()(program())
    with transform.PassContext(instruments=[instrument.CheckEach(), instrument.VerifyEach()]):
        transform.Sequential([transform.FoldConstant(), transform.FuseOps()])(module)
        with pytest.raises(MirError, match="pass 'Wrong' changed the meaning"):
            wrong(module)


def test_print_ir(capsys: pytest.CaptureFixture[str]) -> None:
    transform.PrintIR("here")(program())
    assert capsys.readouterr().out.startswith("here\ndef @main(%x")


def test_trace(capsys: pytest.CaptureFixture[str]) -> None:
    with transform.PassContext(config={"mirstack.trace": ["FoldConstant"]}):
        transform.FoldConstant()(program())
    told = capsys.readouterr().err
    assert f"{__file__}:" in told and "remark: fold-constant: add(1.0, 2.0) is 3.0" in told
    transform.FoldConstant()(program())
    assert capsys.readouterr().err == ""
    with transform.PassContext(config={"mirstack.trace": "to-a-normal-form"}):
        transform.ToANormalForm()(program())
    assert "remark: to-a-normal-form: new: 5 let" in capsys.readouterr().err


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    x = relay.var("x", shape=(4, 4))
    module = mirstack.IRModule.from_expr(relay.exp(relay.sum(x, axis=1)))
    (remark,) = relay.analysis.explain(module, transform.FuseOps())
    assert remark.message == (
        "fuse-ops left alone: sum is not fused with exp: nothing follows a comm-reduce operator in its kernel; exp is elemwise"
    )
    assert relay.analysis.explain(program(), transform.FuseOps(2)) == []
    with transform.PassContext(config={"mirstack.explain": "FuseOps"}):
        transform.FuseOps()(module)
    assert "sum is not fused with exp" in capsys.readouterr().err
    with pytest.raises(
        MirError, match=r"InferType does not tell what it leaves alone; FuseOps, FuseTIR, DefaultSchedule, .* do"
    ):
        relay.analysis.explain(module, transform.InferType())


def test_max_depth_is_explained() -> None:
    y: relay.Expr = relay.var("x", shape=(4,))
    for _ in range(4):
        y = relay.exp(y)
    remarks = relay.analysis.explain(mirstack.IRModule.from_expr(y), transform.FuseOps(2, 2))
    assert any("more operators than max-depth" in remark.message for remark in remarks)


@pytest.mark.parametrize("broken", ["enter_pass_ctx", "exit_pass_ctx"])
@pytest.mark.parametrize("by", ["with", "override"])
def test_an_instrument_that_fails_leaves_none(broken: str, by: str) -> None:
    """Those that entered before it exit; the context works again, without instruments."""
    events: list[str] = []

    class Told(instrument.PassInstrument):
        def __init__(self, name: str, fails: bool = False):
            self.name, self.fails = name, fails

        def enter_pass_ctx(self) -> None:
            self.tell("enter_pass_ctx")

        def exit_pass_ctx(self) -> None:
            self.tell("exit_pass_ctx")

        def tell(self, event: str) -> None:
            if self.fails and event == broken:
                raise ValueError(event)
            events.append(f"{self.name} {event.partition('_')[0]}")

    told: list[Any] = [Told("a"), Told("b", fails=True), Told("c")]
    context = transform.PassContext(instruments=told if by == "with" else None)
    with pytest.raises(ValueError, match=broken):
        if by == "with":
            with context:
                pass
        else:
            context.override_instruments(told)
            context.override_instruments(None)
    assert context.instruments == []
    assert events == (
        ["a enter", "a exit"] if broken == "enter_pass_ctx" else ["a enter", "b enter", "c enter", "a exit"]
    )
    with context:
        pass
