"""What holds of every algorithmic pass on Relay: linear in the module's size, twice is as once, places are kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.relay.ir import ConstantOp, FnOp, FuncOp, RefWriteOp
from mirstack.dialects.relay.types import UNKNOWN
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.edit import set_type
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp

LINEAR = [
    "remove-unused-functions",
    "eliminate-common-subexpr",
    "dead-code-elimination{inline-once=true}",
    "to-a-normal-form",
    "to-graph-normal-form",
    "to-basic-block-normal-form",
    "fuse-ops",
    "fuse-ops,defuse-ops",
    "inline",
    "lambda-lift",
    "eta-expand{expand-constructor=true expand-global-var=true}",
    "split-args{max-function-args=3}",
    "first-order-gradient",
    "partial-evaluate",
    "defunctionalization",
    "to-mixed-precision{missing-op-mode=2}",
    "fake-quantization-to-integer{use-qat=true}",
    "qnn-canonicalize-ops",
]

ONCE = ("first-order-gradient",)
"""Passes of which twice is more than once."""

IDEMPOTENT = [pipeline for pipeline in LINEAR if pipeline not in ONCE]

MIXED = """
def @helper(%x: Tensor[(4), float32], Inline=1) -> Tensor[(4), float32] { exp(%x) }
def @main(%c: bool, %x: Tensor[(4), float32], %w: Tensor[(8), float32]) {
  let %f = fn (%y: Tensor[(4), float32]) -> Tensor[(4), float32] { add(%y, exp(%x)) };
  let %r = ref(%x);
  %0 = exp(%x);
  %1 = split(%w, indices_or_sections=2);
  %2 = if (%c) { @helper(multiply(%0, %1.0)) } else { %f(add(%0, %1.1)) };
  let %u = ref_write(%r, %2);
  let %dead = @helper(%x);
  %3 = (%2, ref_read(%r), 2f);
  (%3.0, add(%3.1, %3.2), exp(%x))
}
"""


def chain(length: int) -> str:
    """Operators one after the other, some with a `let`, some used twice."""
    lines = ["%0 = exp(%x);"]
    for i in range(1, length):
        match i % 4:
            case 0:
                lines.append(f"%{i} = add(%{i - 1}, %{i - 1});")
            case 1:
                lines.append(f"let %v{i} = tanh(%{i - 1}); %{i} = add(%v{i}, 1f);")
            case 2:
                lines.append(f"%{i} = multiply(%{i - 1}, %{i - 2});")
            case _:
                lines.append(f"%{i} = subtract(%{i - 1}, %x);")
    return f"def @main(%x: Tensor[(2), float32]) {{ {' '.join(lines)} %{length - 1} }}"


def closures(length: int) -> str:
    """Local functions that capture what the one before gave."""
    lines = [
        f"let %f{i} = fn (%y: Tensor[(2), float32]) {{ add(%y, %v{i - 1}) }}; let %v{i} = %f{i}(%v{i - 1});"
        for i in range(1, length)
    ]
    return f"def @main(%x: Tensor[(2), float32]) {{ let %v0 = exp(%x); {' '.join(lines)} %v{length - 1} }}"


def calls(length: int) -> str:
    """Functions of which each calls the one before."""
    lines = [
        f"def @f{i}(%x: Tensor[(2), float32], Inline=1) -> Tensor[(2), float32] {{ exp(@f{i - 1}(%x)) }}"
        for i in range(1, length)
    ]
    first = "def @f0(%x: Tensor[(2), float32], Inline=1) -> Tensor[(2), float32] { exp(%x) }"
    return "\n".join([first, *lines, f"def @main(%x: Tensor[(2), float32]) {{ @f{length - 1}(%x) }}"])


def branches(length: int) -> str:
    """Ifs one behind the other, whose branches have operators in common."""
    lines = [
        f"%{i} = if (%c) {{ add(exp(%{i - 1}), 1f) }} else {{ multiply(exp(%{i - 1}), 2f) }};" for i in range(1, length)
    ]
    return f"def @main(%c: bool, %x: Tensor[(2), float32]) {{ %0 = exp(%x); {' '.join(lines)} %{length - 1} }}"


def run(pipeline: str, module: ModuleOp) -> None:
    for module_pass in read_pipeline(pipeline, pass_factories()):
        module_pass.apply(Context(), module)


def seconds(pipeline: str, text: str) -> float:
    module = parse_mir(text)
    return cpu_seconds(lambda: run(pipeline, module))


@pytest.mark.parametrize(
    ("pipeline", "program"),
    [
        *((pipeline, chain) for pipeline in LINEAR),
        *((pipeline, branches) for pipeline in ("eliminate-common-subexpr", "to-basic-block-normal-form")),
        *((pipeline, closures) for pipeline in ("lambda-lift", "defunctionalization", "partial-evaluate")),
        *((pipeline, calls) for pipeline in ("inline", "dead-code-elimination", "remove-unused-functions")),
    ],
)
def test_linear(pipeline: str, program: Callable[[int], str]) -> None:
    """Eight times the ops take about eight times as long; a square would take sixty-four."""
    large, small = (1200, 150) if program is chain else (800, 100)
    assert growth(lambda count: seconds(pipeline, program(count)), small, large, below=20) < 20


@pytest.mark.parametrize("pipeline", IDEMPOTENT)
def test_idempotent(pipeline: str) -> None:
    module = parse_mir(MIXED)
    run(pipeline, module)
    once = print_mir(module)
    run(pipeline, module)
    assert print_mir(module) == once


@pytest.mark.parametrize("pipeline", LINEAR)
def test_types_are_found(pipeline: str) -> None:
    """A module whose values have no types yet gives what one gives that has them."""
    text = chain(20) if pipeline in ONCE else MIXED
    typed, untyped = parse_mir(text), parse_mir(text)
    for op in walk_ops(untyped):
        for result in () if isinstance(op, ConstantOp | RefWriteOp) else op.results:
            set_type(result, UNKNOWN)
        if isinstance(op, FuncOp | FnOp):
            op.properties["ret_type"] = UNKNOWN
    for module in (typed, untyped):
        run(pipeline, module)
        infer_types(module)
    assert print_mir(untyped) == print_mir(typed)


@pytest.mark.parametrize("pipeline", IDEMPOTENT)
def test_valid_and_located(pipeline: str) -> None:
    module = parse_mir(MIXED, "mixed.mir")
    run(pipeline, module)
    assert find_errors(module) == []
    assert [op.name for op in walk_ops(module) if op is not module and op.location == UNKNOWN_LOC] == []
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
