"""`benchmarks/kernels.py` finds a model's kernels, and calls each."""

from __future__ import annotations

import mirstack
import pytest
from mirstack.benchmarks import kernels

TEXT = """
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {
  %0 = nn.relu(nn.dense(%x, %w));
  %1 = nn.relu(nn.dense(%0, %w));
  (sum(%1), split(%1, indices_or_sections=2).0)
}
"""


def test_profile(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernels, "SECONDS", 0.0)
    found = {kernel.name: kernel for kernel in kernels.profile(mirstack.parse(TEXT), threads=1)}
    dense = found["fused_nn_dense_nn_relu"]
    assert (dense.calls, dense.flops, dense.size) == (2, 2 * 4 * 8 * 8 + 4 * 8, 4 * (4 * 8 + 8 * 8 + 4 * 8))
    assert all(kernel.seconds > 0 for kernel in found.values()) and "fused_split" in found
    kernels.show(list(found.values()), 10)
    shown = capsys.readouterr().out
    assert "fused_nn_dense_nn_relu" in shown and shown.splitlines()[-1].startswith(f"{len(found)} kernels, ")
