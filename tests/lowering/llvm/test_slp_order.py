"""What LLVM's optimizer breaks is found before code is made of it, and compiled without the vectorizer that breaks it."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.lowering.llvm.jit import codegen
from mirstack.lowering.llvm.jit.load import compile_shipped
from mirstack.support.diagnostics import MirError

PROGRAM = """
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 8), "int32"), B: T.Buffer((8, 8), "int32"), D: T.Buffer((6, 8), "int32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        C = T.allocate([48], "int32", "global")
        C_1 = T.Buffer((48,), "int32", data=C)
        A_1 = T.Buffer((48,), "int32", data=A.data)
        for i, j in T.grid(6, 8):
            C_1[i * 8 + j] = -2147483648
            for r in range(8):
                cse_var_2: T.int32 = i * 8
                cse_var_1: T.int32 = cse_var_2 + j
                B_1 = T.Buffer((64,), "int32", data=B.data)
                C_1[cse_var_1] = T.max(C_1[cse_var_1], A_1[cse_var_2 + r] * B_1[r * 8 + j])
        D_1 = T.Buffer((48,), "int32", data=D.data)
        for j in range(8):
            D_1[j] = C_1[j] + A_1[0]
        for j in range(8):
            cse_var_3: T.int32 = j + 8
            D_1[cse_var_3] = C_1[cse_var_3] + A_1[8]
        for j in range(8):
            cse_var_4: T.int32 = j + 16
            D_1[cse_var_4] = C_1[cse_var_4] + A_1[16]
        for j in range(8):
            cse_var_5: T.int32 = j + 24
            D_1[cse_var_5] = C_1[cse_var_5] + A_1[24]
        for j in range(8):
            cse_var_6: T.int32 = j + 32
            D_1[cse_var_6] = C_1[cse_var_6] + A_1[32]
        for j in range(8):
            cse_var_7: T.int32 = j + 40
            D_1[cse_var_7] = C_1[cse_var_7] + A_1[40]
"""


def test_values_before_their_definition() -> None:
    """LLVM 22.1's SLP vectorizer leaves one here; code generation then ended the process."""
    a, b = (np.random.default_rng(k).integers(-9, 9, shape, dtype="int32") for k, shape in enumerate([(6, 8), (8, 8)]))
    native, expected = np.zeros((6, 8), "int32"), np.zeros((6, 8), "int32")
    module = mirstack.parse(PROGRAM)
    mirstack.compile(module)(a, b, native)
    mirstack.compile(module, "interp")(a, b, expected)
    assert np.array_equal(native, expected)


def test_wrong_without_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen, "defect_of", lambda module: "Instruction does not dominate all uses!")
    with pytest.raises(
        MirError,
        match="LLVM's optimizer made a module that is wrong: Instruction does not dominate all uses!\nnote: this is a defect of",
    ):
        compile_shipped("define void @f() {\n  ret void\n}\n")
