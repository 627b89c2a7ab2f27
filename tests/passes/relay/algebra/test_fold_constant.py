"""fold-constant: what it leaves alone, and that it keeps each constant where it is used."""

from __future__ import annotations

import mirstack
from mirstack import relay, transform
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.relay import ir
from mirstack.passes.relay.algebra import fold_constant
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops


def fold(text: str) -> mirstack.IRModule:
    folded = transform.FoldConstant()(relay.parse(text))
    assert find_errors(folded.op) == []
    return folded


def test_results_that_would_only_lengthen_the_program_are_left_alone(monkeypatch) -> None:
    text = "def @main() { broadcast_to(1f, shape=[100, 100]) }"
    assert "broadcast_to" not in str(fold(text))
    monkeypatch.setattr(fold_constant, "LARGEST", 1000)
    assert "broadcast_to" in str(fold(text))
    assert "broadcast_to" not in str(fold("def @main() { broadcast_to(1f, shape=[10, 10]) }"))


def test_an_operator_that_fails_is_the_running_programs_error() -> None:
    assert "arange" in str(fold("def @main() { arange(0, 4, 0) }"))


def test_each_use_has_a_constant_of_its_own() -> None:
    folded = fold(
        "def @main(%x: float32) { let %c = 2f; let %d = multiply(%c, %c); (add(%x, %d), add(%d, %d), fn () { %d }) }"
    )
    constants = [op for op in walk_ops(folded.op) if isinstance(op, ir.ConstantOp)]
    assert all(op.result.has_one_use() for op in constants)
    assert "let" not in str(folded) and "%0 = add(%x, 4f" in str(folded)


def test_what_has_an_effect_stays() -> None:
    text = str(fold("def @main() { let %r = ref(1); let %u = ref_write(%r, add(1, 2)); ref_read(%r) }"))
    assert "ref_write(%r, 3" in text and "ref_read" in text


def test_linear() -> None:
    def seconds(count: int) -> float:
        one = relay.const(1.0)
        y: relay.Expr = relay.var("x", shape=(2,))
        for _ in range(count):
            y = relay.add(y, relay.add(one, one))
        module = transform.InferType()(mirstack.IRModule.from_expr(y))
        assert relay.analysis.list_op_freqs(transform.FoldConstant()(module)) == {"add": count}
        return cpu_seconds(lambda: transform.FoldConstant()(module))

    # Eight times the ops in far less than 64 times the time.
    assert growth(seconds, 250, 2_000, below=20) < 20
