"""What editors and type checkers see of an installed mirstack: stubs of every public module, by `pip install` and `pip install -e`."""

from __future__ import annotations

import fcntl
import importlib.util
import re
import subprocess
import sys
import sysconfig
import venv
import warnings
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import mirstack
import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(__file__).with_name("user_program.py")


def _script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"install_{name}", ROOT / "install" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generator() -> Any:
    return _script("generate_stubs")


def test_stubs_are_current(generator: Any) -> None:
    folder = ROOT / "install" / "stubs"
    found = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.pyi")}
    stale = [path for path, text in generator.stubs().items() if found.pop(path, None) != text]
    assert stale + list(found) == [], f"run `{generator.COMMAND}`"


def test_dir_lists_what_is_public(generator: Any) -> None:
    """No public module lists what it imports for its own use."""
    for alias, module in generator.public_modules().items():
        names = dir(module)
        assert names == sorted(set(names)), alias
        if module.__name__.startswith("mirstack.dialects."):
            continue
        private = {"annotations", "TYPE_CHECKING", "import_module", "np", "check", "__builtins__"} & set(names)
        assert not private, f"{alias} needs `__dir__ = public_names(__name__)`"
        for name in names:
            found = getattr(module, name, None) if alias != "mirstack.onnx" else None
            foreign = isinstance(found, ModuleType) and not found.__name__.startswith("mirstack.")
            assert not foreign, f"{alias}.{name} is {found}"


def test_modules_of_public_names_are_imported() -> None:
    assert importlib.import_module("mirstack.relay.op.nn").dense.__name__ == "dense"
    assert importlib.import_module("mirstack.relay.qnn.op").requantize.__name__ == "requantize"
    assert callable(importlib.import_module("mirstack.relay.qnn.transform").CanonicalizeOps)
    assert callable(importlib.import_module("mirstack.topi.nn").dense)
    assert importlib.import_module("mirstack.runtime.ndarray") is importlib.import_module("mirstack.nd")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'mirstack\.relay\.op\.nothing'$"):
        importlib.import_module("mirstack.relay.op.nothing")


@pytest.fixture(scope="module", params=["wheel", "editable"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the Python of a fresh environment in which mirstack is installed, and what it needs is visible."""
    folder = tmp_path_factory.mktemp(request.param)
    backend = _script("backend")
    backend.LINKS = folder / "links"
    (ROOT / "build").mkdir(exist_ok=True)
    # Both build in the checkout, and may run at the same time.
    with open(ROOT / "build" / "test_stubs.lock", "w") as lock, warnings.catch_warnings(action="ignore"):
        fcntl.flock(lock, fcntl.LOCK_EX)
        wheel = getattr(backend, f"build_{request.param}")(str(folder))
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    paths = {"base": str(environment), "platbase": str(environment)}
    site = Path(sysconfig.get_path("purelib", vars=paths))
    with zipfile.ZipFile(folder / wheel) as file:
        file.extractall(site)
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "python"


def test_users_program_is_typed(python: Path, tmp_path: Path) -> None:
    program = tmp_path / PROGRAM.name
    program.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    mistaken = tmp_path / "mistaken.py"
    mistaken.write_text("from mirstack import relay\n\nrelay.nn.dense(1)\nrelay.nn.densee\n")
    checker = Path(sys.executable).with_name("basedpyright")
    command = [checker, "--threads", "1", "--pythonpath", python, program, mistaken]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if " - error: " in line or " - warning: " in line]
    assert [line for line in lines if PROGRAM.name in line] == []
    assert any('"densee" is not a known attribute' in line for line in lines)
    assert any('Argument missing for parameter "weight"' in line for line in lines)


def test_users_program_uses_every_public_module() -> None:
    program = PROGRAM.read_text(encoding="utf-8")
    modules = [name for name in dir(mirstack) if isinstance(getattr(mirstack, name), ModuleType)]
    assert len(modules) > 15 and [name for name in modules if not re.search(rf"\b{name}\b", program)] == []


def test_users_program_runs(python: Path, tmp_path: Path) -> None:
    done = subprocess.run([python, PROGRAM], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "main [('x', 'float32'), ('w', 'float32')] (4, 6)" in done.stdout
