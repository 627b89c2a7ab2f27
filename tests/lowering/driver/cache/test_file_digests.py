"""Digests of files: kept for files that have not changed, and computed again for all others."""

from __future__ import annotations

import os
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.dialects.side_file import SideFile, write_safetensors
from mirstack.lowering.driver.cache.file_digests import KIND, FileDigests
from mirstack.lowering.driver.cache.programs import wait_for_writing
from mirstack.lowering.driver.cache.store import Store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MIRSTACK_CACHE_LIMIT", raising=False)
    monkeypatch.setattr("mirstack.lowering.driver.cache.keys.compiler", lambda: b"this one")
    found = Store.open()
    assert found is not None
    return found


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as old as soon as they are written."""
    monkeypatch.setattr("mirstack.lowering.driver.cache.file_digests.SETTLED", -1)


def write(path: Path, scale: float = 1.0) -> SideFile:
    arrays = {"v": np.full(3, scale, "float32"), "w": np.arange(40000, dtype="float32") * np.float32(scale)}
    if path.suffix == ".npz":
        np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
    else:
        write_safetensors(path, arrays)
    return SideFile(path)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.usefixtures("settled")
def test_a_file_is_hashed_once(tmp_path: Path, store: Store, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"w{suffix}"
    first = FileDigests(store).of_arrays(write(path))
    assert store.usage().files == {KIND: 1}
    read: list[str] = []
    array = SideFile.array
    monkeypatch.setattr(SideFile, "array", lambda self, name: read.append(name) or array(self, name))  # pyright: ignore
    second = FileDigests(store).of_arrays(SideFile(path))
    assert [each.digest for each in first] == [each.digest for each in second] and not read
    assert second[1].box == first[1].box and read == [list(SideFile(path).names())[1]]


@pytest.mark.usefixtures("settled")
def test_a_file_that_looks_as_before_is_hashed_again(tmp_path: Path, store: Store) -> None:
    """Its size and the time of its contents are the same: only the system sets the time of the inode's change."""
    path = tmp_path / "w.safetensors"
    before = FileDigests(store).of_arrays(write(path))
    about = path.stat()
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data[:-4] + b"\0\0\0\0")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    after = FileDigests(store).of_arrays(SideFile(path))
    assert path.stat().st_mtime_ns == about.st_mtime_ns and path.stat().st_size == about.st_size
    assert sorted(each.digest == now.digest for each, now in zip(before, after, strict=True)) == [False, True]


def test_a_file_that_was_just_written_is_not_known(tmp_path: Path, store: Store) -> None:
    file = write(tmp_path / "w.npz")
    assert [each.box.shape for each in FileDigests(store).of_arrays(file)] == [(3,), (40000,)]
    assert FileDigests(store).of_file("all", tmp_path / "w.npz", lambda: b"digest") == b"digest"
    assert store.usage().files == {}


@pytest.mark.usefixtures("settled")
def test_a_file_that_changes_while_it_is_read_is_not_known(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "text"
    path.write_text("one")

    def compute() -> bytes:
        path.write_text("three")
        return b"of one of them"

    assert FileDigests(store).of_file("all", path, compute) == b"of one of them"
    assert store.usage().files == {}


@pytest.mark.usefixtures("settled")
def test_programs_read_what_they_use_of_a_file_that_is_known(tmp_path: Path, store: Store) -> None:
    write(tmp_path / "w.safetensors")
    (tmp_path / "m.mir").write_text("""#[version = "0.0.5"]
#[constants = "w.safetensors"]
def @main(%x: Tensor[(3), float32]) {
  (add(%x, meta[relay.Constant]["v"]), multiply(sum(meta[relay.Constant]["w"]), 2f))
}
""")
    x = np.arange(3, dtype="float32")
    for scale in (1, 1, 3, 3):
        if scale == 3:
            write(tmp_path / "w.safetensors", 3)
        total, twice = mirstack.compile(tmp_path / "m.mir")(x)
        wait_for_writing()
        np.testing.assert_array_equal(total, x + scale)
        np.testing.assert_allclose(twice, 2 * scale * np.arange(40000, dtype="float64").sum(), rtol=1e-5)
    assert store.usage().files["program"] == 2
