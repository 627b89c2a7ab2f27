"""What is planted is found and made small: wrong results, hangs, dead processes, exhausted memory, exceptions."""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.fuzz import ways
from mirstack.fuzz.case import Case, Failure, Verdict
from mirstack.fuzz.command import argument_parser, fuzzer_of, main, run
from mirstack.fuzz.pool import Limits, Pool
from mirstack.fuzz.reduce import ON_TEXT, Effort, reduce
from mirstack.parser import parse_mir
from mirstack.support.walk import walk_ops


def options(*arguments: str) -> argparse.Namespace:
    return argument_parser().parse_args(arguments)


@dataclass
class Planted:
    """A fuzzer whose programs are numbers; one does what is planted."""

    what: str
    shrinkers = ON_TEXT

    def draw(self, seed: int, number: int) -> Case:
        return Case("text", f"{seed} {number}")

    def check(self, case: Case) -> Verdict:
        if "3" in case.text.split():
            match self.what:
                case "hang":
                    while True:
                        pass
                case "sleep":
                    time.sleep(1000)
                case "abort":
                    os.abort()
                case "exit":
                    os._exit(7)
                case "memory":
                    np.ones(1 << 36)
                case _:
                    raise KeyError("planted")
        return Verdict(compared=1)


@pytest.mark.parametrize(
    "what, kind, said",
    [
        ("hang", "hang", "no answer after"),
        ("sleep", "hang", "no answer after"),
        ("abort", "death", "the process ended by SIGABRT"),
        ("exit", "death", "the process ended by exit code 7"),
        ("memory", "exception", "MemoryError"),
        ("raise", "exception", "KeyError: 'planted'"),
    ],
)
def test_process_is_watched(what: str, kind: str, said: str) -> None:
    """The program is told of, and the others run on."""
    pool = Pool(Planted(what), 2, Limits(0.3, 4 << 30))
    try:
        outcomes = {number: (case, verdict) for number, case, verdict in pool.run((0, n) for n in range(6))}
    finally:
        pool.close()
    assert sorted(outcomes) == list(range(6))
    case, verdict = outcomes.pop(3)
    assert case is not None and case.text == "0 3"
    (failure,) = verdict.failures
    assert failure.kind == kind and said in failure.what
    assert all(not verdict.failures for _, verdict in outcomes.values())


def miscompile(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Native code of programs that hold an op is off by one in every result."""
    right = ways.run_natively

    def wrong(module: Any, *rest: Any) -> dict[str, np.ndarray]:
        results = right(module, *rest)
        held = any(
            op.name == name or (isinstance(op, OperatorOp) and op.OPERATOR.name == name) for op in walk_ops(module)
        )
        return {key: value + 1 if held and value.dtype != bool else value for key, value in results.items()}

    monkeypatch.setattr(ways, "run_natively", wrong)


def reduced(kind: str, tmp_path: Path, arguments: list[str]) -> list[dict[str, Any]]:
    """The failures of a run, each of which has been written to a file that fails, too."""
    counts = tmp_path / "counts.json"
    assert main([kind, *arguments, "--tell", "1", "--json", str(counts), "--out", str(tmp_path / "found")]) == 1
    failures = [f for f in json.loads(counts.read_text())["failures"] if "file" in f]
    for failure in failures:
        assert main([kind, "--file", failure["file"], "--no-reduce"]) == 1
    return failures


def test_wrong_relay_operator_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that is left holds the operator, and at most two besides."""
    miscompile(monkeypatch, "tanh")
    # Of graphs: functions that call themselves hold an operator or another, as the draw has it.
    number = next(n for n in range(2000) if n % 10 < 4 and " tanh(" in fuzzer_of("relay").draw(0, n).text)
    (failure, *_) = reduced("relay", tmp_path, ["--first", str(number), "--count", "1"])
    operators = [op for op in walk_ops(parse_mir(failure["text"])) if isinstance(op, OperatorOp)]
    assert "tanh" in failure["text"] and len(operators) <= 3, failure["text"]


def test_wrong_tir_statement_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function that is left has one select, in one store."""
    miscompile(monkeypatch, "tir.select")
    texts = ((n, fuzzer_of("tir").draw(0, n).text) for n in range(2000))
    number = next(n for n, text in texts if "T.Select" in text and "float" not in text)
    (failure, *_) = reduced("tir", tmp_path, ["--first", str(number), "--count", "1"])
    assert failure["text"].count("T.Select") == 1 and failure["text"].count("] = ") == 1, failure["text"]


def test_exception_of_a_text_is_reduced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A text of which a token raises is cut to the token."""

    class Raising:
        shrinkers = ON_TEXT

        def draw(self, seed: int, number: int) -> Case:
            return Case("text", f"line {number}\nanother line of it\nthe bad one\n")

        def check(self, case: Case) -> Verdict:
            if "bad" in case.text:
                raise ValueError("bad text")
            return Verdict(compared=1)

    assert run(Raising(), options("text", "--count", "1")) == 1
    out = capsys.readouterr().out.splitlines()
    assert "program 0 of seed 0: exception: while the case was checked: ValueError: bad text" in out[0]
    assert out[2] == "bad"
    assert out[3] == "repeat by: python -m mirstack.fuzz text --seed 0 --only 0"


def test_reducing_keeps_the_failure() -> None:
    """What fails in another way is not taken for smaller."""
    case = Case("text", "a b c d")

    def check(candidate: Case) -> Verdict:
        verdict = Verdict()
        if "c" in candidate.text:
            verdict.fail("one", "", "")
        elif "a" in candidate.text:
            verdict.fail("two", "", "")
        return verdict

    assert reduce(case, Failure("one", "", ""), check, ON_TEXT, Effort()).text == "c"
    assert reduce(case, Failure("three", "", ""), check, ON_TEXT, Effort()).text == "a b c d"


def test_case_reads_as_it_is_written(tmp_path: Path) -> None:
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    case = Case("relay", "def @main() { 1 }\n", {"x": special, "k": np.array(2**63, np.uint64)}, {"ways": [[3, "", 2]]})
    file = tmp_path / "case.mir"
    file.write_text(case.as_file())
    again = Case.of_file(file)
    assert again.as_file() == case.as_file() and again.text == case.text
    assert again.inputs["x"].tobytes() == special.tobytes() and again.inputs["k"] == 2**63
