"""The mir-opt command: what it prints, what it says when it cannot, and how it ends."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from mirstack.driver import check_each
from mirstack.driver import mir_opt as driver
from mirstack.driver.errors import InternalError, UsageError, guarded
from mirstack.driver.pipeline import read_pipeline, run_passes
from mirstack.support.diagnostics import Diagnostic, MirError
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

TEN_LINES = """\
func.func @main(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %b, %a : i32
  %2 = arith.muli %0, %1 : i32
  func.return %2 : i32
}
"""


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    file = tmp_path / "ten.mlir"
    file.write_text(TEN_LINES)
    return file


def test_prints_what_it_read(mir_opt, ten: Path, tmp_path: Path):
    ran = mir_opt(ten)
    assert (ran.code, ran.err) == (0, "")
    again = tmp_path / "again.mlir"
    again.write_text(ran.out)
    assert mir_opt(again).out == ran.out


def test_output_file(mir_opt, ten: Path, tmp_path: Path):
    output = tmp_path / "out.mlir"
    ran = mir_opt(ten, "-p", "cse", "-o", output)
    assert (ran.code, ran.out) == (0, "")
    assert output.read_text() == mir_opt(ten, "-p", "cse").out
    assert mir_opt(ten, "-o", tmp_path / "no" / "where").err.endswith("cannot be written: No such file or directory\n")


def test_no_output_file_when_a_part_is_wrong(mir_opt, tmp_path: Path):
    file, output = tmp_path / "x.mlir", tmp_path / "out.mlir"
    file.write_text(TEN_LINES + "// -----\nwrong\n")
    ran = mir_opt(file, "--split-input-file", "-o", output)
    assert ran.code == 1 and not output.exists()
    assert f"{file}:8:" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "csee"], "-p: there is no pass 'csee'; did you mean 'cse'? (--list-passes lists them all)"),
        (["-p", "cse{deep=1}"], "-p: pass 'cse' has no option 'deep' (it takes none)"),
        (
            ["-p", "fuse-ops{max-dept=1}"],
            "-p: pass 'fuse-ops' has no option 'max-dept'; did you mean 'max-depth'? (it t",
        ),
        (["-p", "fuse-ops{max-depth=fast}"], "-p: option 'max-depth' of pass 'fuse-ops' is of type int, not 'fast'"),
        (["-p", "cse,fuse-ops{max-depth=3 max_depth=4}"], "-p: option 'max-depth' of pass 'fuse-ops' is given twice"),
        (["-p", "cse dce"], "-p: expected a comma or pass arguments here\ncse dce\n   ^"),
        (["-t", "mlr"], "there is no target 'mlr'; did you mean 'mlir'?"),
        (["-f", "tex"], "invalid choice: 'tex'"),
        (["--nothing"], "unrecognized arguments: --nothing"),
    ],
)
def test_wrong_command_lines(mir_opt, ten: Path, arguments: list[str], message: str):
    ran = mir_opt(ten, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_wrong_files(mir_opt, ten: Path, tmp_path: Path):
    def says(name: str, data: bytes | None = None) -> str:
        if data is not None:
            (tmp_path / name).write_bytes(data)
        ran = mir_opt(tmp_path / name)
        assert ran.code == 2
        return ran.err.removeprefix(f"mir-opt: error: {tmp_path}").strip("/")

    assert says("tem.mlir") == "tem.mlir: no such file; did you mean 'ten.mlir'?\n"
    assert says(".") == ": is a directory, not a file\n"
    assert says("empty.mlir", b"") == "empty.mlir: is empty\n"
    assert says("latin.mlir", b"// ok\n// caf\xe9\n") == "latin.mlir:2:7: is not UTF-8 text: byte 0xe9\n"
    assert says("x.tex", b"hello").startswith(
        "x.tex: not a .mir, .mlir, .onnx or .pt2 file: tell its format with -f mir, -f mlir, -f onnx or -f pt2"
    )
    assert says("nul\0.mlir").endswith("cannot be read: embedded null byte\n")


@pytest.mark.parametrize("form", ["!{} = tuple<!{}, !{}>", "#{} = [#{}, #{}]", "#{} = {{a = #{}, b = [#{}]}}"])
def test_aliases_that_double(mir_opt, tmp_path: Path, form: str):
    first = "!a = tuple<i32, i32>" if form[0] == "!" else "#a = 1"
    names = ["a" * k for k in range(1, 41)]
    chain = [form.format(new, old, old) for old, new in pairwise(names)]
    (tmp_path / "aliases.mlir").write_text("\n".join([first, *chain, "builtin.module {}"]))
    ran = mir_opt(tmp_path / "aliases.mlir")
    assert ran.code == 1
    assert re.search(r"aliases.mlir:1\d:1: error: the alias '[!#]a+' has more than 65536 parts", ran.err)


def test_blanks_between_passes():
    factories = driver.pass_factories()
    assert [p.name for p in read_pipeline(" cse , dce", factories)] == ["cse", "dce"]
    assert read_pipeline("", factories) == ()


def test_standard_input(mir_opt, ten: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEN_LINES.encode())))
    assert mir_opt("-f", "mlir", "-p", "cse").out == mir_opt(ten, "-p", "cse").out


def test_printing_between_passes(mir_opt, ten: Path):
    ran = mir_opt(ten, "-p", "cse,dce", "--print-ir-after-all")
    assert ran.err.count("// ----- IR after ") == 2
    ran = mir_opt(ten, "-p", "cse,dce", "--print-ir-after-change")
    assert "--- before cse\n+++ after cse\n" in ran.err
    assert "-    %1 = arith.addi %b, %a : i32\n" in ran.err
    assert "// ----- dce changed nothing -----\n" in ran.err


def test_timing(mir_opt, ten: Path):
    lines = mir_opt(ten, "-p", "cse", "--timing").err.splitlines()
    assert lines[0].split() == ["stage", "seconds", "ops", "bytes"]
    assert [line.split()[0] for line in lines[1:]] == ["parse", "verify", "cse", "verify", "print", "total"]
    assert lines[1].split()[2] == "6" and lines[3].split()[2] == "5"


def test_version_and_help(mir_opt):
    assert mir_opt("--version").out.startswith("mir-opt of mirstack ")
    assert "--check-each" in mir_opt("--help").out


def test_list_passes(mir_opt):
    ran = mir_opt("--list-passes")
    assert ran.code == 0 and "merge ops that compute the same" in ran.out


def test_style_flags(mir_opt, ten: Path):
    assert '"func.return"(%' in mir_opt(ten, "--print-op-generic").out
    assert 'ten.mlir":2:3)' in mir_opt(ten, "--print-debuginfo").out


@dataclass(frozen=True)
class Fake(ModulePass):
    """A pass that does what the test says."""

    name = "fake"
    failure: BaseException

    def __str__(self) -> str:
        return self.name

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise self.failure


def test_failures_of_passes():
    def failure_of(failure: BaseException) -> BaseException:
        with pytest.raises(type(failure) if isinstance(failure, MirError) else Exception) as caught:
            run_passes([Fake(failure)], Context(), ModuleOp([]))
        return caught.value

    own = MirError(Diagnostic("not this"))
    assert failure_of(own) is own
    refused = failure_of(PassFailedException("too\n  many loops"))
    assert isinstance(refused, MirError)
    assert (
        refused.diagnostics[0].message.startswith("pass 'fake") and "too many loops" in refused.diagnostics[0].message
    )
    bug = failure_of(KeyError("x"))
    assert isinstance(bug, InternalError) and bug.where.startswith("pass 'fake")


def test_internal_errors(capsys: pytest.CaptureFixture[str]):
    def body() -> int:
        raise InternalError("pass 'fake'", KeyError("x"))

    assert guarded("mir-opt", body) == 70
    message = capsys.readouterr().err
    assert message.startswith("mir-opt: internal error in pass 'fake': KeyError: 'x'\n")
    assert "please report it" in message and "Traceback" not in message
    assert guarded("mir-opt", body, debug=True) == 70
    assert "KeyError: 'x'" in capsys.readouterr().err


def test_usage_errors(capsys: pytest.CaptureFixture[str]):
    def body() -> int:
        raise UsageError("what?")

    assert guarded("mir-run", body) == 2
    assert capsys.readouterr().err == "mir-run: error: what?\n"


def test_verify_each_names_the_pass(mir_opt, ten: Path, monkeypatch: pytest.MonkeyPatch):
    class Breaks(ModulePass):
        """Leaves a function without its return."""

        name = "breaks"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            block = next(iter(op.ops)).regions[0].block
            assert block.last_op is not None
            block.erase_op(block.last_op)

    factories: dict[str, Callable[[], type[ModulePass]]] = {**driver.pass_factories(), "breaks": lambda: Breaks}
    monkeypatch.setattr(driver, "pass_factories", lambda: factories)
    ran = mir_opt(ten, "-p", "cse,breaks,dce", "--verify-each")
    assert ran.code == 1
    assert f"{ten}:4:3: error: 'arith.muli' ends the body of 'func.func', but is not a terminator" in ran.err
    assert "note: pass 'breaks' left this behind" in ran.err
    assert "note: --verify-each names the pass that left this" in mir_opt(ten, "-p", "breaks,cse").err


def test_check_each_names_the_pass(monkeypatch: pytest.MonkeyPatch, mir_opt, ten: Path):
    import numpy as np

    seen: list[int] = []

    def run_module(module: ModuleOp, seed: int) -> dict[str, np.ndarray]:
        seen.append(seed)
        return {"out0": np.full((2, 2), 1.0 if len(seen) < 3 else 2.0, np.float32)}

    monkeypatch.setattr(check_each, "interpret", run_module)
    ran = mir_opt(ten, "-p", "cse,dce", "--check-each", "--inputs", "7")
    assert ran.code == 1 and seen == [7, 7, 7]
    assert "pass 'dce' changed the meaning: out0[0, 0] was 1.0, now it is 2.0 (4 of 4 elements differ)" in ran.err


@pytest.mark.parametrize(
    "pipeline", ["first-order-gradient", "to-mixed-precision", "to-mixed-precision,first-order-gradient"]
)
def test_check_each_knows_what_passes_are_to_change(mir_opt, tmp_path: Path, pipeline: str):
    file = tmp_path / "x.mir"
    file.write_text("def @main(%x: Tensor[(3, 5), float32], %w: Tensor[(4, 5), float32]) { exp(nn.dense(%x, %w)) }")
    ran = mir_opt(file, "-p", pipeline, "--check-each")
    assert (ran.code, ran.err) == (0, "")


def test_results_in_halves():
    import numpy as np

    old = {"out0": np.array([1.0, 100.0], np.float32)}
    assert check_each.first_difference(old, {"out0": np.array([1.5, 100.0], np.float32)}, halves=True) is None
    changed = check_each.first_difference(old, {"out0": np.array([1.0, 105.0], np.float32)}, halves=True)
    assert changed == "out0[1] was 100.0, now it is 105.0 (1 of 2 elements differ)"
    steps = {"out0": np.array([3, 40], np.int8)}
    assert check_each.first_difference(steps, {"out0": np.array([4, 40], np.int8)}, halves=True) is None
    assert check_each.first_difference(steps, {"out0": np.array([4, 40], np.int8)}) is not None
    changed = check_each.first_difference(steps, {"out0": np.array([5, 40], np.int8)}, halves=True)
    assert changed == "out0[0] was 3, now it is 5 (1 of 2 elements differ)"


def test_sums_that_cancel():
    import numpy as np

    old = {"out0": np.array([1e-4, 900.0], np.float32)}
    assert check_each.first_difference(old, {"out0": np.array([3e-4, 900.0], np.float32)}) is None
    changed = check_each.first_difference(old, {"out0": np.array([3e-3, 900.0], np.float32)})
    assert changed == "out0[0] was 9.999999747378752e-05, now it is 0.003000000026077032 (1 of 2 elements differ)"


def test_sums_that_overflow():
    import numpy as np

    old = {"out0": np.array([-np.inf, 1.0], np.float32)}
    assert check_each.first_difference(old, {"out0": np.array([np.nan, 1.0], np.float32)}) is None
    changed = check_each.first_difference(old, {"out0": np.array([-np.inf, np.nan], np.float32)})
    assert changed == "out0[1] was 1.0, now it is nan (1 of 2 elements differ)"


def test_closed_pipe(ten: Path):
    command = f"{sys.executable} -m mirstack.driver.mir_opt {ten} --list-passes | head -1"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.stdout.startswith("Passes, with") and ran.stderr == ""


def test_deep_nesting(mir_opt, tmp_path: Path):
    depth = 2000
    file = tmp_path / "deep.mlir"
    opening = "".join('"test.op"() ({ ' for _ in range(depth))
    end = '"test.termop"() : () -> ()'
    file.write_text(opening + end + f" }}) : () -> () {end}" * (depth - 1) + " }) : () -> ()")
    ran = mir_opt(file, "-p", "cse,dce", "--verify-each")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count('"test.op"') == depth


def test_start_up_imports_little(ten: Path):
    """What makes start-up slow is not imported for a file that has no need of it."""
    program = (
        "import sys; from mirstack.driver.mir_opt import main; main(sys.argv[1:]);"
        "print([m for m in ('numpy', 'llvmlite', 'lark', 'scipy', 'islpy', 'ml_dtypes') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(ten), "-p", "cse,dce"], capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_trace_and_explain(mir_opt, tmp_path: Path):
    file = tmp_path / "x.mir"
    file.write_text("def @main(%x: Tensor[(2, 2), float32]) {\n  %0 = add(1f, 2f);\n  sum(add(%x, %0))\n}\n")
    ran = mir_opt(file, "-p", "fold-constant", "--trace", "fold-constant")
    assert ran.code == 0
    assert f"{file}:2:8: remark: fold-constant: add(1.0, 2.0) is 3.0\n  %0 = add(1f, 2f);\n" in ran.err
    assert mir_opt(file, "-p", "fuse-ops", "--explain", "fuse-ops").err == ""
    ran = mir_opt(file, "-p", "simplify-expr,fuse-ops", "--trace", "fuse-ops")
    assert f"{file}:2:8: remark: fuse-ops: one kernel: add, add, sum\n  %0 = add(1f, 2f);\n" in ran.err
    ran = mir_opt(file, "-p", "fuse-ops,cse", "--trace", "fuse-op")
    assert ran.code == 2
    assert ran.err.rstrip() == (
        "mir-opt: error: --trace: there is no pass 'fuse-op'; did you mean 'fuse-ops'?"
        " (those that run are fuse-ops, cse; --list-passes names all)"
    )
    ran = mir_opt(file, "-p", "cse", "--explain", "cse")
    assert "--explain: no pass 'cse' tells what it leaves alone (known are fuse-ops" in ran.err
    ran = mir_opt(file, "-p", "infer-type", "--explain", "fuse-ops")
    assert ran.code == 2
    assert "--explain fuse-ops: the pass is not among those that run (-p fuse-ops)" in ran.err


def test_dump_ir(mir_opt, ten: Path, tmp_path: Path):
    folder = tmp_path / "dump"
    assert mir_opt(ten, "-p", "cse,dce", "--dump-ir", folder).code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["000_input.mir", "001_cse.diff", "001_cse.mir", "002_dce.diff", "002_dce.mir"]
    assert (folder / "002_dce.diff").read_text() == ""
    assert "cannot be written" in mir_opt(ten, "-p", "cse", "--dump-ir", ten).err


def test_print_before_all(mir_opt, ten: Path):
    ran = mir_opt(ten, "-p", "cse,dce", "--print-ir-before-all")
    assert [line for line in ran.err.splitlines() if line.startswith("// -----")] == [
        "// ----- IR before cse -----",
        "// ----- IR before dce -----",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def @f(%x: float32) { %x }\ndef @main() { @f }", "out0 is @f, which is not a tensor"),
    ],
)
def test_check_each_says_what_it_cannot_run(mir_opt, tmp_path: Path, text: str, reason: str):
    file = tmp_path / "x.mir"
    file.write_text(text)
    ran = mir_opt(file, "-p", "infer-type", "--check-each")
    assert ran.code == 1
    assert f"error: not checked before infer-type: {reason}" in ran.err
    assert "note: --allow-unchecked goes on without checking what cannot be interpreted" in ran.err
    ran = mir_opt(file, "-p", "infer-type", "--check-each", "--allow-unchecked")
    assert ran.code == 0
    assert f"// not checked before infer-type: {reason}" in ran.err


@pytest.mark.parametrize(
    "parameters",
    ["%x: Tensor[(?), float32], %y: Tensor[(?), float32]", "%x: Tensor[(?), float32], %y: Tensor[(5), float32]"],
)
def test_check_each_draws_sizes(mir_opt, tmp_path: Path, parameters: str):
    file = tmp_path / "x.mir"
    file.write_text(f"rewrite @wrong {{ exp(%x) => tanh(%x) }}\ndef @main({parameters}) {{ exp(%x) + %y }}")
    ran = mir_opt(file, "-p", "apply-rules", "--check-each")
    assert ran.code == 1
    assert "pass 'apply-rules' changed the meaning: out0" in ran.err


def test_check_each_runs_every_function_where_none_is_main(mir_opt, tmp_path: Path):
    file = tmp_path / "x.mir"
    functions = "def @f(%x: float32) { tanh(%x) }\ndef @g(%x: float32) { exp(%x) }"
    file.write_text("rewrite @wrong { exp(%x) => tanh(%x) }\n" + functions)
    assert "changed the meaning: g.out0" in mir_opt(file, "-p", "apply-rules", "--check-each").err
