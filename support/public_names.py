"""Lists the public names of modules for `dir`, completion and stubs."""

from __future__ import annotations

import sys
from collections.abc import Callable


def public_names(module: str) -> Callable[[], list[str]]:
    """Returns the `__dir__` of a module: `__dir__ = public_names(__name__)`.

    It lists the names of `__all__` or, without one, those that the module itself defines and that begin with no underscore.
    """

    def listed() -> list[str]:
        names = vars(sys.modules[module])
        if "__all__" in names:
            return sorted(names["__all__"])
        own = (name for name, value in names.items() if getattr(value, "__module__", None) == module)
        return sorted(name for name in own if not name.startswith("_"))

    return listed
