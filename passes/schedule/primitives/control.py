"""Primitives that change nothing: which function names refer to, where postprocessing begins."""

from __future__ import annotations

from ..engine.primitive import primitive
from ..engine.state import State


@primitive
def work_on(state: State, func_name: str) -> None:
    """Names of blocks refer to this function from now on.

    sch.work_on("f")
    sch.get_block("C")   →   the block C of function f
    """
    state.function(func_name)
    state.focus = func_name


@primitive
def enter_postproc(state: State) -> None:
    """Marks where postprocessing begins in the trace: what follows is left out by `remove_postproc=True`."""
