"""`benchmarks.torch_models` compares the backend `mirstack` of torch.compile with eager torch."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from extras import library
from mirstack.benchmarks import torch_models
from mirstack.benchmarks.torch_models import Row

pytestmark = pytest.mark.extra
torch = library("torch", "torch")


def small(name: str) -> tuple[Any, tuple[Any, ...]]:
    assert name == "bert"
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16))
    return model.eval(), (torch.randn(3, 8),)


def test_a_model_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch_models, "built", small)
    monkeypatch.setitem(torch_models.PACKAGES, "bert", "torch")
    options = ["bert", "--no-inductor", "--seconds", "0.1"]
    torch_models.main(options)
    header, row, means = capsys.readouterr().out.splitlines()
    assert header.split() == ["model", "error", "eager", "ms", "eager", "inductor", "cold", "s", "inductor"]
    assert row.startswith("bert ") and means.startswith("geometric mean ")
    torch_models.main(["--json", *options])
    found = json.loads(capsys.readouterr().out)["bert"]
    assert found["error"] < 1e-5 and found["to_eager"] > 0 and found["cold"] > 0
    assert found["to_inductor"] is None


def test_a_line_has_all_ratios() -> None:
    assert Row(1e-7, 0.002, 0.5, 0.25, 3.0, 0.2).line("m").split() == [
        "m",
        "1.0e-07",
        "2.000",
        "0.50",
        "0.25",
        "3.00",
        "0.20",
    ]


def test_caches_are_those_of_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", "here")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    with torch_models.empty_caches():
        assert os.environ["MIRSTACK_CACHE"] != "here"
    assert os.environ["MIRSTACK_CACHE"] == "here"
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


def test_packages_that_are_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch_models, "find_spec", lambda _: None)
    with pytest.raises(SystemExit):
        torch_models.main([])
    assert "the packages of these models are not installed: torchvision, transformers" in capsys.readouterr().err
