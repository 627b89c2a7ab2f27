"""The corpus of TIR programs under the interpreter: what each computes is what TVM recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError
from reference import OUT_OF_BOUNDS, UNDEFINED, Case, cases, corpus_dir

EXECUTABLE = [case for case in cases(corpus_dir("tir"), ".py") if case.executable]


def run(case: Case) -> list[object]:
    """The parameters' values after the entry ran on the recorded inputs."""
    module = parse_mir(case.text)
    functions = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    entry = next((f for f in functions if f.sym_name.data == case.info["entry"]), functions[0])
    values = case.inputs()
    names = [name.data for name in entry.param_names.data]
    interpret_prim_func(entry, dict(zip(names, values, strict=True)), module)
    return values


@pytest.mark.parametrize("case", EXECUTABLE, ids=[case.name[:60] for case in EXECUTABLE])
def test_recorded_result(case: Case):
    if case.name.startswith(OUT_OF_BOUNDS):
        with pytest.raises(MirError, match="is outside"):
            run(case)
        return
    values = run(case)
    if not case.name.startswith(UNDEFINED):
        case.check(values)
