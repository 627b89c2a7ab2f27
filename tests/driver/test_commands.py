"""`python -m mirstack`, completion, values on the command line, the log of what is compiled."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.driver import completion, errors, main, mir_run
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
PROGRAM = 'def @main(%x: Tensor[(3), float32], %n: Tensor[(), int32]) { multiply(%x, cast(%n, dtype="float32")) }'


def _run(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    path = tmp_path / "net.mir"
    path.write_text(program)
    code = mir_run.main([str(path), "--target", "interp", *options])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_commands_are_listed_and_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main.main([]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n  {name} " in listed for name in main.COMMANDS)
    (tmp_path / "net.mir").write_text(PROGRAM)
    assert main.main(["opt", str(tmp_path / "net.mir"), "-t", "mir"]) == 0
    assert "multiply(%x, %0)" in capsys.readouterr().out
    assert main.main(["import", "nothing.onnx"]) == 2
    assert "mir-import: error: nothing.onnx: no such file" in capsys.readouterr().err


def test_versions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"mirstack {version('mirstack')}, on xdsl {version('xdsl')}\n"
    with pytest.raises(SystemExit) as ended:
        main.main(["run", "--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mir-run of mirstack {version('mirstack')}, on xdsl {version('xdsl')}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optt"], "there is no command 'optt'; did you mean 'opt'? (--help lists them)"),
        (["--print-completion"], "--print-completion takes the name of the shell: bash or zsh"),
        (["--print-completion", "fish"], "there is no completion for 'fish': there is bash and zsh"),
    ],
)
def test_what_is_no_command_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(arguments) == 2
    assert capsys.readouterr().err == f"mirstack: error: {message}\n"


def test_completion_needs_its_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(completion, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType]
    assert main.main(["--print-completion", "bash"]) == 2
    assert (
        "the package shtab is not installed; pip install 'mirstack[completion]' installs it" in capsys.readouterr().err
    )


@pytest.mark.extra
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("mir-opt -p fold-c", "fold-constant"),
        ("mir-opt -p cse,fold-c", "cse,fold-constant"),
        ("mir-build --verb", "--verbose"),
    ],
)
def test_bash_completes(words: str, completed: str, tmp_path: Path) -> None:
    library("shtab", "completion")
    script = tmp_path / "completion.bash"
    script.write_text(completion.completion("bash"))
    command, *rest = words.split()
    function = f"_shtab_{command.replace('-', '_')}"
    program = f'source {script}; COMP_WORDS=({words}); COMP_CWORD={len(rest)}; {function}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run([shutil.which("bash") or "bash", "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{completed}\n", "")
    assert completion.completion("zsh").count("#compdef") >= 1


def test_exit_codes_are_documented() -> None:
    table = dict(re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    codes = (errors.OK, errors.INVALID, errors.USAGE, errors.INTERNAL, errors.INTERRUPTED)
    assert sorted(table) == sorted(map(str, codes))


def test_values_are_written_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(PROGRAM, tmp_path, capsys, "--input", "x=[1,2,3.5]", "--input", "n=-2")
    assert (code, err) == (0, "") and "-> out0: float32[3] [-2, -4, -7]" in out


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("n=1.5", "--input n=1.5: parameter n is int32, which does not hold it"),
        ("n=99999999999", "--input n=99999999999: parameter n is int32, which does not hold it"),
        ("x=[[1],[2,3]]", "--input x=[[1],[2,3]]: the lists are not of equal length"),
        ("x=[1,2]", "input x is float32[2], but its parameter is float32[3]"),
        ("n=5x", "5x: no such file"),
        ("m=5", "--input m=5: 'm' is not a parameter (the entry takes x, n)"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    value: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = _run(PROGRAM, tmp_path, capsys, "--random", "1", "--input", value)
    assert (code, err) == (2, f"mir-run: error: {message}\n")


def test_a_size_is_not_an_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_program = "def @main(%x: Tensor[(?), float32]) { nn.relu(%x) }"
    code, _, err = _run(open_program, tmp_path, capsys, "--random", "1", "--input", "x.0=3")
    assert (code, err) == (2, "mir-run: error: --input x.0=3: x.0 is a size: write --size x.0=NUMBER\n")


def test_a_file_of_a_number_s_name_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open("7", "wb") as file:
        np.save(file, np.int32(3))
    code, out, _ = _run(PROGRAM, tmp_path, capsys, "--input", "x=[1,2,3]", "--input", "n=7")
    assert code == 0 and "[3, 6, 9]" in out


def test_what_is_compiled_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "1G")
    text = "def @main(%x: Tensor[(2), float32]) { exp(%x) }"
    with caplog.at_level(logging.DEBUG, "mirstack.compile"):
        for _ in range(2):
            mirstack.compile(text)
        mirstack.compile(text.replace("@main", "@other"))
    messages = [record.getMessage() for record in caplog.records if record.name == "mirstack.compile"]
    assert messages[:3] == [
        "<string>: compiling for this processor at opt_level 3",
        "<string>: found in the cache",
        "<string>: compiling for this processor at opt_level 3",
    ]
    assert re.fullmatch(r"kernel fused_exp\.\w{12}: found in the cache", messages[3])


def test_names_of_files_are_logged_as_text(caplog: pytest.LogCaptureFixture) -> None:
    from mirstack.support.stages import inform

    with caplog.at_level(logging.INFO, "mirstack.compile"):
        inform("%s: found in the cache", "\udcfe.mir")
    assert caplog.records[-1].getMessage() == "\\udcfe.mir: found in the cache"


def test_code_for_sizes_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_SPECIALIZE", "on")
    net = mirstack.compile("def @main(%x: Tensor[(?, 3), float32]) { nn.relu(exp(%x)) }")
    with caplog.at_level(logging.INFO, "mirstack.compile"):
        for _ in range(200):
            net(np.ones((2, 3), "float32"))
        assert isinstance(net, RelayExecutable) and net.variants is not None
        net.variants.wait()
    messages = [record.getMessage() for record in caplog.records if record.name == "mirstack.compile"]
    assert messages[0] == "compiling for x=2,3 beside the calls"
    assert re.fullmatch(r"code for x=2,3 is ready after \d+\.\d s", messages[1])
