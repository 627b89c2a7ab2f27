"""Settings of a pass context that are options of TIR's passes, as in TVM."""

from __future__ import annotations

import pytest
from mirstack.api.ir.module import IRModule
from mirstack.api.ir.named_passes import pass_constructor
from mirstack.api.ir.transform import PassContext
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError

LOOP = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), x: T.int32, y: T.int32):
    for i in range(2):
        A[i] = 1
    if T.likely(x < 3):
        A[2] = x + y
        A[3] = y + x
"""


def run(name: str, config: dict[str, object], **options: object) -> str:
    constructor = pass_constructor(name)
    assert constructor is not None
    with PassContext(config=config):
        return print_mir(constructor(**options)(IRModule.of_op(parse_mir(LOOP))).op)


def test_options_come_from_the_context() -> None:
    assert "for i" in run("UnrollLoop", {})
    assert "for i" not in run("UnrollLoop", {"tir.UnrollLoop": {"auto_max_step": 2}})
    assert "for i" in run("UnrollLoop", {"tir.UnrollLoop": {"auto_max_step": 2}}, auto_max_step=0)
    assert "cse_var" in run("CommonSubexprElimTIR", {"tir.enable_equiv_terms_in_cse_tir": True})
    disabled: dict[str, object] = {"tir.enable_equiv_terms_in_cse_tir": True, "tir.disable_cse_tir": True}
    assert "cse_var" not in run("CommonSubexprElimTIR", disabled)


@pytest.mark.parametrize("name", ["HoistIfThenElse", "LoopPartition", "RemoveNoOp", "Simplify", "UnrollLoop"])
def test_wrong_options(name: str) -> None:
    with pytest.raises(MirError, match=f"tir.{name} holds options by name, as in .*, not 3"):
        run(name, {f"tir.{name}": 3})
    with pytest.raises(MirError, match=f"the pass {name} has no option 'depth'"):
        run(name, {f"tir.{name}": {"depth": 3}})
