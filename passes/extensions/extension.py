"""Describes what a package adds, under the entry point group `mirstack.extensions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass


@dataclass(frozen=True)
class ItemFormat:
    """Describes a format of `.mir` items: its words, and where its `Format` is, "module:NAME".

    Items in braces begin with one of `keywords`, those in Python's form with one of `decorators`; see `mirstack.parser.items`.
    """

    where: str
    keywords: Sequence[str] = ()
    decorators: Sequence[str] = ()


@dataclass(frozen=True)
class Extension:
    """Lists the additions of a package or a Python file: items, modules, passes, dialects, formats.

        EXTENSION = mirstack.Extension(files=[Path(__file__).parent / "operators.mir"], modules=["my_package.passes"])

    The modules are imported when the extension is loaded: they call `mirstack.register_operator` and the like. Passes and dialects may be
    registered in the entry point group `xdsl.universe` instead.
    """

    files: Sequence[str | PathLike[str]] = ()
    modules: Sequence[str] = ()
    passes: Sequence[type[ModulePass]] = ()
    dialects: Mapping[str, Callable[[], Dialect]] = field(default_factory=dict[str, "Callable[[], Dialect]"])
    formats: Mapping[str, ItemFormat] = field(default_factory=dict[str, ItemFormat])
