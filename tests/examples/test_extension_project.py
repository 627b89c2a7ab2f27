"""The template of an extension: installed by pip into a fresh environment, where its tests pass; nothing of mirstack is edited."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
COMMANDS = ("mir-opt", "mir-run", "xdsl-opt", "filecheck", "lit")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of the template, which is installed in the environment beside it."""
    folder = tmp_path_factory.mktemp("extension")
    environment, project = folder / "environment", folder / "project"
    shutil.copytree(
        ROOT / "examples" / "extension", project, ignore=shutil.ignore_patterns("build", "*.egg-info", ".*")
    )
    venv.create(environment, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    # mirstack and what it needs, as they are installed here; its commands, run by the Python there.
    (site / "needed.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    for name in COMMANDS:
        lines = (Path(sys.executable).parent / name).read_text().splitlines(keepends=True)
        (environment / "bin" / name).write_text("".join([f"#!{environment}/bin/python\n", *lines[1:]]))
        (environment / "bin" / name).chmod(0o755)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", "--quiet")
    python = environment / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *options, project], check=True)
    return project


def run(project: Path, *command: str) -> str:
    """Returns what a command prints in the project, with the environment's commands; it must succeed."""
    bin = project.parent / "environment" / "bin"
    environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"}
    ran = subprocess.run([bin / command[0], *command[1:]], cwd=project, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_what_it_adds_is_listed_with_its_origin(project: Path) -> None:
    listed = run(project, "mir-opt", "--list-extensions").splitlines()
    assert listed[0] == "package mirstack-example:"
    found = dict(line.split()[::-1] for line in listed[1:] if len(line.split()) == 2)
    assert {"sat": "dialect", "remove-copies": "pass", "example.softshrink": "operator"}.items() <= found.items()
    assert "(package mirstack-example)" in run(project, "mir-opt", "--list-passes")


def test_its_lit_tests_pass(project: Path) -> None:
    assert "Passed: 3 (100.00%)" in run(project, "python", "-m", "mirstack.lit", "-v", "tests")


def test_its_pytest_tests_pass(project: Path) -> None:
    assert "3 passed" in run(project, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
