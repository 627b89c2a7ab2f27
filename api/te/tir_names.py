"""TVM's `tir` functions on scalar expressions, for TE programs: those of `te`, under `tir`'s names."""

from __future__ import annotations

from typing import Any

from ...dialects.te import builder

_TENSORS = (
    "Buffer", "AxisReducer", "IRBuilder", "Operation", "Tensor", "compute", "current_location", "extern", "func",
    "location_scope", "placeholder", "reduce_axis", "scan",
)  # fmt: skip

NAMES = frozenset(name for name in builder.NAMES if name not in _TENSORS)
"""What `mirstack.tir` has from here."""


def lookup(name: str) -> Any:
    """The function of that name. Raises AttributeError where `tir` has none."""
    if name not in NAMES:
        raise AttributeError(f"module 'mirstack.tir' has no attribute '{name}'")
    return getattr(builder, name)


__all__ = ["NAMES", "lookup"]
