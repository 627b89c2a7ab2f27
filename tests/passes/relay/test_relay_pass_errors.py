"""What passes on Relay refuse, and how they say it."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay.ir import CallGlobalOp
from mirstack.dialects.relay.types import FuncType, RefType, TypeVarType
from mirstack.parser import parse_mir
from mirstack.passes.relay.common.generics import type_arguments, type_variables
from mirstack.passes.relay.functional import inline
from mirstack.passes.relay.functional.defunctionalization import Defunctionalization
from mirstack.support.diagnostics import MirError
from xdsl.context import Context
from xdsl.dialects.builtin import TensorType, f32

F32 = TensorType(f32, [])


def test_inline_bounds_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty steps of two calls each would be 2**60 copies."""
    steps = "".join(
        f"def @f{i}(%x: float32, Inline=1) -> float32 {{ add(@f{i - 1}(%x), @f{i - 1}(%x)) }}\n" for i in range(1, 60)
    )
    module = parse_mir(f"def @f0(%x: float32, Inline=1) -> float32 {{ exp(%x) }}\n{steps}", "steps.mir")
    monkeypatch.setattr(inline, "MOST_OPS", 500)
    with pytest.raises(
        MirError, match=r"steps.mir:\d+:\d+: error: inlining @f\d+ here makes more than 500 ops"
    ) as error:
        inline.Inline().apply(Context(), module)
    assert "take Inline=1 from one of them" in str(error.value)


def test_type_arguments() -> None:
    generic = FuncType.get([TypeVarType.get("A"), RefType(TypeVarType.get("B"))], TypeVarType.get("A"), ["A", "B"])
    where = CallGlobalOp("f", [])
    assert type_arguments(generic, [F32, RefType(F32)], F32, where) == {"A": F32, "B": F32}
    assert type_arguments(FuncType.get([F32], F32), [F32], F32, where) == {}
    with pytest.raises(MirError, match="the call does not fit the function's type: a reference against a scalar"):
        type_arguments(generic, [F32, F32], F32, where)


def test_type_variables() -> None:
    a, b = TypeVarType.get("A"), TypeVarType.get("B")
    assert type_variables([RefType(b), FuncType.get([a], b, ["A"]), F32, a]) == ["B", "A"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "type Box { Hold(fn (float32) -> float32), }\ndef @f(%x: float32) { %x }\n"
            "def @main(%x: float32) { match (Hold(@f)) { Hold(%g) => { %g(%x) }, } }",
            "functions.mir:1:6: error: the data type Box has a field that is a function",
        ),
        (
            "def @f(%x: float32) { %x }\ndef @main() { @f }",
            "functions.mir:2:1: error: @main takes or gives a function",
        ),
    ],
)
def test_defunctionalization(text: str, message: str) -> None:
    with pytest.raises(MirError) as error:
        Defunctionalization().apply(Context(), parse_mir(text, "functions.mir"))
    assert message in str(error.value)
