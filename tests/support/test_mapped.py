"""Mapped files: one map of a file, its memory given back when it has been read."""

from __future__ import annotations

from pathlib import Path

import pytest
from mirstack.support.mapped import give_back_pages, map_file

SIZE = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "arrays"
    path.write_bytes(b"\1" * SIZE)
    return path


def resident(path: Path) -> int:
    """How many KiB of the file are in this process's memory."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    total = 0
    for line in lines:
        if line.endswith(str(path)):
            total += next(int(each.split()[1]) for each in lines if each.startswith("Rss:"))
    return total


def test_a_file_is_mapped_once(path: Path) -> None:
    with path.open("rb") as one, path.open("rb") as other:
        assert map_file(one) is map_file(other)
        first = map_file(one)
    path.unlink()
    path.write_bytes(b"\2" * SIZE)
    with path.open("rb") as file:
        second = map_file(file)
    assert first is not second and (first[0], second[0]) == (1, 2)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell which pages are there")
def test_pages_are_given_back(path: Path) -> None:
    with path.open("rb") as file:
        mapped = map_file(file)
    assert mapped[:].count(1) == SIZE and resident(path) == SIZE >> 10
    give_back_pages()
    assert resident(path) == 0
    assert mapped[SIZE - 1] == 1


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with empty.open("rb") as file, pytest.raises(ValueError, match="empty"):
        map_file(file)
