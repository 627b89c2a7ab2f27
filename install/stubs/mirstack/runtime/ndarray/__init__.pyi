"""Arrays by TVM's names: `nd.array(…)` holds a numpy array, which compiled functions write in place.

The devices are those of `device`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.device import Device as Device
from mirstack.api.device import cl as _cl
from mirstack.api.device import cl as cl
from mirstack.api.device import cpu as cpu
from mirstack.api.device import cuda as _cuda
from mirstack.api.device import cuda as cuda
from mirstack.api.device import device as device
from mirstack.api.device import ext_dev as ext_dev
from mirstack.api.device import hexagon as hexagon
from mirstack.api.device import metal as metal
from mirstack.api.device import rocm as rocm
from mirstack.api.device import vpi as vpi
from mirstack.api.device import vulkan as vulkan
from mirstack.api.device import webgpu as webgpu
from mirstack.api.nd import NDArray as NDArray
from mirstack.api.nd import array as array
from mirstack.api.nd import as_numpy as as_numpy
from mirstack.api.nd import empty as empty
from mirstack.api.nd import from_dlpack as from_dlpack
from mirstack.api.nd import from_numpy as from_numpy
from mirstack.api.nd import virtual_device as virtual_device

gpu = _cuda
opencl = _cl
