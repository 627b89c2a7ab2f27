"""Fixtures for every test: the corpus of reference programs, where it is there, and the commands run in this process."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from foreign_code import cannot_run
from hypothesis import HealthCheck, settings
from mirstack.fuzz.steady import forget_constants
from mirstack.support.xdsl_patches import apply

# As the commands and the API do, before there is any IR; `MIRSTACK_XDSL_PATCHES=0` runs the tests without.
apply()

# What lowers kernels is imported, so that it does so in this process, where tests watch it (`lowering_process.py`).
import_module("mirstack.lowering.tir.lower_tir_to_scf")

# Tests compile what they test: programs are not taken from the cache on disk, nor left there. Its own tests turn it on, and those
# that ask for `kept_kernels`.
os.environ["MIRSTACK_CACHE_LIMIT"] = "0"

# Programs of open sizes run the code that serves all sizes. The tests of code for sizes turn it on.
os.environ["MIRSTACK_SPECIALIZE"] = "off"

# What native code leaves unwritten in its results and its memory shows: numpy would often return the memory of the array compared with.
os.environ["MIRSTACK_POISON"] = "1"

# The suite has a process for each core. Numpy's own threads would only wait, and take turns from the others while they do.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# IR is one great cycle: at Python's own thresholds looking for garbage takes a tenth of the tests' time. As in mir-opt.
gc.set_threshold(200_000, 20, 100)

# Every run draws the same examples, and none fails since the machine was slow; `--hypothesis-profile=default` draws others.
settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")
forget_constants()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """A test that runs code for a processor is skipped where this machine has not what the processor has."""
    try:
        return (yield)
    except Exception as error:
        from mirstack.support.diagnostics import MirError

        if isinstance(error, MirError) and cannot_run(str(error)):
            pytest.skip(str(error).splitlines()[0])
        raise


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of reference programs, named by MIRSTACK_CORPUS; tests that need it skip without it."""
    path = os.environ.get("MIRSTACK_CORPUS")
    if path is None or not Path(path).is_dir():
        pytest.skip("MIRSTACK_CORPUS names no folder of reference programs")
    return Path(path)


@pytest.fixture
def kept_kernels(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code is taken from a cache on disk that is empty when the tests begin, and that all of their processes share.

    For tests of many programs that have kernels in common: each kernel is compiled once a run.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    monkeypatch.setenv("MIRSTACK_CACHE", str(root / "kept_kernels"))
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "2G")


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def mir_opt(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `mir-opt ARGUMENTS…` in this process."""
    from mirstack.driver.mir_opt import main

    return lambda *arguments: _run(main, arguments, capsys)


@pytest.fixture
def mir_run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `mir-run ARGUMENTS…` in this process."""
    from mirstack.driver.mir_run import main

    return lambda *arguments: _run(main, arguments, capsys)


@pytest.fixture
def mir_view(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `mir-view ARGUMENTS…` in this process."""
    from mirstack.driver.mir_view import main

    return lambda *arguments: _run(main, arguments, capsys)


def _run(main: Callable[[list[str]], int], arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]) -> Ran:
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as leaving:  # argparse leaves by itself
        code = leaving.code if isinstance(leaving.code, int) else 1
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


@pytest.fixture
def no_extensions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets a test load extensions, which are forgotten after it."""
    from mirstack.dialects.relay import operator
    from mirstack.parser import items
    from mirstack.passes.extensions import packages
    from mirstack.support import extensions, external_names

    monkeypatch.setattr(extensions, "_DEFINITIONS", {})
    monkeypatch.setattr(external_names, "_NAMES", set())
    monkeypatch.setattr(packages, "_LOADED", [])
    monkeypatch.setattr(packages, "_LOOKED", [])
    tables: list[dict[str, object]] = [operator._OPERATORS._entries, items.FORMATS, items.KEYWORDS, items.DECORATORS]  # type: ignore[list-item]
    known = [set(table) for table in tables]
    yield
    for table, names in zip(tables, known, strict=True):
        for name in table.keys() - names:
            # Modules that were imported meanwhile have registered theirs for good.
            if table is not tables[0] or getattr(table[name], "is_own", False):
                del table[name]
