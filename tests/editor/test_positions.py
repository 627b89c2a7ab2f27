"""Columns of the protocol, in units of each encoding, against offsets."""

from __future__ import annotations

import pytest
from mirstack.editor.positions import Encoding, Lines, units

TEXT = "ab\n𝄞x é\n\nlast"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_every_offset_goes_there_and_back(encoding: Encoding) -> None:
    lines = Lines(TEXT, encoding)
    for offset in range(len(TEXT) + 1):
        assert lines.offset(*lines.position(offset)) == offset


def test_columns_count_units() -> None:
    x = TEXT.index("x")
    assert Lines(TEXT, "utf-32").position(x) == (1, 1)
    assert Lines(TEXT, "utf-16").position(x) == (1, 2)
    assert Lines(TEXT, "utf-8").position(x) == (1, 4)
    assert [units("𝄞é", each) for each in ("utf-32", "utf-16", "utf-8")] == [2, 3, 6]


def test_what_is_past_the_end_is_the_end() -> None:
    lines = Lines(TEXT)
    assert lines.offset(0, 99) == 2
    assert lines.offset(1, 99) == TEXT.index("\n\n")
    assert lines.offset(99, 0) == len(TEXT)
    assert lines.place(99, 1) == len(TEXT)
    assert lines.place(1, 99) == 2
