"""`--timing-out`: traces of what `mir-opt` and `mir-run` do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mirstack.driver.mir_opt import main as mir_opt
from mirstack.driver.mir_run import main as mir_run
from mirstack.support.stopwatch import timed, timing

NET = "def @main(%x: Tensor[(8), float32]) { nn.relu(exp(%x)) }\n"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.mir"
    path.write_text(NET)
    return path


def events(path: Path) -> dict[str, dict[str, Any]]:
    return {event["name"]: event for event in json.loads(path.read_text())["traceEvents"]}


def contains(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    slack = 0.01  # Nanoseconds are rounded to microseconds with three decimals.
    begins = outer["ts"] <= inner["ts"] + slack
    return begins and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + slack


def test_of_mir_opt(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    trace = tmp_path / "t.json"
    assert mir_opt([str(net), "-p", "fuse-ops,lower-relay-to-te", "--timing-out", str(trace)]) == 0
    assert "call_tir" in capsys.readouterr().out
    found = events(trace)
    assert {"parse", "verify", "fuse-ops", "lower-relay-to-te", "print mir"} <= found.keys()
    assert found["process_name"]["args"] == {"name": "mir-opt"}
    assert found["thread_name"]["args"] == {"name": "main thread"}
    assert found["parse"]["ts"] + found["parse"]["dur"] <= found["fuse-ops"]["ts"] + 0.01


def test_of_lowering(net: Path, tmp_path: Path):
    trace = tmp_path / "t.json"
    assert mir_opt([str(net), "-t", "llvm", "-o", str(tmp_path / "net.ll"), "--timing-out", str(trace)]) == 0
    found = events(trace)
    assert contains(found["print llvm"], found["kernels"]) and contains(found["kernels"], found["lower-tir-to-scf"])


def test_of_mir_run(net: Path, tmp_path: Path):
    trace = tmp_path / "t.json"
    assert mir_run([str(net), "--random", "1", "--timing-out", str(trace)]) == 0
    found = events(trace)
    assert contains(found["compile"], found["link"])
    assert found["first run"]["ts"] >= found["compile"]["ts"] + found["compile"]["dur"] - 0.01


def test_after_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, trace = tmp_path / "wrong.mir", tmp_path / "t.json"
    path.write_text("def @main(%x: Tensor[(8), float32]) { nn.relu(%y) }\n")
    assert mir_opt([str(path), "--timing-out", str(trace)]) == 1
    assert "parse" in events(trace)
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("command", [mir_opt, mir_run])
def test_a_file_that_cannot_be_written(command: Any, net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [str(net), *(["--random", "1"] if command is mir_run else [])]
    assert command([*arguments, "--timing-out", str(tmp_path / "missing" / "t.json")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
    assert command([*arguments, "--timing-out", str(tmp_path)]) == 2
    assert "cannot be written: Is a directory" in capsys.readouterr().err


def test_runs_are_kept_on_demand():
    with timing(log=True) as kept, timed("outer"):
        for _ in range(2):
            with timed("inner"):
                pass
    assert kept.log is not None
    assert [each.name for each in kept.log] == ["inner", "inner", "outer"]
    with timing() as other, timed("outer"):
        pass
    assert other.log is None
