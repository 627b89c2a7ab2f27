"""Where a pipeline is watched, large arrays are named instead of written out; the output itself holds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.dialects.array import ArrayValueAttr
from mirstack.driver.targets import MlirStyle, print_mlir
from xdsl.dialects.builtin import ModuleOp

TEXT = """#[version = "0.0.5"]
#[constants = "w.npz"]
def @main(%x: Tensor[(1000), float32]) { multiply(add(%x, meta[relay.Constant][big]), meta[relay.Constant][small]) }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    np.savez(tmp_path / "w.npz", big=np.arange(1000, dtype="float32"), small=np.ones(1, "float32"))
    path = tmp_path / "model.mir"
    path.write_text(TEXT)
    return path


def test_watching_names_large_arrays(mir_opt: Callable[..., Any], model: Path):
    ran = mir_opt(model, "-t", "mlir", "-p", "fuse-ops", "--print-ir-after-all")
    assert '#mirstack.array<"float32", [1000], elided "w.npz", "big">' in ran.err
    assert '#mirstack.array<"float32", [1], "AACAPw==">' in ran.err
    assert "elided" not in ran.out
    assert len(ran.out) > 4 * 1000 * 4 / 3


def test_timing_counts_named_arrays(mir_opt: Callable[..., Any], model: Path):
    ran = mir_opt(model, "-t", "mlir", "-p", "fuse-ops", "--timing")
    (row,) = (line.split() for line in ran.err.splitlines() if line.startswith("fuse-ops"))
    assert int(row[-1]) < 4 * 1000


def test_a_dump_can_be_read_back(mir_opt: Callable[..., Any], model: Path, tmp_path: Path):
    mir_opt(model, "-t", "mlir", "-p", "fuse-ops", "--dump-ir", tmp_path / "dump")
    dumped = tmp_path / "dump" / "001_fuse-ops.mir"
    assert "elided" not in dumped.read_text()
    assert mir_opt(dumped, "-f", "mlir").code == 0


def test_an_array_of_no_file_is_named_by_its_digest():
    attribute = ArrayValueAttr.of(np.zeros((10, 10), "int8"))
    module = ModuleOp([], {"weights": attribute})
    shown = print_mlir(module, MlirStyle(elide=True))
    assert f'#mirstack.array<"int8", [10, 10], elided "{attribute.data.digest.hex()}">' in shown
    assert "elided" not in print_mlir(module)
