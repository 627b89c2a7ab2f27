"""`combine-parallel-dense`: combines dense layers of one input into a batched or a larger one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay.emit import Emitter, dtype_of, shape_of
from ....dialects.relay.operator import OperatorOp
from ....support.trace import tracer
from ...option_range import require_range
from ..functional.infer_type import ensure_types
from .combine_parallel import Combiner, size_of


@dataclass(frozen=True)
class CombineParallelDense(ModulePass):
    """Combine at least min-num-branches dense layers of one tensor, and what follows them alike.

    With `to_batch`, layers of equal shape become an nn.batch_matmul; else layers of any number of units one nn.dense.
    """

    name = "combine-parallel-dense"
    tells: ClassVar[bool] = True

    min_num_branches: int = 3
    to_batch: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require_range(op, "min-num-branches", self.min_num_branches, 1)
        ensure_types(op)
        (_ToBatch() if self.to_batch else _ToDense()).combine(op, self.min_num_branches, tracer(self.name))


class _ToDense(Combiner):
    operator = "nn.dense"

    def key(self, op: OperatorOp) -> Hashable | None:
        weight = shape_of(op.args[1])
        if weight is None or shape_of(op.result) is None:
            return None
        given = {name: value for name, value in op.attributes.items() if name != "units"}
        return weight[1:], dtype_of(op.args[1]), tuple(sorted(given.items()))

    def combined(self, make: Emitter, heads: Sequence[OperatorOp]) -> SSAValue:
        weight = make.call("concatenate", make.tuple([head.args[1] for head in heads]), axis=0)
        return make.like(heads[0], [heads[0].args[0], weight], units=sum(map(_units, heads)))

    def fits(self, op: OperatorOp, other: OperatorOp, index: int) -> bool:
        a, b = shape_of(op.args[index]), shape_of(other.args[index])
        if a is None or b is None or len(a) != len(b) or dtype_of(op.args[index]) != dtype_of(other.args[index]):
            return False
        axis = self.argument_axis(op, len(a))
        if axis < 0:
            return a == b and all(size == 1 for size in a)
        sizes = size_of(op, self.axes[op]), size_of(other, self.axes[other])
        if a[axis] not in (1, sizes[0]) or b[axis] not in (1, sizes[1]):
            return False
        return all(m == n for i, (m, n) in enumerate(zip(a, b, strict=True)) if i != axis)

    def argument(self, make: Emitter, ops: Sequence[OperatorOp], index: int) -> SSAValue:
        values: list[SSAValue] = []
        axis = 0
        for op in ops:
            value = op.args[index]
            axis = self.argument_axis(op, len(shape_of(value) or ()))
            while axis < 0:
                value = make.call("expand_dims", value, axis=-1 if not shape_of(value) else 0)
                axis += 1
            shape, size = shape_of(value) or (), size_of(op, self.axes[op])
            if shape[axis] != size:
                # One number for all units of this layer.
                value = make.call("repeat", value, repeats=size, axis=axis)
            values.append(value)
        return make.call("concatenate", make.tuple(values), axis=axis)

    def argument_axis(self, op: OperatorOp, rank: int) -> int:
        return 0 if op.OPERATOR.name == "nn.bias_add" else super().argument_axis(op, rank)


class _ToBatch(Combiner):
    operator = "nn.dense"

    def channel_axis(self, head: OperatorOp) -> int | None:
        return None

    def key(self, op: OperatorOp) -> Hashable | None:
        weight, data = shape_of(op.args[1]), shape_of(op.args[0])
        if weight is None or data is None or len(data) != 2:
            return None
        given = {name: value for name, value in op.attributes.items() if name != "units"}
        return weight, dtype_of(op.args[1]), tuple(sorted(given.items()))

    def combined(self, make: Emitter, heads: Sequence[OperatorOp]) -> SSAValue:
        left = make.call("stack", make.tuple([head.args[0] for head in heads]), axis=0)
        right = make.call("stack", make.tuple([head.args[1] for head in heads]), axis=0)
        out_dtype = heads[0].attrs().out_dtype
        given = {} if out_dtype is None else {"out_dtype": out_dtype}
        return make.call("nn.batch_matmul", left, right, transpose_b=True, **given)

    def fits(self, op: OperatorOp, other: OperatorOp, index: int) -> bool:
        a = shape_of(op.args[index])
        same = a is not None and op.args[index].type == other.args[index].type
        # What is broadcast to more than a layer's result cannot be told from the new axis.
        return same and len(a or ()) <= len(shape_of(op.result) or ()) == 2

    def argument(self, make: Emitter, ops: Sequence[OperatorOp], index: int) -> SSAValue:
        values = [op.args[index] for op in ops]
        missing = 2 - len(shape_of(values[0]) or ())
        if missing:
            values = [make.call("expand_dims", value, axis=0, num_newaxis=missing) for value in values]
        return make.call("stack", make.tuple(values), axis=0)

    def parts(self, make: Emitter, value: SSAValue, ends: Sequence[OperatorOp]) -> Iterator[SSAValue]:
        parts = make.call("split", value, indices_or_sections=len(ends), axis=0)
        for index in range(len(ends)):
            yield make.call("squeeze", make.field(parts, index), axis=[0])


def _units(op: OperatorOp) -> int:
    return size_of(op, -1)
