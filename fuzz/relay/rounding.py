"""Checks that a Relay pass keeps the results: exactly, or within what different rounding explains.

A pass that reorders arithmetic changes results by roundings, and how far these carry depends on the program: a sum that cancels
makes them large, a floor or an argmax makes whole units of them. So the tolerance is measured. The program is interpreted
several times with every operand and result of its operators moved by a random rounding (Monte Carlo arithmetic; Parker, "Monte
Carlo Arithmetic", 1997), and a result may be as far from the original one as a few times what these runs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ...dialects.relay.interpreter import Activation, Interpreter, flatten
from ...dialects.relay.operator import OperatorOp
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import MirError
from ..compare import apart, deviation, same, smallest
from ..compare import unit as unit_of

RUNS = 12
FACTOR = 16.0
"""How many times the largest deviation of the runs a result may deviate."""

FEWEST_LANES, LEANING = 4, 4
"""A sum of equal terms is rounded to the same side each time, by a quarter of a unit on average, in lanes that share the terms."""

NORMALIZES = frozenset(
    (
        "nn.group_norm",
        "nn.instance_norm",
        "nn.l2_normalize",
        "nn.layer_norm",
        "nn.log_softmax",
        "nn.softmax",
        "nn.fast_softmax",
    )
)
"""Operators whose results are as large as their arguments, each divided by a sum."""

MANY = 10_000
"""In so many elements, one may deviate by what others do: a relu or a floor hides from all runs what one more would show."""


@dataclass(frozen=True)
class Rounding:
    """The size of random roundings: relative in units in the last place, and absolute by `absolute`.

    `unit` is the least relative one.
    """

    ulps: float = 2.0
    unit: float = 0.0
    absolute: float = 0.0
    largest: float = float("inf")
    """Beyond it values overflow: of a program that has some, nothing can be said."""
    narrow: type[np.floating[Any]] | None = None
    """Values may be rounded to this dtype, where numbers that differ are equal: in one run they are."""


class Perturbed(Interpreter):
    """An interpreter that moves the float operands and results of operators by random roundings."""

    def __init__(self, module: ModuleOp, rounding: Rounding, seed: int):
        super().__init__(module)
        self.rounding = rounding
        self.rng = np.random.default_rng(seed)
        self.overflows = False
        self.narrow = None if seed else rounding.narrow

    def _operator(self, op: OperatorOp, scope: Activation) -> Any:
        moved = Activation(scope, {})
        for argument in op.args:
            if argument not in moved.values:
                moved.values[argument] = self.move(scope[argument])
        result = super()._operator(op, moved)
        times = 1.0
        if isinstance(result, np.ndarray):
            sizes = [value.size for argument in op.args if isinstance(value := scope[argument], np.ndarray)]
            terms = max(sizes, default=0) / max(result.size, 1)
            # What is far smaller than an argument is made of sums; a normalization makes them on its way.
            if op.OPERATOR.name in NORMALIZES:
                terms = max(sizes, default=0)
            times += terms / (FEWEST_LANES * LEANING * FACTOR)
        return self.move(result, times)

    def move(self, value: Any, times: float = 1.0) -> Any:
        """Moves the floats of a value by so many times what one rounding may be."""
        if isinstance(value, tuple):
            return tuple(self.move(each, times) for each in value)
        if not isinstance(value, np.ndarray) or value.dtype.kind in "iub":
            return value
        wide = value.astype(np.float64)
        if np.abs(wide).max(initial=0.0, where=np.isfinite(wide)) > self.rounding.largest:
            self.overflows = True
        if self.narrow is not None:
            return wide.astype(self.narrow).astype(value.dtype)
        unit = times * max(self.rounding.ulps * unit_of(value.dtype), self.rounding.unit)
        by = self.rng.uniform(-1, 1, value.shape) * unit
        away = self.rng.uniform(-1, 1, value.shape) * self.rounding.absolute
        return np.asarray(wide * (1 + by) + away).astype(value.dtype)


def run(module: ModuleOp, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Interprets `@main`; returns its results, tuples flattened."""
    return in_deep_stack(lambda: flatten(Interpreter(module).call("main", list(inputs))))


def difference(
    before: ModuleOp, inputs: Sequence[Any], wanted: Sequence[np.ndarray], got: Sequence[np.ndarray], rounding: Rounding | None
) -> str | None:  # fmt: skip
    """Describes how results differ by more than the rounding, or without one in any bit."""
    if len(wanted) != len(got):
        return f"{len(wanted)} results before, {len(got)} after"
    limits: list[np.ndarray] | None = None
    for number, (old, new) in enumerate(zip(wanted, got, strict=True)):
        if old.shape != new.shape or old.dtype != new.dtype:
            return f"result {number} was {old.dtype}{list(old.shape)}, now it is {new.dtype}{list(new.shape)}"
        fine = same(old, new)
        if rounding is not None:
            fine |= near_zero(old, new, rounding)
        if fine.all():
            continue
        if rounding is not None:
            if limits is None:
                limits = deviations(before, inputs, wanted, rounding)
            if limits is None:
                return None
            off = apart(old, new)
            fine |= (off <= FACTOR * limits[number]) | np.isinf(limits[number])
            if (~fine).sum() <= fine.size // MANY:
                fine |= off <= FACTOR * limits[number].max()
            if fine.all():
                continue
        wrong = ~fine
        at = tuple(np.argwhere(wrong)[0])
        return f"result {number}{list(map(int, at))} was {old[at]}, now it is {new[at]} ({int(wrong.sum())} of {wrong.size})"
    return None


def near_zero(a: np.ndarray, b: np.ndarray, rounding: Rounding) -> np.ndarray:
    """Returns a mask of elements within a few of the smallest numbers, to which floats near zero round."""
    if a.dtype.kind in "iub":
        return np.zeros(a.shape, bool)
    return apart(a, b) <= rounding.ulps * smallest(a.dtype)


def deviations(module: ModuleOp, inputs: Sequence[Any], wanted: Sequence[np.ndarray], rounding: Rounding) -> list[np.ndarray] | None:  # fmt: skip
    """Returns how far results move under random rounding of everything; infinite where they become NaN.

    None when the program overflows in the arithmetic that `rounding` describes, or may fail in it.
    """
    limits = [np.zeros(array.shape) for array in wanted]
    for seed in range(RUNS):
        interpreter = Perturbed(module, rounding, seed)
        try:
            moved = in_deep_stack(lambda interpreter=interpreter: flatten(interpreter.call("main", list(inputs))))
        except MirError:
            # What is computed decides whether the program can go on, such as a scale that is nearly zero.
            return None
        if interpreter.overflows:
            return None
        for limit, old, new in zip(limits, wanted, moved, strict=True):
            if old.shape != new.shape:
                # A size that depends on the data.
                limit[...] = np.inf
                continue
            np.maximum(limit, deviation(old, new), out=limit)
    return limits
