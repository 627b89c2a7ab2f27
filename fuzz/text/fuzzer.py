"""Checks damaged texts: each is read, prints and reads again the same, or is refused with a place."""

from __future__ import annotations

import os
import random
import re
from functools import cache
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...driver.mlir_frontend import parse_mlir
from ...driver.modules import register_dialects
from ...parser import parse_mir, print_mir
from ...support.diagnostics import MirError, source_position
from ...support.verify import find_errors
from ..case import Case, Verdict, failure_of, reason
from ..reduce import ON_TEXT
from .mutations import mutated, varied

LARGEST = 6000
ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^(?://|#) -----.*$", re.MULTILINE)


@cache
def sources() -> tuple[tuple[str, str], ...]:
    """Returns the texts to damage, each with its format.

    They are those of the tests, documents and examples of a checkout, and of MIRSTACK_CORPUS.
    """
    found: list[tuple[str, str]] = []
    for folder in ("filecheck", "examples", "tests", "passes"):
        for file in sorted((ROOT / folder).rglob("*.ml*ir")) + sorted((ROOT / folder).rglob("*.mir")):
            found += [(file.suffix[1:], text) for text in _ITEM.split(_read(file))]
    for file in sorted((ROOT / "docs").glob("*.md")):
        found += [("mir", text) for text in _FENCE.findall(_read(file)) if "def " in text or "rewrite @" in text]
    corpus = os.environ.get("MIRSTACK_CORPUS")
    if corpus is not None:
        for pattern in ("relay/*.relay", "tir/*.py", "relay_passes/*/*.relay", "tir_passes/*/*.in.py"):
            found += [("mir", _read(file)) for file in sorted(Path(corpus).glob(pattern))]
    return tuple((form, text) for form, text in found if 20 < len(text) < LARGEST)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


class TextFuzzer:
    """Draws a text and damages it, seldom beyond what text is."""

    shrinkers = ON_TEXT

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"text/{seed}/{number}")
        if not sources():
            raise FileNotFoundError(
                f"{ROOT} holds no texts to damage: it is not a checkout, and MIRSTACK_CORPUS names no folder"
            )
        form, text = rng.choice(sources())
        if form == "mir" and rng.random() < 0.25 and "def @" in text:
            text = varied(text, rng)
        kind = rng.random()
        if kind < 0.85:
            text = mutated(text, rng)
        elif kind < 0.92:
            text = with_stray(text, rng)
        elif kind < 0.97:
            other = rng.choice(sources())[1]
            text = text[: rng.randrange(len(text))] + other[rng.randrange(len(other)) :]
        return Case("text", text, {}, {"format": form})

    def check(self, case: Case) -> Verdict:
        """Reads the text."""
        verdict = Verdict()
        try:
            module = _read_module(case)
            errors = find_errors(module)
            if errors:
                raise MirError(errors)
        except MirError as error:
            verdict.refused = reason(error, case.options["format"])
            if not error.diagnostics or not error.diagnostics[0].message.strip():
                verdict.fail("message", "empty", "the text is refused without a message")
            elif source_position(error.diagnostics[0].location) is None:
                verdict.fail("message", verdict.refused, f"no place is told: {error.diagnostics[0].message}")
            return verdict
        except Exception as error:
            verdict.failures.append(failure_of(error, "while the text was read"))
            return verdict
        if case.options["format"] != "mir":
            verdict.compared += 1
            return verdict
        try:
            printed = print_mir(module)
        except MirError as error:
            # MLIR's form can hold what a text cannot.
            verdict.refused = reason(error, "printer")
            return verdict
        try:
            again = parse_mir(printed, "printed.mir")
        except MirError as error:
            verdict.fail("text", reason(error, ""), f"what was printed is not read: {error.diagnostics[0].message}")
            return verdict
        verdict.compared += 1
        if print_mir(again) != printed:
            verdict.fail("text", "printed otherwise", "what is printed reads as another program")
        return verdict


def _read_module(case: Case) -> ModuleOp:
    if case.options["format"] == "mir":
        return parse_mir(case.text, "damaged.mir")
    context = Context()
    register_dialects(context)
    return parse_mlir(context, case.text, "damaged.mlir")


_STRAY = ("\\", "\x00", "\x1b[2J", "é", "\u2028", "\ufeff", '"', "'", "`", "$", "/*", "*/", '"""', "{", "}", "(", ")", "99999999999999999999999", "1e999", "-", "\t", "\r", " " * 2000, "(" * 500, "0x", "inf", "nan", "@", "%", "#[", "meta[relay.Constant][7]")  # fmt: skip


def with_stray(text: str, rng: random.Random) -> str:
    """Returns the text with something that does not belong there."""
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice(_STRAY) + text[place:]


FUZZER = TextFuzzer()
