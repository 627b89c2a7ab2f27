"""Builds mirstack's wheels: those of setuptools, with the stubs of public modules, for `pip install` and `pip install -e`.

`mirstack.relay` is `mirstack.api.relay`, made so when it is imported, which no type checker sees; so a wheel holds a stub at each public
name, `mirstack/relay/__init__.pyi` (`generate_stubs.py` writes them).

The root of a checkout is itself the package, and bears any name. After `pip install -e .`, Python finds it by `_mirstack_editable.py`; checkers
and editors, which run no Python, find `build/editable/mirstack`, a folder of links to the sources and to the stubs.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel",
]  # fmt: skip

ROOT = Path(__file__).parent.parent
STUBS = Path(__file__).parent / "stubs" / "mirstack"
LINKS = ROOT / "build" / "editable"

# Python runs this in each process of the environment, so it imports nothing until mirstack is imported.
FINDER = '''\
"""Finds the package mirstack in its checkout."""

import sys
from os.path import isfile


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "mirstack":
            return None
        # A package of the name that comes first in the path, by PYTHONPATH, is taken, as for any package that is installed.
        for folder in sys.path:
            if folder == {links!r}:
                break
            if isfile(f"{{folder}}/mirstack/__init__.py"):
                return None
        # Not importlib.util, whose import takes as long as Python's own start.
        from importlib.machinery import ModuleSpec, SourceFileLoader

        spec = ModuleSpec(name, SourceFileLoader(name, {init!r}), origin={init!r})
        spec.submodule_search_locations = [{root!r}]
        spec.has_location = True
        return spec


sys.meta_path.insert(0, Finder)
'''


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds the wheel of setuptools, with the stubs. Returns its name."""
    # What an earlier build left here would be packed again.
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    stubs = {f"mirstack/{path.relative_to(STUBS).as_posix()}": path.read_bytes() for path in stub_files()}
    rewrite(Path(wheel_directory) / name, stubs)
    return name


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds a wheel that leads Python to the checkout, and checkers to the links. Returns its name."""
    name = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    make_links(LINKS / "mirstack")
    finder = FINDER.format(init=str(ROOT / "__init__.py"), root=str(ROOT), links=str(LINKS))
    files = {
        "mirstack_editable.pth": f"{LINKS}\nimport _mirstack_editable\n".encode(),
        "_mirstack_editable.py": finder.encode(),
    }
    rewrite(Path(wheel_directory) / name, files, without="__editable__")
    return name


def stub_files() -> list[Path]:
    """Returns the stubs, in order."""
    return sorted(STUBS.rglob("*.pyi"))


def make_links(folder: Path) -> None:
    """Makes a folder with the contents of the package as a wheel has them: links to sources and to stubs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    code = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "build"]
    for path in [*ROOT.glob("*.py"), ROOT / "py.typed", *code, *STUBS.iterdir()]:
        os.symlink(path, folder / path.name, target_is_directory=path.is_dir())


def rewrite(wheel: Path, added: Mapping[str, bytes], without: str | None = None) -> None:
    """Adds files to a wheel, and takes those out whose names begin with `without`."""
    with zipfile.ZipFile(wheel) as old:
        entries = [info for info in old.infolist() if without is None or not info.filename.startswith(without)]
        files = [(info, old.read(info)) for info in entries]
    # A fixed date: the same sources make the same wheel.
    files += [(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), contents) for name, contents in added.items()]
    with zipfile.ZipFile(wheel, "w") as new:
        lines: list[str] = []
        for info, contents in sorted(files, key=lambda file: file[0].filename.endswith(".dist-info/RECORD")):
            if info.filename.endswith(".dist-info/RECORD"):
                contents = "".join([*lines, f"{info.filename},,\n"]).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
            lines.append(f"{info.filename},sha256={digest},{len(contents)}\n")
            info.external_attr = info.external_attr or 0o644 << 16
            new.writestr(info, contents, zipfile.ZIP_DEFLATED)
