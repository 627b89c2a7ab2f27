"""The mir-run command around a stand-in for a compiled entry: inputs, sizes, printing, writing, comparing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.driver import mir_run, run_inputs
from mirstack.driver.errors import UsageError


@dataclass(frozen=True)
class Param:
    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass
class Doubler:
    """Doubles its first parameter: into `out0` as Relay, into its second parameter as TIR."""

    params: list[Param]
    kind: str = "relay"
    name: str = "main"
    runs: list[dict[str, np.ndarray]] = field(default_factory=list)

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.runs.append(inputs)
        doubled = inputs[self.params[0].name] * 2
        if self.kind == "relay":
            return {"out0": doubled}
        inputs[self.params[1].name][...] = doubled
        return {self.params[1].name: inputs[self.params[1].name]}


RELAY = [Param("x", (2, 3), "float32")]
TIR = [Param("A", ("n",), "float32"), Param("B", ("n",), "float32"), Param("n", (), "int32")]


def run(executable: Doubler, *arguments: object) -> int:
    args = mir_run.argument_parser().parse_args(["x.mir", *map(str, arguments)])
    return mir_run.run(args, lambda _: executable)


@pytest.fixture
def x(tmp_path: Path) -> Path:
    file = tmp_path / "x.npy"
    np.save(file, np.arange(6, dtype=np.float32).reshape(2, 3))
    return file


def test_input_and_output(x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    output = tmp_path / "out.npz"
    assert run(Doubler(RELAY), "--input", f"x={x}", "--output", output) == 0
    np.testing.assert_array_equal(np.load(output)["out0"], np.arange(6, dtype=np.float32).reshape(2, 3) * 2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("main (relay) on cpu, compiled in ")
    assert lines[1] == "  x: float32[2, 3]"
    assert lines[2] == "  -> out0: float32[2, 3] [0, 2, 4, 6, 8, 10]"
    assert lines[3].startswith("ran in ")


def test_npz_input(x: Path, tmp_path: Path):
    np.savez(tmp_path / "all.npz", x=np.load(x))
    executable = Doubler(RELAY)
    assert run(executable, "--input", tmp_path / "all.npz") == 0
    np.testing.assert_array_equal(executable.runs[0]["x"], np.load(x))


def test_expect(x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    expected = np.load(x) * 2
    np.savez(tmp_path / "good.npz", out0=expected + 1e-6)
    assert run(Doubler(RELAY), "--input", f"x={x}", "--expect", tmp_path / "good.npz") == 0
    assert capsys.readouterr().out.endswith("good.npz: out0\n")
    expected[1, 0] = 7
    np.savez(tmp_path / "bad.npz", out0=expected, out1=expected)
    assert run(Doubler(RELAY), "--input", f"x={x}", "--expect", tmp_path / "bad.npz") == 1
    message = capsys.readouterr().err
    assert "out0[1, 0] was 7.0, now it is 6.0 (1 of 6 elements differ)" in message
    assert "there is no result 'out1': the results are out0" in message
    tolerant = ("--expect", tmp_path / "bad.npz", "--rtol", 0.5)
    assert run(Doubler(RELAY), "--input", f"x={x}", *tolerant) == 1
    assert "out0" not in capsys.readouterr().err.replace("are out0", "")


def test_repeat_starts_from_the_same_inputs(capsys: pytest.CaptureFixture[str]):
    executable = Doubler(TIR, "tir")
    assert run(executable, "--size", "n=4", "--repeat", 3) == 0
    assert [sorted(inputs) for inputs in executable.runs] == [["A", "B", "n"]] * 3
    assert "ran 3 times, best " in capsys.readouterr().out


def test_random_follows_the_order_of_parameters():
    parameters = [
        Param("a", (3,), "float32"),
        Param("b", (2,), "int64"),
        Param("c", (4,), "bool"),
        Param("d", (1,), "bfloat16"),
    ]
    executable = Doubler(parameters)
    assert run(executable, "--random", 5) == 0
    rng = np.random.default_rng(5)
    got = executable.runs[0]
    np.testing.assert_array_equal(got["a"], rng.standard_normal((3,)).astype(np.float32))
    np.testing.assert_array_equal(got["b"], rng.integers(0, 10, (2,)))
    np.testing.assert_array_equal(got["c"], rng.integers(0, 2, (4,)).astype(bool))
    assert got["d"].dtype == run_inputs.numpy_dtype("bfloat16")


def test_given_inputs_leave_the_others_as_they_were(tmp_path: Path):
    parameters = [Param("a", (3,), "float32"), Param("b", (3,), "float32")]
    np.save(tmp_path / "a.npy", np.ones(3, np.float32))
    drawn, mixed = Doubler(parameters), Doubler(parameters)
    run(drawn, "--random", 1)
    run(mixed, "--random", 1, "--input", f"a={tmp_path}/a.npy")
    np.testing.assert_array_equal(mixed.runs[0]["a"], np.ones(3))
    np.testing.assert_array_equal(mixed.runs[0]["b"], drawn.runs[0]["b"])


def test_absent_buffers_are_zeros_of_the_size_of_others(tmp_path: Path):
    np.save(tmp_path / "A.npy", np.ones(5, np.float32))
    executable = Doubler(TIR, "tir")
    assert run(executable, "--input", f"A={tmp_path}/A.npy") == 0
    assert executable.runs[0]["B"].shape == (5,)
    assert executable.runs[0]["n"] == 5


def test_sizes_may_be_expressions():
    parameter = Param("A", ("n * 2 + 1", "n // 2", "m - n"), "int8")
    assert run_inputs.concrete_shape(parameter, {"n": 4, "m": 6}) == (9, 2, 2)
    assert run_inputs.size_names([parameter]) == ["n", "m"]


def test_bfloat16_survives_its_file(tmp_path: Path):
    bfloat16 = run_inputs.numpy_dtype("bfloat16")
    np.save(tmp_path / "x.npy", np.arange(4).astype(bfloat16))
    executable = Doubler([Param("x", (4,), "bfloat16")])
    output = tmp_path / "out.npz"
    assert run(executable, "--input", f"x={tmp_path}/x.npy", "--output", output) == 0
    assert executable.runs[0]["x"].dtype == bfloat16
    assert run(executable, "--input", f"x={tmp_path}/x.npy", "--expect", output) == 0


def test_columns_first_inputs_become_rows_first(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.asfortranarray(np.ones((2, 3), np.float32)))
    executable = Doubler(RELAY)
    run(executable, "--input", f"x={tmp_path}/x.npy")
    assert executable.runs[0]["x"].flags.c_contiguous


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no value for parameter x: give --input x=FILE.npy or --random SEED"),
        (["--input", "y=x.npy"], "--input y=x.npy: 'y' is not a parameter (the entry takes x)"),
        (["--input", "x=none.npy"], "none.npy: no such file"),
        (["--input", "x="], "--input x=: a file is missing after '=': write x=FILE.npy"),
        (["--expect", "x.npy"], "x.npy: holds one array without a name: save the results by name, as --output writes"),
        (["--expect", "none.npz"], "none.npz: no such file"),
        (["--output", "none/x.npz"], "none/x.npz: cannot be written: No such file or directory"),
        (["--output", "."], ".: cannot be written: Is a directory"),
        (["--input", "text.npy"], "text.npy: is no .npy or .npz file of numbers"),
        (["--input", "x.npy"], "x.npy: holds one array without a name: write NAME=x.npy"),
        (["--input", "x=all.npz"], "all.npz: holds several arrays by name: write --input all.npz"),
        (["--input", "all.npz"], "all.npz: array 'xx' is not a parameter"),
        (
            ["--input", "x=x64.npy"],
            "input x is float64[2, 3], but its parameter is float32[2, 3]: save it with .astype",
        ),
        (["--input", "x=flat.npy"], "input x is float32[6], but its parameter is float32[2, 3]"),
        (["--input", "x=objects.npy"], "objects.npy: is no .npy or .npz file of numbers"),
        (["--size", "n"], "--size n: write NAME=NUMBER, as in n=37"),
        (["--size", "n=-2"], "--size n=-2: write NAME=NUMBER, as in n=37; a size is 0 or more"),
    ],
)
def test_wrong_inputs(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save("x.npy", rows)
    np.save("x64.npy", rows.astype(np.float64))
    np.save("flat.npy", rows.reshape(6))
    np.save("objects.npy", np.array([object()]), allow_pickle=True)
    np.savez("all.npz", xx=rows)
    Path("text.npy").write_text("hello")
    with pytest.raises(UsageError) as caught:
        run(Doubler(RELAY), *arguments)
    assert message in str(caught.value)


def test_unknown_and_contradictory_sizes(tmp_path: Path):
    with pytest.raises(UsageError, match="size n of parameter A is not known: give --size n=NUMBER"):
        run(Doubler(TIR, "tir"))
    np.save(tmp_path / "A.npy", np.ones(5, np.float32))
    with pytest.raises(UsageError, match="size n is 4, but axis 0 of input A is of size 5"):
        run(Doubler(TIR, "tir"), "--input", f"A={tmp_path}/A.npy", "--size", "n=4")
    with pytest.raises(UsageError, match=r"size x.0 of parameter x is not known: give --size x.0=NUMBER"):
        run(Doubler([Param("x", ("?",), "float32")]), "--random", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.mir", "--threads", "0"], "argument --threads: '0' is not a whole number from 1 on"),
        (["x.mir", "--target", "gpu"], "argument --target: invalid choice: 'gpu'"),
        (["x.mir", "-O", "9"], "argument -O: invalid choice: 9"),
        ([], "the following arguments are required: FILE"),
    ],
)
def test_wrong_command_lines(mir_run, arguments: list[str], message: str):
    ran = mir_run(*arguments)
    assert ran.code == 2 and message in ran.err


def test_wrong_files(mir_run, tmp_path: Path):
    ran = mir_run(tmp_path / "x.mir")
    assert (ran.code, ran.err) == (2, f"mir-run: error: {tmp_path}/x.mir: no such file\n")
    ran = mir_run(tmp_path, "--random", "1")
    assert (ran.code, ran.err) == (2, f"mir-run: error: {tmp_path}: is a directory, not a file\n")
    (tmp_path / "x.mlir").write_text("func.func @f() {\n  wrong\n}\n")
    ran = mir_run(tmp_path / "x.mlir")
    assert ran.code == 1
    assert f"{tmp_path}/x.mlir:2:3: error: operation wrong is not registered\n  wrong\n  ^\n" in ran.err


def test_view():
    assert mir_run.short_view(np.arange(8)) == "[0, 1, 2, 3, 4, 5, …]"
    assert mir_run.short_view(np.array(True)) == "[True]"
    assert mir_run.short_view(np.array([1 / 3, np.nan], np.float32)) == "[0.3333, nan]"


def test_pointers_are_no_arrays(tmp_path: Path, mir_opt: Callable[..., Any]):
    file = tmp_path / "pointer.mir"
    file.write_text("""@T.prim_func
def main(A: T.handle("float32", "global")):
    B = T.decl_buffer((16,), data=A)
    B[0] = T.float32(2)
""")
    ran = mir_opt(file, "-p", "simplify", "--check-each")
    assert ran.code != 70
    assert "no array can be given for a parameter of type handle: a buffer is A: T.Buffer(…)" in ran.err


DENSE = "def @main(%x: Tensor[(?, 8), float32], %w: Tensor[(?, ?), float32]) { nn.dense(%x, %w, units=None) }"


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_open_dimensions_have_the_sizes_of_arrays_and_of_size(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "dense.mir"
    file.write_text(DENSE)
    np.save(tmp_path / "x.npy", np.ones((3, 8), np.float32))
    np.save(tmp_path / "w.npy", np.ones((2, 8), np.float32))
    arguments = [str(file), "--target", target, "--input", f"x={tmp_path}/x.npy"]
    assert mir_run.main([*arguments, "--input", f"w={tmp_path}/w.npy"]) == 0
    assert "out0: float32[3, 2] [8, 8, 8, 8, 8, 8]" in capsys.readouterr().out
    assert mir_run.main([*arguments, "--random", "1", "--size", "w.0=5", "--size", "w.1=8"]) == 0
    assert "out0: float32[3, 5]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--random", "1"], "size x.0 of parameter x is not known: give --size x.0=NUMBER"),
        (["--random", "1", "--size", "n=3"], "--size n=3: no parameter has a size 'n' (they have x.0, w.0, w.1)"),
        (["--random", "1", "--size", "x.0=3", "--size", "x.0=3"], "--size x.0=3: size x.0 is given twice"),
        (["--input", "x=x.npy", "--size", "x.0=4"], "size x.0 is 4, but axis 0 of input x is of size 3"),
        (["--input", "x=x.npy", "--input", "x=x.npy"], "--input x=x.npy: parameter x is given twice"),
        (["--input", "x=x.npy", "--input", "all.npz"], "--input all.npz: parameter x is given twice"),
        (["--input", "w=x.npy", "--input", "x=flat.npy"], "input x is float32[24], but its parameter is float32[?, 8]"),
    ],
)
def test_sizes_and_inputs_that_do_not_fit(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    Path("dense.mir").write_text(DENSE)
    rows = np.ones((3, 8), np.float32)
    np.save("x.npy", rows)
    np.save("flat.npy", rows.reshape(24))
    np.savez("all.npz", x=rows)
    assert mir_run.main(["dense.mir", "--target", "interp", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_values_of_data_types_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "list.mir"
    file.write_text("""type List[A] { Cons(A, List[A]), Nil, }
def @many(%n: int32) -> List[int32] { if (equal(%n, 0)) { Nil } else { Cons(%n, @many(%n - 1)) } }
def @main(%x: Tensor[(2), float32]) { (Cons((%x, 1), Nil), @many(2000)) }""")
    np.save(tmp_path / "x.npy", np.array([1, 2], np.float32))
    arguments = [str(file), "--target", "interp", "--input", f"x={tmp_path}/x.npy", "--entry", "main"]
    assert mir_run.main(arguments) == 0
    out = capsys.readouterr().out
    assert "  -> out0: Cons((float32[2] [1, 2], int32[] [1]), Nil)\n" in out
    assert "  -> out1: Cons(int32[] [2000], Cons(int32[] [1999], Cons(" in out
    assert len(out) < 600
    assert mir_run.main([*arguments, "--output", f"{tmp_path}/o.npz"]) == 2
    assert "result out0 is not a tensor: a .npz file holds tensors" in capsys.readouterr().err
