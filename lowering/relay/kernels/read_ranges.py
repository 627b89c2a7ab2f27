"""Finds the sizes that must fit so that a tensor expression reads only elements that exist.

An index that is a sum of axes, each times a number or a size, and of numbers and sizes, runs over a range that is known
exactly. Where the range or the dimension that it reads is symbolic, and no choice around the read guards it, the range must
not exceed the dimension. Other indices (quotients, minima, elements of tensors) are left to the computes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....dialects import tir
from ....dialects.te import builder as te
from ....dialects.te.builder import Const, Expr, IterVar, Tensor, Var
from ....dialects.te.tensor import ComputeOp, Read, Reduce
from ....dialects.tir.node import Apply
from .shape_function import Sizes


@dataclass(frozen=True)
class _Range:
    """The least and the greatest value of an index, and the axes that it runs over."""

    low: Expr
    high: Expr
    axes: tuple[IterVar, ...] = ()

    @property
    def is_fixed(self) -> bool:
        """Returns whether it is one size."""
        return not self.axes


def check_reads(operator: str, arguments: Mapping[Tensor, str], results: Sequence[Tensor], sizes: Sizes) -> None:
    """Adds checks of the reads that `results` are computed from; `arguments` names the inputs."""
    for read in _reads(results, arguments):
        for axis, (index, dim) in enumerate(zip(read.args, read.tensor.dims, strict=True)):
            found = _range_of(index)
            if found is None or (isinstance(found.high, Const) and isinstance(dim, Const)):
                continue
            name = arguments.get(read.tensor, read.tensor.name)
            message = f"{operator}: {{size}} elements are read along dimension {axis} of '{name}', which has {{size}}"
            if isinstance(index, IterVar):
                sizes.check("within", index.extent, dim, message)
                continue
            # Where an axis has no elements, nothing is read.
            length: Expr = found.high + 1
            low: Expr = found.low
            for each in found.axes:
                if not isinstance(each.extent, Const):
                    length = te.Select(te.equal(each.extent, 0), te.const(0, length.dtype), length)
                    low = te.Select(te.equal(each.extent, 0), te.const(0, low.dtype), low)
            sizes.check("within", length, dim, message)
            message = f"{operator}: dimension {axis} of '{name}' is read from {{size}} down to {{size}}"
            sizes.check("within", 0, low, message)


def _range_of(index: Expr) -> _Range | None:
    """Returns the range of a sum of axes and sizes; None for another index."""
    match index:
        case IterVar():
            return _Range(index.min, index.min + index.extent - 1, (index,))
        case Const() | Var():
            return _Range(index, index)
        case Apply() if index.op in (tir.AddOp, tir.SubOp, tir.MulOp):
            left, right = (_range_of(a) for a in index.args)
            if left is None or right is None or set(left.axes) & set(right.axes):
                return None
            axes = (*left.axes, *right.axes)
            if index.op is tir.AddOp:
                return _Range(left.low + right.low, left.high + right.high, axes)
            if index.op is tir.SubOp:
                return _Range(left.low - right.high, left.high - right.low, axes)
            if not right.is_fixed:
                left, right = right, left
            if not right.is_fixed:
                return None
            low, high = left.low * right.low, left.high * right.low
            # A size is not negative; of a number the sign is known.
            if isinstance(right.low, Const):
                return _Range(low, high, axes) if right.low.value >= 0 else _Range(high, low, axes)
            return _Range(low, high, axes) if isinstance(right.low, Var) and right.low.is_size else None
        case _:
            return None


def _reads(results: Sequence[Tensor], inputs: Container[Tensor]) -> Iterator[Read]:
    """Yields the unguarded reads in the computes from `results` up to `inputs`; each once."""
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
            # The sides of a choice are read only where it holds: Choice has only its condition in `args`.
            if isinstance(node, Reduce):
                pending += node.reduction.init
                if node.reduction.condition is None:
                    pending += node.reduction.sources
