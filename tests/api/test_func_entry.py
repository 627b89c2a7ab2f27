"""`func.func` as an entry: scalars and memrefs from Python, scalars as results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import mirstack
import numpy as np
import pytest
from mirstack.driver.modules import read_module
from mirstack.lowering.driver.loading.executable import Executable
from mirstack.support.diagnostics import MirError, source_position

TWICE = """func.func @twice(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %b, %a : i32
  %2 = arith.muli %0, %1 : i32
  func.return %2 : i32
}
"""

MODULE = """
func.func @sum(%a: memref<?x?xf32>, %n: i32) -> (f32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %m = memref.dim %a, %c0 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  %s = scf.for %i = %c0 to %m step %c1 iter_args(%x = %z) -> (f32) {
    %t = scf.for %j = %c0 to %k step %c1 iter_args(%y = %x) -> (f32) {
      %v = memref.load %a[%i, %j] : memref<?x?xf32>
      %w = arith.addf %y, %v : f32
      scf.yield %w : f32
    }
    scf.yield %t : f32
  }
  %d = arith.addi %n, %n : i32
  func.return %s, %d : f32, i32
}
func.func @exp(%a: memref<4xf16>, %output: memref<4xf16>) {
  %c2 = arith.constant 2 : index
  %v = memref.load %a[%c2] : memref<4xf16>
  memref.store %v, %output[%c2] : memref<4xf16>
  func.return
}
func.func @factorial(%n: i64) -> i64 {
  %one = arith.constant 1 : i64
  %small = arith.cmpi sle, %n, %one : i64
  %r = scf.if %small -> (i64) {
    scf.yield %one : i64
  } else {
    %less = arith.subi %n, %one : i64
    %rest = func.call @factorial(%less) : (i64) -> i64
    %product = arith.muli %n, %rest : i64
    scf.yield %product : i64
  }
  func.return %r : i64
}
func.func @names(%a: memref<?xf32>, %a.0: i64, %out0: i64) -> i64 { func.return %a.0 : i64 }
func.func @even(%n: i64) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %true = arith.constant true
  %end = arith.cmpi sle, %n, %zero : i64
  %r = scf.if %end -> (i1) {
    scf.yield %true : i1
  } else {
    %less = arith.subi %n, %one : i64
    %odd = func.call @even.called(%less) : (i64) -> i1
    scf.yield %odd : i1
  }
  func.return %r : i1
}
func.func @even.called(%n: i64) -> i1 {
  %true = arith.constant true
  %even = func.call @even(%n) : (i64) -> i1
  %odd = arith.xori %even, %true : i1
  func.return %odd : i1
}
func.func @not(%x: i1, %at: index, %h: memref<f16>) -> (i1, index, f16) {
  %true = arith.constant true
  %y = arith.xori %x, %true : i1
  %v = memref.load %h[] : memref<f16>
  func.return %y, %at, %v : i1, index, f16
}
func.func private @inner(%a: i32) -> i32 { func.return %a : i32 }
func.func @tensor(%a: tensor<4xf32>) { func.return }
func.func @strided(%a: memref<4xf32, strided<[2]>>) { func.return }
func.func @gives(%a: memref<4xf32>) -> memref<4xf32> { func.return %a : memref<4xf32> }
func.func @half(%a: f16) { func.return }
func.func @odd(%a: i7) { func.return }
"""


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., Executable]:
    file = tmp_path / "module.mlir"
    file.write_text(MODULE)
    return lambda entry, **options: mirstack.compile(read_module(str(file), None), entry=entry, **options)


def test_the_command_runs_one(tmp_path: Path, mir_run: Callable[..., Any]):
    file = tmp_path / "twice.mlir"
    file.write_text(TWICE)
    np.savez(tmp_path / "in.npz", a=np.int32(3), b=np.int32(4))
    # The second time from the cache.
    for _ in range(2):
        ran = mir_run(file, "--input", tmp_path / "in.npz", "--entry", "twice")
        assert ran.code == 0 and "twice (func) on cpu" in ran.out and "-> out0: int32[] [49]" in ran.out
    ran = mir_run(file, "--target", "interp")
    assert ran.code == 1
    assert f"{file}:1:1: error: the interpreter does not run @twice: it is a func.func" in ran.err
    assert "note: run it as native code: --target cpu" in ran.err


def test_open_sizes_and_several_results(compiled: Callable[..., Executable]):
    total = compiled("sum")
    assert [param.shape for param in total.params] == [("a.0", "a.1"), ()]
    assert total(np.arange(6, dtype="float32").reshape(2, 3), 21) == (15, 42)
    assert total(np.ones((5, 2), "float32"), -1) == (10, -2)
    assert {k: v.item() for k, v in total.run({"a": np.ones((1, 7), "float32")}).items()} == {"out0": 7, "out1": 0}
    with pytest.raises(ValueError, match=r"'a' must have shape \(a.0, a.1\), not \(3,\)"):
        compiled("sum").run({"a": np.ones(3, "float32")})


def test_memrefs_are_written_in_place_and_names_of_c_are_free(compiled: Callable[..., Executable]):
    a, b = np.arange(4, dtype="float16"), np.zeros(4, "float16")
    copy = compiled("exp")
    assert [param.is_output for param in copy.params] == [False, True]
    assert copy(a, b) is None and b.tolist() == [0, 0, 2, 0]
    assert list(copy.run({"a": a})) == ["output"]
    with pytest.raises(ValueError, match="'output' must have shape"):
        copy(a, np.zeros(5, "float16"))


def test_one_that_calls_itself(compiled: Callable[..., Executable]):
    assert compiled("factorial")(10) == 3628800


def test_names_that_are_taken(compiled: Callable[..., Executable]):
    sizes = compiled("names")
    assert [(param.name, param.shape) for param in sizes.params] == [("a", ("a.0",)), ("arg1", ()), ("arg2", ())]
    assert sizes(np.ones(3, "float32"), 5, 7) == 5
    even = compiled("even")
    assert even(10) and not even(7)


def test_other_scalars(compiled: Callable[..., Executable]):
    assert compiled("not")(True, 1 << 40, np.float16(1.5)) == (False, 1 << 40, 1.5)
    assert compiled("inner")(7) == 7


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("tensor", "parameter 'a' of @tensor is of type tensor<4xf32>, which cannot be passed from outside"),
        ("strided", "parameter 'a' of @strided is of type memref<4xf32, strided<[2]>>, which cannot be passed"),
        ("odd", "parameter 'a' of @odd is of type i7, which cannot be passed from outside"),
        ("gives", "result 0 of @gives is of type memref<4xf32>, which cannot be returned to the outside"),
        ("half", "half takes a scalar of dtype float16, which Python cannot pass"),
        (None, "the module has several functions and no main"),
        ("sun", "the module has no function 'sun'"),
    ],
)
def test_what_cannot_be_an_entry(compiled: Callable[..., Executable], entry: str | None, message: str):
    with pytest.raises(MirError) as refused:
        compiled(entry)
    assert message in refused.value.diagnostics[0].message


def test_scalar_that_cannot_be_passed_is_located(compiled: Callable[..., Executable]):
    with pytest.raises(MirError) as refused:
        compiled("half")
    assert source_position(refused.value.diagnostics[0].location) is not None


RETURNS = """from tvm.script import tir as T

@T.prim_func
def f(n: T.int32, A: T.Buffer((8,), "float32")) -> T.{dtype}:
    assert n > 0, "n is small"
    A[0] = T.float32(3)
    return {value}
"""


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize(
    ("dtype", "value", "returned"),
    [
        ("int32", "n * 2", 4),
        ("int64", "T.int64(5000000000)", 5000000000),
        ("uint8", "T.uint8(200)", 200),
        ("bool", "n > 1", True),
        ("float16", "T.float16(1.5)", np.float16(1.5)),
        ("float32", "A[n] * T.float32(2)", np.float32(2)),
        ("float64", "T.float64(2.5)", np.float64(2.5)),
    ],
)
def test_prim_funcs_return_scalars(target: Literal["interp", "cpu"], dtype: str, value: str, returned: object):
    f = mirstack.compile(mirstack.parse(RETURNS.format(dtype=dtype, value=value)), target)
    result = f(2, np.ones(8, np.float32))
    assert result == returned and type(result) is type(returned)
    shown = f.run({"n": 2, "A": np.ones(8, np.float32)})["out0"]
    assert shown == returned and shown.dtype.name == dtype


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_prim_funcs_that_return_scalars_fail(target: Literal["interp", "cpu"]):
    """A check that fails is told, be there a result or not."""
    f = mirstack.compile(mirstack.parse(RETURNS.format(dtype="float32", value="A[n]")), target)
    a = np.ones(8, np.float32)
    with pytest.raises(MirError, match="n is small"):
        f(0, a)
    assert a[0] == 1
    with pytest.raises(MirError, match=r"outside of dimension 0 of 'A'|is outside"):
        f(9, a)


def test_prim_funcs_that_return_scalars_call_themselves():
    text = """from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(n: T.int32) -> T.int32:
        T.func_attr({"global_symbol": "main"})
        return Module.twice(n) + 1
    @T.prim_func
    def twice(n: T.int32) -> T.int32:
        return n * 2
"""
    module = mirstack.parse(text)
    assert mirstack.compile(module, entry="main")(4) == 9
    assert mirstack.compile(module, entry="twice")(4) == 8
