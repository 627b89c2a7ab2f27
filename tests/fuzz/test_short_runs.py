"""A short run of each kind of fuzzing, and what a run prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from extras import library
from mirstack.fuzz.command import KINDS, fuzzer_of, main

COUNTS = {"relay": 3, "tir": 10, "schedules": 10, "te": 15, "rules": 4, "passes": 6, "text": 150, "onnx": 30}
OURS = ("exception", "hang", "death")
# ONNX models need packages of an extra.
EACH_KIND = [pytest.param(kind, marks=[pytest.mark.extra] if kind == "onnx" else []) for kind in KINDS]


def needed(kind: str) -> None:
    """Skips a kind whose packages are not installed."""
    if kind == "onnx":
        library("onnx", "onnx")
        library("onnxruntime", "bench")


@pytest.mark.parametrize("kind", EACH_KIND)
def test_short_run(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No process dies or hangs, most programs are compared, and the counts are written. What differs is for campaigns to show."""
    needed(kind)
    file = tmp_path / "counts.json"
    code = main([kind, "--count", str(COUNTS[kind]), "--no-reduce", "--limit", "30", "--json", str(file)])
    counts = json.loads(file.read_text())
    assert code in (0, 1) and counts["programs"] == COUNTS[kind]
    assert not [f for f in counts["failures"] if f["kind"] in ("hang", "death")], counts["failures"]
    assert counts["compared"] > 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{kind}, seed 0: {COUNTS[kind]} programs, {sum(counts['refused'].values())} refused")


@pytest.mark.parametrize("kind", EACH_KIND)
def test_same_seed_same_programs(kind: str) -> None:
    needed(kind)
    fuzzer = fuzzer_of(kind)
    first, again, other = fuzzer.draw(3, 5), fuzzer.draw(3, 5), fuzzer.draw(4, 5)
    assert first.as_file() == again.as_file()
    assert first.as_file() != other.as_file()


def test_only_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tir", "--seed", "1", "--only", "4", "--show"]) == 0
    assert capsys.readouterr().out.rstrip("\n") == fuzzer_of("tir").draw(1, 4).text.rstrip("\n")


def test_wrong_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "plain.mir"
    plain.write_text("def @main() { 1 }\n")
    assert main(["relay", "--file", str(plain)]) == 2
    assert "is not a case of the fuzzer: its first line must begin with '// fuzz: '" in capsys.readouterr().err
    none = tmp_path / "none.mir"
    assert main(["relay", "--file", str(none)]) == 2
    assert capsys.readouterr().err == f"mirstack.fuzz: error: {none} cannot be read: No such file or directory\n"
    plain.write_text("// fuzz: {\n")
    assert main(["relay", "--file", str(plain)]) == 2
    with pytest.raises(SystemExit):
        main(["relay", "--seed", "-1"])
    assert "'-1' is not a whole number from 0 on" in capsys.readouterr().err


def test_without_hypothesis(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(kind: str) -> None:
        raise ModuleNotFoundError("No module named 'hypothesis'", name="hypothesis")

    monkeypatch.setattr("mirstack.fuzz.command.fuzzer_of", missing)
    assert main(["relay", "--count", "1"]) == 2
    said = "relay programs need hypothesis, which is not installed"
    assert capsys.readouterr().err == f"mirstack.fuzz: error: {said}\nnote: pip install 'mirstack[fuzz]'\n"
