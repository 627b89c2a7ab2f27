"""No operator leaves its memory, whatever sizes its dimensions `?` get: every one, at sizes that fit and at sizes one off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_native_operators import NATIVE

PROGRAM = Path(__file__).with_name("dynamic_fuzz.py")
EMPTY = Path(__file__).with_name("empty_fuzz.py")

SMALL = [
    "add", "argsort", "concatenate", "gather_nd", "image.dilation2d", "image.resize2d", "nn.batch_matmul", "nn.conv2d", "nn.conv2d_transpose",
    "nn.dense", "nn.max_pool2d", "reshape", "scatter_nd", "strided_slice", "take", "unravel_index", "where",
]  # fmt: skip
"""Each works on memory in a way of its own."""

FEW, CHUNK = 6, 12
"""How many share a process: to start one takes longer than most operators."""


def faults(names: list[str], uses: int | None) -> list[str]:
    """What goes wrong with these operators, with sizes of 0 where `uses` is None; a crash among it."""
    program = [str(EMPTY)] if uses is None else [str(PROGRAM), str(uses)]
    command = [sys.executable, *program, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    found: list[str] = []
    current = "the start"
    for line in done.stdout.splitlines():
        kind, name, *rest = json.loads(line)
        current = name
        if kind == "fault" and not _is_known(name, rest[0]):
            found.append(f"{name} {rest[0]}")
    if done.returncode != 0:
        found.append(f"{current} ends the process with {done.returncode}: {done.stderr[-2000:]}")
    return found


def _is_known(name: str, fault: str) -> bool:
    return name in NOT_ALIKE or any(part in fault for part in NEEDS_KNOWN)


NEEDS_KNOWN = ("is known only at run time, but says how many", "must have a known length", "of known size")
"""What an operator whose result's rank, or code, depends on a size is refused with at compile time."""


NOT_ALIKE = {"qnn.conv2d"}
"""Whether the zero points of a weight count its filters, or for a depthwise convolution all of its channels, is told when
the program is compiled: native code refuses a length known only at run time that may be the other."""


@pytest.mark.parametrize("start", range(0, len(SMALL), FEW))
def test_sizes_one_off(start: int) -> None:
    assert faults(SMALL[start : start + FEW], 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(NATIVE), CHUNK))
def test_sizes_one_off_of_every_operator(start: int) -> None:
    assert faults(NATIVE[start : start + CHUNK], 3) == []


def test_sizes_of_zero() -> None:
    names = [
        "add", "argsort", "concatenate", "dyn.reshape", "dyn.tile", "gather_nd", "image.resize2d", "nn.adaptive_max_pool1d",
        "nn.conv2d", "nn.dense", "nn.sparse_dense", "nn.upsampling3d", "reshape", "strided_set", "strided_slice", "take", "where",
    ]  # fmt: skip
    assert faults(names, None) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(NATIVE), CHUNK))
def test_sizes_of_zero_of_every_operator(start: int) -> None:
    assert faults(NATIVE[start : start + CHUNK], None) == []


def test_a_check_that_fails_names_the_access() -> None:
    import mirstack
    import numpy as np
    from mirstack.support.diagnostics import MirError

    text = """@T.prim_func
def pick(a: T.handle, i: T.handle, b: T.handle):
    n = T.int32(is_size_var=True)
    m = T.int32(is_size_var=True)
    A = T.match_buffer(a, (n,), "float32")
    I = T.match_buffer(i, (m,), "int32")
    B = T.match_buffer(b, (m,), "float32")
    for j in range(m):
        with T.block("B"):
            vj = T.axis.spatial(m, j)
            B[vj] = A[I[vj]]
def @main(%x: Tensor[(?), float32], %i: Tensor[(?), int32]) { call_tir(@pick, %x, %i) }"""
    run = mirstack.compile(mirstack.parse('#[version = "0.0.5"]\n' + text, "d.mir"), entry="main")
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(x, np.array([2, 0], np.int32)), [2, 0])
    message = r"@pick reads outside of dimension 0 of 'A': I\[…\] is not below n, or is negative"
    for wrong in (3, -1):
        with pytest.raises(MirError, match=message):
            run(x, np.array([0, wrong], np.int32))
