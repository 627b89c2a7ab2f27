"""The corpus of recorded schedules: the same refusals, and scripts that are alpha-equal or compute the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "corpus"))
from reference import corpus_dir  # pyright: ignore[reportMissingImports]
from replay import available, replay, same_results
from tensor_intrinsics import register_all

# What is otherwise than TVM 0.16, and why.
DIFFERENT = {
    "258": "an inverse over digits that a domain cuts short",
    "own089": "TVM leaves a reader of the buffer that it removed",
    "own114": "TVM fails on itself: it makes a sequence of one statement",
    "629": "the recorded text lost that pad_value is an int8, which TVM refuses for an int32 buffer",
}
# Results that the interpreter takes long for, or cannot run (tensor-core loads, unknown external functions).
NOT_RUN = ("055", "070", "123", "124", "262")

register_all()
CASES = available(corpus_dir())


@pytest.mark.parametrize("path", CASES, ids=[p.stem[:50] for p in CASES])
def test_as_recorded(path: Path) -> None:
    number = path.stem.split("_")[0]
    if number in DIFFERENT or number[:6] in DIFFERENT:
        pytest.skip(DIFFERENT.get(number, DIFFERENT.get(number[:6], "")))
    outcome = replay(path)
    assert not outcome.stopped
    if outcome.other and number not in NOT_RUN:
        assert same_results(path), f"alpha-different after {outcome.other[0]}, and with other results"
