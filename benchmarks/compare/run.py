"""One workload in one engine: prepared, compiled, its result compared."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .engine import Call, engine_of
from .graph import Array
from .material import Material
from .setting import Setting
from .workloads import Workload


@dataclass
class Loaded:
    """A workload in an engine, called once."""

    call: Call
    results: list[Array]
    first_seconds: float
    """Of the first call alone."""


def load(workload: Workload, engine_name: str, setting: Setting, folder: Path) -> Loaded:
    """Compiles the workload. Raises ImportError if the engine is missing, and whatever it raises."""
    material = Material(workload, folder)
    inputs = material.inputs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = engine_of(engine_name)
        prepared = engine.prepare(material)
        call = engine.bind(engine.load(prepared, setting), inputs)
        loaded = time.perf_counter()
        result = call.run()
        end = time.perf_counter()
    return Loaded(call, [np.array(array) for array in call.read(result)], end - loaded)


def difference(arrays: list[Array], reference: list[Array]) -> float:
    """Returns the largest relative difference; infinity where shapes differ or a value is NaN."""
    if [array.shape for array in arrays] != [array.shape for array in reference]:
        return float("inf")
    worst = 0.0
    for array, other in zip(arrays, reference, strict=True):
        scale = float(np.abs(other).max(initial=0.0)) or 1.0
        off = float(np.abs(array.astype(np.float64) - other).max(initial=0.0)) / scale
        worst = max(worst, off if off == off else float("inf"))
    return worst


def short(error: BaseException) -> str:
    """Shortens an error for a table's footnote."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:160]
