"""Every Relay program of the corpus as Python nodes and back: the same program, which computes the same."""

from __future__ import annotations

from pathlib import Path

import mirstack
import pytest
from mirstack import ir, transform
from mirstack.driver.check_each import first_difference, interpret
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from reference import corpus_dir

FILES = [*sorted(corpus_dir("relay").glob("*.relay")), *sorted(corpus_dir("relay_passes").glob("*/*.in.relay"))]


@pytest.mark.parametrize("part", range(8))
def test_through_nodes_and_back(part: int) -> None:
    read = 0
    for file in FILES[part::8]:
        try:
            original = parse_mir(file.read_text(), str(file), directory=str(file.parent))
        except MirError:
            continue  # What TVM refuses, too.
        read += 1
        before = mirstack.IRModule.of_op(original)
        functions = {name: before[name] for name in before.get_global_vars()}
        after = transform.InferType()(mirstack.IRModule(functions, before.type_definitions))
        assert find_errors(after.op) == [], file
        assert ir.structural_equal(before, after), file
        assert ir.structural_hash(before) == ir.structural_hash(after), file
        if print_mir(original) != print_mir(after.op):
            _check_results(file, before, after)
    assert read > 50


def _check_results(file: Path, before: mirstack.IRModule, after: mirstack.IRModule) -> None:
    try:
        expected = interpret(before.op, 0)
    except MirError:
        return  # A function of functions, or of sizes that do not fit each other: nothing to run.
    difference = first_difference(expected, interpret(after.op, 0))
    assert difference is None, (file, difference)
