"""Functions of float16 that round to whole numbers stay in vectors: LLVM takes those of f16 to pieces."""

import mirstack
import pytest
from mirstack.lowering.driver.build import assembly_text
from mirstack.lowering.pipeline import Options


@pytest.mark.parametrize("cpu", ["znver4", "haswell"])
@pytest.mark.parametrize("function", ["floor", "ceil", "round", "trunc", "sqrt"])
def test_in_vectors(function: str, cpu: str) -> None:
    module = mirstack.parse(f"def @main(%x: Tensor[(4096), float16]) {{ {function}(%x) }}")
    text = assembly_text(module, Options(cpu=cpu, triple="x86_64-unknown-linux-gnu", threads=1))
    assert "vcvtph2ps" in text
    assert not any(name in text for name in ("vroundss", "vrndscaless", "vsqrtss"))
