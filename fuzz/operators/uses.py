"""Draws attributes and arguments of each operator from its cases, to build programs of."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ..steady import forget_constants
from .sampling import CASES, load_cases

USES = 12
"""How many samples are drawn of an operator, to choose its uses from."""


Use = tuple[dict[str, Any], tuple[Any, ...]]
"""Attributes and arguments."""


@cache
def uses_of(name: str) -> tuple[Use, ...]:
    """Returns some uses of an operator, the same in every run."""
    found: list[Use] = []
    _drawer(name, found)()
    return tuple(found[-USES:])


def one_of(name: str, rng: random.Random) -> Use:
    """Returns one of `uses_of(name)`."""
    return rng.choice(uses_of(name))


BYTES = 4096
"""What a use is drawn from; the largest take some hundred."""


def new_use(name: str, rng: random.Random) -> Use:
    """Returns a use of an operator that follows from the generator's numbers."""
    draw, found = _new_uses(name)
    # Some bytes lead to what a case filters out, one in two at the worst.
    for _ in range(100):
        found.clear()
        draw(rng.randbytes(BYTES))
        if found:
            return found.pop()
    raise AssertionError(f"no use of {name} is drawn")


UseOf = Callable[[str, random.Random], Use]
"""Draws a use of the operator called so: `one_of` or `new_use`."""


@cache
def _new_uses(name: str) -> tuple[Callable[[bytes], object], list[Use]]:
    """Returns a function that draws a use from bytes, and the list that it appends the use to.

    hypothesis offers this to fuzzers: a use takes it a millisecond, of which a run of its engine takes several.
    """
    found: list[Use] = []
    return _drawer(name, found).hypothesis.fuzz_one_input, found


def _drawer(name: str, found: list[Use]) -> Any:
    """Returns a test of hypothesis that appends each use it draws."""
    _load()
    cases = CASES[name]

    @seed(crc32(f"{name} 0".encode()))
    @settings(
        max_examples=USES, deadline=None, derandomize=True, database=None, phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )  # fmt: skip
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        attrs, arguments = data.draw(data.draw(st.sampled_from(cases)).samples)
        found.append((attrs, tuple(_plain(a) for a in arguments)))

    return draw


@cache
def _load() -> None:
    forget_constants()
    load_cases()


def _plain(argument: Any) -> Any:
    if isinstance(argument, tuple | list):
        return tuple(_plain(a) for a in argument)
    return np.ascontiguousarray(np.asarray(argument)).reshape(np.shape(argument))
