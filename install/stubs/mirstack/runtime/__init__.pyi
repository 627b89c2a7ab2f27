"""`mirstack.runtime`: compiled modules from files, values, devices, by the names of `tvm.runtime`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.build import Module as Module
from mirstack.api.build import PackedFunc as PackedFunc
from mirstack.api.device import Device as Device
from mirstack.api.device import cpu as cpu
from mirstack.api.device import cuda as _cuda
from mirstack.api.device import cuda as cuda
from mirstack.api.device import device as device
from mirstack.api.ir.node import Node as _Node
from mirstack.api.nd import NDArray as NDArray
from mirstack.api.nd import array as array
from mirstack.api.nd import empty as empty
from mirstack.api.runtime import enabled as enabled
from mirstack.api.runtime import load_module as load_module
from mirstack.api.runtime.container import ADT as ADT
from mirstack.api.runtime.container import String as String
from mirstack.api.runtime.container import convert as convert
from mirstack.api.runtime.container import tuple_object as tuple_object
from mirstack.api.runtime.data_type import DataType as DataType
from mirstack.api.runtime.data_type import DataTypeCode as DataTypeCode
from mirstack.api.runtime.data_type import ShapeTuple as ShapeTuple
from mirstack.api.runtime.params import load_param_dict as load_param_dict
from mirstack.api.runtime.params import save_param_dict as save_param_dict
from mirstack.dialects.tir.node.expr import const as const
from mirstack.runtime import container as container
from mirstack.runtime import ndarray as ndarray
from mirstack.runtime import vm as vm

Object = _Node
gpu = _cuda
