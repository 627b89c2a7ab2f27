"""The code that libraries ask processors with says what `support.target` says of this machine."""

from __future__ import annotations

import ctypes

import pytest
from mirstack.lowering.driver.artifacts.processor_check import NARROW, WIDE, bits_of, check_ir
from mirstack.lowering.llvm.jit.load import emit_object, link_objects
from mirstack.support.target import missing_here, named

X86 = (
    "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "sandybridge", "btver2", "tremont", "haswell", "znver3", "alderlake", "arrowlake",
    "cascadelake", "cooperlake", "cannonlake", "icelake-server", "sapphirerapids", "znver4", "znver5", "diamondrapids",
)  # fmt: skip
ARM = ("cortex-a72", "neoverse-n1", "neoverse-v1", "apple-m1")


def runs_here(cpu: str) -> bool:
    """Returns what the check of a processor says on this machine."""
    text = check_ir(named(cpu), "suits").replace("define internal", "define")
    code = link_objects([emit_object(f"declare i64 @getauxval(i64)\n{text}")])
    return ctypes.CFUNCTYPE(ctypes.c_bool)(code.address("suits"))()


@pytest.mark.parametrize("cpu", X86 if named("").arch == "x86_64" else ARM)
def test_the_check_agrees_with_the_system(cpu: str):
    target = named(cpu)
    assert runs_here(cpu) == (missing_here(target.arch, target.vector_bytes, target.features) is None)


@pytest.mark.parametrize("cpu", X86)
def test_every_feature_of_code_for_x86_is_asked_for(cpu: str):
    target = named(cpu)
    words = WIDE if target.vector_bytes == 64 else NARROW
    assert {words.get(feature, feature) for feature in target.features} <= set(bits_of(target))
