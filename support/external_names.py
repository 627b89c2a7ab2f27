"""What code from outside of the package has made known by a name: operators, functions of rules, tensor intrinsics.

The name does not say what it means, so that what is compiled of a text in which it stands is not kept on disk.
"""

from __future__ import annotations

import re

_PACKAGE = __name__.partition(".")[0]
_NAMES: set[str] = set()


def note_name(name: str, module: str) -> None:
    """Notes that the Python module of that name gives `name` its meaning."""
    if module.partition(".")[0] != _PACKAGE:
        _NAMES.add(name)


def names_one(text: str) -> bool:
    """Whether a name that has its meaning from outside may stand in a text."""
    return bool(_NAMES) and re.search("|".join(map(re.escape, _NAMES)), text) is not None
