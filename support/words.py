"""English of messages: numbers with their noun, words with their article."""

from __future__ import annotations

_IRREGULAR = {"index": "indices", "axis": "axes"}


def counted(count: int, noun: str) -> str:
    """`1 argument`, `2 arguments`, `0 indices`: a number with its noun, of which the last word takes the plural."""
    if count == 1:
        return f"1 {noun}"
    start, blank, last = noun.rpartition(" ")
    return f"{count} {start}{blank}{_IRREGULAR.get(last, f'{last}s')}"


def with_article(word: str) -> str:
    """`a float32`, `an int32`, `a uint8`: a word behind the article that its sound asks for."""
    article = "an" if word.startswith(("a", "e", "i", "o")) else "a"
    return f"{article} {word}"
