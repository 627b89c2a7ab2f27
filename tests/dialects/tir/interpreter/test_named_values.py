"""`with T.LetStmt(value, var=t)` binds a variable of the text: everything runs it, without a warning."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest

HEAD = """@T.prim_func
def main(I: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
    for a in range(8):
"""
LOOP = (
    HEAD
    + """        t = T.int32()
        with T.LetStmt(I[a] + 1, var=t):
            Y[a] = t * t
"""
)
BLOCK = (
    HEAD
    + """        with T.block("Y"):
            va = T.axis.spatial(8, a)
            t = T.int32()
            with T.LetStmt(I[va] + 1, var=t):
                Y[va] = t * t
"""
)


@pytest.mark.parametrize("text", (LOOP, BLOCK, LOOP.replace("range", "T.vectorized")))
def test_variables_of_let_statements(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = mirstack.parse(text)
    runs: list[Any] = [mirstack.compile(module, "interp")]
    runs += [mirstack.compile(module, opt_level=level) for level in (0, 1, 3)]
    x = np.arange(8, dtype=np.int32)
    for run in runs:
        y = np.zeros(8, np.int32)
        run(x, y)
        np.testing.assert_array_equal(y, (x + 1) ** 2)
    assert "warning" not in capsys.readouterr().err
