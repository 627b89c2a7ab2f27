"""Every golden case of a Relay pass: what comes out has TVM's operators, groups and functions, and computes the same."""

from __future__ import annotations

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import PASSES
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from pass_cases import UNREADABLE, Counts, PassCase, load_cases, pass_name
from reference import corpus_dir

# Cases whose program differs from TVM's, with the reason. What they compute is compared all the same.
DIFFERENT: dict[str, str] = {}

# Cases that TVM refuses and that are compiled here, with the reason.
ACCEPTED: dict[str, str] = {
    "CombineParallelDense/min2_batch1_err1": "a bias keeps its layers apart from the batch; TVM stacks it along a wrong axis and fails",
    "PartialEvaluate/err1": "two branches share a value; TVM fails on it in a check of its own",
    "ConvertLayout/nchw_err1": "it is in blocks already and stays so; TVM divides the places of its split by the block again",
    "Legalize/vnni_err2": "channels need no padding to vectors here; TVM pads them and wants every size for that",
    "FirstOrderGradient/err2": "a let is only a name here; TVM fails on it in a check of its own",
}

# Cases whose outputs are not those of the program before, in TVM as well.
OUTPUTS_CHANGE: dict[str, str] = {
    "ForwardFoldScaleAxis/023": "TVM folds a scale through a bias",
}


FOLDERS = sorted(path for path in corpus_dir("relay_passes").iterdir() if path.is_dir())
CASES = load_cases(FOLDERS)
REGISTERED = {entry.name for entry in PASSES}
RUN = [case for case in CASES if REGISTERED.issuperset(case.pass_names)]
GOLDEN = [case for case in RUN if not case.is_refused]
REFUSED = [case for case in RUN if case.is_refused]


def case_id(case: PassCase) -> str:
    return case.id


def test_every_pass_is_there() -> None:
    missing = {name for case in CASES for name in case.pass_names} - REGISTERED
    print(f"{len(RUN)} of {len(CASES)} cases run; missing: {', '.join(sorted(missing)) or 'none'}")
    assert not missing


def test_names() -> None:
    assert pass_name("ToANormalForm") == "to-a-normal-form"
    assert pass_name("CombineParallelConv2D") == "combine-parallel-conv2d"


@pytest.mark.parametrize("which", ["before", "after"])
def test_counts_are_those_of_the_corpus(which: str) -> None:
    """TVM's own programs, read and counted here, have the numbers that TVM gives."""
    failures: list[str] = []
    for case in CASES:
        if which not in case.info or case.id in UNREADABLE:
            continue
        module = case.read(".in.relay" if which == "before" else ".out.relay")
        difference = Counts.recorded(case.info[which], module).difference(Counts.of(module))
        if difference is not None:
            failures.append(f"{case.id}: {difference}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("case", GOLDEN, ids=case_id)
def test_golden(case: PassCase) -> None:
    before, module = case.read(".in.relay"), case.read(".in.relay")
    case.run(module)
    assert find_errors(module) == []
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    if case.id not in OUTPUTS_CHANGE:
        case.compare_outputs(before, module)
    if case.only_outputs:
        return
    difference = case.expected_counts().difference(Counts.of(module))
    if case.id in DIFFERENT:
        assert difference is not None, "no longer different: take it off the list"
    else:
        assert difference is None, f"{difference}\n{printed[-3000:]}"


# Passes that leave nothing to do for a second run. (A partial evaluation goes another round of each recursion; a gradient
# of a gradient is another.)
IDEMPOTENT = {
    "dead-code-elimination", "defunctionalization", "defuse-ops", "eliminate-common-subexpr", "eta-expand", "fuse-ops",
    "inline", "lambda-lift", "remove-unused-functions", "split-args", "to-a-normal-form", "to-basic-block-normal-form",
    "to-graph-normal-form",
}  # fmt: skip


@pytest.mark.parametrize("case", [case for case in GOLDEN if IDEMPOTENT.issuperset(case.pass_names)], ids=case_id)
def test_idempotent(case: PassCase) -> None:
    module = case.read(".in.relay")
    case.run(module)
    once = print_mir(module)
    case.run(module)
    assert print_mir(module) == once


@pytest.mark.parametrize("case", REFUSED, ids=case_id)
def test_refused(case: PassCase) -> None:
    try:
        before, module = case.read(".in.relay"), case.read(".in.relay")
        case.run(module)
    except MirError:
        assert case.id not in ACCEPTED
        return
    assert case.id in ACCEPTED, "TVM refuses this"
    assert find_errors(module) == []
    case.compare_outputs(before, module)
