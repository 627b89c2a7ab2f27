"""Samples operators: arrays and attributes by hypothesis, and the registry of cases."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from ...dialects.array import numpy_dtype
from ...dialects.relay.operator import REQUIRED, Operator, OpPattern, all_operators
from ...dialects.relay.operators.common.relations import broadcast, compare, identity

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int8", "int16", "int32", "int64", "uint8")
NUMBERS = ("float32", "float32", *FLOATS, *INTS)
ALL = (*NUMBERS, "bool")

Use: TypeAlias = tuple[dict[str, Any], Sequence[Any]]
"""Attributes and arguments of one use of an operator."""

TOLERANCE = {"float64": (1e-9, 1e-9), "float32": (2e-4, 2e-5), "float16": (2e-2, 2e-2), "bfloat16": (8e-2, 8e-2)}


@dataclass(frozen=True)
class OperatorCase:
    """The drawn uses of an operator, and the reference of their results."""

    samples: st.SearchStrategy[Use]
    reference: Callable[..., Any] | None
    loose: float = 1.0
    unknown: bool = True
    """Whether dimensions may be unknown (`?`) to the type relation."""

    def tolerance(self, dtype: str) -> tuple[float, float]:
        """Returns the relative and absolute tolerance in a dtype; integers must agree exactly."""
        rtol, atol = TOLERANCE.get(dtype, (0.0, 0.0))
        return rtol * self.loose, atol * self.loose


CASES: dict[str, list[OperatorCase]] = {}


def case(
    names: str,
    samples: st.SearchStrategy[Use],
    reference: Callable[..., Any] | None,
    loose: float = 1.0,
    unknown: bool = True,
) -> None:
    """Registers samples and a `reference` of attributes and arguments for operators `names`, by blanks."""
    for name in names.split():
        CASES.setdefault(name, []).append(OperatorCase(samples, reference, loose, unknown))


def load_cases() -> None:
    """Registers the cases of every module of `cases/`, and derives those of operators without one."""
    for file in sorted((Path(__file__).parent / "cases").glob("[a-z]*.py")):
        importlib.import_module(f"{__package__}.cases.{file.stem}")
    for name, operator in all_operators().items():
        if name not in CASES and is_simple(operator):
            case(name, simple_uses(operator), None)


def is_simple(operator: Operator) -> bool:
    """Tells whether an operator is elementwise on arguments of one dtype that broadcast.

    Any tensors are fit arguments then. Its numpy meaning and its compute define it in two ways, so that each is the other's
    reference.
    """
    return (
        operator.relation in (identity, broadcast, compare)
        and operator.pattern in (OpPattern.ELEMWISE, OpPattern.BROADCAST)
        and all(spec.default is not REQUIRED for spec in operator.attributes)
    )


def simple_uses(operator: Operator) -> st.SearchStrategy[Use]:
    """Uses of a simple operator with its attributes' defaults; of floats alone where an attribute is one."""
    dtypes = FLOATS if any(spec.kind == "float" for spec in operator.attributes) else NUMBERS
    return st.tuples(st.just({}), broadcastable(len(operator.arguments), dtypes))


shapes = st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple)
nonempty_shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def values(shape: Sequence[int], dtype: str, seed: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Returns an array of numbers between two bounds."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("uint"):
        return rng.integers(max(int(low), 0), int(high) + 1, shape).astype(dtype)
    if dtype.startswith("int"):
        return rng.integers(int(np.ceil(low)), int(high) + 1, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(numpy_dtype(dtype))


seeds = st.integers(0, 2**16)


@st.composite
def array(
    draw: Any, shape: Any = shapes, dtypes: Sequence[str] = NUMBERS, low: float = -3.0, high: float = 3.0
) -> np.ndarray:
    """Draws an array; `shape` is a strategy or a shape."""
    drawn = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    return values(drawn, draw(st.sampled_from(dtypes)), draw(seeds), low, high)


@st.composite
def broadcastable(
    draw: Any, count: int, dtypes: Sequence[str] = NUMBERS, low: float = -3.0, high: float = 3.0
) -> list[Any]:
    """`count` arrays of one dtype that broadcast against each other."""
    full = draw(shapes)
    dtype = draw(st.sampled_from(dtypes))
    result = []
    for _ in range(count):
        cut = draw(st.integers(0, len(full)))
        dims = [1 if draw(st.integers(0, 3)) == 0 else d for d in full[cut:]]
        result.append(values(dims, dtype, draw(seeds), low, high))
    return result


def use(*arguments: st.SearchStrategy[Any], **attributes: Any) -> st.SearchStrategy[Use]:
    """Uses with independent arguments and attributes (strategies or plain values)."""
    drawn = {n: a if isinstance(a, st.SearchStrategy) else st.just(a) for n, a in attributes.items()}
    return st.tuples(st.fixed_dictionaries(drawn), st.tuples(*arguments))


@st.composite
def retyped(
    draw: Any, samples: st.SearchStrategy[Use], dtypes: Sequence[str] = ALL, only: Sequence[int] | None = None
) -> Use:
    """Draws uses with another dtype for all float32 arguments, or for those at the positions `only`."""
    attrs, arguments = draw(samples)
    dtype = draw(st.sampled_from(dtypes))

    def recast(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(map(recast, value))
        if value.dtype != np.float32:
            return value
        # By way of int64, so that a negative number becomes an unsigned one alike on every machine.
        whole = dtype == "bool" or dtype in INTS
        return (value.astype(np.int64) if whole else value).astype(numpy_dtype(dtype))

    return attrs, [recast(a) if only is None or n in only else a for n, a in enumerate(arguments)]


def in_float64(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a reference: floats become float64, results are rounded to the dtype of the first argument."""

    def widened(attrs: Any, *arguments: Any) -> Any:
        dtype = flat(arguments)[0].dtype
        return _each(reference(attrs, *(_each(a, _wide) for a in arguments)), lambda x: np.asarray(x).astype(dtype))

    return widened


def _wide(x: np.ndarray) -> np.ndarray:
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    return tuple(_each(v, function) for v in value) if isinstance(value, (tuple, list)) else function(value)


def flat(value: Any) -> list[np.ndarray]:
    """Returns the arrays in a nested tuple, in order."""
    return [item for part in value for item in flat(part)] if isinstance(value, (tuple, list)) else [np.asarray(value)]
