"""The llvm dialect as LLVM IR text: every op, and what xDSL's own translator gets wrong."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from compiled_ir import compile_ir
from mirstack.lowering.llvm.jit import load as jit
from mirstack.lowering.llvm.jit.load import (
    CompiledModule,
    Target,
    emit_assembly,
    emit_object,
    emit_optimized_ir,
    link_objects,
)
from mirstack.lowering.llvm.jit.load import parse as parse_ir
from mirstack.lowering.llvm.text.translation import translate
from mirstack.support.diagnostics import MirError
from xdsl.dialects import llvm
from xdsl.dialects.builtin import FloatAttr, bf16, f16, f32, f64


@pytest.fixture(scope="session")
def ir(parse: Callable[[str], Any]) -> Callable[[str], str]:
    """LLVM dialect text to IR text that LLVM accepts."""

    def run(text: str) -> str:
        module = parse(text)
        module.verify()
        out = translate(module)
        parse_ir(out)
        return out

    return run


def test_blocks_out_of_dominance_order(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func @f(%a: i64) -> i64 {
      llvm.br ^bb2
    ^bb1:
      %c = llvm.add %b, %b : i64
      llvm.return %c : i64
    ^bb2:
      %b = llvm.add %a, %a : i64
      llvm.br ^bb1
    }
    """)
    assert text.count("= add i64") == 2


def test_one_intrinsic_at_several_types(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func @f(%a: f32, %b: f64, %v: vector<4xf32>) {
      %x = llvm.call_intrinsic "llvm.fma"(%a, %a, %a) : (f32, f32, f32) -> f32
      %y = llvm.call_intrinsic "llvm.fma"(%b, %b, %b) : (f64, f64, f64) -> f64
      %z = llvm.call_intrinsic "llvm.fma"(%v, %v, %v) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      %w = llvm.call_intrinsic "llvm.fma.f32"(%a, %a, %a) : (f32, f32, f32) -> f32
      %r = llvm.call_intrinsic "llvm.vector.reduce.fadd"(%a, %v) {fastmathFlags = #llvm.fastmath<reassoc>}
        : (f32, vector<4xf32>) -> f32
      llvm.return
    }
    """)
    for name in ("llvm.fma.f32(", "llvm.fma.f64(", "llvm.fma.v4f32(", "llvm.vector.reduce.fadd.v4f32("):
        assert (
            text.count(
                f"declare {'double' if 'f64' in name else '<4 x float>' if '.fma.v4' in name else 'float'} @{name}"
            )
            == 1
        )
    assert "call reassoc float @llvm.vector.reduce.fadd.v4f32" in text


def test_indirect_calls(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func internal @one() -> i64 {
      %c = llvm.mlir.constant(1) : i64
      llvm.return %c : i64
    }
    llvm.func @f() -> i64 {
      %p = llvm.mlir.addressof @one : !llvm.ptr
      %r = llvm.call %p() : !llvm.ptr, () -> i64
      llvm.return %r : i64
    }
    """)
    assert "call i64 @one()" in text  # the address is a constant, so that the call is written as a direct one
    code = compile_ir(text)
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("f"))() == 1


def test_address_spaces_and_atomics_keep_their_ordering(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func @f(%p: !llvm.ptr, %q: !llvm.ptr<3>, %i: i64) {
      %e = llvm.getelementptr %q[%i] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
      %v = llvm.load %e {alignment = 4 : i64} : !llvm.ptr<3> -> f32
      %a = llvm.load %p atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
      %o = llvm_ext.atomicrmw "add" "release" %p, %i : !llvm.ptr, i64
      %x = llvm_ext.cmpxchg "acq_rel" "monotonic" %p, %i, %o : !llvm.ptr, i64 -> !llvm.struct<(i64, i1)>
      %y = llvm.extractvalue %x[1] : !llvm.struct<(i64, i1)>
      llvm_ext.fence "seq_cst"
      "llvm.store"(%o, %p) <{ordering = 5 : i64, alignment = 8 : i64}> : (i64, !llvm.ptr) -> ()
      llvm.return
    }
    """)
    assert "getelementptr float, ptr addrspace(3) %q_1, i64 %i_2" in text
    assert "load atomic i64, ptr %p_0 acquire, align 8" in text
    assert "atomicrmw add ptr %p_0, i64 %i_2 release" in text
    assert "cmpxchg ptr %p_0, i64 %i_2, i64 %o" in text and "acq_rel monotonic" in text
    assert "fence seq_cst" in text
    assert "store atomic i64 %o" in text and "release, align 8" in text


def test_both_edges_of_a_branch_to_one_block(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func @f(%c: i1, %a: i64, %b: i64) -> i64 {
      llvm.cond_br %c, ^bb1(%a : i64), ^bb1(%b : i64)
    ^bb1(%r: i64):
      llvm.return %r : i64
    }
    """)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_bool, ctypes.c_int64, ctypes.c_int64)
    code = compile_ir(text)
    assert [function(code.address("f"))(c, 5, 6) for c in (True, False)] == [5, 6]


def test_loop_annotations(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func @f() {
      llvm.br ^bb1
    ^bb1:
      llvm.br ^bb1 {loop_annotation = #llvm_ext.loop<"unroll.count" = 4, "vectorize.enable" = 0, "mustprogress" = 1,
        "unroll.disable" = 1, "vectorize.width" = 8>}
    }
    """)
    assert "br label %b1, !llvm.loop !0" in text
    for hint in (
        '"llvm.loop.unroll.count", i32 4',
        '"llvm.loop.vectorize.enable", i1 false',
        '"llvm.loop.unroll.disable"',
    ):
        assert hint in text


def test_linkage_attributes_and_flags(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.mlir.global internal constant @g(dense<[1, 2]> : tensor<2xi16>) {alignment = 32 : i64} : !llvm.array<2 x i16>
    llvm.mlir.global external @h() : !llvm.array<4 x f32>
    llvm.mlir.global private constant @s("a\\22b") : !llvm.array<3 x i8>
    llvm.func internal fastcc @f(%a: i32 {llvm.noundef}, %b: f32) -> i32
        attributes {passthrough = ["alwaysinline", ["prefer-vector-width", "256"]], no_unwind} {
      %0 = llvm.add %a, %a overflow<nsw, nuw> : i32
      %1 = llvm.udiv exact %0, %a : i32
      %2 = llvm.or disjoint %1, %a : i32
      %3 = llvm.fadd %b, %b {fastmathFlags = #llvm.fastmath<fast>} : f32
      %4 = llvm.fmul %3, %b {fastmathFlags = #llvm.fastmath<contract,nnan>} : f32
      %5 = llvm_ext.freeze %2 : i32
      llvm.return %5 : i32
    }
    llvm.func @odd_name$1(...) -> i32
    """)
    assert '@g = internal constant [4 x i8] c"\\01\\00\\02\\00", align 32' in text
    assert "@h = external global [4 x float]" in text
    assert '@s = private constant [3 x i8] c"a\\22b"' in text
    assert (
        'define internal fastcc i32 @f(i32 noundef %a_0, float %b_1) nounwind alwaysinline "prefer-vector-width"="256"'
        in text
    )
    for line in ("add nuw nsw i32", "udiv exact i32", "or disjoint i32", "fadd fast float", "fmul nnan contract float"):
        assert line in text
    assert "declare i32 @odd_name$1(...)" in text


def test_every_float_is_exact() -> None:
    from mirstack.lowering.llvm.text.ir_text import constant_text, float_text

    for type_, value, want in (
        (f32, 1.0, "0x3FF0000000000000"),
        (f32, 0.1, "0x3FB99999A0000000"),
        (f32, float("inf"), "0x7FF0000000000000"),
        (f32, float("nan"), "0x7FF8000000000000"),
        (f32, 1e300, "0x7FF0000000000000"),
        (f64, -0.0, "0x8000000000000000"),
        (f16, 65504.0, "0xH7BFF"),
        (f16, 1e9, "0xH7C00"),
        (bf16, 1.0, "0xR3F80"),
        (bf16, float("nan"), "0xR7FC0"),
        (bf16, 3.4e38, "0xR7F80"),
    ):
        assert float_text(value, type_) == want, (type_, value)
    assert constant_text(FloatAttr(0.5, f32), f32) == "0x3FE0000000000000"


def test_inline_assembly(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func @f() {
      llvm.inline_asm has_side_effects "nop", "~{memory}" : () -> ()
      llvm.return
    }
    """)
    assert 'call void asm sideeffect "nop", "~{memory}"()' in text


def test_a_dead_block_and_strange_names(ir: Callable[[str], str]) -> None:
    text = ir("""
    llvm.func @"a b"(%x: i64) -> i64 {
      llvm.return %x : i64
    ^dead(%y: i64):
      llvm.return %y : i64
    }
    """)
    assert 'define i64 @"a b"(' in text and "ret i64 poison" in text


def test_debug_locations(parse: Callable[[str], Any]) -> None:
    module = parse("""
    llvm.func @f(%a: i64) -> i64 {
      %b = llvm.add %a, %a : i64 loc("k.mir":12:5)
      llvm.return %b : i64 loc("k.mir":13:5)
    } loc("k.mir":11:1)
    """)
    plain, debug = translate(module), translate(module, debug=True)
    assert "!dbg" not in plain
    parse_ir(debug)
    assert "!DILocation(line: 12, column: 5" in debug
    assert '!DIFile(filename: "k.mir"' in debug


def test_what_is_not_llvm_is_refused(parse: Callable[[str], Any]) -> None:
    with pytest.raises(MirError, match=r"'func\.func' is not of the llvm dialect"):
        translate(parse("func.func @f() { func.return }"))
    with pytest.raises(MirError, match=r"'arith\.addi' is not of the llvm dialect"):
        translate(parse("llvm.func @f(%a: i32) { %b = arith.addi %a, %a : i32\n llvm.return }"))
    with pytest.raises(MirError, match="call of @g, which the module does not define"):
        translate(parse("llvm.func @f() { llvm.call @g() : () -> ()\n llvm.return }"))


# Code


RETURNS_SEVEN = "define i32 @seven() {\n  ret i32 7\n}\n"


def test_objects_can_be_kept_and_loaded_again() -> None:
    data = emit_object(RETURNS_SEVEN)
    assert isinstance(data, bytes)
    for _ in range(2):
        code = link_objects([data])
        assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("seven"))() == 7
        assert code.objects == (data,)


def test_objects_link_with_each_other_and_with_given_symbols() -> None:
    user = "declare i32 @seven()\ndeclare i32 @given()\ndefine i32 @f() {\n  %a = call i32 @seven()\n  %b = call i32 @given()\n"
    user += "  %c = add i32 %a, %b\n  ret i32 %c\n}\n"
    given = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 30)
    address = ctypes.cast(given, ctypes.c_void_p).value
    assert address is not None
    code = link_objects(
        [emit_object(user), emit_object(RETURNS_SEVEN)], symbols={"given": address}, keep_alive=(given,)
    )
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("f"))() == 37


def test_libm_is_found() -> None:
    code = compile_ir(
        "declare double @erf(double)\ndefine double @f(double %x) {\n %y = call double @erf(double %x)\n ret double %y\n}\n"
    )
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))(0.5) == pytest.approx(
        0.5204998778130465
    )


def test_what_is_missing_is_named() -> None:
    text = "declare void @nobody_has_this()\ndefine void @f() {\n call void @nobody_has_this()\n ret void\n}\n"
    with pytest.raises(MirError, match="the code calls nobody_has_this, which no loaded library has"):
        compile_ir(text)
    with pytest.raises(MirError, match="the compiled module has no public symbol 'g'") as caught:
        compile_ir(RETURNS_SEVEN).address("g")
    assert "it has seven" in str(caught.value)
    with pytest.raises(MirError, match="LLVM refuses the module"):
        compile_ir("define i32 @f() { ret i64 0 }")
    with pytest.raises(MirError, match="LLVM knows no target 'nowhere'"):
        emit_assembly(RETURNS_SEVEN, Target(triple="nowhere"))


def test_other_targets() -> None:
    text = "define <8 x float> @f(<8 x float> %x) {\n %y = fadd <8 x float> %x, %x\n ret <8 x float> %y\n}\n"
    assert "ymm" in emit_assembly(text, Target(triple="x86_64-unknown-linux-gnu", cpu="x86-64-v3"))
    assert "ymm" not in emit_assembly(text, Target(triple="x86_64-unknown-linux-gnu", cpu="x86-64"))
    assert "fadd\tv" in emit_assembly(text, Target(triple="aarch64-unknown-linux-gnu"))
    assert emit_object(text, Target(triple="aarch64-unknown-linux-gnu"))[:4] == b"\x7fELF"
    assert "fadd <8 x float>" in emit_optimized_ir(text)
    assert Target().describe() != Target(opt_level=1).describe()


def test_levels_of_optimization() -> None:
    loop = """
    define void @f(ptr noalias %p, i64 %n) {
      br label %head
    head:
      %i = phi i64 [0, %0], [%next, %body]
      %go = icmp slt i64 %i, %n
      br i1 %go, label %body, label %out
    body:
      %a = getelementptr inbounds float, ptr %p, i64 %i
      %x = load float, ptr %a
      %y = fadd float %x, 1.0
      store float %y, ptr %a
      %next = add nsw i64 %i, 1
      br label %head
    out:
      ret void
    }
    """
    target = {"cpu": "x86-64-v3", "features": ""}
    assert "fadd <8 x float>" in emit_optimized_ir(loop, Target(**target, opt_level=3))
    assert "fadd <8 x float>" not in emit_optimized_ir(loop, Target(**target, opt_level=1))


def test_dialect_functions_are_text_that_parses_again(parse: Callable[[str], Any]) -> None:
    module = parse("llvm.func @f(%a: i64) -> i64 { llvm.return %a : i64 }")
    (op,) = module.body.ops
    assert isinstance(op, llvm.FuncOp)
    assert translate(parse(str(module))) == translate(module)


def test_native_is_this_machine() -> None:
    assert Target(cpu="native").resolved() == Target().resolved()
    assert Target(cpu="haswell").resolved()[1] == "haswell"


def test_engines_are_renewed_and_stay_with_their_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM keeps some memory of each library that was unloaded, until its engine goes."""
    monkeypatch.setattr(jit, "LINKS", 2)
    monkeypatch.setattr(jit, "_ENGINES", jit._Engines())
    data, codes, engines = emit_object(RETURNS_SEVEN), list[CompiledModule](), list["weakref.ref[object]"]()
    for _ in range(5):
        codes.append(link_objects([data]))
        engines.append(weakref.ref(jit._ENGINES._engine))  # pyright: ignore[reportArgumentType]
    assert [each() is not None for each in engines] == [False, False, False, False, True]
    del codes[1::2]
    for code in codes:
        assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("seven"))() == 7
