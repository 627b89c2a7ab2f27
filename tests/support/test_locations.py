"""Ops that stand for several keep their places, up to a number."""

from __future__ import annotations

from mirstack.support.diagnostics import file_loc
from mirstack.support.locations import MOST_PLACES, fuse_locations
from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, FusedLoc


def test_places_are_kept_once_in_order():
    a, b, c = (file_loc("x.mir", line, 1) for line in (1, 2, 3))
    assert fuse_locations([]) == fuse_locations([UNKNOWN_LOC]) == UNKNOWN_LOC
    assert fuse_locations([UNKNOWN_LOC, a, a]) == a
    several = fuse_locations([a, fuse_locations([b, a]), c])
    assert isinstance(several, FusedLoc) and several.locations == ArrayAttr([a, b, c])


def test_of_many_the_first_are_kept():
    places = [file_loc("x.mir", line, 1) for line in range(1, 100)]
    fused = places[0]
    for place in places:
        fused = fuse_locations([fused, place])
    assert isinstance(fused, FusedLoc) and fused.locations == ArrayAttr(places[:MOST_PLACES])
    assert fuse_locations(places) == fused
