"""Immediates: numbers and strings with their dtype."""

from __future__ import annotations


class IntImm:
    """An integer of a dtype."""

    __slots__ = ("dtype", "value")

    def __init__(self, dtype: str, value: int):
        self.dtype = dtype
        self.value = int(value)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, IntImm) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f'IntImm("{self.dtype}", {self.value})'


class FloatImm:
    """A float of a dtype."""

    __slots__ = ("dtype", "value")

    def __init__(self, dtype: str, value: float):
        self.dtype = dtype
        self.value = float(value)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f'FloatImm("{self.dtype}", {self.value})'


class StringImm:
    """A string."""

    __slots__ = ("value",)

    def __init__(self, value: str):
        self.value = value

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return f'StringImm("{self.value}")'
