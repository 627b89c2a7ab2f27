"""Links object files to shared libraries, by `cc`, the wheel `ziglang`, or `lld`.

Those for another kind of processor are linked by its compiler (`riscv64-linux-gnu-gcc`), or by ziglang, which has the libraries of many.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ....support.diagnostics import Diagnostic, MirError

LONGEST = 120
"""Seconds that a linker may take."""


def linker() -> list[str] | None:
    """Returns the command that links, without its arguments; None where the machine has none.

    `MIRSTACK_CC` names one; otherwise it is the first that is found.
    """
    chosen = os.environ.get("MIRSTACK_CC", "").split()
    if chosen:
        return chosen
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    for name in ("ld.lld", "ld"):
        if shutil.which(name):
            return [name]
    return None


def cross_linker(triple: str) -> list[str] | None:
    """Returns the command that links for another system of Linux; None where there is none."""
    chosen = os.environ.get("MIRSTACK_CC", "").split()
    if chosen and "ziglang" not in chosen:
        return chosen
    parts = triple.split("-")
    kind = "arm" if parts[0].startswith("armv7") else {"arm64": "aarch64"}.get(parts[0], parts[0])
    system = f"{kind}-linux-{parts[-1]}"
    compiler = f"{system}-gcc"
    if not chosen and shutil.which(compiler):
        return [compiler]
    return [sys.executable, "-m", "ziglang", "cc", "-target", system] if find_spec("ziglang") is not None else None


def link_shared(objects: Sequence[bytes], path: Path, soname: str, triple: str | None = None) -> None:
    """Links object files to a shared library, for the system `triple`. Raises MirError where that fails."""
    if triple is not None and "linux" not in triple:
        raise MirError(
            Diagnostic(f"{path}: a shared library of {triple} is linked there").with_note(
                "write an object file (.o), and link it with that system's compiler: cc -shared net.o -o net.dylib"
            )
        )
    command = linker() if triple is None else cross_linker(triple)
    if command is None and triple is not None:
        raise MirError(
            Diagnostic(
                f"{path}: a shared library of {triple} needs a linker for it, and this machine has none"
            ).with_note("`pip install ziglang` brings one; object files (.o) need none")
        )
    if command is None:
        raise MirError(
            Diagnostic(f"{path}: a shared library needs a linker, and this machine has none").with_note(
                "install a C compiler, or `pip install ziglang`; object files (.o) and packages (.mirpkg) need none"
            )
        )
    plain = _is_plain(command)
    options = ["-soname", soname, "--build-id=none", "-z", "noexecstack"]
    passed = options if plain else [f"-Wl,{','.join(options)}", "-nostartfiles"]
    _run([*command, "-shared", *passed, "-o", str(path)], objects, ["-lm", "-lc"], path)


def link_object(objects: Sequence[bytes], path: Path, triple: str | None = None) -> None:
    """Joins object files to one, for the system `triple`. Raises MirError where that fails."""
    command = linker() if triple is None else cross_linker(triple)
    if command is None:
        raise MirError(
            Diagnostic(
                f"{path}: code for several processors is joined by a linker, and this machine has none"
            ).with_note(
                "install a C compiler, or `pip install ziglang`; a package (.mirpkg), or a file for each processor, needs none"
            )
        )
    _run([*command, "-r", *(() if _is_plain(command) else ("-nostdlib",)), "-o", str(path)], objects, [], path)


def _is_plain(command: Sequence[str]) -> bool:
    """Returns whether a command is a linker, which no compiler calls."""
    return Path(command[-1]).name in ("ld", "ld.lld")


def _run(command: Sequence[str], objects: Sequence[bytes], libraries: Sequence[str], path: Path) -> None:
    """Runs a command on object files. Raises MirError where it fails."""
    with tempfile.TemporaryDirectory(prefix="mirstack-link-") as folder:
        inputs: list[str] = []
        for number, data in enumerate(objects):
            inputs.append(str(Path(folder) / f"{number}.o"))
            Path(inputs[-1]).write_bytes(data)
        arguments = [*command, *inputs, *libraries]
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=LONGEST, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MirError(Diagnostic(f"{path}: the linker {command[0]} cannot be run: {error}")) from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise MirError(Diagnostic(f"{path}: the linker {command[0]} fails: {said}"))
