"""mirstack: Relay, TE and TIR as xDSL dialects, lowered to native code.

The names below are imported from `mirstack.api` when they are first used, so that `import mirstack` costs nothing.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import arith as arith
    from .api import contrib as contrib
    from .api import error as error
    from .api import ir as ir
    from .api import nd as nd
    from .api import onnx as onnx
    from .api import relay as relay
    from .api import rules as rules
    from .api import runtime as runtime
    from .api import script as script
    from .api import target as target
    from .api import te as te
    from .api import testing as testing
    from .api import tir as tir
    from .api import topi as topi
    from .api import transform as transform
    from .api.build import build
    from .api.compile import compile, load, parse, preload
    from .api.device import cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu
    from .api.error import TVMError
    from .api.executable import Executable
    from .api.extend import load_extension, register_operator
    from .api.global_func import get_global_func, list_global_func_names, register_func, remove_global_func
    from .api.importers import from_jax, from_onnx, from_torch
    from .api.ir import instrument as instrument
    from .api.ir.module import IRModule
    from .api.lower import lower
    from .api.quantize import quantize
    from .api.runtime.container import convert
    from .api.runtime.data_type import DataType as DataType
    from .api.runtime.data_type import DataTypeCode as DataTypeCode
    from .passes.extensions.extension import Extension, ItemFormat
    from .support.diagnostics import MirError
    from .support.stopwatch import timing

# Source files that are newer than this may not be the code that runs here: see `lowering.driver.cache.keys`.
IMPORTED_AT = time.time_ns()

# Modules of `api` that can also be imported as `mirstack.NAME`.
_MODULES = (
    "arith", "contrib", "error", "ir", "nd", "onnx", "relay", "rules", "runtime", "script", "target", "te", "testing", "tir", "topi", "transform",
)  # fmt: skip

# Modules of the commands that are run by `python -m mirstack.NAME`: a folder of such a name would hide the package lit from the commands
# that are started in this folder.
_COMMANDS = {"lit": "driver.lit.main"}

# Modules inside of those of `api` that can be imported by a shorter name, too.
_INSIDE = {"instrument": "api.ir.instrument"}

# The devices that TVM knows; programs run on the first.
_DEVICES = (
    "cpu", "cl", "cuda", "device", "ext_dev", "gpu", "hexagon", "metal", "opencl", "rocm", "vpi", "vulkan", "webgpu",
)  # fmt: skip

_FUNCTION_NAMES = ("get_global_func", "list_global_func_names", "register_func", "remove_global_func")

# Those whose own import does not import xDSL: what they hold does, and patches it then.
_LAZY = (
    *_DEVICES, "Executable", "Extension", "ItemFormat", "TVMError", "arith", "compile", "contrib", "error", "ir", "load", "parse", "preload", "relay", "script", "target", "timing", "tir",
)  # fmt: skip

# Where each public name lives: "module" for a module itself, "module:name" for something in it.
_PUBLIC = {
    **{name: f"api.{name}" for name in _MODULES},
    **_INSIDE,
    "Executable": "api.executable:Executable",
    "Extension": "passes.extensions.extension:Extension",
    "ItemFormat": "passes.extensions.extension:ItemFormat",
    "IRModule": "api.ir.module:IRModule",
    "MirError": "support.diagnostics:MirError",
    "TVMError": "api.error:TVMError",
    "build": "api.build:build",
    "compile": "api.compile:compile",
    **{name: f"api.device:{name}" for name in _DEVICES},
    **{name: f"api.global_func:{name}" for name in _FUNCTION_NAMES},
    "from_onnx": "api.importers:from_onnx",
    "from_jax": "api.importers:from_jax",
    "from_torch": "api.importers:from_torch",
    "load": "api.compile:load",
    "load_extension": "api.extend:load_extension",
    "convert": "api.runtime.container:convert",
    "DataType": "api.runtime.data_type:DataType",
    "DataTypeCode": "api.runtime.data_type:DataTypeCode",
    "lower": "api.lower:lower",
    "parse": "api.compile:parse",
    "preload": "api.compile:preload",
    "quantize": "api.quantize:quantize",
    "register_operator": "api.extend:register_operator",
    "timing": "support.stopwatch:timing",
}

__all__ = [
    "DataType", "DataTypeCode", "Executable", "Extension", "IRModule", "ItemFormat", "MirError", "TVMError", "arith", "build", "cl", "compile", "contrib",
    "convert", "cpu", "cuda", "device", "error", "ext_dev", "from_jax", "from_onnx", "from_torch", "get_global_func", "gpu", "hexagon",
    "instrument", "ir", "list_global_func_names", "load", "load_extension", "lower", "metal", "nd", "onnx", "opencl", "parse", "preload",
    "quantize", "register_func", "register_operator", "relay", "remove_global_func", "rocm", "rules", "runtime", "script", "target", "te",
    "testing", "timing", "tir", "topi", "transform", "vpi", "vulkan", "webgpu",
]  # fmt: skip


class _Finder:
    """Finds `mirstack.relay` and the like under `mirstack.api`.

        import mirstack.relay  →  the module mirstack.api.relay

    The machinery of import specs is itself imported only when such an import occurs.
    """

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        root, _, name = fullname.partition(".")
        if root != __name__ or (
            name not in _COMMANDS and name not in _INSIDE and name.partition(".")[0] not in _MODULES
        ):
            return None
        from .api.aliases import alias_spec

        return alias_spec(fullname, f"{__name__}.{(_COMMANDS | _INSIDE).get(name, f'api.{name}')}")


# First: the path of `mirstack.relay` is that of `mirstack.api.relay`, and what is in it would be found there a second time.
sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name not in _PUBLIC:
        from .api.no_attribute import no_attribute

        raise no_attribute("", name, _PUBLIC)
    from .support.garbage import no_collection

    if name not in _LAZY:
        from .support.xdsl_patches import apply

        apply()
    module, _, attribute = _PUBLIC[name].partition(":")
    with no_collection():
        found: object = import_module(f"{__name__}.{module}")
    if attribute:
        found = getattr(found, attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, "__version__"])
