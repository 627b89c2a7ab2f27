"""Broken programs: every one is read, or refused with a diagnostic, in bounded time; what is read round-trips."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from test_tvmscript_round_trip import BUFFERS, PROGRAMS
from tvmscript_text import function

_TOKEN = re.compile(r'\s+|[\w.]+|"[^"]*"|.', re.DOTALL)


def mutate(text: str, rng: random.Random) -> str:
    """A character or token dropped, doubled or swapped, up to three times."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        parts = list(text) if rng.random() < 0.5 else _TOKEN.findall(text)
        if len(parts) < 2:
            return text
        at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(3):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, parts[at])
            case _:
                parts[at], parts[other] = parts[other], parts[at]
        text = "".join(parts)
    return text


def check(text: str) -> None:
    start = time.process_time()
    try:
        module = parse_mir(text, "mutated.mir")
    except MirError as error:
        assert error.diagnostics
        assert all(d.message for d in error.diagnostics)
    else:
        printed = print_mir(module)
        again = parse_mir(printed, "printed.mir")
        assert print_mir(again) == printed
        assert module.is_structurally_equivalent(again)
    assert time.process_time() - start < 20


def run(texts: list[str], count: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(count):
        text = mutate(rng.choice(texts), rng)
        try:
            check(text)
        except BaseException:
            print(f"seed {seed}, mutation {number}:\n{text}")
            raise


def test_mutated_samples() -> None:
    run([function(body, BUFFERS) for body in PROGRAMS.values()], 300, 7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_mutated_corpus(corpus: Path, seed: int) -> None:
    texts = [p.read_text() for p in sorted(corpus.glob("tir/*.py")) + sorted(corpus.glob("tir_passes/*/*.in.py"))]
    run([t for t in texts if len(t) < 6000], 1000, seed)
