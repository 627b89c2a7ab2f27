"""`combine-parallel-batch-matmul`: batched products of one left side, as one with all their columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
from .combine_parallel import Combiner


@dataclass(frozen=True)
class CombineParallelBatchMatmul(ModulePass):
    """Combine at least min-num-branches batched products of one tensor, and what follows them alike."""

    name = "combine-parallel-batch-matmul"
    tells: ClassVar[bool] = True

    min_num_branches: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require_range(op, "min-num-branches", self.min_num_branches, 1)
        ensure_types(op)
        _BatchMatmul().combine(op, self.min_num_branches, tracer(self.name))


class _BatchMatmul(Combiner):
    operator = "nn.batch_matmul"

    def key(self, op: OperatorOp) -> Hashable | None:
        right = shape_of(op.args[1])
        if right is None or shape_of(op.result) is None:
            return None
        columns = 1 if op.attrs().transpose_b else 2
        rest = tuple(size for axis, size in enumerate(right) if axis != columns)
        return rest, dtype_of(op.args[1]), tuple(sorted(op.attributes.items()))

    def combined(self, make: Emitter, heads: Sequence[OperatorOp]) -> SSAValue:
        columns = 1 if heads[0].attrs().transpose_b else 2
        right = make.call("concatenate", make.tuple([head.args[1] for head in heads]), axis=columns)
        return make.like(heads[0], [heads[0].args[0], right])

    def fits(self, op: OperatorOp, other: OperatorOp, index: int) -> bool:
        return self.axes[op] == len(shape_of(op.result) or ()) - 1 and super().fits(op, other, index)

    def argument(self, make: Emitter, ops: Sequence[OperatorOp], index: int) -> SSAValue:
        return make.call("concatenate", make.tuple([op.args[index] for op in ops]), axis=-1)
