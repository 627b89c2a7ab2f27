"""Broken programs: every one is read, or refused with a diagnostic, in bounded time; what is read round-trips."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from mirstack.fuzz.text.mutations import mutated
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from test_tvmscript_round_trip import BUFFERS, PROGRAMS
from tvmscript_text import function


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
        text = mutated(rng.choice(texts), rng)
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
