"""Makes hypothesis draw the same from a seed in every process."""

from __future__ import annotations

from hypothesis.internal.conjecture import providers


def forget_constants() -> None:
    """Keeps hypothesis from drawing constants of the source of the modules that are imported by then.

    They would depend on what ran before, and change with the package.
    """
    if hasattr(providers, "_get_local_constants"):
        setattr(providers, "_get_local_constants", lambda: getattr(providers, "_local_constants"))  # noqa: B009, B010
