"""Combination of parallel operators on one input; shared by the combine-parallel passes.

    nn.dense(%x, %w1), nn.dense(%x, %w2)   ->   %y = nn.dense(%x, concatenate((%w1, %w2))), split(%y)

As TVM's ParallelOpCombiner: a branch is a head operator followed by elementwise and broadcasting operators, as long as each is the
only user of the one before. Branches that fit together are combined as far down as their operators and attributes agree; each
user then gets its part of the combined result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ....dialects.relay.emit import Emitter, dtype_of, shape_of
from ....dialects.relay.operator import OperatorOp, OpPattern
from ....support.edit import erase_op, insert_op_before
from ....support.trace import Tracer
from ....support.walk import walk_ops
from ...changes import op_name

Branch: TypeAlias = list[OperatorOp]


class Combiner(ABC):
    """Combines the branches of one kind of operator.

    A subclass says which fit together and how they are joined.
    """

    operator: str

    def __init__(self) -> None:
        self.axes: dict[OperatorOp, int] = {}
        """The axis along which branches are joined, of each operator's result."""
        self.trace: Tracer | None = None

    @abstractmethod
    def key(self, op: OperatorOp) -> Hashable | None:
        """Returns the key that operators on one input must share to be combined; None if `op` is not combined."""

    def channel_axis(self, head: OperatorOp) -> int | None:
        """Returns the axis of a head's result along which branches are joined; None to join along a new one."""
        shape = shape_of(head.result)
        return len(shape) - 1 if shape else None

    @abstractmethod
    def combined(self, make: Emitter, heads: Sequence[OperatorOp]) -> SSAValue:
        """The operator that computes all of `heads`."""

    def argument_axis(self, op: OperatorOp, rank: int) -> int:
        """Returns the joined axis of a broadcast argument of this rank; negative if it has none."""
        return self.axes[op] - len(shape_of(op.result) or ()) + rank

    def fits(self, op: OperatorOp, other: OperatorOp, index: int) -> bool:
        """Returns whether argument `index` of two operators that follow the heads can be combined."""
        a, b = shape_of(op.args[index]), shape_of(other.args[index])
        if a is None or b is None or len(a) != len(b) or dtype_of(op.args[index]) != dtype_of(other.args[index]):
            return False
        axis = self.argument_axis(op, len(a))
        if axis < 0 or a[axis] != size_of(op, self.axes[op]) or b[axis] != size_of(other, self.axes[other]):
            return False
        return all(m == n for i, (m, n) in enumerate(zip(a, b, strict=True)) if i != axis)

    def argument(self, make: Emitter, ops: Sequence[OperatorOp], index: int) -> SSAValue:
        """Combines the arguments `index` of operators that follow the heads."""
        values = [op.args[index] for op in ops]
        axis = self.argument_axis(ops[0], len(shape_of(values[0]) or ()))
        return make.call("concatenate", make.tuple(values), axis=axis)

    def parts(self, make: Emitter, value: SSAValue, ends: Sequence[OperatorOp]) -> Iterator[SSAValue]:
        """Splits the combined value into the results of the branches' last operators."""
        axis, rank = self.axes[ends[0]], len(shape_of(value) or ())
        return slices(make, value, axis, [size_of(end, axis) for end in ends], rank)

    def combine(self, root: Operation, min_num_branches: int, trace: Tracer | None) -> None:
        """Combines within every block inside `root`. Every value must be typed."""
        self.trace = trace
        for op in [root, *walk_ops(root)]:
            for region in op.regions:
                for block in region.blocks:
                    self._combine_block(block, min_num_branches)

    def _combine_block(self, block: Block, least: int) -> None:
        groups: dict[Hashable, list[OperatorOp]] = {}
        for op in block.ops:
            if isinstance(op, OperatorOp) and op.OPERATOR.name == self.operator:
                key = self.key(op)
                if key is not None:
                    groups.setdefault((op.args[0], key), []).append(op)
        wanted = [heads for heads in groups.values() if len(heads) >= least]
        if not wanted:
            return
        order = {op: place for place, op in enumerate(block.ops)}
        for heads in wanted:
            self._combine_group(heads, order)

    def _combine_group(self, heads: Sequence[OperatorOp], order: dict[Operation, int]) -> None:
        branches = [self._branch(head) for head in heads]
        depth, parents = self._depth(branches)
        group = {op for branch in branches for op in branch[:depth]}
        outside = [
            value
            for branch in branches
            for op in branch[:depth]
            for value in op.args
            if not isinstance(value.owner, OperatorOp) or value.owner not in group
        ]
        first = min(heads, key=order.__getitem__)
        needed = _between(outside, first, group, order)
        if needed is None:
            return
        for op in needed:
            op.detach()
            insert_op_before(op, first)
            order[op] = order[first]
        if self.trace is not None:
            behind = "".join(f", {op_name(op)}" for op in branches[0][1:depth])
            notes = [("with the one here", head) for head in heads[1:]]
            self.trace(heads[0], f"{len(heads)} branches become one: {self.operator}{behind}", *notes)
        make = Emitter(first, heads)
        value = self.combined(make, heads)
        for level in range(1, depth):
            ops = [branch[level] for branch in branches]
            make.locate(ops)
            args = [
                value if index == parents[level] else self.argument(make, ops, index)
                for index in range(len(ops[0].args))
            ]
            value = make.like(ops[0], args)
        ends = [branch[depth - 1] for branch in branches]
        make.locate(ends)
        for end, part in zip(ends, self.parts(make, value, ends), strict=True):
            part.name_hint = end.result.name_hint
            end.result.replace_all_uses_with(part)
        for branch in branches:
            for op in reversed(branch[:depth]):
                erase_op(op)

    def _branch(self, head: OperatorOp) -> Branch:
        """Follows a head's result through its only users as long as each keeps every element in its place."""
        branch = [head]
        axis = self.channel_axis(head)
        while True:
            last = branch[-1]
            if axis is not None:
                self.axes[last] = axis
            user = last.result.get_user_of_unique_use()
            if not isinstance(user, OperatorOp) or user.parent is not last.parent:
                return branch
            if user.OPERATOR.pattern > OpPattern.BROADCAST or any(
                shape_of(v) is None for v in (*user.args, user.result)
            ):
                return branch
            if axis is not None:
                axis = _axis_behind(user, axis, last)
            if axis is None and ("axis" in user.OPERATOR.specs or last in self.axes):
                return branch
            branch.append(user)

    def _depth(self, branches: Sequence[Branch]) -> tuple[int, list[int]]:
        """Returns how many operators of each branch are combined, and which argument each continues."""
        parents = [0]
        first = branches[0]
        for level in range(1, min(map(len, branches))):
            op = first[level]
            parent = next(index for index, value in enumerate(op.args) if value is first[level - 1].result)
            for branch in branches[1:]:
                other = branch[level]
                if type(other) is not type(op) or other.attributes != op.attributes:
                    return level, parents
                if other.args[parent] is not branch[level - 1].result:
                    return level, parents
                for index in range(len(op.args)):
                    if index != parent and not self.fits(op, other, index):
                        return level, parents
            parents.append(parent)
        return len(parents), parents


def _axis_behind(user: OperatorOp, axis: int, last: OperatorOp) -> int | None:
    """Returns the position of `last`'s `axis` in the result of `user`.

    None if its attributes name another axis.
    """
    rank, new_rank = (len(shape_of(op.result) or ()) for op in (last, user))
    if "axis" not in user.OPERATOR.specs:
        return axis + new_rank - rank
    own: int = user.attrs().axis % new_rank
    if user.OPERATOR.name == "expand_dims":
        return axis if own > axis else axis + new_rank - rank
    return axis if own == axis else None


def _between(
    values: Sequence[SSAValue], first: Operation, group: set[OperatorOp], order: dict[Operation, int]
) -> list[Operation] | None:
    """Returns the ops after `first` that the values need, in order.

    None if one of them depends on the group itself or must stay where it is.
    """
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner in found or order.get(owner, -1) < order[first]:
            continue
        if owner in group or owner.regions or not is_side_effect_free(owner):
            return None
        found.add(owner)
        pending += owner.operands
    return sorted(found, key=order.__getitem__)


def size_of(op: OperatorOp, axis: int) -> int:
    """Returns the size of an operator's result, whose shape is known, along an axis."""
    shape = shape_of(op.result)
    assert shape is not None
    return shape[axis]


def slices(make: Emitter, value: SSAValue, axis: int, sizes: Sequence[int], rank: int) -> Iterator[SSAValue]:
    """Consecutive parts of `value` along an axis, one of each size; `rank` leading axes are written."""
    start = 0
    for size in sizes:
        begin = [start if i == axis else 0 for i in range(rank)]
        end = [size if i == axis else -1 for i in range(rank)]
        yield make.call("strided_slice", value, begin=begin, end=end, strides=[1] * rank, slice_mode="size")
        start += size
