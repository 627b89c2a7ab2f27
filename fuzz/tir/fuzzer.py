"""TIR functions, natively against the interpreter."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, ModuleOp

from ...dialects import tir
from ...dialects.array import numpy_dtype
from ...dialects.tir.types import element_of, type_to_dtype
from ...parser import parse_mir
from ...support.diagnostics import MirError
from ...support.walk import walk_ops
from ..case import Case, Verdict, reason
from ..compare import deviation, difference, magnitude, unit
from ..reduce import ON_TIR
from ..ways import Way, check_natively, check_printed, draw_ways, interpret, ways_of
from .loops import SIZE
from .loops import LoopWriter as LoopsWriter
from .writer import Writer

RUNS = 6
FACTOR = 16.0
"""How many times as far as in `RUNS` runs on moved inputs a result may be."""
MOVED = 4.0
"""By how many units in the last place inputs are moved."""


class TirFuzzer:
    """Draws functions of typed expressions, or of loops and integers only; runs each in several ways."""

    shrinkers = ON_TIR

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"tir/{seed}/{number}")
        text, inputs = draw_function(rng)
        return Case("tir", text, inputs, {"ways": draw_ways(rng, 2), "entry": "main"})

    def check(self, case: Case) -> Verdict:
        """Runs the function."""
        return check_function(case, ways_of(case.options))


def draw_function(rng: random.Random, wraps: bool = True) -> tuple[str, dict[str, np.ndarray]]:
    """Draws a module with the entry `main`, and its inputs; with `wraps` integers wrap around."""
    if rng.random() < 0.2:
        text = LoopsWriter(rng.randrange(1 << 30)).program()
        inputs = {name: np.array([rng.randrange(10) for _ in range(SIZE)], np.int32) for name in "AB"}
        return text, {
            **inputs,
            "n": np.array(rng.randrange(9), np.int32),
            "m": np.array(rng.randrange(-2, 4), np.int32),
        }
    writer = Writer(rng, wraps)
    return writer.program(), writer.inputs


def check_function(case: Case, ways: list[Way]) -> Verdict:
    """Compares native code, run in some ways, with the interpreter."""
    verdict = Verdict()
    entry = case.options.get("entry")
    try:
        module = parse_mir(case.text)
    except MirError as error:
        verdict.refused = reason(error, "parser")
        return verdict
    check_printed(verdict, module)
    try:
        wanted = interpret(module, entry, case.inputs)
    except MirError as error:
        verdict.refused = reason(error, "interpreter")
        return verdict
    except Exception as error:
        verdict.fail_by(error, "in the interpreter")
        return verdict
    check_natively(verdict, module, case, lambda got, way: compared(module, entry, case.inputs, wanted, got), ways)
    return verdict


def compared(
    module: ModuleOp,
    entry: str | None,
    inputs: Mapping[str, np.ndarray],
    wanted: dict[str, np.ndarray],
    got: dict[str, np.ndarray],
) -> str | None:
    """Describes how results differ by more than rounding, whose reach is measured by moving the inputs."""
    if difference(wanted, got) is None:
        return None
    scale = magnitude(wanted)
    limits = deviations(module, entry, inputs, wanted)
    # What is computed in a coarse dtype and stored in a finer one is as coarse.
    dtypes = {*(a.dtype for a in (*inputs.values(), *wanted.values())), *_dtypes_of_functions(module)}
    coarse = max((unit(dtype) for dtype in dtypes if dtype.kind not in "iub"), default=0.0)
    for name, array in wanted.items():
        if array.dtype.kind not in "iub":
            finite = np.where(np.isfinite(array.astype(np.float64)), np.abs(array.astype(np.float64)), 0.0)
            limits[name] = limits[name] + 4 * coarse * np.maximum(finite, min(scale, 4.0))
    return difference(wanted, got, 0.0, limits)


def _dtypes_of_functions(module: ModuleOp) -> set[np.dtype]:
    """Returns the dtypes in which functions such as `exp` are computed; their last bit may differ."""
    types = (op.result.type for op in walk_ops(module) if isinstance(op, tir.CallOp) and op.result is not None)
    return {
        numpy_dtype(type_to_dtype(element))
        for element in map(element_of, types)
        if isinstance(element, (Float16Type, BFloat16Type, Float32Type, Float64Type))
    }


def deviations(
    module: ModuleOp, entry: str | None, inputs: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Returns how far results move with inputs moved by some units in the last place; infinite for NaN."""
    limits = {name: np.zeros(array.shape) for name, array in wanted.items()}
    rng = np.random.default_rng(0)
    for _ in range(RUNS):
        moved = {name: _moved(array, rng) for name, array in inputs.items()}
        try:
            results = {**moved, **interpret(module, entry, moved)}
        except MirError:
            return {name: np.full(array.shape, np.inf) for name, array in wanted.items()}
        for name, array in wanted.items():
            limits[name] = np.maximum(limits[name], FACTOR * deviation(array, results[name]))
    return limits


def _moved(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind in "iub":
        return array
    wide = array.astype(np.float64)
    return (wide * (1 + MOVED * unit(array.dtype) * rng.uniform(-1, 1, array.shape))).astype(array.dtype)


FUZZER = TirFuzzer()
__all__ = ["FUZZER", "check_function", "compared", "draw_function"]
