"""Notes names whose meaning comes from code outside of the package.

Operators, functions of rules, tensor intrinsics. The name does not determine the meaning, so that code compiled from a text that
contains such a name is not cached on disk.
"""

from __future__ import annotations

import re

_PACKAGE = __name__.partition(".")[0]
_NAMES: set[str] = set()


def note_name(name: str, module: str) -> None:
    """Notes that the Python module of that name defines `name`."""
    if module.partition(".")[0] != _PACKAGE:
        _NAMES.add(name)


def names_one(text: str) -> bool:
    """Tells whether a text may contain a name that is defined outside."""
    return bool(_NAMES) and re.search("|".join(map(re.escape, _NAMES)), text) is not None
