"""Computes a checksum of large data at the speed of memory, by compiled code (`stripe_checksum.ll`).

The data is stripes of 256 bytes, seen as 64 words of 32 bits; each word's place has a sum of its own, and the checksum of a block is the SHA-256
of its 64 sums. Damage that changes one word of each place, or fewer, is always noticed: a changed bit, byte or run of up to 253 bytes.
Other damage that changes words of `n` places is missed once in 2^(32 n) cases. It does not protect against who changes
data on purpose.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files

import numpy as np

from ....support.parallel import in_threads
from ...llvm.jit.load import CompiledModule, Target, compile_shipped, emit_object

SYMBOL = "mirstack_stripe_checksum"
STRIPE = 256
WORDS = STRIPE // 4
BLOCK = 4 << 20
"""Bytes of which each has a checksum of its own, so that several threads compute them."""

Sums = Callable[[int, int, "ctypes.Array[ctypes.c_uint32]"], None]
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


def checksum_ir(attributes: str = "nounwind") -> str:
    """Returns the function as LLVM IR."""
    text = files(__package__ or "").joinpath("stripe_checksum.ll").read_text(encoding="utf-8")
    return text.replace("ATTRIBUTES", attributes)


def checksum_object(target: Target) -> bytes:
    """Returns the function as an object file for a processor."""
    return emit_object(checksum_ir(), target)


def function_at(address: int) -> Sums:
    """Returns the function whose machine code is at an address."""
    return _FUNCTION(address)


@lru_cache(maxsize=1)
def _own_code() -> CompiledModule:
    return compile_shipped(checksum_ir())


def own_function() -> Sums:
    """Returns the function, compiled for this machine."""
    return function_at(_own_code().address(SYMBOL))


def stripe_sums(data: memoryview, sums: Sums) -> bytes:
    """Returns the sums of data that is whole stripes."""
    found = (ctypes.c_uint32 * WORDS)()
    sums(int(np.frombuffer(data, np.uint8).ctypes.data), len(data) // STRIPE, found)
    return bytes(found)


def checksums(data: memoryview, sums: Sums) -> list[str]:
    """Returns the checksum of each block of data that is whole stripes."""
    blocks = [data[start : start + BLOCK] for start in range(0, len(data), BLOCK)]
    # Called code does not hold the interpreter's lock.
    return in_threads(lambda block: hashlib.sha256(stripe_sums(block, sums)).hexdigest(), blocks)
