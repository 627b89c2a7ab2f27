"""Words of the script language as Python sees them when it evaluates a parameter's annotation."""

from __future__ import annotations

from typing import Any


class Word:
    """A word such as `T.Buffer((8,), "float32")`: Python evaluates it, the parser reads its source."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __call__(self, *args: Any, **kwargs: Any) -> Word:
        return self

    def __getitem__(self, item: Any) -> Word:
        return self

    def __getattr__(self, name: str) -> Word:
        if name.startswith("__"):
            raise AttributeError(name)
        return Word(f"{self.text}.{name}")

    def __repr__(self) -> str:
        return self.text


__all__ = ["Word"]
