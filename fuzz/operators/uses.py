"""Attributes and arguments of some uses of each operator, as its cases draw them, to build programs of."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .sampling import CASES, load_cases

USES = 12
"""How many samples are drawn of an operator, to choose its uses from."""


@cache
def uses_of(name: str) -> tuple[tuple[dict[str, Any], tuple[Any, ...]], ...]:
    """Attributes and arguments of some uses of an operator, the same in every run."""
    load_cases()
    cases = CASES[name]
    found: list[tuple[dict[str, Any], tuple[Any, ...]]] = []

    @settings(
        max_examples=USES, deadline=None, derandomize=True, database=None, phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )  # fmt: skip
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        attrs, arguments = data.draw(data.draw(st.sampled_from(cases)).samples)
        found.append((attrs, tuple(_plain(a) for a in arguments)))

    draw()
    return tuple(found)


def _plain(argument: Any) -> Any:
    if isinstance(argument, tuple | list):
        return tuple(_plain(a) for a in argument)
    return np.ascontiguousarray(np.asarray(argument)).reshape(np.shape(argument))
