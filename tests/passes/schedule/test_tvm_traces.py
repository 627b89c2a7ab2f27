"""Traces as TVM printed them, in the corpus of recorded schedules: read as they are, they lead to the recorded programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mirstack.dialects.schedule import ScriptOp
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule
from mirstack.passes.schedule.engine.script import run_script

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "corpus"))
from reference import corpus_dir  # pyright: ignore[reportMissingImports]
from replay import alpha, available, replayed
from tensor_intrinsics import register_all

# What is otherwise than in TVM 0.16, and why.
DIFFERENT = {
    "145": "a reduction is not moved behind part of its input",
    "258": "an inverse over digits that a domain cuts short",
    "own089": "TVM leaves a reader of the buffer that it removed",
    "own143": "a padded layout must be padded before",
    "661": "a padded layout must be padded before",
    "662": "the map uses a variable of the Python program around it",
}


def traces(corpus: Path) -> list[Path]:
    """The cases with a trace whose primitives are there, and that ends well."""
    found: list[Path] = []
    for path in available(corpus):
        case = json.loads(path.read_text())
        if "def apply_trace" in (case.get("tvm_trace") or "") and not case["error_class"]:
            found.append(path)
    return found


register_all()
CASES = traces(corpus_dir())


@pytest.mark.parametrize("path", CASES, ids=[p.stem[:50] for p in CASES])
def test_as_recorded(path: Path) -> None:
    number = path.stem.split("_")[0]
    if number in DIFFERENT:
        pytest.skip(DIFFERENT[number])
    case = json.loads(path.read_text())
    module = parse_mir(case["tvm_trace"])
    text = print_mir(module)
    assert print_mir(parse_mir(text)) == text
    (script,) = module.body.block.ops
    assert isinstance(script, ScriptOp)
    schedule = Schedule(parse_mir(case["before"]))
    run_script(script, schedule)
    found = print_mir(schedule.module)
    # Where the recorded calls are no Python only what TVM came to is there to compare with.
    assert found == print_mir(replayed(path)[1].module) or alpha(found) == alpha(print_mir(parse_mir(case["after"])))
