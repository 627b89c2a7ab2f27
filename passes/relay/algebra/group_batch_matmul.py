"""`group-batch-matmul`: multiplies by each distinct matrix of a repeated batch once.

    nn.batch_matmul(%a, repeat(%b, repeats=4, axis=0))  ->  reshape(nn.batch_matmul(reshape(%a, newshape=[2, 4 * m, k]), %b), newshape=[8, m, n])

In A·repeat(B, g) the rows of g consecutive matrices of A meet the same B. These rows are one matrix already, so that a reshape of A
and one of the result replace copies of B: attention whose queries share heads of keys and values (Ainslie et al., "GQA: Training
Generalized Multi-Query Transformer Models from Multi-Head Checkpoints", 2023) reads each key once.

Instead of `repeat` there may be a `broadcast_to`, followed by reshapes and transposes, as importers write it. A batch of one
matrix on the right counts as repeated, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay.emit import Emitter, shape_of
from ....dialects.relay.operator import OperatorOp, is_operator
from ....support.trace import Tracer, tracer
from ..common.function_attributes import open_ops
from ..common.rewriting import erase_unused, replace
from ..functional.infer_type import ensure_types

SHAPING = ("reshape", "expand_dims", "squeeze")
"""What leaves the elements in their order."""


@dataclass(frozen=True)
class GroupBatchMatmul(ModulePass):
    """Multiply matrices that repeat along a batch once, with the rows of all that they meet."""

    name = "group-batch-matmul"
    tells: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        trace = tracer(self.name)
        ensure_types(op)
        for each in list(open_ops(op)):
            if each.parent is not None and isinstance(each, OperatorOp) and is_operator(each, "nn.batch_matmul"):
                found = repeated(each.args[1]) or _only(each)
                if found is not None:
                    _group(each, found, trace)


@dataclass(frozen=True)
class Repeated:
    """A tensor whose matrices come `times` in a row each along its first axis."""

    times: int
    source: SSAValue
    """The tensor without the repeats."""
    steps: Sequence[tuple[OperatorOp, tuple[int, ...]]]
    """The reshapes and transposes that follow, in order, each with its shape without the repeats."""

    def without(self, make: Emitter) -> SSAValue:
        """The matrices, each once."""
        value = self.source
        for op, shape in self.steps:
            value = (
                make.like(op, [value]) if is_operator(op, "transpose") else make.call("reshape", value, newshape=shape)
            )
        return value


def repeated(value: SSAValue) -> Repeated | None:
    """Returns how a tensor repeats along its first axis; None if it does not, or its shape is not known."""
    chain: list[OperatorOp] = []
    while isinstance(op := value.owner, OperatorOp) and shape_of(op.result) is not None:
        found = _repeats(op)
        if found is not None:
            return _followed(*found, op, chain[::-1])
        if op.OPERATOR.name not in (*SHAPING, "transpose"):
            break
        chain.append(op)
        value = op.args[0]
    return None


def _only(product: OperatorOp) -> Repeated | None:
    """The one matrix on the right that a product takes for the whole batch."""
    left, right = shape_of(product.args[0]) or (0,), shape_of(product.args[1]) or (0,)
    return Repeated(left[0], product.args[1], ()) if right[0] == 1 < left[0] else None


def _repeats(op: OperatorOp) -> tuple[int, int] | None:
    """Along which one axis an op repeats elements, each so many times in a row."""
    before, after = shape_of(op.args[0]) if op.args else None, shape_of(op.result) or ()
    if before is None:
        return None
    if is_operator(op, "repeat"):
        return None if op.attrs().axis is None else (op.attrs().axis % len(after), op.attrs().repeats)
    if not is_operator(op, "broadcast_to"):
        return None
    before = (1,) * (len(after) - len(before)) + before
    changed = [axis for axis, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
    return (changed[0], after[changed[0]]) if len(changed) == 1 and 0 not in after else None


def _followed(axis: int, times: int, op: OperatorOp, chain: Sequence[OperatorOp]) -> Repeated | None:
    """Follows a repeated axis through the ops of `chain` after the repeating one.

    None if the repeats are mixed up.
    """
    shape = [*(shape_of(op.result) or ())]
    small = (*shape[:axis], shape[axis] // times, *shape[axis + 1 :])
    # Of a `broadcast_to` that also adds dimensions.
    steps = [(op, small)] if small != shape_of(op.args[0]) else []
    for each in chain:
        whole = [*(shape_of(each.result) or ())]
        if is_operator(each, "transpose"):
            axes = [a % len(whole) for a in each.attrs().axes or range(len(whole))[::-1]]
            axis = axes.index(axis)
        else:
            inner = prod(shape[axis + 1 :])
            # Of several places, between which there are axes of one element only, each says the same.
            places = [k for k, size in enumerate(whole) if prod(whole[k + 1 :]) == inner and size % times == 0]
            if not places:
                return None
            axis = places[0]
        shape = whole
        steps.append((each, (*whole[:axis], whole[axis] // times, *whole[axis + 1 :])))
    return Repeated(times, op.args[0], steps) if axis == 0 and times > 1 and shape[0] % times == 0 else None


def _group(product: OperatorOp, found: Repeated, trace: Tracer | None) -> None:
    left, result = shape_of(product.args[0]), shape_of(product.result)
    right = shape_of(product.args[1])
    if left is None or result is None or right is None or product.attrs().transpose_a:
        return
    if right[0] not in (1, left[0]) or 0 in (*left, *right):
        return
    if trace is not None:
        trace(product, f"matrices that come {found.times} times each: once, with all rows that meet them")
    make = Emitter(product, [product, *(op for op, _ in found.steps)])
    batch, rows, depth = left
    times = found.times
    grouped = make.call("reshape", product.args[0], newshape=(batch // times, times * rows, depth))
    value = make.like(product, [grouped, found.without(make)])
    copies = product.args[1].owner
    replace(product, make.call("reshape", value, newshape=result))
    if isinstance(copies, OperatorOp):
        erase_unused(copies)
