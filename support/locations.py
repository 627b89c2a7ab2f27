"""Fuses locations: an op that replaces several keeps all the places that these were written at."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, FusedLoc, LocationAttr, NoneAttr, UnknownLoc
from xdsl.ir import Attribute

MOST_PLACES = 16
"""An op that replaces more keeps the first ones: otherwise a chain of ops that collapses into one, step by step, costs the square
of its length.
"""


def fuse_locations(locations: Iterable[LocationAttr]) -> LocationAttr:
    """Returns one location for all of them, in order and without repeats.

    Fused locations are flattened, unknown ones are left out.
    """
    parts: dict[Attribute, None] = {}
    for location in locations:
        if len(parts) >= MOST_PLACES:
            break
        if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
            parts.update(dict.fromkeys(location.locations.data))
        elif not isinstance(location, UnknownLoc):
            parts[location] = None
    match list(parts)[:MOST_PLACES]:
        case []:
            return UNKNOWN_LOC
        case [only] if isinstance(only, LocationAttr):
            return only
        case several:
            return FusedLoc(ArrayAttr(several), NoneAttr())
