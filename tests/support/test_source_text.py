"""Programs read alike whatever ends their lines, and half a pair of UTF-16 is refused where it is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.parser import print_mir
from mirstack.passes.rules.engine.library import load_rules
from mirstack.support.diagnostics import MirError
from mirstack.support.source_text import source_text, text_bytes

RELAY = "def @main(%x: Tensor[(2), float32]) {\n  // twice\n  add(%x, %x)\n}\n"
TIR = (
    '@T.prim_func\ndef main(A: T.Buffer((2,), "float32")):\n    for i in range(2):\n        # two\n        A[i] = 1.0\n'
)
RULES = "rewrite @twice { add(%x, %x) => multiply(%x, 2) }\n"


def ways(text: str) -> list[str]:
    return [text, text.replace("\n", "\r\n"), text.replace("\n", "\r"), "\ufeff" + text]


def test_one_text():
    assert {source_text(way.encode()) for way in ways(RELAY)} == {source_text(way) for way in ways(RELAY)} == {RELAY}
    with pytest.raises(UnicodeDecodeError):
        source_text(b"\xff")


@pytest.mark.parametrize("text", [RELAY, TIR, RULES], ids=["relay", "tir", "rules"])
def test_ends_of_lines_and_byte_order_marks(text: str, tmp_path: Path, mir_opt: Callable[..., Any]):
    printed: set[str] = set()
    for k, way in enumerate(ways(text)):
        file = tmp_path / f"{k}.mir"
        file.write_bytes(way.encode())
        printed |= {print_mir(mirstack.parse(way)), print_mir(mirstack.load(file)), mir_opt(file).out}
        if text is RULES:
            printed.add(print_mir(load_rules(file)))
        if text is RELAY:
            assert mirstack.compile(file)(np.ones(2, "float32")).tolist() == [2, 2]
    assert len({text.strip() for text in printed}) == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (RELAY.replace("twice", "\ud800"), "2:6"),
        (TIR.replace("    for", "    T.func_attr({'a': '\udfff'})\n    for"), "3:24"),
        (TIR.replace("    for", "    T.func_attr({'a': '\\ud800'})\n    for"), "2:13"),
        (RELAY.replace("add(%x, %x)", 'cast(%x, dtype="\\ud800")'), "1:1"),
    ],
)
def test_half_a_pair_of_utf16_is_refused(text: str, place: str):
    with pytest.raises(MirError) as refused:
        mirstack.parse(text, "half.mir")
    assert str(refused.value).startswith(f"half.mir:{place}: error: U+D")
    assert "is not a character by itself" in str(refused.value) and "half of a pair of UTF-16" in str(refused.value)


def test_bytes_of_any_text():
    assert text_bytes("\ud83d") == b"\xed\xa0\xbd" and text_bytes("😀") == "😀".encode()


def test_a_file_whose_name_is_no_utf8(tmp_path: Path, mir_run: Callable[..., Any]):
    file = os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.mir")
    try:
        Path(file).write_text(RELAY)
    except OSError:
        pytest.skip("this file system holds only names in UTF-8")
    assert mir_run(file, "--random", "1").code == 0
    assert mirstack.compile(file)(np.ones(2, "float32")).tolist() == [2, 2]
