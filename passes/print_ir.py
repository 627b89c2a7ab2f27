"""Instruments that show the module: printed before or after passes, as a diff, or written to a folder."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TextIO

from xdsl.dialects.builtin import ModuleOp

from ..support.diagnostics import Diagnostic, MirError
from .instruments import Instrument, PrintModule, print_module
from .pass_info import PassInfo


@dataclass
class PrintBeforeAll(Instrument):
    """`--print-ir-before-all`: the whole module before each pass."""

    show: PrintModule = field(default=print_module, repr=False)
    stream: TextIO = field(default_factory=lambda: sys.stderr, repr=False)

    def run_before_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        print(f"// ----- IR before {info} -----", file=self.stream)
        print(self.show(mod).rstrip("\n"), file=self.stream)


@dataclass
class PrintAfterAll(Instrument):
    """`--print-ir-after-all`: the whole module after each pass."""

    show: PrintModule = field(default=print_module, repr=False)
    stream: TextIO = field(default_factory=lambda: sys.stderr, repr=False)

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        print(f"// ----- IR after {info} -----", file=self.stream)
        print(self.show(mod).rstrip("\n"), file=self.stream)


def _difference(before: list[str], after: list[str], info: PassInfo) -> list[str]:
    """Returns the lines of a unified diff; none where nothing changed."""
    return list(difflib.unified_diff(before, after, f"before {info}", f"after {info}", lineterm=""))


@dataclass
class PrintAfterChange(Instrument):
    """`--print-ir-after-change`: what each pass changed, as a unified diff."""

    show: PrintModule = field(default=print_module, repr=False)
    stream: TextIO = field(default_factory=lambda: sys.stderr, repr=False)
    before: list[str] = field(default_factory=list[str])

    def run_before_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        self.before = self.show(mod).splitlines()

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        lines = _difference(self.before, self.show(mod).splitlines(), info)
        if not lines:
            lines = [f"// ----- {info} changed nothing -----"]
        print("\n".join(lines), file=self.stream)


@dataclass
class DumpIR(Instrument):
    """Writes each pass's output to a folder (`--dump-ir DIR`): `000_input.mir`, `001_fuse-ops.mir`, ….

    Beside each is the change by the pass, as `001_fuse-ops.diff`. The folder is created; with `refresh` the files of an earlier run
    are removed.
    """

    dump_dir: str | PathLike[str]
    refresh: bool = False
    show: PrintModule = field(default=print_module, repr=False)
    count: int = 0
    before: list[str] | None = None
    module: ModuleOp | None = None  # What was shown last.

    def enter_pass_ctx(self) -> None:
        self.before = None
        folder = Path(self.dump_dir)
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if self.refresh:
                for path in folder.iterdir():
                    if _DUMPED.fullmatch(path.name):
                        path.unlink()

    def run_before_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        if self.before is None or self.module is not mod:
            self.before = self._write("input", self.show(mod))

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        self.count += 1
        self.module = mod
        before = self.before or []
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", str(info).partition("{")[0])
        self.before = self._write(name, self.show(mod))
        lines = _difference(before, self.before, info)
        path = self._path(name, "diff")
        with _writing(path):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _write(self, name: str, text: str) -> list[str]:
        path = self._path(name, "mir")
        with _writing(path):
            path.write_text(text, encoding="utf-8")
        return text.splitlines()

    def _path(self, name: str, extension: str) -> Path:
        return Path(self.dump_dir) / f"{self.count:03}_{name}.{extension}"


_DUMPED = re.compile(r"\d{3,}_[A-Za-z0-9._-]+\.(mir|diff)")


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise MirError(Diagnostic(f"{path}: cannot be written: {error.strerror}")) from None
