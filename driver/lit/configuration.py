"""Configures lit for tests of `.mir`, `.mlir` and `.py` files that no `lit.cfg.py` configures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from ...support.diagnostics import Diagnostic, MirError
from ..errors import UsageError, did_you_mean

CONFIGURATION = """\
import os, sys
import lit.formats

config.name = "mirstack"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mir", ".mlir", ".py"]
config.excludes = ["lit.cfg.py", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "build")
config.environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
"""
"""The `lit.cfg.py` that is used where there is none, and that `--print-config` prints."""

SUFFIXES = (".mir", ".mlir", ".py")
CONFIG_NAMES = ("lit.site.cfg.py", "lit.site.cfg", "lit.cfg.py", "lit.cfg")


def needs_lit() -> None:
    """Raises MirError where lit or filecheck is not installed."""
    try:
        for name in ("lit", "filecheck"):
            import_module(name)
    except ImportError as error:
        raise MirError(
            Diagnostic(f"tests need the package {error.name}, which is not installed").with_note(
                "pip install 'mirstack[lit]' installs lit and filecheck"
            )
        ) from None


def test_files(path: str) -> list[Path]:
    """Returns the tests below a folder, in order, or the file itself.

    A file of Python is a test if it has a RUN line. Raises UsageError where there is nothing at `path`.
    """
    given = Path(path)
    if given.is_file():
        return [given]
    if not given.is_dir():
        parent = given.parent
        there = os.listdir(parent) if parent.is_dir() else []
        raise UsageError(f"{path}: no such file or folder{did_you_mean(given.name, there)}")
    return sorted(each for each in given.rglob("*") if each.suffix in SUFFIXES and _is_test(each, given))


def _is_test(path: Path, folder: Path) -> bool:
    inside = path.relative_to(folder).parts
    if {"Inputs", "Output", "build"} & set(inside[:-1]) or any(part.startswith(".") for part in inside):
        return False
    if not path.is_file() or path.name in ("lit.cfg.py", "lit.site.cfg.py"):
        return False
    return path.suffix != ".py" or b"RUN:" in path.read_bytes()


@contextmanager
def configured(paths: Sequence[str]) -> Generator[list[str]]:
    """Yields the paths as lit takes them.

    Those below a `lit.cfg.py` are as they were; the tests of the others are configured by CONFIGURATION in a folder of its own,
    which also holds what they write.
    """
    own = [path for path in paths if _has_configuration(Path(path).absolute())]
    rest = [file.absolute() for path in paths if path not in own for file in test_files(path)]
    if not rest:
        yield own
        return
    root = Path(os.path.commonpath([Path.cwd(), *(file.parent for file in rest)]))
    with tempfile.TemporaryDirectory(prefix="mirstack-lit-") as folder:
        where = f"config.test_source_root = {str(root)!r}\nconfig.test_exec_root = {str(Path(folder, 'build'))!r}\n"
        Path(folder, "lit.cfg.py").write_text(CONFIGURATION + where, encoding="utf-8")
        # lit finds a test's configuration by the folders of its path, which need not exist.
        yield [*own, *(os.path.join(folder, file.relative_to(root)) for file in rest)]


def _has_configuration(path: Path) -> bool:
    return any((folder / name).is_file() for folder in (path, *path.parents) for name in CONFIG_NAMES)
