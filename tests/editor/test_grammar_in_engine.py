"""The grammar of `.mir` files in the engine of Visual Studio Code: its scopes agree with the colors of the language server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from extras import absent, node
from mirstack.editor.analysis import Analyzer
from mirstack.editor.colors import colors

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "build/textmate/node_modules"
NODE = node()
if not (MODULES / "vscode-textmate").exists():
    absent("vscode-textmate", "node")
pytestmark = pytest.mark.extra

FOLDERS = ("examples", "passes", "frontends", "filecheck/parser", "filecheck/lowering/te", "filecheck/passes/schedule")
SCOPES = {
    "comment": ("comment.",),
    "string": ("string.", "entity.name.function."),
    "number": ("constant.numeric.",),
    "keyword": ("keyword.", "storage.", "constant.language."),
    "function": ("entity.name.function.", "support.function."),
    "method": ("entity.name.function.", "support.function."),
    "property": ("variable.parameter.",),
}
"""The scopes of a token that the server gives this kind; those of types and variables differ in where they begin."""


def tokenized(files: list[Path]) -> list[list[tuple[int, int, str, str]]]:
    """Returns the tokens of each file: line, column, text, innermost scope."""
    command = [NODE, Path(__file__).with_name("tokenize.mjs"), MODULES, ROOT / "editor/mir.tmLanguage.json", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines()]


def disagreements(text: str, tokens: list[tuple[int, int, str, str]]) -> list[str]:
    """Returns where the grammar sees another kind of token than the server, and comments that only it sees."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    scopes = [""] * len(text)
    lines = [0] * len(text)
    for line, column, part, scope in tokens:
        begin = starts[line] + column
        scopes[begin : begin + len(part)] = [scope] * len(part)
        lines[begin : begin + len(part)] = [line] * len(part)
    found: list[str] = []
    for color in colors(Analyzer().analyse(text)):
        expected = SCOPES.get(color.kind)
        if color.kind == "function" and text[color.start] != "@" and text[color.end : color.end + 1] != "(":
            # Only the server knows that a name which is passed is a function's.
            continue
        if expected and not scopes[color.end - 1].startswith(expected):
            found.append(f"{lines[color.start] + 1}: {text[color.start : color.end]}: {scopes[color.end - 1]}")
        if color.kind == "comment":
            scopes[color.start : color.end] = [""] * (color.end - color.start)
    rest = {lines[at] for at, scope in enumerate(scopes) if scope.startswith("comment.") and not text[at].isspace()}
    return found + [f"{line + 1}: a comment: {text[starts[line] : starts[line + 1]]}" for line in sorted(rest)]


def test_scopes_agree_with_the_server() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.mir")) if "error" not in path.stem]
    assert len(files) > 50
    found = {
        str(path.relative_to(ROOT)): wrong
        for path, tokens in zip(files, tokenized(files), strict=True)
        if (wrong := disagreements(path.read_text(encoding="utf-8"), tokens))
    }
    assert not found, json.dumps(found, indent=1)
