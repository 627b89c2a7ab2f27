"""The README and the documents under docs/ do what they say: their `console` blocks are run and compared.

- A line `$ command` is run by the shell, in one folder for the whole document, in which `examples` is this project's;
  lines that begin with `> ` continue it. What follows, up to the next command, is the output expected, standard error
  included, exactly.
- Times differ from run to run: every number before a unit of time or of speed, and every number with four decimals (the
  seconds of `--timing`), is compared as `<time>`, with blanks around it of any width.
- A line `…` stands for any number of lines.
- A block behind a line `<!-- file: NAME -->` is written to the file NAME first; behind `<!-- append: NAME -->` it is added
  to the end of that file.
- A document that says `<!-- needs the extra onnx -->` is run where that package is installed.
- A document that says `<!-- runs in a copy of this project -->` is run in one, which the commands then use as the package.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from extras import library

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

BLOCK = re.compile(
    r"(?:<!-- (?P<how>file|append): (?P<file>\S+) -->\n+)?^```(?P<kind>\S*)[^\n]*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# A time with its unit, which a slow machine changes too; a rate or a ratio without; any number of four decimals.
TIME = re.compile(
    r"\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:ns|us|µs|ms|s|min)\b"
    r"|\d+(?:\.\d+)?(?:e[+-]?\d+)?(?= ?(?:GFLOP/s|GB/s|images/s|x)\b)|\b\d+\.\d{4}\b"
)
SKIP = "…"


@dataclass(frozen=True)
class Command:
    """A command with its place in the document and the output that it shows."""

    line: int
    text: str
    output: str


@dataclass(frozen=True)
class Write:
    """A file that the document writes, or adds to."""

    file: str
    text: str
    append: bool = False

    def run(self, folder: Path):
        """Writes the file below `folder`."""
        path = folder / self.file
        before = path.read_text(encoding="utf-8") if self.append else ""
        path.write_text(before + self.text, encoding="utf-8")


def steps(document: str) -> list[Command | Write]:
    """The commands of a document and the files that it writes, in order."""
    found: list[Command | Write] = []
    for block in BLOCK.finditer(document):
        line = document.count("\n", 0, block.start("body")) + 1
        if block["file"]:
            found.append(Write(block["file"], block["body"], block["how"] == "append"))
        elif block["kind"] == "console":
            found += _commands(block["body"], line)
    return found


def _commands(body: str, first_line: int) -> list[Command]:
    commands: list[Command] = []
    text, output, start = "", [""], first_line
    for number, line in enumerate(body.split("\n"), first_line):
        if line.startswith("$ "):
            if text:
                commands.append(Command(start, text, "\n".join(output)))
            text, output, start = line[2:], [], number
        elif line.startswith("> ") and not output:
            text += "\n" + line[2:]
        else:
            output.append(line)
    return [*commands, Command(start, text, "\n".join(output))] if text else commands


def masked(output: str) -> list[str]:
    """The output's lines with times masked and without blanks at their ends."""
    lines = [TIME.sub("<time>", line.rstrip()) for line in output.strip("\n").split("\n")]
    return [re.sub(r" +", " ", line) if "<time>" in line else line for line in lines]


def agrees(expected: list[str], got: list[str]) -> bool:
    """Whether the lines are those expected, where `…` stands for any number of them."""
    if SKIP not in expected:
        return expected == got
    first = expected.index(SKIP)
    head, tail = expected[:first], expected[first + 1 :]
    if got[:first] != head or len(got) < first:
        return False
    return any(agrees(tail, got[i:]) for i in range(first, len(got) + 1))


IN_A_COPY = "<!-- runs in a copy of this project -->"
# Compiled sources are taken along; those of tests name the folder that they were compiled in.
LEFT_OUT = shutil.ignore_patterns(
    ".*", "*-pytest-*.pyc", "build", "Output", "*.egg-info", "*.npz", "*.safetensors", "models"
)


def copy_of_project(parent: Path) -> Path:
    """A copy of the sources, tests and documents, under the package's name in `parent`."""
    return Path(shutil.copytree(ROOT, parent / "mirstack", ignore=LEFT_OUT))


NEEDS = re.compile(r"<!-- needs the extra (\w+) -->")


def cases() -> list[Any]:
    """Every document; one that needs an optional extra is marked so."""
    marks = [[pytest.mark.extra] if NEEDS.search(each.read_text(encoding="utf-8")) else [] for each in DOCUMENTS]
    return [
        pytest.param(each, marks=mark, id=str(each.relative_to(ROOT)))
        for each, mark in zip(DOCUMENTS, marks, strict=True)
    ]


@pytest.mark.parametrize("document", cases())
def test_document(document: Path, tmp_path: Path):
    text = document.read_text(encoding="utf-8")
    if needed := NEEDS.search(text):
        library(needed[1], needed[1])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
    folder = tmp_path
    if IN_A_COPY in text:
        folder = copy_of_project(tmp_path)
        environment["PYTHONPATH"] = str(tmp_path)
    elif (ROOT / "examples").is_dir():
        (folder / "examples").symlink_to(ROOT / "examples")
    for step in steps(text):
        if isinstance(step, Write):
            step.run(folder)
            continue
        ran = subprocess.run(
            step.text,
            shell=True,
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        expected, got = masked(step.output), masked(ran.stdout)
        if not agrees(expected, got):
            difference = "\n".join(difflib.unified_diff(expected, got, "documented", "printed", lineterm=""))
            pytest.fail(f"{document.name}:{step.line}: `{step.text}` prints something else:\n{difference}")


EXAMPLE = """
<!-- file: hello.txt -->
```text
hello
```

```console
$ cat hello.txt
hello
$ echo one;
> echo two
one
two
```
"""


def test_append(tmp_path: Path):
    write = Write("a.txt", "two\n", append=True)
    assert steps("<!-- append: a.txt -->\n```text\ntwo\n```\n") == [write]
    (tmp_path / "a.txt").write_text("one\n")
    write.run(tmp_path)
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


def test_steps():
    assert steps(EXAMPLE) == [
        Write("hello.txt", "hello\n"),
        Command(8, "cat hello.txt", "hello"),
        Command(10, "echo one;\necho two", "one\ntwo\n"),
    ]


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ("ran in 1.5 ms", "ran in 20 ms", True),
        ("ran in 1.5 ms", "run in 1.5 ms", False),
        ("parse     0.0123   9", "parse 10.4567   9", True),
        ("parse     0.0123   9", "parse     0.0123   8", False),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…\nd", "a\nb\nc", False),
        ("a\n…", "a", True),
        ("accuracy 0.975", "accuracy 0.974", False),
    ],
)
def test_comparison(expected: str, got: str, same: bool):
    assert agrees(masked(expected), masked(got)) == same
