"""Offsets of 2 GiB and more, and indices into buffers of more elements than int32 counts: what the generated code says."""

from __future__ import annotations

import re

import mirstack
import numpy as np
import pytest
from mirstack.driver.mir_opt import main as mir_opt
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.support.diagnostics import MirError

GIB = 1 << 30

FRAME = """def @main(%x: Tensor[({rows}, 4), float32]) {{
  let %y = nn.dense(%x, %x);
  let %a = nn.softmax(%y, axis=1);
  let %b = cumsum(%a, axis=1);
  let %c = cumsum(%y, axis=1);
  (sum(%a * %b, axis=[1]), sum(%c * %b, axis=[1]))
}}"""

SLICE = """def @main(%x: Tensor[(50000, 50000), int8]) {
  let %s = strided_slice(%x, begin=[45000, 0], end=[45002, 50000]);
  nn.relu(%s)
}"""


def offsets(llvm: str) -> list[int]:
    """The bytes by which pointers of the function @main are moved."""
    main = llvm[llvm.index("define internal i32 @main(") :].partition("\n}")[0]
    return [int(n) for n in re.findall(r"getelementptr inbounds i8, ptr %\w+, i\d+ (-?\d+)", main)]


def llvm_of(text: str, capsys: pytest.CaptureFixture[str], tmp_path: object, *arguments: str) -> str:
    file = f"{tmp_path}/large.mir"
    with open(file, "w") as out:
        out.write(text)
    assert mir_opt([file, *arguments]) in (0, None)
    return capsys.readouterr().out


@pytest.mark.parametrize("rows", [17000, 24000])
def test_offsets_in_a_frame(rows: int, capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    found = offsets(llvm_of(FRAME.format(rows=rows), capsys, tmp_path, "-t", "llvm", "-O0"))
    assert max(found) >= 2 * rows * rows * 4
    assert min(found) >= 0


def test_the_arena_of_a_large_frame() -> None:
    program = mirstack.compile(mirstack.parse(FRAME.format(rows=24000)), opt_level=0)
    assert isinstance(program, RelayExecutable)
    assert program.arena_bytes > 4 * GIB


def test_offset_of_a_slice(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    assert 45000 * 50000 in offsets(llvm_of(SLICE, capsys, tmp_path, "-t", "llvm"))


@pytest.mark.slow
def test_a_slice_of_the_far_end() -> None:
    x = np.zeros((50000, 50000), np.int8)  # no memory is taken for what is not written
    x[45000], x[45001] = np.arange(50000) % 100, 7
    assert (mirstack.compile(mirstack.parse(SLICE))(x) == x[45000:45002]).all()


FLAT = """@T.prim_func
def f(A: T.Buffer((50000, 50000), "int8"), B: T.Buffer((50000,), "int8")):
    for i in range(50000):
        B[i] = A[i, i]
"""


def test_a_flat_index_has_64_bits_where_the_buffer_needs_them(
    capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    text = llvm_of(FLAT, capsys, tmp_path, "-p", "flatten-buffer")
    assert 'A_1[T.Cast("int64", i) * T.int64(50001)]' in text
    text = llvm_of(FLAT.replace("50000", "500"), capsys, tmp_path, "-p", "flatten-buffer")
    assert "A_1[i * 501]" in text


MATCHED = """@T.prim_func
def f(A: T.Buffer((T.int64(3000000000),), "int8"), B: T.Buffer((4,), "int8")):
    for i in range(4):
        with T.block("b"):
            v = T.axis.spatial(4, i)
            M = T.match_buffer(A[T.int64(2900000000):T.int64(2900000004)], (4,), "int8", offset_factor=1)
            B[v] = M[v]
"""


def test_a_matched_region_begins_where_int64_says(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    text = llvm_of(MATCHED, capsys, tmp_path, "-p", "lower-match-buffer")
    assert 'A[T.int64(2900000000) + T.Cast("int64", v)]' in text


@pytest.mark.parametrize("operator", ["argmax", "argmin"])
def test_a_place_that_int32_does_not_count(operator: str) -> None:
    with pytest.raises(MirError) as caught:
        mirstack.parse(f"def @main(%x: Tensor[(3, 50000, 50000), int8]) {{ {operator}(%x, axis=[1, 2]) }}", "a.mir")
    assert (
        f"a.mir:1:50: error: {operator}: 'data' (Tensor[(3, 50000, 50000), int8]) has 2500000000 elements along the axes,"
        " more than int32 counts" in str(caught.value)
    )
