"""Variations of corpus programs: other attributes, dtypes, dimensions, layouts. Each is refused with a message, or prints as
what reads as the same module, with types that verify.

The whole run is marked slow: `pytest -m slow tests/corpus/test_varied.py`.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from mirstack.fuzz.text.mutations import varied
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors


def check(corpus: Path, seed: int, count: int) -> None:
    """Raises AssertionError naming the variations that are not borne."""
    generator = random.Random(seed)
    files = [*corpus.glob("relay/*.relay"), *corpus.glob("relay_passes/*/*.relay")]
    texts = [(file.name, file.read_text()) for file in sorted(files) if file.stat().st_size < 6000]
    outcomes, failures = Counter[str](), list[str]()
    for _ in range(count):
        name, original = generator.choice(texts)
        text = varied(original, generator)
        try:
            module = parse_mir(text, name)
        except MirError:
            outcomes["refused"] += 1
            continue
        printed = print_mir(module)
        try:
            again = parse_mir(printed, name)
        except MirError as error:
            failures.append(f"{error}\n{text}")
            continue
        outcomes["read"] += 1
        if find_errors(module) or not again.is_structurally_equivalent(module) or print_mir(again) != printed:
            failures.append(f"{name}:\n{text}")
    print(dict(outcomes))
    assert not failures, f"{len(failures)} of {count} variations of seed {seed}:\n" + "\n".join(failures[:3])
    assert outcomes["read"] > count / 2


def test_varied_programs(corpus: Path) -> None:
    check(corpus, 0, 500)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_varied_programs(corpus: Path, seed: int) -> None:
    check(corpus, seed, 5000)
