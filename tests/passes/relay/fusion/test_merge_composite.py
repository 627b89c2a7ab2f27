"""What patterns match as functions: their places, their kernels, and how long it takes."""

from __future__ import annotations

from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.relay.ir import FnOp
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.relay.fusion.fuse_ops import FuseOps
from mirstack.passes.relay.fusion.merge_composite import MergeComposite
from mirstack.passes.rules.engine.stats import counting
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp, StringAttr

PATTERNS = """
ruleset @layers {
  rewrite @dense_add { %r = add(nn.dense(%x, %w), %b) => %r }
  rewrite @fma { %r = add(multiply(%x, %y), %z) => %r }
}
rewrite @ewise_fma { add(multiply(%x, %y), %z) => ewise_fma(%x, %y, %z) }
"""
MLP = """
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %v: Tensor[(5, 4), float32], %b: Tensor[(4), float32]) {
  %0 = nn.relu(add(nn.dense(%x, %w), %b));
  add(nn.dense(%0, %v), 1f)
}
"""


@pytest.fixture
def patterns(tmp_path: Path) -> str:
    file = tmp_path / "patterns.mir"
    file.write_text(PATTERNS)
    return str(file)


def composites(module: ModuleOp) -> list[str]:
    found = [op.attrs.data.get("Composite") for op in walk_ops(module) if isinstance(op, FnOp)]
    return [name.data for name in found if isinstance(name, StringAttr)]


def test_a_kernel_each(patterns: str) -> None:
    """fuse-ops keeps them, and native code gives what the interpreter gives of the program before."""
    before, module = parse_mir(MLP), parse_mir(MLP, "mlp.mir")
    MergeComposite(file=patterns, set="layers").apply(Context(), module)
    assert find_errors(module) == []
    assert [op.name for op in walk_ops(module) if op is not module and op.location == UNKNOWN_LOC] == []
    assert print_mir(parse_mir(print_mir(module))) == print_mir(module)
    fused = module.clone()
    FuseOps().apply(Context(), fused)
    assert composites(module) == composites(fused) == ["dense_add", "dense_add"]
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in ((2, 3), (4, 3), (5, 4), (4,))]
    (wanted,) = flatten(interpret(before, "main", inputs))
    np.testing.assert_allclose(mirstack.compile(module)(*inputs), wanted, rtol=1e-5)


def test_a_rule_of_any_right_side(patterns: str) -> None:
    """A rule that makes an operator serves as a pattern, too."""
    text = "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { add(multiply(%x, %y), %x) }"
    module = parse_mir(text)
    MergeComposite(file=patterns, set="ewise_fma").apply(Context(), module)
    assert composites(module) == ["ewise_fma"]


def test_hits_are_counted(patterns: str) -> None:
    with counting() as stats:
        MergeComposite(file=patterns, set="layers").apply(Context(), parse_mir(MLP))
    assert {name: (each.tries, each.hits) for name, each in stats.items()} == {"dense_add": (2, 2), "fma": (0, 0)}


def test_twice_is_as_once(patterns: str) -> None:
    module = parse_mir(MLP)
    MergeComposite(file=patterns, set="layers").apply(Context(), module)
    once = print_mir(module)
    MergeComposite(file=patterns, set="layers").apply(Context(), module)
    assert print_mir(module) == once


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "rewrite @two { %r = sin(%x), %s = cos(%x) => %r, %s }",
            "rules.mir:1:1: error: merge-composite: @two has 2 roots\n"
            "note: a function gives one value: write a pattern of one root",
        ),
        (
            "rewrite @sum for tir { %x + 0 => %x }",
            "rules.mir:1:1: error: merge-composite: @sum is a rule for tir\n"
            "note: functions are made of Relay's operators",
        ),
    ],
)
def test_errors(rule: str, message: str) -> None:
    module = parse_mir(f"{rule}\n{MLP}", "rules.mir")
    with pytest.raises(MirError) as error:
        MergeComposite().apply(Context(), module)
    assert message in str(error.value)


def test_linear(patterns: str) -> None:
    """Eight times the ops take about eight times as long; a square would take sixty-four."""

    def seconds(count: int) -> float:
        lines = " ".join(f"%{i + 1} = add(multiply(%{i}, %x), %{max(i - 1, 0)});" for i in range(count))
        text = f"def @main(%x: Tensor[(2), float32]) {{ %0 = exp(%x); {lines} %{count} }}"
        module = parse_mir(text)
        taken = cpu_seconds(lambda: MergeComposite(file=patterns, set="layers").apply(Context(), module))
        assert len(composites(module)) == count
        return taken

    assert growth(seconds, 100, 800, below=20) < 20
