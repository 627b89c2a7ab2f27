"""Computes the tensors that depend on a program's constants alone, when its code is loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING

from ....support.diagnostics import MirError
from ...llvm.jit.call import address_of, diagnostic_of
from ...relay.functions.calling_convention import PREPARE
from ...runtime import use_threads
from .call_memory import Context

if TYPE_CHECKING:
    from ....dialects.array_box import ArrayBox
    from ...llvm.jit.load import CompiledModule
    from ..program import RelayProgram
    from .executable import Array

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
"""A function of a program: it takes a table of addresses and returns a status."""


def contiguous(box: ArrayBox) -> Array:
    """Returns the constant's data where native code can read it."""
    array = box.array
    if address_of(array) % array.dtype.itemsize == 0:
        return array
    return array.copy()


def constant_table(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    """Returns the table of the addresses of constants."""
    return (ctypes.c_void_p * max(1, len(arrays)))(*map(address_of, arrays))


def prepare_constants(
    program: RelayProgram, code: CompiledModule, tables: tuple[int, int], places: Sequence[int], threads: int | None
) -> None:
    """Fills the memory at `places`, one for each prepared tensor. Raises MirError where the program fails.

    `tables` are the addresses of the tables of constants and of prepared tensors.
    """
    context = Context(0, tables, len(places))
    context.enter(get_ident())
    for number, place in enumerate(places, 1):
        context.table[number] = place
    use_threads(threads)
    status: int = CALL(code.address(PREPARE))(context.table_address)
    if status != 0:
        failed = f"{program.entry} failed with status {status}"
        raise MirError(diagnostic_of(program.messages.get(status, failed)))
