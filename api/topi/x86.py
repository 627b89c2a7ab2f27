"""`topi.x86`: the computes of `topi.nn` and the schedules of `topi.generic`, by this processor's name.

There are no schedules by hand for a processor here: `te.create_prim_func(…)` is scheduled by `default-schedule`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import generic


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name.startswith("schedule_"):
        return getattr(generic, name)
    return getattr(import_module(".nn", __package__), name)


def __dir__() -> list[str]:
    nn = import_module(".nn", __package__)
    return sorted(
        name for name in {*dir(generic), *dir(nn)} if name.startswith(("schedule_", "conv", "dense", "softmax"))
    )
