"""Which sizes must fit so that a tensor expression reads no element that is not there.

An axis that is an index by itself runs over a dimension of the tensor that it reads. Where the two sizes are different
symbols, and no choice around the read guards it, the axis may not be longer than the dimension.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from ...dialects.te.builder import Const, Expr, IterVar, Tensor
from ...dialects.te.tensor import ComputeOp, Read, Reduce
from .shape_function import Sizes


def check_reads(operator: str, arguments: Mapping[Tensor, str], results: Sequence[Tensor], sizes: Sizes) -> None:
    """`arguments` names the operator's input tensors. Has the sizes checked of every axis that is an index by itself, in all that `results` are computed from."""
    for read in _reads(results, arguments):
        for axis, (index, dim) in enumerate(zip(read.args, read.tensor.dims, strict=True)):
            if not isinstance(index, IterVar) or (isinstance(index.extent, Const) and isinstance(dim, Const)):
                continue
            name = arguments.get(read.tensor, read.tensor.name)
            message = f"{operator}: {{size}} elements are read along dimension {axis} of '{name}', which has {{size}}"
            sizes.check("within", index.extent, dim, message)


def _reads(results: Sequence[Tensor], inputs: Container[Tensor]) -> Iterator[Read]:
    """The reads that nothing guards, in the computes behind `results` down to `inputs`; each once."""
    tensors, seen = list(results), set[int]()
    while tensors:
        op = tensors.pop().op
        if id(op) in seen:
            continue
        seen.add(id(op))
        tensors += [t for t in op.input_tensors if t not in inputs]
        if not isinstance(op, ComputeOp):
            continue
        pending: list[Expr] = list(op.body)
        while pending:
            node = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Read):
                yield node
            pending += node.args
            # The sides of a choice are read only where it holds: IfThenElse has only its condition in `args`.
            if isinstance(node, Reduce):
                pending += node.reduction.init
                if node.reduction.condition is None:
                    pending += node.reduction.sources
