"""The corpus of recorded schedules: their traces print, read back and replay to the same program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "corpus"))
from reference import corpus_dir  # pyright: ignore[reportMissingImports]
from replay import available, replayed
from tensor_intrinsics import register_all
from test_trace import check_replays

register_all()
CASES = available(corpus_dir())


@pytest.mark.parametrize("path", CASES, ids=[p.stem[:50] for p in CASES])
def test_recorded_schedules(path: Path) -> None:
    before, schedule = replayed(path)
    check_replays(before, schedule)
