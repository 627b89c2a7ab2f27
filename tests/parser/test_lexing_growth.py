"""No run of blanks, quotes, brackets, … makes a reader of text take longer than in proportion to its length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("size", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_reading_is_linear(size: int):
    program = Path(__file__).with_name("lexing_growth.py")
    # In a process of its own: one regular expression that tries all ways to split 10,000 blanks would never end.
    ran = subprocess.run([sys.executable, program, str(size)], capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, ran.stderr
    slow, _, checked = ran.stdout.rpartition("checked ")
    assert not slow, slow
    assert int(checked) > 2000
