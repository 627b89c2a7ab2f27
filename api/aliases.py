"""Makes modules importable by their short names: `import mirstack.relay`, `python -m mirstack.lit`."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

_SAME = {
    "ir.attrs": "ir", "ir.base": "ir", "ir.expr": "ir", "ir.function": "ir",
    "relay.op.contrib": "relay.op", "relay.op.op": "relay.op", "relay.op.reduce": "relay.op", "relay.op.tensor": "relay.op",
    "relay.op.transform": "relay.op", "runtime.module": "runtime", "runtime.object": "runtime", "te.operation": "te",
    "testing.utils": "testing", "tir.function": "tir", "tir.schedule.schedule": "tir.schedule", "tir.schedule.trace": "tir.schedule",
}  # fmt: skip
"""Modules of TVM whose names are here in the package around them."""


def alias_spec(fullname: str, real: str) -> ModuleSpec:
    """The spec of a module that is there as `real`: the same module under both names."""
    root, _, name = fullname.partition(".")
    if name in _SAME:
        real = f"{root}.api.{_SAME[name]}"
    return ModuleSpec(fullname, _AliasLoader(real), origin=real)


class _AliasLoader(Loader):
    """Gives a module that is there under another name."""

    def __init__(self, real: str):
        self._real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            module = import_module(self._real)
        except ModuleNotFoundError as error:
            if not f"{self._real}.".startswith(f"{error.name}."):
                raise
            # `relay.nn` and the like are no files, but what the package has by that name.
            package, _, name = spec.name.rpartition(".")
            found: object = getattr(sys.modules[package], name, None)
            if not isinstance(found, ModuleType):
                raise ModuleNotFoundError(f"No module named '{spec.name}'", name=spec.name) from None
            module = found
        self._spec = module.__spec__
        return module

    def get_code(self, fullname: str) -> CodeType:
        """Returns what `python -m mirstack.lit` executes: a call of the module's `main`."""
        return compile(f"from {self._real} import main\nraise SystemExit(main())", self._real, "exec")

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just given the module the alias's spec; relative imports inside it need its own.
        module.__spec__ = self._spec
