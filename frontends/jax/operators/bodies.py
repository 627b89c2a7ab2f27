"""Writes the body of a reduction or a sort as an expression, to be compared with known ones."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Block, SSAValue

from ..node import HloNode, op_name
from ..stablehlo import CONSTANT


def body_text(node: HloNode, block: Block) -> list[str]:
    """Returns what a body returns, by its parameters a0, a1, …: `["select(GT(a0,a1),a0,a1)"]`.

    Constants are their elements, and a comparison is its direction.
    """
    names: dict[SSAValue, str] = {value: f"a{place}" for place, value in enumerate(block.args)}

    def text(value: SSAValue) -> str:
        return names[value] if value in names else _outer(node, node.frame.lookup(value))

    for op in block.ops:
        inner = HloNode(node.frame, op, ())
        given = ",".join(text(each) for each in op.operands)
        name = op_name(op).removeprefix("stablehlo.")
        if name in ("return", "func.return"):
            return [text(each) for each in op.operands]
        if op_name(op) == CONSTANT:
            array = node.frame.importer.read.arrays[inner.int("index")]
            names[op.results[0]] = str(array.reshape(-1)[0]) if array.size == 1 else "?"
        elif op.regions or len(op.results) != 1:
            names.update({each: "?" for each in op.results})
        else:
            called = inner.word("comparison_direction") or name
            names[op.results[0]] = f"{called}({given})"
    return []


def _outer(node: HloNode, value: Any) -> str:
    array = node.builder.array(value) if isinstance(value, SSAValue) else None
    return str(array.reshape(-1)[0]) if array is not None and array.size == 1 else "?"
