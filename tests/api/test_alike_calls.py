"""What a call takes and returns is the same whatever runs it: classes of arrays, memory that is shared, strides."""

from __future__ import annotations

from typing import Literal

import mirstack
import numpy as np
import pytest

VIEWS = """def @main(%x: Tensor[(2, 2), float32]) {
  (%x, reshape(%x, newshape=[4]), %x, strided_slice(%x, begin=[0, 0], end=[1, 2], strides=[1, 1]))
}"""


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_results_are_the_callers_own(target: Literal["interp", "cpu"]):
    x = np.ones((2, 2), np.float32)
    results = mirstack.compile(mirstack.parse(VIEWS), target)(x)
    for result in results:
        result[...] = 7
        assert x.tolist() == [[1, 1], [1, 1]]
    for k, result in enumerate(results):
        result[...] = k
    assert [result.flat[0] for result in results] == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_arrays_of_other_classes_count_as_arrays(target: Literal["interp", "cpu"]):
    run = mirstack.compile(mirstack.parse("def @main(%x: Tensor[(4, 3), float32]) { sum(%x, axis=[0]) }"), target)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for given in (np.ma.masked_array(x, x > 3), np.asmatrix(x)):
        result = run(given)
        assert type(result) is np.ndarray and result.tolist() == [18, 22, 26]


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_outputs_share_no_memory(target: Literal["interp", "cpu"]):
    text = """from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] + T.float32(1)
"""
    run, y = mirstack.compile(mirstack.parse(text), target), np.zeros(6, np.float32)
    with pytest.raises(ValueError, match="'B' is written, but shares memory with 'A'; pass a copy"):
        run(y[:4], y[2:])


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_strides_of_one_element_are_those_of_the_array(target: Literal["interp", "cpu"]):
    text = """from tvm.script import tir as T
@T.prim_func
def main(a: T.handle, B: T.Buffer((1,), "int32")):
    n, s = T.int32(), T.int32()
    A = T.match_buffer(a, (n,), "int32", strides=(s,))
    B[0] = A[0] + s
"""
    b = np.zeros(1, np.int32)
    mirstack.compile(mirstack.parse(text), target)(np.arange(16, dtype=np.int32)[::2][:1], b)
    assert b[0] == 2
