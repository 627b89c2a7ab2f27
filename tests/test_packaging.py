"""The package: every folder of it is listed, everything it reads at run time is shipped, importing it is quick."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import mirstack
import pytest

ROOT = Path(__file__).parent.parent
CODE = ("api", "dialects", "driver", "editor", "frontends", "fuzz", "lowering", "parser", "passes", "support")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages() -> list[Path]:
    return sorted(init.parent for top in CODE for init in (ROOT / top).rglob("__init__.py"))


def test_every_package_is_listed():
    found = {"mirstack", *("mirstack." + ".".join(path.relative_to(ROOT).parts) for path in packages())}
    assert found == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_folder_of_code_is_a_package():
    folders = {file.parent for top in CODE for file in (ROOT / top).rglob("*.py")}
    assert folders == set(packages())


def test_data_is_shipped():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["mirstack"]
    read = {
        path
        for top in CODE
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".md")
    }
    shipped = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert read <= shipped


def test_import_is_quick():
    """The import brings in neither xDSL nor numpy: each public name does when it is used."""
    program = "import sys, mirstack; print([m for m in ('xdsl', 'numpy', 'lark', 'llvmlite') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_public_names():
    for name in mirstack.__all__:
        assert getattr(mirstack, name) is not None
    assert set(mirstack.__all__) <= set(dir(mirstack))
    with pytest.raises(AttributeError, match="module 'mirstack' has no attribute 'nothing'"):
        mirstack.nothing  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018


def test_version():
    assert mirstack.__version__ == PROJECT["project"]["version"]
