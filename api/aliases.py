"""Makes modules of `mirstack.api` importable by their short names: `import mirstack.relay`."""

from __future__ import annotations

from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType


def alias_spec(root: str, fullname: str) -> ModuleSpec:
    """The spec of `ROOT.NAME…`, which is `ROOT.api.NAME…`: the same module under both."""
    return ModuleSpec(fullname, _AliasLoader(f"{root}.api.{fullname[len(root) + 1 :]}"))


class _AliasLoader(Loader):
    """Gives a module that is there under another name."""

    def __init__(self, real: str):
        self._real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            module = import_module(self._real)
        except ModuleNotFoundError as error:
            if error.name == self._real:
                raise ModuleNotFoundError(f"No module named '{spec.name}'", name=spec.name) from None
            raise
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just given the module the alias's spec; relative imports inside it need its own.
        module.__spec__ = self._spec
