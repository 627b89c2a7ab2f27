"""C functions that a program may call: mathematics on numbers and what is allowed by name, at every level of text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.driver.modules import read_module
from mirstack.lowering.driver.build import llvm_text
from mirstack.lowering.externs import ALLOWED, RUNTIME, names_of
from mirstack.lowering.pipeline import Options
from mirstack.lowering.runtime import EXPORTS
from mirstack.support.diagnostics import MirError

CALL = """@T.prim_func
def main(B: T.Buffer((1,), "int32")):
    with T.block("root"):
        B[0] = T.{kind}("int32", "{name}", T.int32(-7))
"""


@pytest.mark.parametrize("kind", ["call_extern", "call_pure_extern"])
def test_other_functions_are_refused(tmp_path: Path, mir_run: Callable[..., Any], kind: str):
    file = tmp_path / "calls.mir"
    file.write_text(CALL.format(kind=kind, name="getpgid"))
    ran = mir_run(file)
    assert ran.code == 1
    assert f"{file}:4:16: error: the C function 'getpgid' may not be used here" in ran.err
    assert "--allow-extern getpgid (mir-run, mir-opt), or compile(…, allow_extern=['getpgid'])" in ran.err


def test_allowed_ones_run_and_the_cache_tells_them_apart(tmp_path: Path, mir_run: Callable[..., Any]):
    file = tmp_path / "calls.mir"
    file.write_text(CALL.format(kind="call_extern", name="isblank"))
    for _ in range(2):
        assert mir_run(file).code == 1
        assert mir_run(file, "--allow-extern", "isblank").code == 0
        assert mir_run(file, "--allow-extern=isalpha,isblank").code == 0
    out = np.ones(1, "int32")
    mirstack.compile(file, allow_extern=["isblank"])(out)
    assert out[0] == 0
    with pytest.raises(MirError, match="the C function 'isblank' may not be used here"):
        mirstack.compile(file)
    module = mirstack.IRModule.of_op(mirstack.parse(file.read_text()))
    with pytest.raises(MirError, match="the C function 'isblank' may not be used here"):
        mirstack.build(module)
    assert "main" in mirstack.build(module, allow_extern=["isblank"])


def test_mathematics_needs_no_leave(tmp_path: Path):
    text = CALL.replace('"int32"', '"float32"').replace("T.int32(-7)", "T.float32(8)")
    file = tmp_path / "cbrt.mir"
    file.write_text(text.format(kind="call_extern", name="cbrtf"))
    out = np.zeros(1, "float32")
    mirstack.compile(file)(out)
    assert abs(out[0] - 2) < 1e-6


@pytest.mark.parametrize("name", ["frexp", "modff", "sincos", "nan", "remquol"])
def test_mathematics_through_addresses_is_not_on_the_list(name: str):
    assert name not in ALLOWED


KERNEL = """from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
    B[0] = T.Cast("float32", {call})
"""


@pytest.mark.parametrize("target", ["cpu", "interp"])
@pytest.mark.parametrize(
    "call, said",
    [
        ('T.call_extern("float32", "sinf")', "'sinf' is (float32) -> float32, not () -> float32"),
        ('T.call_pure_extern("float32", "powf", A[0])', "'powf' is (float32, float32) -> float32, not (float32) -> float32"),
        ('T.call_extern("float32", "ldexpf", A[0], A[1])', "'ldexpf' is (float32, int32) -> float32, not (float32, float32) -> float32"),
        ('T.call_extern("float32", "sin", A[0])', "'sin' is (float64) -> float64, not (float32) -> float32"),
        ('T.call_extern("int32", "tanf", A[0])', "'tanf' is (float32) -> float32, not (float32) -> int32"),
        ('T.call_extern("float64", "sinl", T.Cast("float64", A[0]))', "'sinl' takes long double, which no dtype holds"),
        ('T.call_extern("int64", "abs", T.int64(3))', "'abs' is (int32) -> int32, not (int64) -> int64"),
    ],
)  # fmt: skip
def test_calls_of_mathematics_have_its_types(call: str, said: str, target: str):
    """Any other call would read registers that nobody has set."""
    module = mirstack.parse(KERNEL.format(call=call), "a.mir")
    ones = np.ones(2, "float32")
    with pytest.raises(MirError) as error:
        mirstack.compile(module, target)(ones, ones.copy())  # type: ignore[call-overload]
    assert str(error.value).startswith("a.mir:4:30: error: the C function " + said)


def test_declarations_and_calls_of_functions_agree(tmp_path: Path):
    file = tmp_path / "a.mlir"
    text = "llvm.func @sinf({0}) -> f32\nllvm.func @f(%a: {1}) -> f32 {{\n  %0 = llvm.call @sinf(%a) : ({1}) -> f32\n  llvm.return %0 : f32\n}}"
    for types, said in (
        (("f64", "f64"), "a.mlir:1:1: error: the C function 'sinf' is (float32) -> float32, not (float64) -> float32"),
        (("f32", "f64"), "a.mlir:3:3: error: @sinf is (float) -> float, but called as (double) -> float"),
    ):
        file.write_text(text.format(*types))
        with pytest.raises(MirError) as error:
            llvm_text(read_module(str(file), None), Options())
        assert str(error.value).startswith(f"{tmp_path}/{said}")


def test_native_code_calls_what_is_on_the_list():
    assert "mirstack_parallel_for" in EXPORTS and "mirstack_parallel_for" in RUNTIME
    assert "powf" in ALLOWED and RUNTIME.isdisjoint(ALLOWED)


@pytest.mark.parametrize("call", ["call_extern", "call_pure_extern"])
@pytest.mark.parametrize("name", sorted(RUNTIME))
def test_what_lowering_calls_is_refused_in_a_program(tmp_path: Path, mir_run: Callable[..., Any], name: str, call: str):
    file = tmp_path / "calls.mir"
    # The block's own buffer is allocated and freed by lowering.
    file.write_text(f"""@T.prim_func
def main(A: T.Buffer((4,), "int32"), n: T.int32):
    C = T.alloc_buffer((n,), "int32")
    for i in range(4):
        with T.block("C"):
            C[T.min(i, n - 1)] = A[i]
    with T.block("root"):
        T.reads(A[0:4], C[0])
        T.writes(A[0:4])
        T.evaluate(T.{call}("int32", "{name}", A.data))
        A[0] = C[0]
""")
    ran = mir_run(file, "--size", "n=3")
    assert ran.code == 1
    assert f"{file}:10:20: error: the C function '{name}' may not be used here" in ran.err
    assert f"--allow-extern {name} (mir-run, mir-opt)" in ran.err


MLIR = {
    "the C function 'getpid' may not be used here": (
        """func.func private @getpid() -> i32
        func.func @main() -> i32 { %r = func.call @getpid() : () -> i32  func.return %r : i32 }""",
        "getpid",
    ),
    "the C function 'free' may not be used here": (
        """func.func private @free(memref<4xi32>)
        func.func @main(%a: memref<4xi32>, %n: index) {
          %own = memref.alloc(%n) : memref<?xi32>
          memref.dealloc %own : memref<?xi32>
          func.call @free(%a) : (memref<4xi32>) -> ()
          func.return
        }""",
        "free",
    ),
    "the C function 'getppid' may not be used here": (
        """llvm.func @getppid() -> i32
        llvm.func @main() -> !llvm.ptr { %p = llvm.mlir.addressof @getppid : !llvm.ptr  llvm.return %p : !llvm.ptr }""",
        "getppid",
    ),
    "the C function 'never_called' may not be used here": ("llvm.func @never_called()", "never_called"),
    "the variable of the process 'environ' may not be used here": (
        """llvm.func @main() -> !llvm.ptr { %p = llvm.mlir.addressof @environ : !llvm.ptr  llvm.return %p : !llvm.ptr }
        "llvm.mlir.global"() ({}) {global_type = !llvm.ptr, sym_name = "environ", linkage = #llvm.linkage<external>,
          addr_space = 0 : i32, visibility_ = 0 : i64} : () -> ()""",
        "environ",
    ),
    "machine code in a program's text may not be used here": (
        """llvm.func @main() {
          llvm.inline_asm has_side_effects "nop", "~{memory}" : () -> ()
          llvm.return
        }""",
        "llvm.inline_asm",
    ),
}


@pytest.mark.parametrize("message", MLIR)
def test_mlir_form_reaches_no_more(tmp_path: Path, message: str):
    text, name = MLIR[message]
    file = tmp_path / "calls.mlir"
    file.write_text(text)
    with pytest.raises(MirError) as refused:
        llvm_text(read_module(str(file), None), Options())
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.message == message and str(diagnostic.location) != "loc(unknown)"
    allowing = Options(allow_extern=names_of([name]))
    assert llvm_text(read_module(str(file), None), allowing)


@pytest.mark.parametrize(
    "attribute", [r'"nounwind }\0Amodule asm \22nop\22\0A"', r'["x", 3 : i32]', r'"noinline readnone"']
)
def test_attributes_of_functions_put_no_text_into_the_module(tmp_path: Path, attribute: str):
    file = tmp_path / "passthrough.mlir"
    file.write_text(f"llvm.func @main() attributes {{passthrough = [{attribute}]}} {{ llvm.return }}")
    with pytest.raises(MirError, match="passthrough holds"):
        llvm_text(read_module(str(file), None), Options())


def test_the_names_are_names():
    assert names_of(["b", "a", "b"]) == ("a", "b")
    with pytest.raises(TypeError, match="allow_extern takes a list of names of C functions, not 'f'"):
        names_of("f")
    with pytest.raises(TypeError, match="allow_extern holds names of C functions, not 3"):
        names_of([3])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("remainder", ["T.fmod(", 'T.call_extern("float32", "fmodf", '])
def test_remainders_of_nothing_stay_nan(remainder: str):
    """LLVM would take the remainder of a product by 0 for a number, as it is never infinite."""
    text = f"""@T.prim_func
def main(A: T.Buffer((2,), "float32"), O: T.Buffer((2,), "float32")):
    for i in range(2):
        O[i] = T.min({remainder}A[i] * T.float32(0), T.float32(3)), T.float32(2))
"""
    for opt_level in range(4):
        found = np.zeros(2, np.float32)
        mirstack.compile(mirstack.parse(text), opt_level=opt_level)(np.array([np.inf, 1], np.float32), found)
        np.testing.assert_array_equal(found, [np.nan, 0])
