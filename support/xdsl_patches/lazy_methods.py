"""Creates the methods of xDSL's and this project's dataclasses when they are first called.

`dataclasses.dataclass` writes the text of each method and compiles it, which takes a fifth of importing xDSL and what compiles a model; few of
the classes are ever compared, hashed or printed. A stub is stored in the class instead, which puts the method in its place at its first
call. `__init__` is created at once, since its signature is looked up. Python 3.13 and later compile all methods of a class at once: there
nothing is changed, nor for classes of other packages.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from . import Patch

LATER = frozenset({"__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})
"""The methods that are created at their first call."""
PACKAGES = ("xdsl", __name__.partition(".")[0])


def create_later(create: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `dataclasses._create_fn` with stubs for the methods of `LATER`."""

    def create_or_stub(
        name: str, args: list[str], body: list[str], *, globals: dict[str, Any] | None = None, **rest: Any
    ) -> Any:
        module: str = (globals or {}).get("__name__", "")
        if name not in LATER or module.partition(".")[0] not in PACKAGES:
            return create(name, args, body, globals=globals, **rest)

        @cache
        def created() -> FunctionType:
            method: FunctionType = create(name, args, body, globals=globals, **rest)
            method.__qualname__ = stub.__qualname__
            return method

        def stub(self: Any, *values: Any) -> Any:
            # `__repr__` stays: dataclasses wrap it.
            for cls in type(self).__mro__:
                if cls.__dict__.get(name) is stub:
                    setattr(cls, name, created())
            return created()(self, *values)

        stub.__name__ = name
        return stub

    return create_or_stub


def apply_later() -> None:
    """Replaces `dataclasses._create_fn`."""
    if sys.version_info < (3, 13):
        # Private to Python's library, which has no public way.
        module: Any = dataclasses
        module._create_fn = create_later(module._create_fn)


PATCH = Patch(
    reason="dataclasses compile the text of each method while classes are made",
    gain="importing what compiles a model: 0.84 of the time",
    apply=apply_later,
)
