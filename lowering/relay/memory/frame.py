"""Plans the place of each tensor of a Relay function: in its result's memory, or in its frame.

Every kernel and every call writes its tensors to memory that the caller chose. A tensor that becomes (part of) the
function's result is written there directly where possible; the others share the function's frame by lifetime. The pieces of a
concatenation that has no kernel are in its memory from the start (`storage_views.py`, `row_layouts.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ....dialects.relay import ir as relay
from ....dialects.relay.operator import OperatorOp
from ....support.diagnostics import error_at
from ..functions.flat_values import Leaf, TensorLeaf, has_box, leaves_of
from ..functions.match_cast import MatchCastOp
from .memory_plan import Group, Lifetime, MemoryPlan, plan_memory
from .storage_views import is_reshape, piece_offsets, piece_rows, view_offsets

WRITES_RESULT = (relay.CallTirOp, relay.CallGlobalOp, relay.CallOp)
"""Ops whose tensors are written to memory that they are given."""

MOST_ALIASES = 8
"""An `if` whose result may alias more places than this copies it, so that alias sets stay small."""

Place = tuple[Operation, int]
"""Leaf k of the result of an op."""


class Sources:
    """Finds the origins of values' leaves; tuples are counted once, as each of their leaves is asked for."""

    def __init__(self) -> None:
        self._tuples: dict[relay.TupleOp, list[int]] = {}
        self._types: dict[SSAValue, list[int]] = {}

    def of(self, value: SSAValue, leaf: int) -> tuple[SSAValue, int]:
        """Returns the origin of leaf `leaf` of `value` through names, tuples and projections."""
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
                case OperatorOp() if is_reshape(op):
                    value = op.args[0]
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
    """Returns the first leaf of each field of a tuple; of fields without leaves the next one's."""
    counts = [len(leaves_of(type, where)) for type in types]
    return list(accumulate(counts, initial=0))[:-1]


def _same_leaf(op: MatchCastOp, leaf: int) -> bool:
    return leaves_of(op.value.type)[leaf] == leaves_of(op.result.type)[leaf]


@dataclass(frozen=True)
class Kept:
    """A tensor in a frame, or a part of one: the op that writes it, its offset, and its live range."""

    op: Operation
    offset: int
    lifetime: Lifetime


@dataclass
class Frame:
    """The plan of one function.

    `outputs` maps a place to the function's result leaf that it is, or in whose memory it is (`shifts`: so many bytes after its start);
    `offsets` maps the others to bytes from the frame's start.
    """

    outputs: dict[Place, int] = field(default_factory=dict[Place, int])
    shifts: dict[Place, int] = field(default_factory=dict[Place, int])
    offsets: dict[Place, int] = field(default_factory=dict[Place, int])
    copied: set[Place] = field(default_factory=set[Place])
    """Results of branches that are copied into memory of their own."""
    pieces: dict[Place, tuple[Place, int]] = field(default_factory=dict[Place, tuple[Place, int]])
    """Tensors in a concatenation's memory: which concatenation's, and so many bytes after its start."""
    joined: set[tuple[Operation, int]] = field(default_factory=set[tuple[Operation, int]])
    """Fields of concatenations that are in place when the concatenation is reached: they are not copied."""
    kept: list[Kept] = field(default_factory=list[Kept])
    """What is in the frame, in order of its offset; pieces of concatenations each for itself."""
    carried: tuple[int, ...] = ()
    """Offsets of the memory for parameters that a jump to the function's start changes."""
    plan: MemoryPlan = field(default_factory=lambda: MemoryPlan((), 0, 0))

    @property
    def is_empty(self) -> bool:
        """Returns whether the frame holds nothing."""
        return not (self.offsets or self.carried)


def free_values(function: relay.FnOp) -> list[SSAValue]:
    """Returns the values from outside that a local function uses, in order of first use."""
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
    """Returns the blocks of an op that run as part of the function around it: those of if and match."""
    if isinstance(op, relay.IfOp | relay.MatchOp):
        return [region.block for region in op.regions]
    return ()


def plan_frame(body: Block, *, refs: bool, carried: Sequence[int] = ()) -> Frame:
    """Returns the frame of the function with this body.

    `refs`: the module has references, which may keep any value alive; `carried`: bytes of parameters whose memory is the frame's, from
    one jump to the function's start to the next.
    """
    frame = Frame()
    result = returned(body)
    sources = Sources()
    _direct(frame, body, result, list(range(len(leaves_of(result.type, result)))), sources)
    _join(frame, body, sources)
    _Lifetimes(frame, refs, sources).run(body, carried)
    return frame


def returned(block: Block) -> SSAValue:
    """Returns the value that a body or branch ends with."""
    end = block.last_op
    assert isinstance(end, relay.ReturnOp)
    return end.value


def _direct(frame: Frame, body: Block, result: SSAValue, outputs: list[int], sources: Sources) -> None:
    """Directs leaf k of `result` to output `outputs[k]`, if an op at the end of the body produces it."""
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
            if is_written(op) or branches(op):
                frame.outputs |= {(op, k): out for k, out in tensors.items()}
            for inner in branches(op):
                pending.append((inner, returned(inner), [tensors.get(k, -1) for k in range(len(leaves))]))


def is_written(op: Operation) -> bool:
    """Returns whether the op's tensors are written to memory that the plan assigns."""
    return isinstance(op, WRITES_RESULT) or piece_offsets(op) is not None


def _join(frame: Frame, body: Block, sources: Sources) -> None:
    """Assigns pieces of concatenations to places in these.

    A piece in other memory (another concatenation's, the function's result, a parameter, another field) stays there, and is copied.
    """
    ops = [op for op in function_ops(body) if isinstance(op, OperatorOp)]
    joins = [(op, offsets) for op in ops if (offsets := piece_offsets(op)) is not None]
    for op, offsets in joins:
        for number, offset in enumerate(offsets):
            piece = place_of_piece(op, sources.of(op.args[0], number))
            if piece is not None and piece not in frame.outputs and piece not in frame.pieces:
                frame.pieces[piece] = (op, 0), offset
                frame.joined.add((op, number))
            elif (piece_rows(op) or 1) > 1:
                raise error_at(
                    op,
                    f"piece {number} of this {op.OPERATOR.name} would lie in rows of it, but no kernel can write it there",
                    "lower-relay-to-te makes a kernel of such an operator",
                )
    # A concatenation comes after its pieces, which may be concatenations.
    for piece, (whole, offset) in reversed(frame.pieces.items()):
        if whole in frame.outputs:
            frame.outputs[piece] = frame.outputs[whole]
            frame.shifts[piece] = frame.shifts.get(whole, 0) + offset


def place_of_piece(join: Operation, source: tuple[SSAValue, int]) -> Place | None:
    """Returns the place of the piece from `source` where it can be in the concatenation's memory."""
    value, leaf = source
    if not isinstance(value, OpResult) or value.op.parent is not join.parent or not is_written(value.op):
        return None
    return value.op, leaf


def function_ops(body: Block) -> Iterator[Operation]:
    """Yields the ops of a function in order, those of branches before the op that holds them."""
    pending: list[Operation | Block] = [body]
    while pending:
        item = pending.pop()
        if isinstance(item, Operation):
            yield item
            continue
        for op in reversed(list(item.ops)):
            pending.append(op)
            pending += reversed(branches(op))


class _Lifetimes:
    """Numbers the ops of a function in order and finds the live range of each of its own tensors."""

    def __init__(self, frame: Frame, refs: bool, sources: Sources):
        self.frame = frame
        self.refs = refs
        self.sources = sources
        self.places: list[Place] = []
        self.numbers: dict[Place, int] = {}
        self.inside: list[tuple[int, int, int]] = []
        """Of pieces in concatenations: the place's number, the concatenation's, and the offset in it."""
        self.in_rows: set[int] = set()
        """Pieces in rows: between their rows are those of the other pieces."""
        self.copies: dict[int, list[tuple[int, int]]] = {}
        """Of a concatenation: offset and bytes of each of its pieces that are copied."""
        self.sizes: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.aliases: dict[SSAValue, list[frozenset[int]]] = {}
        self.forever: set[int] = set()
        self.time = 0

    def run(self, body: Block, carried: Sequence[int]) -> None:
        for op in function_ops(body):
            self.time += 1
            self._visit(op)
        for place in self.forever:
            self.end[place] = self.time
        root, shift = self._inside()
        parts: dict[int, list[tuple[int, Lifetime]]] = {}
        for place in range(len(self.places)):
            if place in self.in_rows:
                continue
            written = self.copies.get(place, [(0, self.sizes[place])])
            parts.setdefault(root[place], []).extend(
                (shift[place] + offset, Lifetime(size, self.start[place], self.end[place])) for offset, size in written
            )
        wholes = list(parts)
        buffers = [Group(self.sizes[k], tuple(parts[k])) if k in self.copies else parts[k][0][1] for k in wholes]
        frame = self.frame
        frame.plan = plan_memory([*buffers, *(Lifetime(size, 0, self.time) for size in carried)])
        offsets = dict(zip(wholes, frame.plan.offsets, strict=False))
        frame.offsets = {place: offsets[root[k]] + shift[k] for k, place in enumerate(self.places)}
        frame.carried = frame.plan.offsets[len(wholes) :]
        for place, op in enumerate(self.places):
            if place in self.in_rows:
                continue
            written = self.copies.get(place, [(0, self.sizes[place])])
            frame.kept += (
                Kept(op[0], frame.offsets[op] + offset, Lifetime(size, self.start[place], self.end[place]))
                for offset, size in written
            )

    def _inside(self) -> tuple[list[int], list[int]]:
        """Returns for each place the outermost concatenation that holds it, or itself, and the offset there.

        A piece lives as long as the whole; with pieces in rows the whole lives from the first one on, and as long as any of them.
        """
        for piece, whole, _ in self.inside:
            if piece in self.in_rows:
                self.start[whole] = min(self.start[whole], self.start[piece])
                self.end[whole] = max(self.end[whole], self.end[piece])
        root, shift = list(range(len(self.places))), [0] * len(self.places)
        for piece, whole, offset in reversed(self.inside):
            self.end[piece] = max(self.end[piece], self.end[whole])
            root[piece], shift[piece] = root[whole], shift[whole] + offset
        return root, shift

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
        if (offsets := piece_offsets(op)) is not None:
            return [none if (op, 0) in self.frame.outputs else self._concatenation(op, offsets, leaves[0])]
        if view_offsets(op) is not None:
            value, leaf = self.sources.of(op.operands[0], 0)
            return [self._of(value)[leaf]] * len(leaves)
        if branches(op):
            return [
                none if (op, k) in self.frame.outputs else self._joined(op, k, leaf) for k, leaf in enumerate(leaves)
            ]
        if isinstance(op, relay.LetOp | relay.TupleOp | relay.TupleGetItemOp | MatchCastOp):
            sources = [self.sources.of(op.results[0], k) for k in range(len(leaves))]
            return [self._of(value)[leaf] for value, leaf in sources]
        return [none] * len(leaves)

    def _concatenation(self, op: Operation, offsets: Sequence[int], kind: Leaf) -> frozenset[int]:
        assert isinstance(kind, TensorLeaf)
        aliases = self._new((op, 0), kind.bytes)
        whole = self.numbers[op, 0]
        in_rows = (piece_rows(op) or 1) > 1
        self.copies[whole] = [(0, kind.bytes)] if in_rows else []
        for number, (offset, end) in enumerate(pairwise([*offsets, kind.bytes])):
            if (op, number) in self.frame.joined:
                value, leaf = self.sources.of(op.operands[0], number)
                assert isinstance(value, OpResult)
                piece = self.numbers[value.op, leaf]
                self.inside.append((piece, whole, offset))
                if in_rows:
                    self.in_rows.add(piece)
            else:
                self.copies[whole].append((offset, end - offset))
        return aliases

    def _joined(self, op: Operation, leaf: int, kind: Leaf) -> frozenset[int]:
        """Returns the places that a branch's result may alias: those of the branches' results."""
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
        self.numbers[place] = len(self.places)
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
