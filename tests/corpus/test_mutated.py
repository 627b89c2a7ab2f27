"""Damaged programs: characters and tokens dropped, doubled, swapped. `mir-opt` accepts them or says what is wrong, each time.

The whole run (10,000 files) is marked slow: `pytest -m slow tests/corpus/test_mutated.py`.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mirstack.fuzz.text.mutations import mutated

SECONDS = 20
"""No damaged program may take longer than this; whole ones take a fraction of a second."""


def programs(corpus: Path, generator: random.Random) -> Iterator[tuple[str, str]]:
    """Corpus programs (the larger models left out), in random order, over and over."""
    files = [*corpus.glob("relay/*.relay"), *corpus.glob("tir/*.py"), *corpus.glob("relay_passes/*/*.relay")]
    texts = [(file.name, file.read_text()) for file in sorted(files) if file.stat().st_size < 8000]
    while True:
        yield generator.choice(texts)


def damage(corpus: Path, folder: Path, seed: int, count: int, mir_opt: Callable[..., Any]) -> None:
    """Runs `mir-opt` on `count` damaged programs; raises AssertionError naming the first that it does not bear."""
    generator = random.Random(seed)
    source = programs(corpus, generator)
    file = folder / "damaged.mir"

    def too_long(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, too_long)
    try:
        for k in range(count):
            name, text = next(source)
            file.write_text(mutated(text, generator))
            signal.alarm(SECONDS)
            try:
                ran = mir_opt(file)
            except TimeoutError:
                raise AssertionError(f"program {k} of seed {seed} (from {name}) took over {SECONDS} s") from None
            finally:
                signal.alarm(0)
            assert ran.code in (0, 1), f"program {k} of seed {seed} (from {name}):\n{ran.err}\n{file.read_text()}"
            if ran.code == 1:
                assert re.search(r"damaged\.mir:\d+:\d+: error: \S", ran.err), (
                    f"no place is told (from {name}):\n{ran.err}"
                )
            assert "Traceback" not in ran.err
    finally:
        signal.signal(signal.SIGALRM, before)


def test_damaged_programs(corpus: Path, tmp_path: Path, mir_opt: Callable[..., Any]):
    damage(corpus, tmp_path, 0, 150, mir_opt)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_thousand_damaged_programs(corpus: Path, tmp_path: Path, mir_opt: Callable[..., Any], seed: int):
    damage(corpus, tmp_path, seed, 1000, mir_opt)
