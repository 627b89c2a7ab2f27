"""The plugin by which stock `xdsl-opt` finds mirstack's dialects and passes.

Its entry point group is `xdsl.universe`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from xdsl.ir import Dialect
from xdsl.universe import Universe

from .passes.extensions.packages import load_packages
from .passes.registry import universe_passes
from .support import extensions

# Each dialect's module and the name in it: a `Dialect`, or a function that makes it when it is needed.
DIALECTS: dict[str, str] = {
    "relay": "dialects.relay:relay_dialect",
    "te": "dialects.te:TE",
    "tir": "dialects.tir:TIR",
    "mirstack": "dialects.target:mirstack_dialect",
    "rule": "dialects.rule:RULE",
    "schedule": "dialects.schedule:schedule_dialect",
    "llvm_ext": "dialects.llvm_ext:LLVMExt",
    "math_ext": "dialects.math_ext:MathExt",
    "vector_ext": "dialects.vector_ext:VectorExt",
}


def _factory(where: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        module, _, name = where.partition(":")
        if module == "dialects.relay":
            # It has the operators of packages, too.
            load_packages()
        found: Dialect | Callable[[], Dialect] = getattr(import_module(f"{__package__}.{module}"), name)
        return found if isinstance(found, Dialect) else found()

    return load


def dialect_factories() -> dict[str, Callable[[], Dialect]]:
    """mirstack's dialects by name; a dialect's module is imported when its factory is called."""
    return {name: _factory(where) for name, where in DIALECTS.items()}


def every_dialect() -> dict[str, Callable[[], Dialect]]:
    """The dialects of xDSL, of mirstack and of extensions by name."""
    from xdsl.dialects import get_all_dialects

    loaded = {each.name: cast("Callable[[], Dialect]", each.value) for each in extensions.loaded("dialect")}
    return {**get_all_dialects(), **loaded, **dialect_factories()}


UNIVERSE = Universe(all_dialects=dialect_factories(), all_passes=universe_passes())
