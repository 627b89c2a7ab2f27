"""Texts that once ended in an exception of Python: each is refused with a place, or read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mirstack.driver.expected import read_expectations
from mirstack.support.text import natural

NINES = "9" * 5000
TIR = "@T.prim_func\ndef main(A: T.Buffer((8,), {dtype})):\n    {body}\n"
REFUSED = {
    "rule's number": (f"rewrite @r {{ add(%x, {NINES}) => %x }}\n", "1:22: error: this number is too large"),
    "rule's benefit": (
        f"rewrite @r benefit({NINES}) {{ add(%x, %y) => %x }}\n",
        "1:20: error: this number is too large",
    ),
    "attribute of a rule": (
        "rewrite @r for arith { addi(%x, 99999999999999999999, overflowFlags=$f) => %x }\n",
        "1:33: error: this integer is too large",
    ),
    "dtype": (TIR.format(dtype=f'"int{NINES}"', body="A[0] = A[1]"), "unknown dtype"),
    "dtype in other digits": (TIR.format(dtype='"int³²"', body="A[0] = A[1]"), "unknown dtype 'int³²'"),
    "lanes": (TIR.format(dtype=f'"float32x{NINES}"', body="A[0] = A[1]"), "unknown dtype"),
    "Relay's dtype": (f"def @f(%x: Tensor[(1), int{NINES}]) {{ %x }}\n", "unknown dtype"),
    "layout": (
        f'def @f(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(1, 3, 3, 3), float32]) {{ nn.conv2d(%x, %w, data_layout="NCHW{NINES}c") }}\n',
        "1:98: error: nn.conv2d: data_layout=",
    ),
    "region": (
        TIR.format(dtype='"int32"', body='with T.block("b"):\n        T.reads(A[1e999])\n        A[0] = A[1]'),
        "4:19: error: an index is an integer, not float32",
    ),
    "region's end": (
        TIR.format(dtype='"int32"', body='with T.block("b"):\n        T.reads(A[1.5:3])\n        A[0] = A[1]'),
        "4:19: error: a range is of integers, not float32",
    ),
    "alignment": (
        TIR.format(dtype='"int32"', body="B = T.alloc_buffer((8,), align=10000000072)\n    B[0] = A[1]"),
        "error: integer value 10000000072 is out of range for type i32",
    ),
    "hexadecimal": (TIR.format(dtype='"int32"', body=f"A[0] = 0x{'f' * 5000}"), "error: this number is too large"),
    "TE's hexadecimal": (
        f"@te.func\ndef f():\n    A = te.placeholder((4,), name='A')\n    B = te.compute((4,), lambda i: A[i] + 0x{'f' * 500})\n    return [A, B]\n",
        "4:43: error: this number is too large",
    ),
    "comment of a rule": ("rewrite @r { add(%x, 0) => %x /* }\n", "error: this comment is never closed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_place(case: str, tmp_path: Path, mir_opt: Callable[..., Any]):
    text, message = REFUSED[case]
    file = tmp_path / "odd.mir"
    file.write_text(text)
    ran = mir_opt(file)
    assert ran.code == 1, ran.err
    assert message in ran.err


def test_launching_a_launched_thread(tmp_path: Path, mir_opt: Callable[..., Any]):
    file = tmp_path / "threads.mir"
    file.write_text(
        "@T.prim_func\ndef main(A: T.Buffer((1,), 'float32')):\n"
        '    x = T.launch_thread("threadIdx.x", 1)\n    T.launch_thread(x, 1)\n    y = T.launch_thread("threadIdx.y", 1)\n'
        "    A[x + y] = T.float32(1)\n"
    )
    ran = mir_opt(file, "-p", "unify-thread-binding")
    assert ran.code == 0, ran.err


def test_impossible_divisors(tmp_path: Path, mir_opt: Callable[..., Any]):
    file = tmp_path / "divides.mir"
    file.write_text(
        "@T.prim_func\ndef main(n: T.int32, A: T.Buffer((1,), 'int32')):\n"
        "    if n < 1:\n        if n > 0:\n            A[0] = T.Div(7, n)\n"
    )
    ran = mir_opt(file, "-p", "simplify")
    assert ran.code == 0, ran.err


def test_expectations_are_counted_with_four_digits():
    expected, malformed = read_expectations("// expected-error 999999999 {{x}}", "f.mir")
    assert not expected and len(malformed) == 1
    assert len(read_expectations("// expected-error@+1 2 {{x}} expected-note {{y}}", "f.mir")[0]) == 3


@pytest.mark.parametrize(
    ("text", "number"), [("037", 37), ("", None), ("-1", None), ("²", None), ("٣", None), (NINES, None)]
)
def test_natural_numbers(text: str, number: int | None):
    assert natural(text) == number


def test_ranges_of_numbers_with_fractions_do_not_verify():
    from mirstack.dialects import tir
    from mirstack.dialects.tir.types import F32
    from mirstack.parser import parse_mir
    from xdsl.dialects.builtin import FloatAttr
    from xdsl.utils.exceptions import VerifyException

    module = parse_mir(
        TIR.format(dtype='"int32"', body='with T.block("b"):\n        T.reads(A[0:2])\n        A[0] = A[1]')
    )
    region = next(op for op in module.walk() if isinstance(op, tir.BufferRegionOp))
    one = tir.ConstOp(FloatAttr(1.5, F32), F32)
    region.operands[1] = one.result
    with pytest.raises(VerifyException, match="a range of 'A' has dtype float32; a range is of integers"):
        region.verify_()


def test_a_side_file_that_cannot_be_read_is_one_error(tmp_path: Path, mir_opt: Callable[..., Any]):
    file = tmp_path / "model.mir"
    file.write_text(
        '#[version = "0.0.5"]\n#[constants = "gone.npz"]\ndef @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant]["w"]) }\n'
    )
    ran = mir_opt(file)
    assert ran.code == 1 and ran.err.count("error:") == 1, ran.err
    assert "2:1: error: the side file 'gone.npz' cannot be read: No such file or directory" in ran.err
