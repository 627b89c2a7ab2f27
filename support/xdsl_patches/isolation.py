"""Skips xDSL's check of `IsolatedFromAbove` in mirstack's verifier, which checks it with dominance."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsolatedFromAbove

from ..verify import ISOLATION
from . import Patch

_check = IsolatedFromAbove.verify


def _verify(self: IsolatedFromAbove, op: Operation) -> None:
    if not ISOLATION.checked:
        _check(self, op)


def skip_when_checked() -> None:
    """Makes `IsolatedFromAbove.verify` return at once where `dominance_errors` will look."""
    IsolatedFromAbove.verify = _verify


PATCH = Patch(
    reason="the check walks up from the definition of each operand: quadratic in how deep ops nest",
    gain="10,000 ops in 400 nested loops: verified in 0.19 s instead of 0.49 s",
    apply=skip_when_checked,
)
