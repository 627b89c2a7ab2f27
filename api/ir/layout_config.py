"""`LayoutConfig`: which convolutions `ConvertLayout` leaves as they are, as TVM has it."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token

_CURRENT: ContextVar[LayoutConfig | None] = ContextVar("layout_config", default=None)


class LayoutConfig:
    """Excludes operators from `ConvertLayout` while inside `with LayoutConfig(skip_layers=[0]):`.

    They are counted from 0 in program order among those that have a desired layout.
    """

    def __init__(self, skip_layers: Sequence[int] | None = None):
        self.skip_layers = list(skip_layers or ())
        self._tokens: list[Token[LayoutConfig | None]] = []

    def __repr__(self) -> str:
        return f"LayoutConfig(skip_layers={self.skip_layers})"

    @staticmethod
    def current() -> LayoutConfig | None:
        """That of the innermost `with`, or None."""
        return _CURRENT.get()

    def __enter__(self) -> LayoutConfig:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._tokens.pop())
