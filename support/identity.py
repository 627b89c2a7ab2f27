"""Values, ops, blocks and regions are told apart by which object they are, as in xDSL, but without calls of Python to say so.

xDSL's classes define `__hash__` and `__eq__` in Python, though they mean what those of `object` mean. The compiler looks IR up in
dictionaries more often than it does anything else: this takes a third to a half of the time of a look-up.
"""

from __future__ import annotations

from xdsl.ir import SSAValue, Use
from xdsl.ir.core import _IRNode  # pyright: ignore[reportPrivateUsage]
from xdsl.irdl import IRDLOperation


def compare_by_identity() -> None:
    """Has the classes of IR use what `object` has."""
    for kind in (SSAValue, Use, _IRNode, IRDLOperation):
        for name in ("__hash__", "__eq__"):
            setattr(kind, name, getattr(object, name))


compare_by_identity()

__all__ = ["compare_by_identity"]
