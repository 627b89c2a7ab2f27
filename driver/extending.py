"""Loads extensions for commands, and lists them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..passes.extensions.packages import load_packages
from ..support import extensions

_WORDS = {
    "rule.operator": "operator",
    "rule.rewrite": "rule",
    "rule.set": "ruleset",
    "te.func": "TE function",
    "tir.prim_func": "TIR function",
    "relay.func": "function",
    "schedule.script": "schedule",
}
"""The kinds of definitions that are ops, in words."""


def load_all(files: Sequence[str]) -> None:
    """Loads the packages that extend mirstack, then files. Raises MirError for what cannot be loaded."""
    load_packages()
    if files:
        from ..passes.extensions.load import load_extension

        for file in files:
            load_extension(file)


def list_extensions() -> Iterator[str]:
    """Yields the lines of `--list-extensions`: each definition with its kind and where it comes from."""
    found = [(each.origin, _WORDS.get(each.kind, each.kind), each.name) for each in extensions.loaded()]
    if not found:
        yield "There are none: docs/extend.md says how to make one."
    origin = None
    for where, kind, name in found:
        if kind == "extension":
            continue
        if where != origin:
            yield f"{where}:"
            origin = where
        yield f"  {kind:<12}  {name}"
