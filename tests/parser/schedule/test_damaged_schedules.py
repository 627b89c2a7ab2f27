"""Damaged schedules: tokens, names, numbers and lines exchanged. `mir-opt` carries them out or says what is wrong and where.

The whole run (5,000 programs) is marked slow: `pytest -m slow tests/parser/schedule/test_damaged_schedules.py`.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mirstack.dialects.schedule.signature_table import signatures as primitives
from mirstack.dialects.schedule.signature_table import te_signatures as te_primitives

PROGRAMS = sorted((Path(__file__).parent / "scheduled").glob("*.mir"))
SECONDS = 30
"""No damaged program may take longer than this; whole ones take a fraction of a second."""

_TOKEN = re.compile(r'"[^"\n]*"|\w+|[ \t]+|\n|[^\w\s]')
_VALUES = (
    *("0", "-1", "1", "3", "7", "1000003", "99999999999999999999", "0.5", "None", "True", '"x"', "[]", "()"),
    *("sch", "lambda i: i", "lambda i, j: j", "2**40"),
)
_CALLED = {**dict.fromkeys(primitives(), tuple(primitives())), **dict.fromkeys(te_primitives(), tuple(te_primitives()))}


def damaged(text: str, generator: random.Random) -> str:
    """The text with one or two places of its schedule changed; now and then of the program above."""
    parts = _TOKEN.findall(text)
    start = next(i for i, part in enumerate(parts) if part in ("schedule", "create_schedule"))
    first = start if generator.random() < 0.8 else 0
    for _ in range(generator.choice((1, 1, 1, 2))):
        if generator.random() < 0.12:
            parts = _TOKEN.findall(_with_lines_moved("".join(parts), "".join(parts[:first]).count("\n"), generator))
            continue
        places = [i for i in range(min(first, len(parts) // 2), len(parts)) if parts[i].strip()]
        place, other = generator.choice(places), generator.choice(places)
        match generator.random():
            case chance if chance < 0.12:
                parts[place] = ""
            case chance if chance < 0.2:
                parts.insert(place, parts[place])
            case chance if chance < 0.3:
                parts[place], parts[other] = parts[other], parts[place]
            case _:
                parts[place] = _instead(parts[place], parts[first:], generator)
    return "".join(parts)


def _with_lines_moved(text: str, first: int, generator: random.Random) -> str:
    lines = text.split("\n")
    a, b = (generator.randrange(min(first, len(lines) - 2), len(lines) - 1) for _ in range(2))
    match generator.randrange(3):
        case 0:
            lines[a], lines[b] = lines[b], lines[a]
        case 1:
            lines.insert(b, lines[a])
        case _:
            del lines[a]
    return "\n".join(lines)


def _instead(token: str, around: list[str], generator: random.Random) -> str:
    """Something of the kind of a token: another primitive, another name of the text, another value, another sign."""
    if token in _CALLED:
        return generator.choice(_CALLED[token])
    if token.isidentifier() and generator.random() < 0.75:
        return generator.choice(sorted({part for part in around if part.isidentifier()}))
    return generator.choice(_VALUES if token[0].isalnum() else tuple("()[],.:=*+-/ "))


def damage(folder: Path, seed: int, count: int, mir_opt: Callable[..., Any]) -> int:
    """Runs `mir-opt` on damaged programs: how many were carried out. Raises AssertionError for one that it does not bear."""
    generator = random.Random(seed)
    file = folder / "damaged.mir"
    good = 0

    def too_long(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, too_long)
    try:
        for k in range(count):
            source = generator.choice(PROGRAMS)
            text = damaged(source.read_text(), generator)
            file.write_text(text)
            what = f"program {k} of seed {seed}, from {source.name}"
            signal.alarm(SECONDS)
            try:
                ran = mir_opt(file, "-p", "apply-schedule,lower-te-to-tir")
            finally:
                signal.alarm(0)
            assert ran.code in (0, 1) and "Traceback" not in ran.err, f"{what}:\n{ran.err}\n{text}"
            assert ran.code == 0 or re.search(r"damaged\.mir:\d+:\d+: error: \S", ran.err), (
                f"{what}:\n{ran.err}\n{text}"
            )
            good += ran.code == 0
    finally:
        signal.signal(signal.SIGALRM, before)
    return good


def test_damaged_schedules(tmp_path: Path, mir_opt: Callable[..., Any]) -> None:
    assert damage(tmp_path, 0, 80, mir_opt) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_five_thousand_damaged_schedules(tmp_path: Path, mir_opt: Callable[..., Any], seed: int) -> None:
    assert damage(tmp_path, seed, 1000, mir_opt) > 0
