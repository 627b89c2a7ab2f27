"""Calling compiled functions with numpy arrays: what fits is passed as it is, what does not is refused by name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mirstack.lowering.llvm.jit.call import ArraySpec, NativeFunction, ScalarSpec, SizeSpec
from mirstack.support.diagnostics import MirError

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)

TEXT = """
func.func @axpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {mirstack.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %u = memref.load %x[%i] : memref<?xf32>
    %v = memref.load %y[%i] : memref<?xf32>
    %p = arith.mulf %a, %u : f32
    %q = arith.addf %p, %v : f32
    memref.store %q, %y[%i] : memref<?xf32>
  }
  func.return
}
func.func @small(%n: i64) {
  %ten = arith.constant 10 : i64
  %ok = arith.cmpi slt, %n, %ten : i64
  cf.assert %ok, "n must be below 10"
  func.return
}
func.func @twice(%x: f64) -> f64 {
  %y = arith.addf %x, %x : f64
  func.return %y : f64
}
func.func @copy(%x: memref<4xbf16>, %y: memref<4xbf16>) {
  "memref.copy"(%x, %y) : (memref<4xbf16>, memref<4xbf16>) -> ()
  func.return
}
"""


@pytest.fixture(scope="module")
def code(build: Callable[[str], Any]) -> Any:
    return build(TEXT)


@pytest.fixture(scope="module")
def axpy(code: Any) -> NativeFunction:
    """Over arrays of any length n."""
    specs = [
        ScalarSpec("a", F32),
        ArraySpec("x", F32, ("n",)),
        ArraySpec("y", F32, ("n",), is_output=True),
        SizeSpec("n"),
    ]
    return NativeFunction(code.code.address("axpy"), specs, name="axpy", keep_alive=code.code)


@pytest.fixture(scope="module")
def axpy4(code: Any) -> Any:
    """Over arrays of length 4."""
    specs = [
        ScalarSpec("a", F32),
        ArraySpec("x", F32, (4,)),
        ArraySpec("y", F32, (4,), is_output=True),
        ScalarSpec("n", I64),
    ]
    function = NativeFunction(code.code.address("axpy"), specs, name="axpy", keep_alive=code.code)
    return lambda *arguments: function(*arguments, 4)


def test_sizes_are_found_from_shapes(axpy: NativeFunction) -> None:
    for n in (1, 5, 1000):
        x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        assert axpy(2.0, x, y) is None
        np.testing.assert_array_equal(y, 2 * np.arange(n) + 1)


def test_no_array_is_copied(axpy4: Any) -> None:
    base = np.arange(16, dtype=np.float32)
    base.flags.writeable = False
    y = np.zeros(8, np.float32)
    axpy4(np.float32(1), base[4:8], y[2:6])
    np.testing.assert_array_equal(y, [0, 0, 4, 5, 6, 7, 0, 0])


class Exporter:
    """An array of another library, as far as DLPack shows it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_dlpack_arrays_are_taken_without_a_copy(axpy4: Any) -> None:
    y = np.zeros(4, np.float32)
    axpy4(2.0, Exporter(np.arange(4, dtype=np.float32)), Exporter(y))
    np.testing.assert_array_equal(y, [0, 2, 4, 6])


def test_bfloat16_arrays(code: Any) -> None:
    bf16 = np.dtype(ml_dtypes.bfloat16)
    specs = [ArraySpec("x", bf16, (4,)), ArraySpec("y", bf16, (4,), is_output=True)]
    function = NativeFunction(code.code.address("copy"), specs, keep_alive=code.code)
    x, y = np.arange(4).astype(bf16), np.zeros(4, bf16)
    function(x, y)
    np.testing.assert_array_equal(x, y)


def test_results_are_returned(code: Any) -> None:
    function = NativeFunction(
        code.code.address("twice"), [ScalarSpec("x", np.dtype(np.float64))], result=np.dtype(np.float64)
    )
    assert function(1.5) == 3.0


GOOD = np.zeros(4, np.float32)
READ_ONLY = np.zeros(4, np.float32)
READ_ONLY.flags.writeable = False
UNALIGNED = np.zeros(20, np.int8)[1:17].view(np.float32)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1.0, GOOD), TypeError, "takes 4 arguments (a, x, y, n), not 3"),
        ((1.0, [0, 1, 2, 3], GOOD.copy()), TypeError, "axpy: parameter 'x' takes an array, not list"),
        ((1.0, GOOD.astype(np.float64), GOOD.copy()), TypeError, "parameter 'x' has dtype float32, got float64"),
        ((1.0, GOOD.astype(">f4"), GOOD.copy()), TypeError, "parameter 'x' has dtype float32, got >f4"),
        ((1.0, GOOD[:3], GOOD.copy()), ValueError, "parameter 'x' has shape (4,), got (3,): dimension 0 differs"),
        ((1.0, GOOD.reshape(2, 2), GOOD.copy()), ValueError, "parameter 'x' has shape (4,), got (2, 2)"),
        ((1.0, np.zeros(8, np.float32)[::2], GOOD.copy()), ValueError, "parameter 'x' must be C-contiguous"),
        ((1.0, UNALIGNED, GOOD.copy()), ValueError, "parameter 'x' must be aligned to its dtype"),
        ((1.0, GOOD, READ_ONLY), ValueError, "parameter 'y' is written to, and the array is read-only"),
        (("1", GOOD, GOOD.copy()), TypeError, "parameter 'a' takes a float32, not str '1'"),
        ((GOOD, GOOD, GOOD.copy()), TypeError, "parameter 'a' is a number, got an array of shape (4,)"),
        ((1.0, GOOD, GOOD), ValueError, "parameters 'y' and 'x' share memory, and 'y' is written to"),
    ],
)
def test_arguments_that_do_not_fit(
    axpy4: Any, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        axpy4(*arguments)
    assert message in str(caught.value)


def test_sizes_must_agree(axpy: NativeFunction) -> None:
    with pytest.raises(ValueError, match=r"parameter 'y' has shape \(n,\), got \(5,\): n is 4 in an earlier argument"):
        axpy(1.0, GOOD, np.zeros(5, np.float32))


def test_integers_must_fit(code: Any) -> None:
    function = NativeFunction(code.code.address("small"), [ScalarSpec("n", I64)], name="small", messages=code.messages)
    assert function(np.int32(3)) is None
    with pytest.raises(ValueError, match="parameter 'n' is 9223372036854775808, which int64 does not hold"):
        function(2**63)
    with pytest.raises(TypeError, match=r"parameter 'n' takes an int64, not float 3\.0"):
        function(3.0)


def test_a_failed_check_is_raised_with_its_message(code: Any) -> None:
    function = NativeFunction(code.code.address("small"), [ScalarSpec("n", I64)], messages=code.messages)
    with pytest.raises(MirError, match="n must be below 10"):
        function(12)
    function(9)


def test_alignment_can_be_asked_for(code: Any) -> None:
    specs = [ArraySpec("x", np.dtype(np.int8), (4,), alignment=64)]
    function = NativeFunction(code.code.address("copy"), specs, name="f")
    with pytest.raises(ValueError, match="f: parameter 'x' must lie at a multiple of 64 bytes"):
        buffer = np.zeros(200, np.int8)
        start = -buffer.ctypes.data % 64
        function(buffer[start + 1 : start + 5])


def test_sizes_that_no_array_has_are_refused() -> None:
    with pytest.raises(ValueError, match="no array of the parameters has the size 'm'"):
        NativeFunction(0, [SizeSpec("m")], name="f")


def test_several_threads_call_at_once(axpy: NativeFunction) -> None:
    wrong: list[int] = []

    def work(n: int) -> None:
        x = np.arange(n, dtype=np.float32)
        for _ in range(500):
            y = np.zeros(n, np.float32)
            axpy(float(n), x, y)
            if not np.array_equal(y, np.float32(n) * x):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 50, 700, 4000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
