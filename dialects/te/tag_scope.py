"""Tags every operation that is made within a `with`, or by a decorated function."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

_current: ContextVar[str | None] = ContextVar("tag", default=None)


class TagScope:
    """The tag of operations made while it is entered; scopes do not nest."""

    def __init__(self, tag: str):
        self.tag = tag
        self._token: Token[str | None] | None = None

    def __enter__(self) -> TagScope:
        """Raises ValueError inside of another scope."""
        if (around := _current.get()) is not None:
            raise ValueError(f"a tag_scope of '{self.tag}' cannot be inside of one of '{around}'")
        self._token = _current.set(self.tag)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _current.reset(self._token)

    def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
        """Returns the function, each call of which is within the scope."""

        @wraps(function)
        def tagged(*args: object, **keywords: object) -> T:
            with self:
                return function(*args, **keywords)

        return tagged


def tag_scope(tag: str) -> TagScope:
    """Returns a scope that tags operations: `with te.tag_scope(tag="conv"):`, or as a decorator."""
    return TagScope(tag)


def scoped_tag(tag: str) -> str:
    """Returns the tag of a new operation. Raises ValueError where both it and a scope have one."""
    around = _current.get()
    if around is None:
        return tag
    if tag:
        raise ValueError(f"an operation with the tag '{tag}' cannot be made inside of a tag_scope of '{around}'")
    return around
