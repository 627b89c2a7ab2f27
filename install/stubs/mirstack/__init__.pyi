"""mirstack: Relay, TE and TIR as xDSL dialects, lowered to native code.

The names below are imported from `mirstack.api` when they are first used, so that `import mirstack` costs nothing.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack import arith as arith
from mirstack import contrib as contrib
from mirstack import error as error
from mirstack import instrument as instrument
from mirstack import ir as ir
from mirstack import nd as nd
from mirstack import onnx as onnx
from mirstack import relay as relay
from mirstack import rules as rules
from mirstack import runtime as runtime
from mirstack import script as script
from mirstack import target as target
from mirstack import te as te
from mirstack import testing as testing
from mirstack import tir as tir
from mirstack import topi as topi
from mirstack import transform as transform
from mirstack.api.build import build as build
from mirstack.api.compile import compile as compile
from mirstack.api.compile import load as load
from mirstack.api.compile import parse as parse
from mirstack.api.compile import preload as preload
from mirstack.api.device import cl as cl
from mirstack.api.device import cpu as cpu
from mirstack.api.device import cuda as cuda
from mirstack.api.device import device as device
from mirstack.api.device import ext_dev as ext_dev
from mirstack.api.device import gpu as gpu
from mirstack.api.device import hexagon as hexagon
from mirstack.api.device import metal as metal
from mirstack.api.device import opencl as opencl
from mirstack.api.device import rocm as rocm
from mirstack.api.device import vpi as vpi
from mirstack.api.device import vulkan as vulkan
from mirstack.api.device import webgpu as webgpu
from mirstack.api.error import TVMError as TVMError
from mirstack.api.executable import Executable as Executable
from mirstack.api.extend import load_extension as load_extension
from mirstack.api.extend import register_operator as register_operator
from mirstack.api.global_func import get_global_func as get_global_func
from mirstack.api.global_func import list_global_func_names as list_global_func_names
from mirstack.api.global_func import register_func as register_func
from mirstack.api.global_func import remove_global_func as remove_global_func
from mirstack.api.importers import from_jax as from_jax
from mirstack.api.importers import from_onnx as from_onnx
from mirstack.api.importers import from_torch as from_torch
from mirstack.api.ir.module import IRModule as IRModule
from mirstack.api.lower import lower as lower
from mirstack.api.quantize import quantize as quantize
from mirstack.api.runtime.container import convert as convert
from mirstack.api.runtime.data_type import DataType as DataType
from mirstack.api.runtime.data_type import DataTypeCode as DataTypeCode
from mirstack.passes.extensions.extension import Extension as Extension
from mirstack.passes.extensions.extension import ItemFormat as ItemFormat
from mirstack.support.diagnostics import MirError as MirError
from mirstack.support.stopwatch import timing as timing

__version__: str
IMPORTED_AT: int
