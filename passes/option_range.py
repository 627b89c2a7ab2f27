"""Numbers that options of passes may have."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ..support.diagnostics import error_at


def require_range(module: ModuleOp, option: str, value: int, low: int, high: int | None = None) -> None:
    """Raises MirError unless an option's value is from `low` to `high`, or at least `low` without `high`."""
    if value < low or (high is not None and value > high):
        allowed = f"{low} or more" if high is None else f"from {low} to {high}"
        raise error_at(module, f"{option} must be {allowed}, not {value}")
