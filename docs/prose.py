"""Checks the project's prose: words of the glossary, first lines of docstrings.

    python docs/prose.py                # fails where a place breaks a rule, and lists it
    python docs/prose.py passes/tir     # the same for a folder or file

The rules are in CONTRIBUTING.md, under "Prose".
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "api",
    "benchmarks",
    "dialects",
    "driver",
    "editor",
    "examples",
    "frontends",
    "fuzz",
    "lowering",
    "parser",
    "passes",
    "support",
)
MAX_FIRST_LINE = 100

GLOSSARY: dict[str, str] = {
    r"\bgives?\b|\bgave\b|\bgiven back\b": "returns, produces, yields",
    r"(?<!re)\bturns?\b": "iteration (of a loop); becomes (turns into); in the other order (turned)",
    r"\bl(?:ie|ies|ay)\b": "is stored in, is at, is between",
    r"\banew\b": "again, recomputes",
    r"\bbut for\b": "except for",
    r", else\b(?! if)": "otherwise",
    r"\bshall\b": "must",
    r"(?<!here )\bis no (?!longer|more|less|later)": "is not a",
    r"\bcome[s]? to stand\b|\bstands? (?:in|at|for|by|beside|between|before|behind|there|where)\b": "is, is stored in, represents",
    r"\bbehind\b": "after, following",
    r"\bis told\b|\bare told\b|\btells? of\b": "is reported, is listed",
    r"\bdear(?:er|est)?\b": "expensive",
}
"""Words of no field, and what the field says."""

BAD_FIRST_WORDS = frozenset(["What", "Whether", "Has", "How", "Where", "Which", "It", "Its", "They", "Whatever"])
"""A first line begins with a verb, or with the noun that the docstring describes."""


@dataclass(frozen=True)
class Finding:
    """A place whose text breaks a rule."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the docstrings and comments of a Python file, or the prose of a document, each with its first line's number."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        inside = False
        for number, line in enumerate(source.splitlines(), 1):
            if line.lstrip().startswith("```"):
                inside = not inside
            elif not inside and not line.startswith("    "):
                yield number, line
        return
    for number, text, _ in _docstrings(source):
        yield number, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _docstrings(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yields the docstrings of a file with their lines; whether it describes a module, class or function, and not a field."""
    heads = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        body: list[ast.stmt] = node.body if isinstance(node, heads) else []
        for index, item in enumerate(body):
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                yield item.lineno, item.value.value, index == 0


def findings(path: Path) -> list[Finding]:
    """Returns what breaks a rule in a file, in order."""
    name = str(path.relative_to(ROOT))
    found: list[Finding] = []
    for first, text in texts(path):
        for number, line in enumerate(re.sub(r"`[^`\n]*`", "`…`", text).split("\n"), first):
            for pattern, instead in GLOSSARY.items():
                found += [
                    Finding(name, number, f"'{match[0]}': write {instead}") for match in re.finditer(pattern, line)
                ]
    if path.suffix == ".py":
        for number, text, heads in _docstrings(path.read_text(encoding="utf-8")):
            head = text.split("\n", 1)[0].strip()
            if heads and len(head) > MAX_FIRST_LINE:
                found.append(
                    Finding(name, number, f"the first line has {len(head)} characters; at most {MAX_FIRST_LINE}")
                )
            if heads and head.split(" ", 1)[0] in BAD_FIRST_WORDS:
                found.append(
                    Finding(
                        name,
                        number,
                        f"the first line begins with '{head.split(' ', 1)[0]}': write a verb and an object",
                    )
                )
    return sorted(found, key=lambda finding: finding.line)


def files() -> list[Path]:
    """Returns the files that are checked: sources and documents."""
    sources = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [*sorted(ROOT.glob("*.py")), *sources, *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def main() -> int:
    """Lists the places that break a rule; returns 1 where there are any."""
    parser = argparse.ArgumentParser(prog="python docs/prose.py", description="Checks the project's prose.")
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[ROOT], help="files and folders to check; all by default"
    )
    wanted = [path.resolve() for path in parser.parse_args().paths]
    listed = [
        each for path in files() if any(path == one or one in path.parents for one in wanted) for each in findings(path)
    ]
    print(*listed, sep="\n", end="\n" if listed else "")
    return int(bool(listed))


if __name__ == "__main__":
    sys.exit(main())
