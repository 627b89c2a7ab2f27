"""What is known of processors: by name, by the user's word, of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mirstack
import pytest
from mirstack.driver.mir_run import main as mir_run
from mirstack.lowering.driver.cache.keys import context_key
from mirstack.lowering.driver.processor import with_processor
from mirstack.lowering.driver.source import SourceText
from mirstack.lowering.llvm.jit import load as jit
from mirstack.lowering.options import Options, target_of
from mirstack.parser import parse_mir
from mirstack.passes.common.described_cpu import described_cpu
from mirstack.support import extensions
from mirstack.support import target as targets
from mirstack.support.diagnostics import MirError
from mirstack.support.target import AVX2, FAMILIES, ZEN4, Target, foreign_triple, named, require_host
from mirstack.support.target_description import FIELDS

RELU = """
@T.prim_func
def main(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = T.max(A[vi], T.float32(0))
"""


@pytest.mark.parametrize(
    ("cpu", "arch", "vector_bytes", "registers", "int8", "bf16"),
    [
        ("x86-64", "x86_64", 16, 16, False, False),
        ("haswell", "x86_64", 32, 16, False, False),
        ("alderlake", "x86_64", 32, 16, True, False),
        ("skylake-avx512", "x86_64", 64, 32, False, False),
        ("cascadelake", "x86_64", 64, 32, True, False),
        ("znver4", "x86_64", 64, 32, True, True),
        ("cortex-a72", "aarch64", 16, 32, False, False),
        ("neoverse-n1", "aarch64", 16, 32, True, False),
        ("apple-m1", "aarch64", 16, 32, True, False),
        ("neoverse-v1", "aarch64", 16, 32, True, True),
    ],
)
def test_processors(cpu: str, arch: str, vector_bytes: int, registers: int, int8: bool, bf16: bool) -> None:
    target = named(cpu, 4)
    assert (target.arch, target.vector_bytes, target.vector_registers) == (arch, vector_bytes, registers)
    assert (target.has_int8_dot, target.has_bf16_dot, target.cores) == (int8, bf16, 4)
    assert target.lanes(4) == vector_bytes // 4 and target.l1 < target.l2 <= target.l3
    assert target.has_fma == (cpu != "x86-64") and target.has_masks == (arch == "x86_64" and vector_bytes > 16)
    assert target.has_masked_stores == (vector_bytes == 64)


def test_every_family_is_reached() -> None:
    for family in FAMILIES:
        first = family.names.split("|")[0].replace(".*", "").replace("[5-9]", "5").replace("[123]", "1")
        first = first.replace("[2-9]", "2").replace("(v1", "v1").replace("(v[23]", "v2").replace("(n1", "n1")
        first = (
            first.replace("apple-a1[23]", "apple-a12").replace("(x2", "x2").replace("(x1", "x1").replace("a(72", "a72")
        )
        assert next(f for f in FAMILIES if targets.family_of(first) is f) is family, first


def test_unknown_processor() -> None:
    with pytest.raises(MirError, match="nothing is known of a processor 'z80'\nnote: use a name of LLVM's such as"):
        named("z80")


def test_sizes_of_caches_are_the_users_to_say() -> None:
    known = named("haswell")
    assert named("haswell", caches="16K,,1M") == replace(known, l1=16 << 10, l3=1 << 20)
    assert named("haswell", caches=" 8192 ").l1 == 8192
    for wrong in ("32K,foo", "0", "1K,1K,1K,1K", "-1", "32 K"):
        with pytest.raises(MirError, match=f"'{wrong}' does not say how large caches are\nnote: give the sizes of"):
            named("haswell", caches=wrong)
    with pytest.raises(
        MirError, match="'1,2' has a cache of 1 byte, which is smaller than any\nnote: a cache has at least 1024 bytes"
    ):
        named("haswell", caches="1,2")


def test_this_machine_runs_code_for_itself() -> None:
    require_host(None)
    assert foreign_triple(None) is None


def test_code_for_another_machine_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    znver3 = Target("native", 32, 16, True, features=AVX2 | {"sse4a"})
    monkeypatch.delenv("MIRSTACK_CPU", raising=False)
    monkeypatch.setattr(targets, "_machine", lambda cores: znver3)
    require_host("haswell")
    for cpu, why in (
        ("neoverse-n1", "it is of another kind, aarch64"),
        ("skylake-avx512", "this machine has no vectors of 64 bytes"),
        ("alderlake", "this machine has no avxvnni, gfni, vnni"),
    ):
        with pytest.raises(
            MirError, match=f"code for the processor '{cpu}' does not run here: {why}\nnote: compile for"
        ):
            mirstack.compile(mirstack.parse(RELU), cpu=cpu)


def test_instructions_of_another_maker_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """AMD's SSE4a, which Intel's processors refuse; what Ice Lake has and Cascade Lake has not."""
    intel = Target("native", 64, 32, True, features=ZEN4 - {"sse4a"})
    monkeypatch.delenv("MIRSTACK_CPU", raising=False)
    monkeypatch.setattr(targets, "_machine", lambda cores: intel)
    with pytest.raises(MirError, match="'znver4' does not run here: this machine has no sse4a"):
        require_host("znver4")
    require_host("icelake-server")
    monkeypatch.setattr(targets, "_machine", lambda cores: named("cascadelake"))
    with pytest.raises(MirError, match="this machine has no avx512_bitalg, avx512_vbmi2, avx512_vpopcntdq, avx512ifma"):
        require_host("icelake-server")


def test_this_machine_is_taken_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_machine", lambda cores: replace(named("skylake-avx512", cores), name="native"))
    monkeypatch.setenv("MIRSTACK_CPU", "haswell")
    monkeypatch.delenv("MIRSTACK_CACHES", raising=False)
    assert named("", 4) == named("native", 4) == replace(named("haswell", 4), name="native")
    with pytest.raises(MirError, match="'skylake-avx512' does not run here: this machine has no vectors of 64 bytes"):
        require_host("skylake-avx512")
    monkeypatch.setenv("MIRSTACK_CACHES", "32K,,260M")
    assert named("", 4) == replace(named("haswell", 4), name="native", l1=32 << 10, l3=260 << 20)
    assert named("", caches="16K").l1 == 16 << 10 and named("haswell").l3 == 4 << 20
    for cpu, why in (
        ("z80", "nothing is known of a processor 'z80'"),
        ("neoverse-n1", "'neoverse-n1' does not run here"),
    ):
        monkeypatch.setenv("MIRSTACK_CPU", cpu)
        with pytest.raises(MirError, match=why):
            named("")


def test_code_is_made_for_the_machine_that_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CPU", "x86-64" if jit.llvm.get_process_triple().startswith("x86_64") else "cortex-a72")
    cpu, features = jit.HOST.resolved()[1:]
    assert cpu in ("x86-64", "cortex-a72") and "avx" not in features
    assert jit.Target(cpu="native").resolved() == jit.HOST.resolved()
    assert "ymm" not in jit.emit_assembly("define <8 x float> @f(<8 x float> %x) {\n  ret <8 x float> %x\n}")


def test_triples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert foreign_triple("haswell") is None
    assert foreign_triple("neoverse-n1") == "aarch64-unknown-linux-gnu"
    assert foreign_triple("apple-m1") == "aarch64-apple-macosx"


def test_caches_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "relu.mir"
    file.write_text(RELU)
    assert mir_run([str(file), "--target", "cpu", "--caches", "16K,64K,1M"]) == 0
    assert mir_run([str(file), "--caches", "much"]) == 1
    assert "error: 'much' does not say how large caches are" in capfd.readouterr().err


SMALL = 'target "small" { cpu = "neoverse-n1", lanes = 2, l2 = 128K, cores = 3, features = [] }\n'


def test_described_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    (op,) = parse_mir(SMALL).ops
    text = described_cpu([op], "small")
    assert text == "small=neoverse-n1:lanes=2:l2=131072:cores=3:features=" and described_cpu([op], "n1") == "n1"
    small = named(text)
    known = named("neoverse-n1")
    assert small == replace(known, name="small", vector_bytes=8, l2=128 << 10, cores=3, features=frozenset())
    assert named(text, 2, "8K,,").cores == 2 and named(text, 2, "8K,,").l1 == 8 << 10
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert foreign_triple(text) == "aarch64-unknown-linux-gnu"
    with pytest.raises(MirError, match=r"the processor 'a=haswell:lane=8': a target has no field 'lane'"):
        named("a=haswell:lane=8")
    with pytest.raises(MirError, match=r"the target 'a': 'lanes' is a power of two up to 8, as haswell has, not 16"):
        named("a=haswell:lanes=16")


def test_described_targets_of_extensions() -> None:
    (op,) = parse_mir(SMALL).ops
    extensions.register("mirstack.target", "small", op, origin="a test", text=SMALL)
    try:
        assert named("small").vector_bytes == 8
        assert str(mirstack.target.Target("small").mcpu) == "small"
    finally:
        extensions.forget("mirstack.target", "small")
    with pytest.raises(MirError, match="nothing is known of a processor 'small'"):
        named("small")


def test_code_for_a_described_target_is_that_of_its_processor(tmp_path: Path) -> None:
    file = tmp_path / "relu.mir"
    file.write_text(SMALL + RELU)
    options = Options(cpu="small")
    text, module = (with_processor(options, each) for each in (SourceText.of_file(file), parse_mir(file.read_text())))
    assert text == module != options
    assert target_of(text).resolved()[:2] == ("aarch64-unknown-linux-gnu", "neoverse-n1")
    # Another description is another key.
    file.write_text(SMALL.replace("128K", "256K") + RELU)
    other = with_processor(options, SourceText.of_file(file))
    assert other != text and context_key(other) != context_key(text)


def test_every_field_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/targets.md").read_text()
    assert [name for name, field in FIELDS.items() if f"| `{name}` | {field.doc} |" not in page] == []
