"""`to-mixed-precision`: what it refuses and what it warns of, and the table of operators' categories."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay.operator import all_operators
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.relay.quantize.to_mixed_precision import CATEGORIES, CREATED, Category, ToMixedPrecision
from mirstack.support.diagnostics import MirError, Sources
from mirstack.support.verify import find_errors
from xdsl.context import Context

ONES = 'def @main(%x: Tensor[(2), float32]) { (ones(shape=[2], dtype="float32"), abs(%x), abs(%x)) }'


def test_the_table_names_operators() -> None:
    operators = all_operators()
    assert {*CATEGORIES, *CREATED} <= set(operators)
    assert {CATEGORIES[name] for name in ("nn.dense", "nn.relu", "exp", "reinterpret")} == set(Category)
    quantized = {name for name in operators if name.startswith("qnn.")}
    assert {CATEGORIES.get(name) for name in quantized} == {Category.KEEP}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mixed_precision_type": "int8"}, "mixed-precision-type='int8' must be one of float16 and bfloat16"),
        ({"missing_op_mode": 3}, "missing-op-mode=3 must be 0 (error), 1 (warning) or 2 (silence)"),
        ({"missing_op_mode": 0}, "p.mir:1:40: error: ones has no category of precision (1 use)"),
        ({"missing_op_mode": 0}, "missing-op-mode=1 or 2 takes it as one that follows its arguments"),
    ],
)
def test_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(MirError) as error:
        ToMixedPrecision(**options).apply(Context(), parse_mir(ONES, "p.mir"))  # type: ignore[arg-type]
    assert message in str(error.value)


def test_warnings() -> None:
    """One for each operator that has no category, with the number of its uses."""
    with Sources().reading() as sources:
        ToMixedPrecision().apply(Context(), parse_mir(ONES, "p.mir"))
    messages = [warning.message for warning in sources.warnings]
    assert messages == ["ones has no category of precision (1 use)", "abs has no category of precision (2 uses)"]
    assert sources.warnings[0].notes[0].message == "it follows its arguments; missing-op-mode=2 says nothing"


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%x: Tensor[(2, 2), float32]) { let %r = ref(%x); let %u = ref_write(%r, nn.dense(%x, %x)); ref_read(%r) }",
        "type Box { Hold(Tensor[(2, 2), float32]), } def @main(%x: Tensor[(2, 2), float32]) { Hold(nn.dense(%x, %x)) }",
        "def @main(%x: Tensor[(2, 2), float32], %f: fn (Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32]) "
        "{ %f(nn.dense(%x, %x)) }",
        "def @f(%p: (Tensor[(2, 2), float32], bool)) { %p.0 } "
        "def @main(%x: Tensor[(2, 2), float32]) { let %t = (nn.dense(%x, %x), True); @f(%t) }",
    ],
)
def test_types_that_stay(text: str) -> None:
    """What data types, references and functions by value take keeps its type: a cast back stands before."""
    module = parse_mir(text, "p.mir")
    ToMixedPrecision(missing_op_mode=2).apply(Context(), module)
    assert find_errors(module) == []
    printed = print_mir(module)
    assert 'out_dtype="float16"' in printed and 'dtype="float32")' in printed
    assert print_mir(parse_mir(printed)) == printed
