"""`mirstack.target`: what programs are compiled for, by the names of `tvm.target`.

    target.cuda(arch="sm_80")      target.arm_cpu("rasp4b")      with target.Target("llvm"): …

Only targets of this machine's processor can be compiled for; the others describe, and may be asked for their attributes.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.target import adreno as adreno
from mirstack.api.target import arm_cpu as arm_cpu
from mirstack.api.target import bifrost as bifrost
from mirstack.api.target import create as create
from mirstack.api.target import cuda as cuda
from mirstack.api.target import hexagon as hexagon
from mirstack.api.target import intel_graphics as intel_graphics
from mirstack.api.target import list_tags as list_tags
from mirstack.api.target import mali as mali
from mirstack.api.target import riscv_cpu as riscv_cpu
from mirstack.api.target import rocm as rocm
from mirstack.api.target import stm32 as stm32
from mirstack.api.target.kinds import TargetKind as TargetKind
from mirstack.api.target.target import Target as Target
from mirstack.api.target.target import TargetFeatures as TargetFeatures
