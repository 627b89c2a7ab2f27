"""Measures this processor's limits: fused multiply-adds in registers, and copying."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mirstack.lowering.driver.machine_limits import multiply_adds_kernel

from .setting import NATIVE


@dataclass(frozen=True)
class Limit:
    """Something that shows what the processor can do at most: `run` does `amount` of it, GFLOP or GB."""

    run: Callable[[], object]
    amount: float


def multiply_adds(cpu: str = NATIVE) -> Limit:
    """GFLOP of float32 multiply-adds of one core that never leave registers, in vectors as `cpu` has."""
    kernel = multiply_adds_kernel(cpu)
    return Limit(kernel.run, kernel.flops / 1e9)


def copying(megabytes: int = 64) -> Limit:
    """GB, read and written counted, of copying arrays of this size by one core (`memcpy`)."""
    source = np.ones(megabytes << 18, np.float32)
    target = np.zeros_like(source)
    return Limit(lambda: ctypes.memmove(target.ctypes.data, source.ctypes.data, source.nbytes), 2 * source.nbytes / 1e9)
