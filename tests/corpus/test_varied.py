"""Variations of corpus programs: other attributes, dtypes, dimensions, layouts. Each is refused with a message, or prints as
what reads as the same module, with types that verify.

The whole run is marked slow: `pytest -m slow tests/corpus/test_varied.py`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors

METADATA = "#[metadata]"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")
LAYOUTS = {"NCHW": ("NHWC", "NCHW4c", "CNHW"), "NHWC": ("NCHW",), "OIHW": ("HWIO", "OHWI"), "HWIO": ("OIHW",)}
ENTRIES = ("-2", "-1", "0", "1", "2", "3", "4", "5")
SIZES = ("1", "2", "3", "4", "5", "7", "8", "16", "17")

# Without the types that TVM found: those of a variation are others.
_TYPES = re.compile(r" /\*.*?\*/|(?<=\)) -> [^{]*(?= \{)")


def varied(text: str, generator: random.Random) -> str:
    """The program with one to three things changed."""
    program, *metadata = _TYPES.sub("", text).split(METADATA)
    for _ in range(generator.randint(1, 3)):
        program = generator.choice(CHANGES)(program, generator)
    return METADATA.join((program, *metadata))


def _replace(pattern: str, text: str, generator: random.Random, by: Callable[[str], str]) -> str:
    """The text with one of the pattern's matches, chosen by chance, replaced; the pattern's first group is what is."""
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = generator.choice(found)
    return text[: match.start(1)] + by(match[1]) + text[match.end(1) :]


def _number(text: str, generator: random.Random) -> str:
    return _replace(r"\w=(-?\d+)(?=f?[,)])", text, generator, lambda _: generator.choice(ENTRIES))


def _entry(text: str, generator: random.Random) -> str:
    return _replace(r"=\[(?:-?\d+, )*(-?\d+)[^\[\]]*\]", text, generator, lambda _: generator.choice(ENTRIES))


def _length(text: str, generator: random.Random) -> str:
    def several(_: str) -> str:
        return ", ".join(generator.choices(ENTRIES, k=generator.randint(0, 4)))

    return _replace(r"=\[([^\[\]]*)\]", text, generator, several)


def _left_out(text: str, generator: random.Random) -> str:
    return _replace(r"(, \w+=(?:\[[^\[\]]*\]|\"[^\"]*\"|[^,()\[\]]+))(?=[,)])", text, generator, lambda _: "")


def _flag(text: str, generator: random.Random) -> str:
    return _replace(r"=(True|False)", text, generator, lambda flag: "False" if flag == "True" else "True")


def _layout(text: str, generator: random.Random) -> str:
    return _replace(r'"(NCHW|NHWC|OIHW|HWIO)"', text, generator, lambda layout: generator.choice(LAYOUTS[layout]))


def _dtype(text: str, generator: random.Random) -> str:
    present = [dtype for dtype in DTYPES if dtype in text]
    return re.sub(rf"\b{generator.choice(present)}\b", generator.choice(DTYPES), text) if present else text


def _dimension(text: str, generator: random.Random) -> str:
    sizes = re.findall(r"\d+", " ".join(re.findall(r"Tensor\[\(([^)]*)\)", text)))
    if not sizes:
        return text
    return re.sub(rf"(?<![\w.%-]){generator.choice(sizes)}(?![\w.])", generator.choice(SIZES), text)


CHANGES = (_number, _entry, _length, _left_out, _flag, _layout, _dtype, _dimension)


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
