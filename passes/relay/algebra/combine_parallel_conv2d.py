"""`combine-parallel-conv2d`: combines convolutions of one input into one of all their channels."""

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
from .combine_parallel import Combiner, size_of, slices


@dataclass(frozen=True)
class CombineParallelConv2D(ModulePass):
    """Combine at least min-num-branches convolutions of one input, and what follows them alike."""

    name = "combine-parallel-conv2d"
    tells: ClassVar[bool] = True

    min_num_branches: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require_range(op, "min-num-branches", self.min_num_branches, 1)
        ensure_types(op)
        _Conv2D().combine(op, self.min_num_branches, tracer(self.name))


class _Conv2D(Combiner):
    operator = "nn.conv2d"

    def channel_axis(self, head: OperatorOp) -> int | None:
        return _out_layout(head).index("C")

    def key(self, op: OperatorOp) -> Hashable | None:
        attrs, weight = op.attrs(), shape_of(op.args[1])
        kernel: str = attrs.kernel_layout
        if attrs.groups != 1 or weight is None or shape_of(op.result) is None:
            return None
        if "o" in kernel or "c" in _out_layout(op) or len(kernel) != len(weight):
            return None
        rest = tuple(size for axis, size in zip(kernel, weight, strict=True) if axis != "O")
        given = {name: value for name, value in op.attributes.items() if name != "channels"}
        return rest, dtype_of(op.args[1]), tuple(sorted(given.items())), "channels" in op.attributes

    def combined(self, make: Emitter, heads: Sequence[OperatorOp]) -> SSAValue:
        axis = heads[0].attrs().kernel_layout.index("O")
        weight = make.call("concatenate", make.tuple([head.args[1] for head in heads]), axis=axis)
        return make.like(heads[0], [heads[0].args[0], weight], channels=sum(map(_channels, heads)))

    def parts(self, make: Emitter, value: SSAValue, ends: Sequence[OperatorOp]) -> Iterator[SSAValue]:
        axis = self.axes[ends[0]]
        return slices(make, value, axis, [size_of(end, axis) for end in ends], axis + 1)


def _out_layout(op: OperatorOp) -> str:
    attrs = op.attrs()
    return attrs.out_layout or attrs.data_layout


def _channels(op: OperatorOp) -> int:
    return size_of(op, _out_layout(op).index("C"))
