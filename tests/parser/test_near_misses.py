"""Messages for text that is nearly right: each says what is meant."""

from __future__ import annotations

import mirstack
import pytest

RELAY = [
    ("def @main(%x: Tensr[(2, 3), float32]) { %x }", "1:15: error: unknown type 'Tensr'; did you mean 'Tensor'?"),
    ("fun @main(%x: Tensor[(2, 3), float32]) { %x }", "1:1: error: 'fun' begins no function; did you mean 'def'?"),
    ("def @main(%x: Tensor[(2, 3), float]) { %x }", "1:30: error: unknown dtype 'float'; did you mean 'float32'?"),
    ("def @main(%x: Tensor[(2, 3), double]) { %x }", "1:30: error: unknown dtype 'double'; did you mean 'float64'?"),
    ("def @main(%x: int32) { Cons(%x, %x) }", "1:24: error: unknown constructor 'Cons'\n"),
    ("def @main(%x: int32) { Add(%x, %x) }", "1:24: error: unknown constructor 'Add'; did you mean 'add'?"),
]
TVMSCRIPT = [
    ("T.block('B'):", "3:18: error: 'with' is missing before 'T.block'\n"),
    ("T.init():", "3:14: error: 'with' is missing before 'T.init'\n"),
]


@pytest.mark.parametrize(("text", "message"), RELAY)
def test_relay(text: str, message: str) -> None:
    with pytest.raises(mirstack.MirError) as raised:
        mirstack.parse(text)
    assert f"<string>:{message}" in str(raised.value)


@pytest.mark.parametrize(("line", "message"), TVMSCRIPT)
def test_tvmscript(line: str, message: str) -> None:
    text = f"@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    {line}\n        A[0] = T.float32(1)\n"
    with pytest.raises(mirstack.MirError) as raised:
        mirstack.parse(text)
    assert f"<string>:{message}" in str(raised.value)
    assert "note: a body belongs to a statement: with T." in str(raised.value)
