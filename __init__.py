"""mirstack: Relay, TE and TIR as xDSL dialects, lowered to native code.

The names below are imported from `mirstack.api` when they are first used, so that `import mirstack` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api.compile import Executable, compile, load, parse, preload

# Where each public name lives: "module" for a module itself, "module:name" for something in it.
_PUBLIC = {
    "Executable": "api.compile:Executable",
    "compile": "api.compile:compile",
    "load": "api.compile:load",
    "parse": "api.compile:parse",
    "preload": "api.compile:preload",
}

__all__ = ["Executable", "compile", "load", "parse", "preload"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name not in _PUBLIC:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module, _, attribute = _PUBLIC[name].partition(":")
    found: object = import_module(f"{__name__}.{module}")
    if attribute:
        found = getattr(found, attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC, "__version__"])
