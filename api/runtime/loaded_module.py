"""Modules from files, which also make the runtimes of graphs, as TVM's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...lowering.driver.loading.executable import Executable
from ..build import Module, PackedFunc

if TYPE_CHECKING:
    from ..relay.graph_runtime import GraphRuntime


class LoadedModule(Module):
    """The function of a package; `module["default"](device)` makes the runtime of a graph of it."""

    def __init__(self, executable: Executable):
        super().__init__({executable.name: PackedFunc(executable)}, executable.name)

    def __getitem__(self, name: str) -> Any:
        """The function of that name, or for "default" the maker of runtimes.

        Raises MirError where there is none.
        """
        return self._default if name == "default" and name not in self else super().__getitem__(name)

    get_function = __getitem__

    @property
    def _default(self) -> Callable[..., GraphRuntime]:
        from ..relay.graph_runtime import factory_of

        return factory_of(self.entry_func.executable)


__all__ = ["LoadedModule"]
