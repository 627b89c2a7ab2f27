"""What recorded schedules lead to runs in native code, and computes there what the program computed before.

"Before" is the given program on the interpreter, so that each case compares schedule, lowering and native code at once;
what the interpreter would take long for runs in native code, scheduled by rules.
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.tir import BlockOp, BufferType, MatchBufferOp, PrimFuncOp, type_to_dtype
from mirstack.parser import parse_mir
from mirstack.passes.schedule.analysis.structure import all_loops_above, const_int
from mirstack.support.walk import walk_ops
from reference import corpus_dir, dtype_named
from xdsl.dialects.builtin import ModuleOp

sys.path.insert(0, str(Path(__file__).parents[1] / "passes" / "schedule"))
from replay import available, replayed  # pyright: ignore[reportMissingImports]

# What cannot be run, by case.
NOT_RUN = {
    "055": "it calls an external function that nobody has",
    "070": "tensor cores",
    "232": "the program reads outside of its buffer",
    "248": "the program reads what nothing wrote",
    "249": "the program reads what nothing wrote",
    "262": "a GPU's accumulators",
    "304": "the program writes outside of its buffer",
    "404": "tensor cores",
    "409": "the program reads outside of its buffer",
    "608": "the machine's dot product, by a matched buffer whose region is longer than its row",
    "614": "an intrinsic of another processor",
    "617": "an intrinsic of another processor",
    "564": "tensor cores",
    "567": "tensor cores",
    "434": "threads of the program add to one element",
    "596": "tensor cores",
    "597": "tensor cores",
    "605": "tensor cores",
    "621": "it calls an external function that nobody has",
    "625": "it calls an external function that nobody has",
    "462": "the program writes outside of its buffer",
}
# Products of large matrices for a GPU's threads, and loops of many turns.
LONG = ("121", "123", "124", "343", "347", "348", "400", "401", "402", "403", "414", "500", "503", "504", "505")

MOST_TURNS = 100_000
"""Up to which the interpreter is asked."""

CASES = [
    pytest.param(path, id=path.stem[:50], marks=[pytest.mark.slow] if path.stem.split("_")[0] in LONG else [])
    for path in available(corpus_dir())
]


def functions(module: ModuleOp) -> list[PrimFuncOp]:
    return [op for op in module.ops if isinstance(op, PrimFuncOp)]


def arguments_of(function: PrimFuncOp, rng: np.random.Generator) -> list[Any] | None:
    """Random arrays for buffers of known shape; None where a size is symbolic."""
    arguments: list[Any] = []
    for param in function.params:
        type: Any = param.type
        if not isinstance(type, BufferType):
            matches = [use.operation for use in param.uses if isinstance(use.operation, MatchBufferOp)]
            type = matches[0].result.type if len(matches) == 1 else None
        if type is None or type.static_shape is None:
            return None
        dtype = dtype_named(type_to_dtype(type.dtype))
        # Whole numbers where they count; else numbers that are all different, for the place of the largest is one.
        numbers = rng.random(type.static_shape) if dtype.kind == "f" else rng.integers(0, 4, type.static_shape)
        arguments.append(np.asarray(numbers).astype(dtype))
    return arguments


def turns(function: PrimFuncOp) -> int:
    """The most turns that a block of the function runs; 0 where that is not a number."""
    most = 0
    for block in walk_ops(function):
        if isinstance(block, BlockOp):
            extents = [const_int(loop.extent) for loop in all_loops_above(block)]
            most = max(most, prod(extent or 0 for extent in extents))
    return most


@pytest.mark.parametrize("path", CASES)
def test_native(path: Path) -> None:
    number = path.stem.split("_")[0]
    if number in NOT_RUN:
        pytest.skip(NOT_RUN[number])
    text, schedule = replayed(path)
    before, after = parse_mir(text), schedule.module
    for old, new in zip(functions(before), functions(after), strict=True):
        arguments = arguments_of(old, np.random.default_rng(1))
        if arguments is None or [p.type for p in old.params] != [p.type for p in new.params]:
            continue  # Symbolic sizes, or a layout of parameters that the schedule changed.
        copies = [array.copy() for array in arguments]
        if turns(old) <= MOST_TURNS:
            mirstack.compile(before, "interp", entry=old.sym_name.data)(*arguments)
        else:
            mirstack.compile(before, entry=old.sym_name.data)(*arguments)
        mirstack.compile(after, entry=new.sym_name.data)(*copies)
        for expected, got in zip(arguments, copies, strict=True):
            rtol = 2e-2 if got.dtype.itemsize < 4 else 1e-4
            np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=1e-6)
