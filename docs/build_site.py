"""Builds the site of the documents and of Python's reference in build/site/html; a warning is an error.

    python docs/build_site.py

The documents are copied as they are, so that links between them hold; the reference is written from what `dir` lists of each public module:
signatures and docstrings. Needs the extra `docs`.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mirstack

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "build" / "site" / "source"
COPIED = (
    "*.md",
    "docs/*.md",
    "docs/pictures/**/*.*",
    "benchmarks/*.md",
    "benchmarks/*.png",
    "examples/**/*.md",
    "LICENSE",
)
"""What the site holds of the project, by patterns."""
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def pages() -> dict[str, str]:
    """Returns the pages of the reference by their path."""
    modules = _public_modules()
    found = {f"reference/{alias}.md": _page(alias, module) for alias, module in modules.items()}
    lines = [f"| [`{alias}`]({alias}.md) | {_cell(_first_line(module.__doc__))} |" for alias, module in modules.items()]
    head = "# Python's reference\n\nThe public modules, as `dir` lists them.\n\n| module | |\n| --- | --- |\n"
    return {"reference/index.md": head + "\n".join(lines) + "\n", **found}


def _public_modules() -> dict[str, ModuleType]:
    """Returns the public modules by name: those that have stubs, without those that repeat another's names."""
    spec = importlib.util.spec_from_file_location("generate_stubs", ROOT / "install" / "generate_stubs.py")
    assert spec is not None and spec.loader is not None
    generator: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    modules: dict[str, ModuleType] = generator.public_modules()
    return {
        alias: module
        for alias, module in modules.items()
        if not alias.startswith(("mirstack.relay.op.", "mirstack.relay.qnn.op"))
        and module.__name__ != "mirstack.dialects"
    }


def _page(alias: str, module: ModuleType) -> str:
    parts = [f"# {alias}\n", _text(module.__doc__)]
    for name in dir(module):
        if name.startswith("_"):
            continue
        try:
            value: Any = getattr(module, name)
        except mirstack.MirError as error:
            # A module of an optional extra.
            parts.append(f"## {name}\n\n{_escaped(str(error.diagnostics[0].message))}")
            continue
        parts.append(f"## {name}\n")
        if isinstance(value, ModuleType):
            parts.append(f"The module `{alias}.{name}`.")
        elif isinstance(value, type):
            parts += _class(name, value)
        elif callable(value):
            parts += [_signature(name, value), _text(inspect.getdoc(value))]
        else:
            parts.append(f"`{type(value).__name__}`")
    return "\n\n".join(part for part in parts if part) + "\n"


def _class(name: str, cls: type) -> Iterator[str]:
    yield _signature(name, cls, "class ")
    yield _text(cls.__doc__)
    rows: list[str] = []
    members: dict[str, Any] = dict(vars(cls))
    for member, value in sorted(members.items()):
        if member.startswith("_") or not _is_shown(value):
            continue
        function: Any = getattr(value, "fget", None) or getattr(value, "__func__", value)
        rows.append(f"| `{member}` | {_cell(_first_line(inspect.getdoc(function)))} |")
    if rows:
        yield "| member | |\n| --- | --- |\n" + "\n".join(rows)


def _is_shown(value: object) -> bool:
    return callable(value) or isinstance(value, property | staticmethod | classmethod)


def _signature(name: str, value: Any, kind: str = "") -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        text = "(…)"
    text = re.sub(r"'((?:[^'\\]|\\.)*)'(?=[,)=]| =|$| \)|:)", _unquoted, text) if "'" in text else text
    return f"```python\n{kind}{name}{re.sub(r' at 0x[0-9a-f]+', '', text)}\n```"


def _unquoted(found: re.Match[str]) -> str:
    """Returns an annotation that is a text without its quotes; a default keeps them."""
    before = found.string[: found.start()].rstrip()
    return found[1] if before.endswith((":", "->")) else found[0]


def _text(document: str | None) -> str:
    """Returns a docstring as Markdown: its text, its indented examples as code, its parameters as a list."""
    return re.sub(r"^(\w+): ", r"- `\1`: ", _escaped(inspect.cleandoc(document or "")), flags=re.MULTILINE)


def _escaped(text: str) -> str:
    """Returns a text in which nothing outside of code is taken for HTML or for a link."""
    parts = re.split(r"(`[^`]*`|^ {4}.*$)", text, flags=re.MULTILINE)
    return "".join(part if number % 2 else re.sub(r"([<\[\]*_])", r"\\\1", part) for number, part in enumerate(parts))


def _first_line(document: str | None) -> str:
    return _escaped((document or "").strip().partition("\n")[0])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write() -> None:
    """Writes the sources of the site: copies of the documents, and the reference."""
    shutil.rmtree(SOURCE.parent, ignore_errors=True)
    files = {path for pattern in COPIED for path in ROOT.glob(pattern) if ".venv" not in path.parts}
    for path in sorted(files):
        target = SOURCE / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(_without_sources(path, files), encoding="utf-8")
        else:
            shutil.copy(path, target)
    for name, text in pages().items():
        target = SOURCE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _without_sources(path: Path, files: set[Path]) -> str:
    """Returns a document in which links to files that the site lacks, such as sources, are their text.

    A link to what is not there in the project stays, so that it is reported.
    """

    def replaced(found: re.Match[str]) -> str:
        target = (path.parent / found[2]).resolve()
        return found[1] if target.exists() and target not in files else found[0]

    text = LINK.sub(replaced, path.read_text(encoding="utf-8"))
    if path == ROOT / "README.md":
        text += "\n- [Python's reference](reference/index.md): every public module, class and function.\n"
    return text


def main() -> int:
    """Builds the site; returns mkdocs' exit code."""
    if importlib.util.find_spec("material") is None:
        print(
            "build_site: error: mkdocs-material is not installed; pip install 'mirstack[docs]' installs it",
            file=sys.stderr,
        )
        return 2
    write()
    return build(Path(__file__).with_name("mkdocs.yml"))


def build(config: Path) -> int:
    """Builds the site that a file describes; returns mkdocs' exit code, which a warning makes another than 0."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config]
    # What its authors say of other versions is no warning about this site.
    return subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode


if __name__ == "__main__":
    raise SystemExit(main())
