"""The benchmark of profiles measures a program, and its shares add up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mirstack.benchmarks import profiling


def test_shares_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    net = tmp_path / "net.mir"
    net.write_text(
        "def @main(%x: Tensor[(4, 8), float32], %i: Tensor[(2), int32]) {\n"
        "  %0 = nn.softmax(%x);\n  %1 = nn.softmax(%0);\n  take(%1, %i, axis=0)\n}\n"
    )
    monkeypatch.setattr("sys.argv", ["profiling", str(net), "--calls", "4"])
    profiling.main()
    *parts, outside = [float(share) for share in re.findall(r"(\S+)%$", capsys.readouterr().out, re.MULTILINE)]
    assert len(parts) == 3 and all(0 <= part <= 100 for part in parts)
    assert sum(parts) == pytest.approx(outside, abs=0.05)
    assert outside < 100
