"""Attributes and arguments of some uses of each operator, as its cases draw them, to build programs of."""

from __future__ import annotations

from functools import cache, lru_cache
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


@lru_cache(4096)
def uses_of(name: str, number: int = 0) -> tuple[Use, ...]:
    """Attributes and arguments of some uses of an operator, the same in every run; others for each number."""
    _load()
    cases = CASES[name]
    found: list[tuple[dict[str, Any], tuple[Any, ...]]] = []

    # The examples begin with the simplest ones, which are much the same for each number.
    @seed(crc32(f"{name} {number}".encode()))
    @settings(
        max_examples=USES if number == 0 else 2 * USES, deadline=None, derandomize=number == 0, database=None, phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )  # fmt: skip
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        attrs, arguments = data.draw(data.draw(st.sampled_from(cases)).samples)
        found.append((attrs, tuple(_plain(a) for a in arguments)))

    draw()
    return tuple(found[-USES:])


@cache
def _load() -> None:
    forget_constants()
    load_cases()


def _plain(argument: Any) -> Any:
    if isinstance(argument, tuple | list):
        return tuple(_plain(a) for a in argument)
    return np.ascontiguousarray(np.asarray(argument)).reshape(np.shape(argument))
