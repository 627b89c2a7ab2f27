"""Where each tensor of a Relay function lies: in its result's memory, or at an offset of its frame.

Every kernel and every call writes its tensors to memory that the caller chose. A tensor that becomes (part of) the
function's result is written there directly where possible; the others share the function's frame by lifetime.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ...dialects.relay import ir as relay
from .leaves import Leaf, TensorLeaf, has_box, leaves_of
from .match_cast import MatchCastOp
from .memory_plan import Lifetime, MemoryPlan, plan_memory

WRITES_RESULT = (relay.CallTirOp, relay.CallGlobalOp, relay.CallOp)
"""Ops whose tensors are written to memory that they are given."""

MOST_ALIASES = 8
"""An `if` whose result may lie in more places than this copies it, so that alias sets stay small."""

Place = tuple[Operation, int]
"""Leaf k of the result of an op."""


class Sources:
    """Where the leaves of values come from. Tuples are counted once each: a tuple of many fields is asked for each leaf."""

    def __init__(self) -> None:
        self._tuples: dict[relay.TupleOp, list[int]] = {}
        self._types: dict[SSAValue, list[int]] = {}

    def of(self, value: SSAValue, leaf: int) -> tuple[SSAValue, int]:
        """The value, and its leaf, that names, tuples and projections hand on as leaf `leaf` of `value`."""
        while isinstance(value, OpResult):
            op = value.op
            match op:
                case relay.LetOp():
                    value = op.value
                case relay.TupleOp():
                    starts = self._tuples.get(op)
                    if starts is None:
                        starts = self._tuples[op] = _starts([field.type for field in op.fields], value)
                    field = bisect_right(starts, leaf) - 1
                    value, leaf = op.operands[field], leaf - starts[field]
                case MatchCastOp() if _same_leaf(op, leaf):
                    value = op.value
                case relay.TupleGetItemOp():
                    assert isinstance(op.tuple_value.type, TupleType)
                    starts = self._types.get(op.tuple_value)
                    if starts is None:
                        starts = self._types[op.tuple_value] = _starts(op.tuple_value.type.types.data, value)
                    value, leaf = op.tuple_value, leaf + starts[op.index.value.data]
                case _:
                    break
        return value, leaf


def _starts(types: Sequence[Attribute], where: SSAValue) -> list[int]:
    """Which leaf each field of a tuple begins with; of fields without leaves the next one's."""
    counts = [len(leaves_of(type, where)) for type in types]
    return list(accumulate(counts, initial=0))[:-1]


def _same_leaf(op: MatchCastOp, leaf: int) -> bool:
    return leaves_of(op.value.type)[leaf] == leaves_of(op.result.type)[leaf]


@dataclass
class Frame:
    """The plan of one function. `outputs` maps a place to the function's result leaf that it is; `offsets` the others
    to bytes from the frame's start."""

    outputs: dict[Place, int] = field(default_factory=dict[Place, int])
    offsets: dict[Place, int] = field(default_factory=dict[Place, int])
    copied: set[Place] = field(default_factory=set[Place])
    """Results of branches that are copied into memory of their own."""
    lifetimes: dict[Place, Lifetime] = field(default_factory=dict[Place, Lifetime])
    """Of the tensors in `offsets`: their bytes, and from which step of the function to which they are needed."""
    carried: tuple[int, ...] = ()
    """Offsets of the memory for parameters that a jump to the function's start changes."""
    plan: MemoryPlan = field(default_factory=lambda: MemoryPlan((), 0, 0))

    @property
    def is_empty(self) -> bool:
        """Whether nothing lies in the frame."""
        return not (self.offsets or self.carried)


def free_values(function: relay.FnOp) -> list[SSAValue]:
    """The values from outside that a local function uses, in order of first use."""
    inside: set[Block] = set()
    found: dict[SSAValue, None] = {}
    pending = [function.body.block]
    while pending:
        block = pending.pop()
        inside.add(block)
        for op in block.ops:
            for operand in op.operands:
                owner = operand.owner
                home = owner if isinstance(owner, Block) else owner.parent_block()
                if home not in inside:
                    found[operand] = None
            pending += [inner for region in op.regions for inner in region.blocks]
    return list(found)


def branches(op: Operation) -> Sequence[Block]:
    """The blocks of an op that run as part of the function around it: those of if and match."""
    if isinstance(op, relay.IfOp | relay.MatchOp):
        return [region.block for region in op.regions]
    return ()


def plan_frame(body: Block, *, refs: bool, carried: Sequence[int] = ()) -> Frame:
    """The frame of the function with this body. `refs`: the module has references, which may keep any value alive; `carried`:
    bytes of parameters whose memory is the frame's, from one jump to the function's start to the next."""
    frame = Frame()
    result = returned(body)
    sources = Sources()
    _direct(frame, body, result, list(range(len(leaves_of(result.type, result)))), sources)
    _Lifetimes(frame, refs, sources).run(body, carried)
    return frame


def returned(block: Block) -> SSAValue:
    """The value that a body or branch ends with."""
    end = block.last_op
    assert isinstance(end, relay.ReturnOp)
    return end.value


def _direct(frame: Frame, body: Block, result: SSAValue, outputs: list[int], sources: Sources) -> None:
    """Directs leaf k of `result` to output `outputs[k]`, when an op of the body itself (or a branch at its end) gives it."""
    pending = [(body, result, outputs)]
    while pending:
        block, value, targets = pending.pop()
        claims: dict[SSAValue, dict[int, int]] = {}
        for leaf, output in enumerate(targets):
            if output < 0:
                continue
            source, source_leaf = sources.of(value, leaf)
            if isinstance(source, OpResult) and source.op.parent_block() is block:
                claims.setdefault(source, {}).setdefault(source_leaf, output)
        for source, wanted in claims.items():
            assert isinstance(source, OpResult)
            op, leaves = source.op, leaves_of(source.type, source)
            tensors = {k: out for k, out in wanted.items() if isinstance(leaves[k], TensorLeaf)}
            if isinstance(op, WRITES_RESULT) or branches(op):
                frame.outputs |= {(op, k): out for k, out in tensors.items()}
            for inner in branches(op):
                pending.append((inner, returned(inner), [tensors.get(k, -1) for k in range(len(leaves))]))


class _Lifetimes:
    """Numbers the ops of a function in order and finds from when to when each of its own tensors is needed."""

    def __init__(self, frame: Frame, refs: bool, sources: Sources):
        self.frame = frame
        self.refs = refs
        self.sources = sources
        self.places: list[Place] = []
        self.sizes: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.aliases: dict[SSAValue, list[frozenset[int]]] = {}
        self.forever: set[int] = set()
        self.time = 0

    def run(self, body: Block, carried: Sequence[int]) -> None:
        for op in self._ops(body):
            self.time += 1
            self._visit(op)
        ends = [self.time if k in self.forever else end for k, end in enumerate(self.end)]
        lifetimes = [Lifetime(*item) for item in zip(self.sizes, self.start, ends, strict=True)]
        self.frame.lifetimes = dict(zip(self.places, lifetimes, strict=True))
        self.frame.plan = plan_memory([*lifetimes, *(Lifetime(size, 0, self.time) for size in carried)])
        offsets = self.frame.plan.offsets
        self.frame.offsets = dict(zip(self.places, offsets, strict=False))
        self.frame.carried = offsets[len(self.places) :]

    def _ops(self, body: Block) -> Iterator[Operation]:
        """Ops in order, those of branches before the op that holds them."""
        pending: list[Operation | Block] = [body]
        while pending:
            item = pending.pop()
            if isinstance(item, Operation):
                yield item
                continue
            for op in reversed(list(item.ops)):
                pending.append(op)
                pending += reversed(branches(op))

    def _visit(self, op: Operation) -> None:
        match op:
            case relay.ReturnOp() | relay.IfOp() | relay.MatchOp():
                self._use(op.operands)
            case relay.FnOp():
                self._escape(free_values(op))
            case relay.ConstructOp() | relay.RefOp() | relay.RefWriteOp():
                self._escape(op.operands)
            case relay.CallOp() | relay.CallGlobalOp():
                # What a callee returns in a box may hold its arguments; so may a reference that it writes.
                keeps = self.refs or has_box(op.result.type)
                (self._escape if keeps else self._use)(op.operands)
            case _:
                self._use(op.operands)
        for result in op.results:
            leaves = leaves_of(result.type, result)
            self.aliases[result] = self._result_aliases(op, leaves)

    def _result_aliases(self, op: Operation, leaves: Sequence[Leaf]) -> list[frozenset[int]]:
        none = frozenset[int]()
        if isinstance(op, WRITES_RESULT):
            return [
                self._new((op, k), leaf.bytes)
                if isinstance(leaf, TensorLeaf) and (op, k) not in self.frame.outputs
                else none
                for k, leaf in enumerate(leaves)
            ]
        if branches(op):
            return [
                none if (op, k) in self.frame.outputs else self._joined(op, k, leaf) for k, leaf in enumerate(leaves)
            ]
        if isinstance(op, relay.LetOp | relay.TupleOp | relay.TupleGetItemOp | MatchCastOp):
            sources = [self.sources.of(op.results[0], k) for k in range(len(leaves))]
            return [self._of(value)[leaf] for value, leaf in sources]
        return [none] * len(leaves)

    def _joined(self, op: Operation, leaf: int, kind: Leaf) -> frozenset[int]:
        """Where a branch's result may lie: wherever one of the branches leaves it."""
        if not isinstance(kind, TensorLeaf):
            return frozenset()
        places: frozenset[int] = frozenset()
        for block in branches(op):
            value, source_leaf = self.sources.of(returned(block), leaf)
            places |= self._of(value)[source_leaf]
        if len(places) <= MOST_ALIASES:
            return places
        self.frame.copied.add((op, leaf))
        # The copy is written inside the branches, while what it is copied from still lives.
        return self._new((op, leaf), kind.bytes, min(self.start[p] for p in places))

    def _new(self, place: Place, size: int, start: int | None = None) -> frozenset[int]:
        self.places.append(place)
        self.sizes.append(size)
        self.start.append(self.time if start is None else start)
        self.end.append(self.time)
        return frozenset((len(self.places) - 1,))

    def _of(self, value: SSAValue) -> list[frozenset[int]]:
        known = self.aliases.get(value)
        return [frozenset()] * len(leaves_of(value.type, value)) if known is None else known

    def _use(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            for places in self._of(value):
                for place in places:
                    self.end[place] = self.time

    def _escape(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            for places in self._of(value):
                self.forever |= places
