"""A process forked at the beginning lowers kernels to what this process would lower them to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import mirstack
import pytest
from mirstack.dialects import te
from mirstack.lowering.driver.build import Passes
from mirstack.lowering.driver.cache.kernel_reader import KernelReader, locations_json
from mirstack.lowering.driver.cache.kernels import Candidate, KernelCache, KernelText
from mirstack.lowering.driver.lowering_process import LoweringProcess
from mirstack.lowering.driver.units import Unit, split
from mirstack.lowering.driver.workers import can_fork
from mirstack.lowering.options import Options
from mirstack.lowering.pipeline import graph_passes
from mirstack.support.walk import walk_ops

MODEL = """
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32], %n: Tensor[(8), int32]) {
  let %c = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=8, strides=[2, 2]);
  let %s = nn.softmax(nn.batch_flatten(nn.relu(add(%c, 0.1f))));
  (%s, split(take(%s, %n, axis=1), indices_or_sections=2, axis=1), floor_divide(%n, %n))
}
"""
PROGRAM = """
import mirstack

with mirstack.timing() as times:
    mirstack.compile("m.mir", threads=2)
print(times.report())
"""


def kernels() -> list[Unit]:
    module = mirstack.parse(MODEL)
    Passes().run(graph_passes(Options()), module)
    units = split(module)
    assert units
    return units


def test_kernels_are_the_same_on_disk(tmp_path: Path) -> None:
    (tmp_path / "m.mir").write_text(MODEL)
    reports: list[str] = []
    files: list[dict[str, bytes]] = []
    for workers in "01":
        folder = tmp_path / f"cache{workers}"
        environment = {
            **os.environ,
            "MIRSTACK_CACHE": str(folder),
            "MIRSTACK_CACHE_LIMIT": "1G",
            "MIRSTACK_WORKERS": workers,
        }
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, cwd=tmp_path)
        reports.append(done.stdout)
        files.append({file.name: file.read_bytes() for file in (folder / "compiled").glob("*.kernel")})
    assert "lowering, beside" not in reports[0]
    assert "lowering, beside" in reports[1]
    assert len(files[0]) >= 3
    assert files[0] == files[1]


def test_a_kernel_is_read_back_with_its_places() -> None:
    for unit in kernels():
        (function,) = unit.module.ops
        text, locations = KernelText()(function), locations_json(function)
        assert isinstance(function, te.FuncOp) and locations is not None
        read = KernelReader()(text, locations)
        read.verify()
        assert KernelText()(read) == text
        assert [op.location for op in walk_ops(read)] == [op.location for op in walk_ops(function)]


@pytest.mark.skipif(not can_fork(), reason="the process cannot be forked")
def test_a_process_that_ended_lowers_nothing() -> None:
    unit = kernels()[0]
    unit.add_stubs()
    candidate = KernelCache(None, b"").candidate(unit)
    assert candidate is not None
    process = LoweringProcess(Options())
    try:
        ((number, answer),) = process.lower_all([(candidate, unit)], "main")
        facts, text = answer or ({}, "")
        assert number == 0 and facts["functions"][0]["symbol"] == candidate.symbol
        assert f"@{candidate.symbol}" in text
        os.kill(process.number, signal.SIGKILL)
        assert list(process.lower_all([(candidate, unit)] * 2, "main")) == [(0, None), (1, None)]
    finally:
        process.close()
    # A second time nothing is ended: the number may be another process's by then.
    process.number = os.getpid()
    process.close()


@pytest.mark.skipif(not can_fork(), reason="the process cannot be forked")
def test_several_processes_lower_each_kernel_once() -> None:
    units = kernels()
    cache = KernelCache(None, b"")
    asked: list[tuple[Candidate, Unit]] = []
    for unit in units:
        unit.add_stubs()
        candidate = cache.candidate(unit)
        assert candidate is not None
        asked.append((candidate, unit))
    alone, several = LoweringProcess(Options()), LoweringProcess(Options(), 3)
    try:
        expected = dict(alone.lower_all(asked, "main"))
        found = list(several.lower_all(asked, "main"))
    finally:
        alone.close()
        several.close()
    assert sorted(number for number, _ in found) == list(range(len(asked)))
    assert dict(found) == expected and None not in expected.values()
