"""Names that TVM has and mirstack has not: what an AttributeError says of them.

`not_wanted.json` lists them by module, each group with what to use instead; docs/from-tvm.md has the same as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..support.text import did_you_mean


class NotWanted(NamedTuple):
    """A group of TVM's names: their module without the package's name, and what to use instead."""

    module: str
    names: tuple[str, ...]
    instead: str


def no_attribute(module: str, name: str, known: Iterable[str] = (), kind: str = "attribute") -> AttributeError:
    """Returns the error for a name that a module has not: what to use instead, or the nearest name.

    `module` is written without the package's name: `relay.op`; the package itself is "". `kind` is "attribute" or "pass".
    """
    shown = f"mirstack.{module}" if module else "mirstack"
    instead = None if name.startswith("_") else _instead().get((module, name))
    if instead is not None:
        return AttributeError(f"module '{shown}' has no '{name}', which TVM has: {instead}", name=name)
    near = "" if name.startswith("_") else did_you_mean(name, known)
    return AttributeError(f"module '{shown}' has no {kind} '{name}'{near}", name=name)


@cache
def _instead() -> Mapping[tuple[str, str], str]:
    return {(group.module, name): group.instead for group in not_wanted() for name in group.names}


def not_wanted() -> Iterator[NotWanted]:
    """Yields the groups of `not_wanted.json`."""
    import json

    table: Mapping[str, Mapping[str, list[str]]] = json.loads(Path(__file__).with_name("not_wanted.json").read_text())
    for module, groups in table.items():
        for instead, names in groups.items():
            yield NotWanted(module, tuple(names), instead)
