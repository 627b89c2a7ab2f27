"""Every executable Relay program of the corpus computes the same after rows of passes, and is valid after each of them."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.driver.check_each import array_difference
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.verify import find_errors
from reference import Case, cases, corpus_dir
from xdsl.context import Context

# Together, every pass that changes the form of a program rather than its operators.
ROWS = {
    "functions": "inline,eta-expand{expand-constructor=true expand-global-var=true},lambda-lift,eliminate-common-subexpr,"
    "to-a-normal-form,dead-code-elimination{inline-once=true},to-basic-block-normal-form,fuse-ops",
    "values": "partial-evaluate,dead-code-elimination,split-args{max-function-args=4},to-graph-normal-form,fuse-ops,"
    "defuse-ops,remove-unused-functions",
    "data": "defunctionalization,remove-unused-functions,fuse-ops{fuse-opt-level=0}",
}

REFUSED = {
    (name, "data"): "a data type that holds functions"
    for name in (
        "0146_pass_lazy_gradient_init__test_add",
        "0410_pass_lazy_gradient_init__test_mult",
        "0740_pass_lazy_gradient_init__test_ones",
        "0777_pass_lazy_gradient_init__test_zeros_like",
        "0811_pass_lazy_gradient_init__test_ones_like",
    )
}

CASES = [case for case in cases(corpus_dir("relay"), ".relay") if case.executable]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_meaning(case: Case) -> None:
    directory = str(case.json_path.parent)
    inputs = case.inputs()
    expected = flatten(interpret(parse_mir(case.text, case.name, directory=directory), "main", inputs))
    for row, pipeline in ROWS.items():
        if (case.name, row) in REFUSED:
            continue
        module = parse_mir(case.text, case.name, directory=directory)
        for module_pass in read_pipeline(pipeline, pass_factories()):
            module_pass.apply(Context(), module)
            assert find_errors(module) == [], f"after {module_pass}"
        found = flatten(interpret(module, "main", inputs))
        differences = [array_difference(old, new) for old, new in zip(expected, found, strict=True)]
        assert differences == [None] * len(differences), row
        printed = print_mir(module)
        assert print_mir(parse_mir(printed, directory=directory)) == printed, row
