"""On processors whose gathers are slow, what is read by indices is read element by element."""

import mirstack
import pytest
from mirstack.lowering.driver.build import assembly_text
from mirstack.lowering.llvm.jit.load import Target
from mirstack.lowering.pipeline import Options

TAKE = """
def @main(%x: Tensor[(64, 512), float32], %i: Tensor[(128), int32]) {
  take(%x, %i, axis=1)
}
"""


@pytest.mark.parametrize(("cpu", "has"), [("znver4", False), ("haswell", False), ("skylake-avx512", True)])
def test_gathers(cpu: str, has: bool) -> None:
    module = mirstack.parse(TAKE)
    text = assembly_text(module, Options(cpu=cpu, triple="x86_64-unknown-linux-gnu", threads=1))
    assert ("gather" in text) is has


def test_features_say_so() -> None:
    assert "+prefer-no-gather" in Target("x86_64-unknown-linux-gnu", "znver4").describe()
    assert "prefer-no-gather" not in Target("aarch64-unknown-linux-gnu", "neoverse-v2").describe()
