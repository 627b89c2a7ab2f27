"""Fills a block: values of a TE body from its axes, reads of tensors from buffers, reducers."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UNKNOWN_LOC, FloatAttr, IntegerAttr, IntegerType, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import te, tir
from ...dialects.interned import i32_array
from ...dialects.plain_op import SEGMENTS
from ...dialects.te.ops import FOLDS, neutral, tensor_name
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import error_at
from ...support.edit import add_op, clone_op, create_op

if TYPE_CHECKING:
    from .create_prim_func import Lowering

_SHALLOW = 60


def load(buffer: SSAValue, indices: Sequence[SSAValue]) -> tir.LoadOp:
    """Creates a load of one element, without the cost of the op's constructor."""
    assert isinstance(buffer.type, tir.BufferType)
    sizes = i32_array(1, len(indices), 0)
    return create_op(tir.LoadOp, [buffer, *indices], [buffer.type.dtype], {SEGMENTS: sizes}, UNKNOWN_LOC)


def store(value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> tir.StoreOp:
    """Creates a store of one element, without the cost of the op's constructor."""
    sizes = i32_array(1, len(indices), 0, 1)
    return create_op(tir.StoreOp, [buffer, *indices, value], (), {SEGMENTS: sizes}, UNKNOWN_LOC)


class BlockBody:
    """Copies expressions and statements of TE to the end of a TIR block.

    `known` maps axes, and values that were copied already, to values in scope; it is shared with the bodies of nested regions,
    which remove at their end what they added. Values in `shared` are computed once; all others once for each use, because TVM has
    trees of expressions. `made` maps a value to a function that computes it again for each use.
    """

    def __init__(
        self,
        lowering: Lowering,
        block: Block,
        known: dict[SSAValue, SSAValue],
        shared: Container[SSAValue] = (),
        depth: int = 0,
    ):
        self.lowering = lowering
        self.block = block
        self.known = known
        self.shared = shared
        self.depth = depth
        self.made: dict[SSAValue, Callable[[], SSAValue]] = {}
        self._learned: list[SSAValue] = []

    @contextmanager
    def inside(self, block: Block) -> Generator[BlockBody]:
        """A body of a region inside this one."""
        inner = BlockBody(self.lowering, block, self.known, self.shared, self.depth + 1)
        inner.made = self.made
        yield inner
        for value in inner._learned:
            del self.known[value]

    def learn(self, before: SSAValue, after: SSAValue) -> None:
        """Maps `before` to `after` until the end of this region."""
        self.known[before] = after
        self._learned.append(before)
        if after.name_hint is None:
            after.name_hint = before.name_hint

    def add(self, op: Operation, location: LocationAttr) -> Operation:
        """Appends an op."""
        op.location = location
        add_op(self.block, op)
        return op

    def values(self, roots: Sequence[SSAValue]) -> list[SSAValue]:
        """Returns the values of several expressions."""
        return [self.value(root) for root in roots]

    def value(self, root: SSAValue) -> SSAValue:
        """Returns the value of an expression, computed at the end of the block unless it is in sight."""
        # Operands are computed in order, then the op that takes them; `done` holds those that wait.
        done: list[SSAValue] = []
        work: list[tuple[SSAValue, bool]] = [(root, False)]
        while work:
            value, is_ready = work.pop()
            found = self.known.get(value)
            if found is not None:
                done.append(found)
                continue
            make = self.made.get(value)
            if make is not None:
                done.append(make())
                continue
            op = value.owner
            assert isinstance(op, Operation)
            if isinstance(op.parent_op(), te.FuncOp) and not isinstance(op, tir.ConstOp):
                self.learn(value, self.lowering.scalar(value))
                done.append(self.known[value])
                continue
            inputs = _inputs(op)
            if not is_ready:
                work.append((value, True))
                work += [(v, False) for v in reversed(inputs)]
                continue
            count = len(inputs)
            operands = done[len(done) - count :]
            del done[len(done) - count :]
            copied = self._copy(op, operands)
            result = copied.results[0]
            if value in self.shared or isinstance(op, tir.ConstOp):
                self.learn(value, result)
            done.append(result)
        return done[0]

    def copy_all(self, block: Block) -> None:
        """Copies every op of a block, in order."""
        for op in block.ops:
            copied = self._copy(op, self.values(_inputs(op)))
            for before, after in zip(op.results, copied.results, strict=True):
                self.learn(before, after)

    def _copy(self, op: Operation, operands: Sequence[SSAValue]) -> Operation:
        if isinstance(op, te.ReadOp):
            buffer = self.lowering.buffers.get(op.tensor)
            if buffer is None:
                raise error_at(
                    op,
                    f"tensor '{tensor_name(op.tensor)}' is read, but neither computed before nor a parameter",
                    "list the inputs among the parameters",
                )
            copied: Operation = load(buffer, operands)
        elif not op.regions:
            copied = clone_op(op, operands)
        else:
            copied = type(op).create(
                operands=operands,
                result_types=[r.type for r in op.results],
                properties=op.properties,
                attributes=op.attributes,
                regions=[self._region(region) for region in op.regions],
            )
        return self.add(copied, op.location)

    def _region(self, region: Region) -> Region:
        copies: list[Block] = []
        for block in region.blocks:
            copy = Block(arg_types=[a.type for a in block.args])
            with self.inside(copy) as inner:
                for before, after in zip(block.args, copy.args, strict=True):
                    inner.learn(before, after)
                if inner.depth % _SHALLOW == 0:
                    in_deep_stack(lambda inner=inner, block=block: inner._fill(block))
                else:
                    inner._fill(block)
            copies.append(copy)
        return Region(copies)

    def _fill(self, block: Block) -> None:
        """A side of a choice is what it yields; statements are copied as they stand."""
        last = block.last_op
        if isinstance(last, tir.YieldOp):
            self.add(tir.YieldOp(*self.values(last.values)), last.location)
        else:
            self.copy_all(block)

    def guarded(self, reduction: te.ReduceOp, index: int) -> SSAValue:
        """Returns a source of a reduction, read only where its condition holds, otherwise the identity."""
        assert reduction.condition is not None
        location, source = reduction.location, reduction.sources[index]
        test = self.value(reduction.condition)
        sides = [Block(), Block()]
        with self.inside(sides[0]) as inner:
            inner.add(tir.YieldOp(inner.value(source)), location)
        with self.inside(sides[1]) as inner:
            inner.add(tir.YieldOp(identity(reduction, index, inner)), location)
        choice = tir.IfThenElseOp(test, Region(sides[0]), Region(sides[1]), source.type)
        return self.add(choice, location).results[0]

    def inlined(self, block: Block, arguments: Sequence[Callable[[], SSAValue]]) -> list[SSAValue]:
        """Returns the values that a region yields for these arguments, each computed again for each use."""
        self.made |= dict(zip(block.args, arguments, strict=True))
        last = block.last_op
        assert isinstance(last, tir.YieldOp)
        with self.inside(self.block) as inner:
            results = inner.values(last.values)
        for arg in block.args:
            del self.made[arg]
        return results


def _inputs(op: Operation) -> Sequence[SSAValue]:
    """Returns the scalars and buffers that an op needs; a tensor is found as its buffer."""
    return op.indices if isinstance(op, te.ReadOp) else op.operands


def identity(reduction: te.ReduceOp, index: int, body: BlockBody) -> SSAValue:
    """Returns the value that changes nothing in the reduction's value `index`."""
    if reduction.reducer is not None:
        reducer = reduction.reducer.owner
        assert isinstance(reducer, te.CommReducerOp)
        return body.inlined(reducer.identity.block, [])[index]
    type = reduction.sources[index].type
    value = number(neutral(reduction.kind.data, type), type)
    return body.add(tir.ConstOp(value), reduction.location).results[0]


def number(value: float, type: Attribute) -> IntegerAttr | FloatAttr:
    """Returns a number of a dtype."""
    if isinstance(type, IntegerType):
        return IntegerAttr(int(value), type, truncate_bits=True)
    return FloatAttr(float(value), type)  # type: ignore[arg-type]


def combined(
    reduction: te.ReduceOp,
    body: BlockBody,
    before: Sequence[Callable[[], SSAValue]],
    sources: Sequence[Callable[[], SSAValue]],
) -> list[SSAValue]:
    """Returns the reduction's values after those `before` have taken in `sources`."""
    if reduction.reducer is not None:
        reducer = reduction.reducer.owner
        assert isinstance(reducer, te.CommReducerOp)
        return body.inlined(reducer.combiner.block, [*before, *sources])
    op = FOLDS[reduction.kind.data](before[0](), sources[0]())
    return [body.add(op, reduction.location).results[0]]
