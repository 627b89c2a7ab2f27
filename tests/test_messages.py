"""Every error that the dialects and parsers raise is tested: its text occurs in a test.

The messages are collected from the sources: the literal parts of the first argument that is a text, in each call that makes
or raises an error. A message counts as tested when some test holds one of its forms, in which anything may stand where the
source formats a value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "dialects/relay",
    "dialects/te",
    "dialects/tir",
    "dialects/rule",
    "dialects/schedule",
    "parser",
    "passes/rules",
    "passes/schedule",
    "passes/tir",
    "passes/autoschedule",
    "dialects/arith",
    "lowering/te",
    "frontends",
    "driver",
    "api/onnx",
)
RAISERS = frozenset(
    [
        "ConstantError",
        "Diagnostic",
        "Refused",
        "LexError",
        "SignatureError",
        "VerifyException",
        "differs",
        "error",
        "error_at",
        "fail",
        "refuse",
    ]
)

# Messages that no text of a user reaches, each with the reason.
UNREACHABLE: dict[str, str] = {
    "its result is …, of another rank than torch's …": "a guard for converters of torch's operators that are added later",
    "its result has shape …, and torch's …": "a guard for converters of torch's operators that are added later",
    "its result has the shape …, and StableHLO's …": "a guard for converters of StableHLO's operators that are added later",
    "there is no function … in the module": "jax.export verifies the calls of a module",
    "it has no attribute …": "MLIR verifies the attributes of ops before they are read",
    "a result of type … cannot be computed here": "tokens come with callbacks, which jax.export refuses",
    "a shape is computed from what tensors hold": "JAX's shapes depend on sizes alone",
    "its branches return other shapes": "JAX compares the types of branches",
    "several tensors at once cannot be written here": "jax.lax writes one at a time",
    "it orders elements by …; only the order of numbers is known here": "jax.lax.sort has the order of numbers alone",
    "the number of elements is known only at run time": "JAX writes another operator where it is computed",
    "… takes …, which is not a tensor": "objects and tokens come with operators that torch alone knows",
    "'…' items cannot be read": "the splitter makes items of known kinds only",
    "this comment is not closed: '*/' is missing": "the splitter, which reads a file first, says so",
    "operation '…' cannot be emitted": "a guard for operations that are added later",
    "an expression of kind … cannot be emitted": "a guard for expressions that are added later",
    "operation '…' cannot be scheduled": "a guard for operations that are added later",
    "… cannot be an argument of T.…": "calls are made with expressions, strings and buffers only",
    "loop '…' of stage '…' does not begin at 0, but holds other stages": "normalize counts every loop from 0",
    "'…' is not an expression of TE": "the verifier of te.compute says so before it is lifted",
    "a value of another region is used": "bodies of computes see their own arguments only",
    "an operator takes tensors, not …": "type inference, which comes first, says so",
    "a string is not a value of an expression": "strings are arguments of calls only",
}


@dataclass(frozen=True)
class Message:
    """A message in the sources; `pattern` matches the texts that it can have."""

    file: str
    line: int
    text: str
    pattern: str
    anchor: str  # The longest part that is fixed.

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def messages(package: str) -> Iterator[Message]:
    """The messages of a package's sources."""
    for path in sorted((ROOT / package).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _called(node.func) in RAISERS:
                for argument in node.args:
                    forms = list(_forms(argument))
                    if forms:
                        yield from (Message(name, node.lineno, *form) for form in forms)
                        break


def _called(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _forms(node: ast.expr) -> Iterator[tuple[str, str, str]]:
    """The texts, patterns and anchors that an expression can be: one for a literal, one for each side of a condition."""
    match node:
        case ast.Constant(value=str(text)):
            text = text.partition("\n")[0]
            yield text, re.escape(text), text
        case ast.JoinedStr():
            # Of what is formatted nothing is known, nor whether it is a word of its own.
            fixed = list(_first_line(p.value if isinstance(p, ast.Constant) else None for p in node.values))
            if sum(len(part) for part in fixed if isinstance(part, str)) > 3:
                yield (
                    "".join(part if isinstance(part, str) else "…" for part in fixed),
                    "".join(re.escape(part) if isinstance(part, str) else ".*?" for part in fixed),
                    max((part for part in fixed if isinstance(part, str)), key=len),
                )
        case ast.IfExp():
            yield from _forms(node.body)
            yield from _forms(node.orelse)
        case _:
            pass


def _first_line(parts: Iterable[object]) -> Iterator[str | None]:
    """The parts of a text up to its first line break; None for what is formatted. Tests are searched line by line."""
    for part in parts:
        if not isinstance(part, str):
            yield None
        elif "\n" in part:
            yield part.partition("\n")[0]
            return
        else:
            yield part


@cache
def all_tested_text() -> str:
    """What the tests hold, a line of each; texts broken over lines of Python are joined."""
    files = [*ROOT.glob("filecheck/**/*.*"), *(ROOT / "tests").rglob("*.py")]
    texts = [f.read_text(errors="replace") for f in files if f.is_file() and f != Path(__file__)]
    texts = [re.sub(r'"\n\s*f?"', "", text) for text in texts]
    # `re.escape`d expectations of pytest count as well.
    return re.sub(r"\\(?=[^\w\s\"'])", "", "\n".join(texts))


def is_tested(message: Message) -> bool:
    """Whether a line of some test holds a form of the message."""
    text = all_tested_text()
    at = text.find(message.anchor)
    while at >= 0:
        end = text.find("\n", at)
        if re.search(message.pattern, text[text.rfind("\n", 0, at) + 1 : end]):
            return True
        at = text.find(message.anchor, end)
    return False


# Messages that had no test when this was written. The numbers may only fall: a new message comes with its test.
UNTESTED = {"dialects/te": 18, "dialects/tir": 29, "parser": 13}


@pytest.mark.parametrize("package", PACKAGES)
def test_messages_are_tested(package: str):
    missing = [str(m) for m in messages(package) if m.text not in UNREACHABLE and not is_tested(m)]
    allowed = UNTESTED.get(package, 0)
    assert len(missing) <= allowed, f"{len(missing)} messages that no test holds:\n" + "\n".join(missing)


def test_unreachable_ones_exist():
    there = {message.text for package in PACKAGES for message in messages(package)}
    assert there >= UNREACHABLE.keys()
