"""Every operator has a row of the table, or belongs to a class whose rule is stated."""

from __future__ import annotations

from classes import CLASSES
from mirstack.dialects.relay.operator import all_operators
from mirstack.dialects.tir.arithmetic import BINARY_OPS
from table import TIR, rows, wholes


def test_every_operator_has_a_meaning() -> None:
    stated = {row.operator for row in rows()} | {row.operator for row in wholes()}
    classed = [name for part in CLASSES for name in part.names()]
    assert len(classed) == len(set(classed)), "an operator is in two classes"
    assert not stated & set(classed), "an operator that has rows needs no class"
    assert stated | set(classed) == set(all_operators())


def test_every_op_of_tir_stands_for_an_operator() -> None:
    shown = " ".join(TIR.values())
    missing = [op.name for op in BINARY_OPS if op.name not in ("tir.and", "tir.or") and f"{op.SYMBOL}" not in shown]
    assert not missing
    assert set(TIR) <= {row.operator for row in rows()}
