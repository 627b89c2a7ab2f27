"""TIR in Python: immediates, functions, schedules, and the functions on scalar expressions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .immediates import FloatImm, IntImm, StringImm

if TYPE_CHECKING:
    from ...passes.schedule.engine.tensor_intrinsics import TensorIntrin
    from ..ir.prim_func import PrimFunc
    from . import schedule as schedule
    from . import transform as transform
    from .schedule import BlockRV, ExprRV, IndexMap, Instruction, LoopRV, Schedule, ScheduleError, Trace

# Where each name lives, imported when it is first asked for.
_LAZY = {
    **dict.fromkeys(
        ("BlockRV", "ExprRV", "IndexMap", "Instruction", "LoopRV", "Schedule", "ScheduleError", "Trace"), ".schedule"
    ),
    "PrimFunc": "..ir.prim_func",
    "TensorIntrin": "...passes.schedule.engine.tensor_intrinsics",
}

__all__ = [
    "BlockRV",
    "ExprRV",
    "FloatImm",
    "IndexMap",
    "Instruction",
    "IntImm",
    "LoopRV",
    "PrimFunc",
    "Schedule",
    "ScheduleError",
    "StringImm",
    "TensorIntrin",
    "Trace",
    "schedule",
    "transform",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        found: object = getattr(import_module(_LAZY[name], __package__), name)
        globals()[name] = found
        return found
    if name in ("schedule", "transform"):
        return import_module(f".{name}", __package__)
    # The functions on scalar expressions are those of `te`, imported when one is asked for.
    from ..te.tir_names import lookup

    return lookup(name)
