"""`mirstack.runtime`: compiled modules from files, values, devices, by the names of `tvm.runtime`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...lowering.driver.loading.executable import Executable
from ...support.public_names import public_names
from ..build import Module, PackedFunc
from ..device import Device, cpu, cuda, device, gpu
from ..nd import NDArray, array, empty
from ..no_attribute import no_attribute
from ..target.target import native_options
from .container import ADT, String, convert, tuple_object

if TYPE_CHECKING:
    from ...dialects.tir.node.expr import const as const
    from .. import nd as ndarray
    from ..ir.node import Node as Object
    from ..relay.graph_runtime import GraphRuntime
    from . import container as container
    from . import vm as vm
    from .data_type import DataType, DataTypeCode, ShapeTuple
    from .params import load_param_dict, save_param_dict

_MODULES = {"container": ".container", "ndarray": "..nd", "vm": ".vm"}
_LAZY = {"DataType": ".data_type:DataType", "DataTypeCode": ".data_type:DataTypeCode", "ShapeTuple": ".data_type:ShapeTuple", "const": "...dialects.tir.node.expr:const", "Object": "..ir.node:Node", "load_param_dict": ".params:load_param_dict", "save_param_dict": ".params:save_param_dict"}  # fmt: skip

__all__ = [
    "ADT", "DataType", "DataTypeCode", "Device", "Module", "NDArray", "Object", "PackedFunc", "ShapeTuple", "String", "array", "const", "container", "convert", "cpu", "cuda", "device", "empty", "enabled", "gpu",
    "load_module", "load_param_dict", "ndarray", "save_param_dict", "tuple_object", "vm",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        module: ModuleType = import_module(_MODULES[name], __package__)
        return module
    if name not in _LAZY:
        raise no_attribute("runtime", name, _LAZY)
    place, _, attribute = _LAZY[name].partition(":")
    found: object = getattr(import_module(place, __package__), attribute)
    globals()[name] = found
    return found


class LoadedModule(Module):
    """The function of a package; `module["default"](device)` makes the runtime of a graph of it."""

    def __init__(self, executable: Executable):
        super().__init__({executable.name: PackedFunc(executable)}, executable.name)

    def __getitem__(self, name: str) -> Any:
        """The function of that name, or for "default" the maker of runtimes.

        Raises MirError where there is none.
        """
        return self._default if name == "default" and name not in self else super().__getitem__(name)

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """Returns the function of that name, as by indexing."""
        return self[name]

    @property
    def _default(self) -> Callable[..., GraphRuntime]:
        from ..relay.graph_runtime import factory_of

        return factory_of(self.entry_func.executable)


def load_module(path: str | PathLike[str], *, threads: int | None = None) -> Module:
    """Returns the module in a package (.mirpkg), or in a library (.so) that `export_library` wrote.

    Raises MirError for a file that is not a whole package, and where none of its code runs on this machine.
    """
    executable = Executable.load(path, threads=threads)
    return LoadedModule(executable)


def enabled(target: str) -> bool:
    """Returns whether programs can be compiled for a target and run here."""
    try:
        native_options(target)
    except (ValueError, TypeError):
        return False
    return True


__dir__ = public_names(__name__)
