"""Damages texts: drops, doubles, swaps characters and tokens; changes Relay's attributes, types."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
METADATA = "#[metadata]"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")
LAYOUTS = {"NCHW": ("NHWC", "NCHW4c", "CNHW"), "NHWC": ("NCHW",), "OIHW": ("HWIO", "OHWI"), "HWIO": ("OIHW",)}
ENTRIES = ("-2", "-1", "0", "1", "2", "3", "4", "5")
SIZES = ("1", "2", "3", "4", "5", "7", "8", "16", "17")

# Without the types that TVM found: those of a variation are others.
_TYPES = re.compile(r" /\*.*?\*/|(?<=\)) -> [^{]*(?= \{)")


def varied(text: str, generator: random.Random) -> str:
    """Returns the program with one to three things changed."""
    program, *metadata = _TYPES.sub("", text).split(METADATA)
    for _ in range(generator.randint(1, 3)):
        program = generator.choice(CHANGES)(program, generator)
    return METADATA.join((program, *metadata))


def _replace(pattern: str, text: str, generator: random.Random, by: Callable[[str], str]) -> str:
    """Replaces the first group of one of the pattern's matches, drawn at random."""
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


def mutated(text: str, generator: random.Random) -> str:
    """Drops, doubles or swaps one to three characters or tokens of a text."""
    parts = list(text) if generator.random() < 0.5 else TOKEN.findall(text)
    for _ in range(generator.randint(1, 3)):
        if len(parts) < 2:
            break
        k = generator.randrange(len(parts) - 1)
        match generator.randrange(3):
            case 0:
                del parts[k]
            case 1:
                parts.insert(k, parts[k])
            case _:
                parts[k], parts[k + 1] = parts[k + 1], parts[k]
    return "".join(parts)
