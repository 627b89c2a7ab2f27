"""Writes the body of a reduction or a sort as an expression, to be compared with known ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.ir import Block, SSAValue

from ..node import HloNode, op_name
from ..stablehlo import CONSTANT

if TYPE_CHECKING:
    from numpy.typing import NDArray


def body_text(node: HloNode, block: Block) -> list[str]:
    """Returns what a body returns, by its parameters a0, a1, …: `["select(GT(a0,a1),a0,a1)"]`.

    Constants are their elements, and a comparison is its direction; what no known body has is `?`.
    """
    names: dict[SSAValue, str] = {value: f"a{place}" for place, value in enumerate(block.args)}

    def text(value: SSAValue) -> str:
        if value in names:
            return names[value]
        around = node.frame.lookup(value)
        return _element(node.builder.array(around) if isinstance(around, SSAValue) else None)

    for op in block.ops:
        inner = HloNode(node.frame, op, ())
        given = ",".join(text(each) for each in op.operands)
        name = op_name(op).removeprefix("stablehlo.")
        if name in ("return", "func.return"):
            return [text(each) for each in op.operands]
        if op_name(op) == CONSTANT:
            names[op.results[0]] = _element(node.frame.importer.read.arrays[inner.int("index")])
        elif op.regions or len(op.results) != 1:
            names.update({each: "?" for each in op.results})
        else:
            called = inner.word("comparison_direction") or name
            names[op.results[0]] = f"{called}({given})"
    return []


def _element(array: NDArray[Any] | None) -> str:
    """Returns the only element of a constant; `?` for anything else."""
    return str(array.reshape(-1)[0]) if array is not None and array.size == 1 else "?"
