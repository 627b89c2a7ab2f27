"""Words of messages: numbers with nouns, nearest known words, string literals, free names."""

from __future__ import annotations

import json
from collections.abc import Iterable

_HIDDEN = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (
        *(code for code in range(0x20) if chr(code) not in "\t\n"),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),
    )
}
_IRREGULAR = {"index": "indices", "axis": "axes"}


def quoted(text: str) -> str:
    """Returns a text as a string literal of Relay, TE and JSON: `a "name"` → `"a \\"name\\""`."""
    return json.dumps(text, ensure_ascii=False)


def natural(text: str, digits: int = 18) -> int | None:
    """Returns the number that decimal digits write; None for other texts and more than `digits` digits.

    "037" → 37, "" and "-1" and "²" → None. Python's `int` raises ValueError for digits beyond 4300, and for `²`.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def take_name(wanted: str, taken: set[str], numbers: dict[str, int] | None = None) -> str:
    """Returns `wanted`, or `wanted_1`, `wanted_2`, … if it is taken, and adds it to `taken`.

    `numbers` keeps, where many names are taken from one set that only grows, the last number of each: what is below is taken.
    """
    name, number = wanted, 0 if numbers is None else numbers.get(wanted, 0)
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    if numbers is not None:
        numbers[wanted] = number
    return name


class FreshNames:
    """Names that are each given once: `A`, `A_1`, `A_2`."""

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        """Returns `base`, or `base_1`, `base_2`, … that is not taken."""
        return take_name(base, self._taken, self._numbers)


def counted(count: int, noun: str) -> str:
    """Returns a number with its noun, whose last word takes the plural: `1 argument`, `0 indices`."""
    if count == 1:
        return f"1 {noun}"
    start, blank, last = noun.rpartition(" ")
    return f"{count} {start}{blank}{_IRREGULAR.get(last, f'{last}s')}"


def visible(text: str) -> str:
    """Escapes text for a terminal.

    Control characters except tabs and line ends, bidirectional controls, which reorder or hide text, and halves of surrogate
    pairs become `\\x1b`, `\\u202e`.
    """
    # Printable text of one line is what messages mostly are.
    return text if text.isascii() and text.isprintable() else text.translate(_HIDDEN)


def with_article(word: str) -> str:
    """Returns a word after the article that its sound asks for: `a float32`, `an int32`, `a uint8`."""
    article = "an" if word.startswith(("a", "e", "i", "o")) else "a"
    return f"{article} {word}"


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Returns the known word nearest to `word`; None if none has a similarity of `cutoff`, at most 1."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Returns "; did you mean 'x'?" for the known word nearest to `word`, or "" if none is near."""
    near = nearest(word, known, cutoff)
    return "" if near is None else f"; did you mean '{near}'?"


def nearest_or_all(word: str, known: Iterable[str]) -> str:
    """Returns "; did you mean 'axis'?", or if none is near "; it has axis, keepdims", or "; it has none"."""
    names = list(known)
    return did_you_mean(word, names) or f"; it has {', '.join(names) or 'none'}"
