"""A program from the cache is loaded without xDSL, whose import takes longer than all else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from mirstack.lowering.driver.program import DYNAMIC
from xdsl.dialects.builtin import DYNAMIC_INDEX

MODEL = """#[version = "0.0.5"]
#[constants = "weights.npz"]
def @main(%x: Tensor[(?, 4), float32]) { nn.softmax(nn.dense(%x, meta[relay.Constant]["w"])) }
"""
PROGRAM = """
import sys
import mirstack
import numpy as np

assert mirstack.compile("m.mir")(np.ones((2, 4), np.float32)).shape == (2, 8)
print(*sorted(name for name in sys.modules if name.startswith(("xdsl.ir", "xdsl.dialects", "lark", "mirstack.parser"))))
"""


def test_nothing_of_xdsl_is_imported(tmp_path: Path) -> None:
    np.savez(tmp_path / "weights.npz", w=np.ones((8, 4), np.float32))
    (tmp_path / "m.mir").write_text(MODEL)
    environment = {**os.environ, "MIRSTACK_CACHE": str(tmp_path / "cache"), "MIRSTACK_CACHE_LIMIT": "1G"}
    imported: list[list[str]] = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True, cwd=tmp_path
        )
        imported.append(done.stdout.split())
    assert "xdsl.dialects.builtin" in imported[0]
    assert imported[1] == []


def test_open_extents_are_those_of_xdsl() -> None:
    assert DYNAMIC == DYNAMIC_INDEX
