"""Every operator of the table is used in a lit test of its text."""

from __future__ import annotations

import re
from pathlib import Path

from mirstack.dialects.relay.operator import all_operators

FOLDER = Path(__file__).parents[3] / "filecheck" / "dialects" / "relay" / "operators"


def test_each_operator_is_there():
    text = "\n".join(file.read_text() for file in FOLDER.rglob("*.mir"))
    used = set(re.findall(r"^ +(?:%\d+ = )?([a-z][\w.]*)\(", text, re.MULTILINE))
    assert set(all_operators()) <= used
