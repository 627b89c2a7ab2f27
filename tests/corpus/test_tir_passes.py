"""Every golden case of a TIR pass: what comes out is TVM's program, names aside, or one that computes the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import PASSES
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from reference import corpus_dir
from tir_pass_cases import CannotRun, TirPassCase, load_cases, pass_name

# Cases whose program is written otherwise than TVM's, with the reason. They compute the same, or cannot be run at all.
DIFFERENT: dict[str, str] = {
    "FlattenBuffer/001": "a sum is one sum",
    "FlattenBuffer/003": "a buffer of one dimension needs no view, and an index no detour",
    "FlattenBuffer/007": "indices are shorter: a loop of one turn has its variable as 0; views stand at the beginning",
    "HoistIfThenElse/005": "a variable that has one value left is that number",
    "HoistIfThenElse/018": "a thread launched in both sides is launched by each",
    "LoopPartition/006": "a minimum is known, and gone; a thread launched in two loops is launched by each",
    "LoopPartition/007": "the parts have no turns where the size is negative; TVM's second one then has some",
    "PlanAndUpdateBufferAllocationLocation/002": "a buffer is allocated around the block that uses it, not inside",
    "PlanAndUpdateBufferAllocationLocation/003": "reads and writes of a block that came to hold a buffer name it, too",
    "Simplify/014": "a loop of at most one turn has its variable as 0",
    "Simplify/017": "a minimum is known, and gone, where TVM keeps it",
    "VectorizeLoop/010": "as many lanes as are known at run time only: the loop is serial",
    "VectorizeLoop/012": "as 010",
    "VectorizeLoop/013": "a condition that differs between lanes is a mask",
    "VectorizeLoop/015": "as 013",
    "VectorizeLoop/024": "as 010",
    "BF16ComputeLegalize/002": "conversions are casts, which keep NaN; TVM's are shifts",
    "InjectVirtualThread/001": "a view is as large as its memory, 16 elements, where TVM's text says 128",
    "StorageRewrite/005": "TVM's text uses memory outside of the loop that allocates it; here it is allocated outside",
    "StorageRewrite/006": "as 005",
}

# Cases that TVM refuses and that are compiled here, with the reason.
ACCEPTED: dict[str, str] = {
    "VectorizeLoop/006": "a loop of vectors is serial",
    "VectorizeLoop/007": "as 006",
    "VectorizeLoop/008": "as 006",
    "ConvertBlocksToOpaque/004": "an axis in T.where stands for what binds it",
    "StorageRewrite/017": "TVM's test limits a kind of memory of its own",
}

# Passes of the corpus that are none of this project's.
LEFT_OUT: dict[str, str] = {
    "AnnotateEntryFunc": "about the runtime's modules",
    "Apply": "a hook of Python's, given to each function",
    "BindTarget": "about the runtime's modules",
    "CoProcSync": "for accelerators",
    "CombineContextCall": "about the runtime's packed calls",
    "DefaultGPUSchedule": "for GPUs",
    "ExtractPrimFuncConstants": "about the runtime's modules",
    "FP8StorageLegalize": "8-bit floats are values here",
    "InjectCopyIntrin": "for accelerators",
    "InjectPermutedLayout": "for GPUs",
    "InjectRollingBuffer": "the schedule primitive does it here",
    "InstrumentProfileIntrinsics": "for accelerators",
    "LiftAttrScope": "for accelerators",
    "LowerAutoCopy": "for GPUs",
    "LowerCrossThreadReduction": "for GPUs",
    "LowerDeviceKernelLaunch": "for GPUs",
    "LowerThreadAllreduce": "for GPUs",
    "MakePackedAPI": "about the runtime's packed calls",
    "MakeUnpackedAPI": "about the runtime's calls",
    "OOBChecker": "check-open-bounds and the interpreter tell of accesses outside",
    "PointerValueTypeRewrite": "handles are typed here",
    "PrintIR": "--print-ir-after does it here",
    "ReduceBranchingThroughOvercompute": "for accelerators",
    "RemoveAssume": "assumptions are not lowered here",
    "StorageFlatten": "flatten-buffer does it here",
    "ThreadSync": "for GPUs",
    "VerifyMemory": "for GPUs",
}

CASES = load_cases(corpus_dir("tir_passes"))
REGISTERED = {entry.name for entry in PASSES}
RUN = [case for case in CASES if pass_name(case.folder) in REGISTERED]
GOLDEN = [case for case in RUN if not case.is_refused]
REFUSED = [case for case in RUN if case.is_refused]


def case_id(case: TirPassCase) -> str:
    return case.id


def test_names() -> None:
    assert pass_name("CommonSubexprElimTIR") == "common-subexpr-elim-tir"
    assert pass_name("ConvertSSA") == "convert-ssa"


def test_what_is_left_out_is_not_there() -> None:
    assert not {pass_name(folder) for folder in LEFT_OUT} & REGISTERED


@pytest.mark.parametrize("case", GOLDEN, ids=case_id)
def test_golden(case: TirPassCase) -> None:
    module = case.run()
    assert find_errors(module) == []
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    difference = case.difference(module)
    if case.id not in DIFFERENT:
        assert difference is None, difference
        return
    assert difference is not None, "no longer different: take it off the list"
    try:
        assert case.meaning_difference(module) is None
    except CannotRun as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("case", REFUSED, ids=case_id)
def test_refused(case: TirPassCase) -> None:
    try:
        case.run()
    except MirError:
        assert case.id not in ACCEPTED
    else:
        assert case.id in ACCEPTED, "TVM refuses this"
