"""`benchmarks.artifacts` prints a line of figures for each program."""

from __future__ import annotations

import pytest
from extras import absent
from mirstack.benchmarks.artifacts import DIGITS, main
from mirstack.lowering.driver.artifacts.link import linker

pytestmark = pytest.mark.extra
if linker() is None:
    absent("ziglang", "link")


def test_a_program_is_measured(capsys: pytest.CaptureFixture[str]):
    main([str(DIGITS), "--seconds", "0.1"])
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "program" and line.split()[0] == "digits"
    code, weights, *times = map(float, line.split()[1:])
    # 17,226 floats.
    assert 5 < code < 200 and weights == 0.07 and all(each > 0 for each in times)
