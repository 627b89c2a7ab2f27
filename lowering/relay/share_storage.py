"""Kernels that would only move tensors go: their operators stand in the function again, and are places in memory.

    %2 = fn (%p0, %p1, Primitive=1) {                %2 = concatenate((%0, %1), axis=1)
      concatenate((%p0, %p1), axis=1) }
    %3 = %2(%0, %1)

What made `%0` and `%1` then writes them where the concatenation is (`frame.py`). Other producers that fusion has put into the kernel of a
concatenation become kernels of their own, which write their piece: each runs through its elements without asking in which piece they are.
Reshapes, and slices of rows that only kernels read, are addresses in the memory of what they take (`storage.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.relay import ir as relay
from ...dialects.relay.operator import OperatorOp
from ...passes.relay.fuse_ops import is_kernel, outline
from ...support.walk import walk_ops
from .constant_calls import Constants
from .frame import Place, Sources, branches, is_written, place_of_piece, returned
from .leaves import TensorLeaf, leaves_of
from .storage import is_reshape, piece_offsets, view_offsets

BYTES_OF_A_KERNEL = 4096
"""Pieces of so many bytes or more are computed sooner by a kernel each than by one that asks for every element which piece it is in."""

MOST_COPIED = 1 << 16
"""A piece of more bytes that has to be copied is copied by a kernel, in parallel."""


def share_storage(function: relay.FuncOp) -> set[Operation]:
    """Takes such operators out of the function's kernels; gives those that now stand in the function and need no kernel."""
    sharing = _Sharing()
    closures = [op for op in walk_ops(function) if isinstance(op, relay.FnOp) and not is_kernel(op)]
    for each in (function, *closures):
        sharing.run(each.body.block)
    return sharing.kept


@dataclass(eq=False)
class _Piece:
    """A field of a concatenation: from outside of the kernel, computed in it, or a concatenation in it."""

    value: SSAValue
    moves: Sequence[Operation] = ()
    """The way from the tensor outside: reshapes, and the projection of the tuple that it is in; the last one first."""
    source: tuple[SSAValue, int] | None = None
    """Outside: where the tensor comes from."""
    ops: Sequence[Operation] = ()
    """Inside: the ops that compute it, in order."""

    @property
    def bytes(self) -> int:
        """The bytes of the field."""
        (leaf,) = leaves_of(self.value.type)
        return leaf.bytes if isinstance(leaf, TensorLeaf) else 0


@dataclass
class _Join:
    """A concatenation in a kernel, the reshapes of its result (the last one first), and its pieces."""

    op: Operation
    reshapes: Sequence[Operation]
    made: relay.TupleOp
    pieces: list[_Piece] = field(default_factory=list[_Piece])


class _Sharing:
    """One function on its way."""

    def __init__(self) -> None:
        self.kept: set[Operation] = set()
        self.sources = Sources()
        self.constants = Constants()
        self.results: set[tuple[SSAValue, int]] = set()
        self.placed: set[Place] = set()

    def run(self, body: Block) -> None:
        """Visits the calls of kernels in the body and in its branches."""
        result = returned(body)
        self.results |= {self.sources.of(result, k) for k in range(len(leaves_of(result.type, result)))}
        pending = [body]
        while pending:
            for op in list(pending.pop().ops):
                pending += branches(op)
                kernel = op.callee.owner if isinstance(op, relay.CallOp) else None
                if not isinstance(op, relay.CallOp) or not isinstance(kernel, relay.FnOp) or not is_kernel(kernel):
                    continue
                if kernel.result.has_one_use() and self._share(op, kernel):
                    for old in (op, kernel):
                        old.detach()
                        old.erase()

    def _share(self, call: relay.CallOp, kernel: relay.FnOp) -> bool:
        """Puts what the kernel does in the place of its call, where nothing has to be computed for it."""
        body = kernel.body.block
        if not all(
            isinstance(op, OperatorOp | relay.TupleOp | relay.TupleGetItemOp | relay.ConstantOp | relay.ReturnOp)
            for op in body.ops
        ):
            return False
        return self._concatenation(call, body) or self._view(call, body)

    # Views

    def _view(self, call: relay.CallOp, body: Block) -> bool:
        ops = list(body.ops)[:-1]
        if not ops or not all(isinstance(op, relay.TupleGetItemOp) or view_offsets(op) is not None for op in ops):
            return False
        # Each takes what the one before it gives.
        given: SSAValue = ops[0].operands[0]
        if not isinstance(given, BlockArgument):
            return False
        for op, before in zip(ops, [given, *(op.results[0] for op in ops)], strict=False):
            if op.operands[0] is not before or not all(isinstance(o, BlockArgument) for o in op.operands[1:]):
                return False
        first = ops[0].index.value.data if isinstance(ops[0], relay.TupleGetItemOp) else 0
        source, leaf = self.sources.of(call.arguments[given.index], first)
        fresh = (
            isinstance(source, OpResult)
            and is_written(source.op)
            and source.op.parent is call.parent
            and (source, leaf) not in self.results
            and all(isinstance(op, relay.TupleGetItemOp) or is_reshape(op) for op in ops)
        )
        # What depends on constants only is computed before the program runs, by kernels.
        if self.constants(source) or (not fresh and not self._only_kernels_read(call.result)):
            return False
        mapper: dict[SSAValue, SSAValue] = dict(zip(body.args, call.arguments, strict=True))
        for op in ops:
            self._move(call, op, mapper)
        self._replace(call, mapper[ops[-1].results[0]])
        return True

    def _only_kernels_read(self, value: SSAValue) -> bool:
        """Whether nothing can keep the value, or give it as a result."""
        pending, seen = [value], {value}
        while pending:
            for use in pending.pop().uses:
                op = use.operation
                if isinstance(op, relay.LetOp | relay.TupleOp | relay.TupleGetItemOp) or op in self.kept:
                    if piece_offsets(op) is None and op.results[0] not in seen:
                        seen.add(op.results[0])
                        pending.append(op.results[0])
                elif isinstance(op, relay.CallOp):
                    kernel = op.callee.owner
                    if not isinstance(kernel, relay.FnOp) or not is_kernel(kernel):
                        return False
                elif not isinstance(op, relay.CallTirOp):
                    return False
        return True

    # Concatenations

    def _concatenation(self, call: relay.CallOp, body: Block) -> bool:
        joins = self._joins(call, body)
        if not joins:
            return False
        pieces = [piece for join in joins for piece in join.pieces]
        ops = [op for piece in pieces for op in piece.ops if not isinstance(op, relay.ConstantOp)]
        covered = {*ops, *(op for piece in pieces for op in piece.moves)}
        covered |= {op for join in joins for op in (join.op, join.made, *join.reshapes)}
        others = [op for op in body.ops if op not in covered]
        if len(set(ops)) < len(ops) or not all(isinstance(op, relay.ReturnOp | relay.ConstantOp) for op in others):
            return False  # something is computed for two pieces
        if all(self.constants(value) for value in call.arguments):
            return False  # it is computed once, before the program runs
        placed: set[Place] = set()
        copied: list[_Piece] = []
        for piece in pieces:
            place = None if piece.source is None else self._place(call, piece.source)
            if place is not None and place not in self.placed and place not in placed:
                placed.add(place)
            elif piece.source is not None:
                copied.append(piece)
        computed = [piece for piece in pieces if piece.ops]
        large = [piece for piece in copied if piece.bytes > MOST_COPIED]
        whole = sum(piece.bytes for join in joins[-1:] for piece in join.pieces)
        if whole < BYTES_OF_A_KERNEL * (len(computed) + len(large) - 1) or (large and not placed and not computed):
            return False  # one kernel does it as quickly
        self.placed |= placed
        self._emit(call, joins, large)
        return True

    def _joins(self, call: relay.CallOp, body: Block) -> list[_Join]:
        """The concatenations that a kernel consists of, inner ones first; none where it consists of more."""
        joins: list[_Join] = []
        outer = _join_of(returned(body))
        pending = [] if outer is None else [outer]
        places = {op: place for place, op in enumerate(body.ops)} if pending else {}
        for join in pending:
            joins.append(join)
            for value in join.made.fields:
                inner = _join_of(value)
                if inner is not None and all(op.results[0].has_one_use() for op in (inner.op, *inner.reshapes)):
                    pending.append(inner)
                    join.pieces.append(_Piece(value))
                else:
                    join.pieces.append(self._piece(call, value, places))
        return joins[::-1]

    def _piece(self, call: relay.CallOp, value: SSAValue, places: Mapping[Operation, int]) -> _Piece:
        moves, given, leaf = *_peel(value), 0
        if isinstance(given, OpResult) and isinstance(given.op, relay.TupleGetItemOp):
            moves, given, leaf = [*moves, given.op], given.op.tuple_value, given.op.index.value.data
        if isinstance(given, BlockArgument):
            return _Piece(value, moves, self.sources.of(call.arguments[given.index], leaf))
        return _Piece(value, ops=_computing(value, places))

    def _place(self, call: relay.CallOp, source: tuple[SSAValue, int]) -> Place | None:
        """The place of a tensor that the plan can put into a concatenation that stands where the call is."""
        # What depends on constants only is computed before the program runs.
        return None if source in self.results or self.constants(source[0]) else place_of_piece(call, source)

    def _emit(self, call: relay.CallOp, joins: Sequence[_Join], large: Sequence[_Piece]) -> None:
        """Puts the pieces and the concatenations before the call, whose users then take what the last one gives."""
        kernel = call.callee.owner
        assert isinstance(kernel, relay.FnOp)
        mapper: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, call.arguments, strict=True))
        for join in joins:
            fields: list[SSAValue] = []
            for piece in join.pieces:
                if piece.ops:
                    fields.append(_kernel(call, piece.ops, mapper))
                    continue
                for op in reversed(piece.moves):
                    if op.results[0] not in mapper:
                        self._move(call, op, mapper)
                given = mapper[piece.value]
                fields.append(_copy_kernel(call, given) if piece in large else given)
            made = relay.TupleOp(fields)
            made.location = join.made.location
            Rewriter.insert_op(made, InsertPoint.before(call))
            mapper[join.made.result] = made.result
            for op in (join.op, *reversed(join.reshapes)):
                self._move(call, op, mapper)
        self._replace(call, mapper[returned(kernel.body.block)])

    def _replace(self, call: relay.CallOp, value: SSAValue) -> None:
        for leaf in range(len(leaves_of(value.type))):
            if (call.result, leaf) in self.results:
                self.results.add(self.sources.of(value, leaf))
        call.result.replace_all_uses_with(value)

    def _move(self, call: relay.CallOp, op: Operation, mapper: dict[SSAValue, SSAValue]) -> None:
        copy = _copy(call, op, mapper)
        if isinstance(copy, OperatorOp):
            self.kept.add(copy)


def _peel(value: SSAValue) -> tuple[list[OperatorOp], SSAValue]:
    """The reshapes, the last one first, that end in a value, and what they take."""
    reshapes: list[OperatorOp] = []
    while isinstance(value, OpResult) and isinstance(value.op, OperatorOp) and is_reshape(value.op):
        reshapes.append(value.op)
        value = value.op.args[0]
    return reshapes, value


def _join_of(value: SSAValue) -> _Join | None:
    """The concatenation that a value is, but for reshapes."""
    reshapes, inner = _peel(value)
    op = inner.op if isinstance(inner, OpResult) else None
    if op is None or piece_offsets(op) is None or not op.operands[0].has_one_use():
        return None
    made = op.operands[0].owner
    return _Join(op, reshapes, made) if isinstance(made, relay.TupleOp) else None


def _computing(value: SSAValue, places: Mapping[Operation, int]) -> list[Operation]:
    """The ops of a kernel that a value comes from, in the order of their places there."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending += op.operands
    return sorted(found, key=places.__getitem__)


def _copy(call: relay.CallOp, op: Operation, mapper: dict[SSAValue, SSAValue]) -> Operation:
    """A copy of an op of the kernel before its call."""
    copy = op.clone(mapper)
    copy.location = op.location
    Rewriter.insert_op(copy, InsertPoint.before(call))
    mapper[op.results[0]] = copy.results[0]
    return copy


def _kernel(call: relay.CallOp, ops: Sequence[Operation], mapper: dict[SSAValue, SSAValue]) -> SSAValue:
    """The result of a kernel of these ops, which is called before the call."""
    return outline([_copy(call, op, mapper) for op in ops]).result


def _copy_kernel(call: relay.CallOp, value: SSAValue) -> SSAValue:
    from ...dialects.relay.emit import Emitter

    copy = Emitter(call).call("copy", value).owner
    assert isinstance(copy, OperatorOp) and isinstance(value.type, TensorType)
    return outline([copy]).result
