"""Tensors that no memory holds are refused where they are, before any memory is taken."""

from __future__ import annotations

from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.driver.mir_run import main as mir_run
from mirstack.support import memory
from mirstack.support.diagnostics import MirError

MOST = "more than 9223372036854775807"
HUGE = "[99999999999, 99999999999]"

PROGRAMS = {
    f"def @main(%x: Tensor[({HUGE[1:-1]}), float32]) {{ exp(%x) }}": (
        f"1:15: error: a tensor of this type takes 39999999999200000000004 bytes, {MOST}"
    ),
    "def @main(%x: Tensor[(65536, 65536, 65536, 65536), int8]) { exp(%x) }": (
        f"1:15: error: a tensor of this type takes 18446744073709551616 bytes, {MOST}"
    ),
    f'def @main(%x: Tensor[(), float32]) {{ full(%x, shape={HUGE}, dtype="float32") }}': (
        "1:38: error: full: the result Tensor[(99999999999, 99999999999), float32]"
        f" takes 39999999999200000000004 bytes, {MOST}"
    ),
    "def @main(%x: Tensor[(1, 1), float32]) { sum(broadcast_to(%x, shape=[4000000000, 4000000000])) }": (
        "1:46: error: broadcast_to: the result Tensor[(4000000000, 4000000000), float32]"
        f" takes 64000000000000000000 bytes, {MOST}"
    ),
    """@T.prim_func
def f(A: T.Buffer((T.int64(4000000000), T.int64(4000000000)), "float32")):
    A[0, 0] = T.float32(1)""": f"buffer 'A' takes 64000000000000000000 bytes, {MOST}",
    """@T.prim_func
def f(A: T.Buffer((3,), "float32")):
    B = T.alloc_buffer((T.int64(4000000000), T.int64(4000000000)), "float32")
    B[0, 0] = A[0]""": f"3:9: error: 'tir.alloc_buffer' does not verify: buffer 'B' takes 64000000000000000000 bytes, {MOST}",
    """@T.prim_func
def f(A: T.Buffer((-4,), "float32")):
    pass""": "2:20: error: the size of a buffer is not negative: this is -4",
    """@T.prim_func
def f(A: T.Buffer((3,), "float32")):
    B = T.alloc_buffer((4, -4), "float32")
    B[0, 0] = A[0]""": "3:28: error: the size of a buffer is not negative: this is -4",
    """@te.func
def f():
    A = te.placeholder((3,), name="A")
    B = te.compute((4000000000, 4000000000), lambda i, j: A[i % 3], name="B")
    return [A, B]""": f"4:9: error: 'te.compute' does not verify: tensor 'B' takes 64000000000000000000 bytes, {MOST}",
}


@pytest.mark.parametrize("target", ["cpu", "interp"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_two_to_the_63_bytes(text: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "huge.mir"
    file.write_text(text)
    assert mir_run([str(file), "--random", "1", "--target", target]) == 1
    assert PROGRAMS[text] in capsys.readouterr().err


@pytest.mark.parametrize("how", [["--random", "1"], []])
def test_inputs_larger_than_the_memory(
    how: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 30)
    file = tmp_path / "large.mir"
    file.write_text('@T.prim_func\ndef f(A: T.Buffer((400, 1000000), "float64")):\n    A[0, 0] = T.float64(1)\n')
    assert mir_run([str(file), *how]) == 2
    expected = "parameter A, float64[400, 1000000], takes 3200000000 bytes, and 1073741824 are free"
    assert expected in capsys.readouterr().err


def test_results_larger_than_the_memory_in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 30)
    text = "def @main(%x: Tensor[(1), float32]) { broadcast_to(%x, shape=[300000000]) }"
    with pytest.raises(MirError) as caught:
        mirstack.compile(mirstack.parse(text, "a.mir"), "interp")(np.zeros(1, np.float32))
    expected = "a.mir:1:39: error: broadcast_to: the result Tensor[(300000000), float32] takes 1200000000 bytes, and 1073741824 are free"
    assert expected in str(caught.value)


def test_results_that_no_memory_is_had_for_natively() -> None:
    text = """def @main(%x: Tensor[(4), float32]) {
  let %y = broadcast_to(%x, shape=[30000000000000, 4]);
  (%y, cumsum(%y, axis=0))
}"""
    program = mirstack.compile(mirstack.parse(text, "a.mir"))
    with pytest.raises(MirError) as caught:
        program(np.zeros(4, np.float32))
    assert "a.mir:1:1: error: out of memory for the tensors of @main" in str(caught.value)
    assert "note: its results take 960000000000000 bytes, its other tensors 0 bytes" in str(caught.value)
