"""`--starts` measures fresh processes: a warm start is quicker than a cold one."""

from __future__ import annotations

from pathlib import Path

import pytest
from mirstack.benchmarks.compare.start import OURS, Starts, measured


def test_a_warm_start_is_quicker_than_a_cold_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "1G")
    source = tmp_path / "m.mir"
    source.write_text("def @main(%x: Tensor[(4, 8), float32]) { nn.softmax(nn.relu(%x)) }")
    starts = measured(source, None, 1, 1)
    assert 0 < starts.warm < starts.cold
    words = starts.line("m").split()
    assert words[0] == "m" and len(words) == 3


def test_ratios_are_those_of_warm_starts() -> None:
    assert Starts(1.0, 0.2, 0.1, 0.4).line("m").split() == ["m", "1000", "200", "100", "400", "2.00", "0.50"]


def test_an_error_of_an_engine_is_raised(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="cannot be read"):
        measured(tmp_path / "none.mir", None, 1, 1)
    assert OURS == "mirstack"
