"""Maps of compiled functions for perf: names, addresses, sizes; files that are not written to."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path

import mirstack
import pytest
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.lowering.llvm.jit import perf_map
from mirstack.support import settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")

NET = """
def @main(%x: Tensor[(512, 512), float32]) {
  nn.relu(%x)
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(perf_map, "_FOLDER", tmp_path)
    monkeypatch.setattr(settings, "_SAID", set[str]())
    monkeypatch.setenv("MIRSTACK_PERF", "map")
    return tmp_path


def compiled() -> RelayExecutable:
    executable = mirstack.compile(mirstack.parse(NET), threads=2)
    assert isinstance(executable, RelayExecutable)
    return executable


def test_names_addresses_and_sizes(folder: Path):
    executable = compiled()
    (path,) = folder.iterdir()
    assert path.name == f"perf-{os.getpid()}.map" and path.stat().st_mode & 0o777 == 0o600
    found = {
        name: (int(start, 16), int(size, 16)) for start, size, name in map(str.split, path.read_text().splitlines())
    }
    code = executable._code  # pyright: ignore[reportPrivateUsage]
    for name in code.exports:
        assert found[name][0] == code.address(name)
    # The body of the loop on threads is not exported.
    assert [name for name in found.keys() - code.exports if name.startswith("fused_nn_relu.") and "parallel" in name]
    places = sorted(found.values())
    assert all(start + size <= following for (start, size), (following, _) in pairwise(places))


def test_without_the_setting(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MIRSTACK_PERF")
    compiled()
    assert not list(folder.iterdir())


def test_another_word(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("MIRSTACK_PERF", "lines")
    compiled()
    assert not list(folder.iterdir())
    assert "MIRSTACK_PERF is 'lines', which counts as absent: it takes map or jitdump" in capsys.readouterr().err


def test_a_link_is_not_followed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    target = tmp_path / "precious"
    target.write_text("kept")
    (folder / f"perf-{os.getpid()}.map").symlink_to(target)
    compiled()
    assert target.read_text() == "kept"
    assert "is not written, so perf shows addresses" in capsys.readouterr().err
