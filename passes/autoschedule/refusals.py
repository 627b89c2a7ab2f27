"""Refusals of primitives within rules: the rule stops, and `--explain default-schedule` says so."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from ...dialects import tir
from ...support.trace import tracer
from ..pass_info import explanation
from ..schedule import ScheduleError
from ..schedule.analysis.structure import function_of

PASS = "default-schedule"

CURRENT_RULE: ContextVar[str] = ContextVar("rule", default="")
"""The name of the rule that is applied now."""


@contextmanager
def tolerating(rule: str, block: tir.BlockOp | None) -> Generator[None]:
    """Stops a rule where a primitive is refused.

    Every primitive before left a correct program, if not the fastest.
    """
    called, location = "", None
    if block is not None:
        called = f" at block '{block.block_name.data}' of function '{function_of(block).sym_name.data}'"
        location = block.location
    token = CURRENT_RULE.set(rule)
    try:
        yield
    except ScheduleError as refusal:
        explain = tracer(explanation(PASS))
        if explain is None:
            return
        for each in refusal.diagnostics:
            explain(
                location,
                f"the rule of {rule} stops{called}: {each.message}",
                *((note.message, note.location) for note in each.notes),
            )
    finally:
        CURRENT_RULE.reset(token)
