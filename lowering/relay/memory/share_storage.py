"""Implements storage sharing: operators that only move tensors become places in memory, not kernels.

    %2 = fn (%p0, %p1, Primitive=1) {                %2 = concatenate((%0, %1), axis=1)
      concatenate((%p0, %p1), axis=1) }
    %3 = %2(%0, %1)

The producers of `%0` and `%1` then write them to the concatenation's memory (`frame.py`). Other producers that fusion has put into the
kernel of a concatenation become kernels of their own, which write their piece: each iterates over its elements without a test of the piece.
Reshapes, and slices that only kernels read, are addresses in the memory of their argument (`storage_views.py`).

Along an inner axis a piece is stored in rows, with those of the others between them. Only kernels can write and read it there, by strides
(`row_layouts.py`), and they do it well where rows are long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from ....dialects.relay import ir as relay
from ....dialects.relay.operator import OperatorOp
from ....passes.relay.fusion.fuse_ops import is_kernel, outline
from ....support.edit import erase_op, insert_op_before
from ....support.walk import walk_ops
from ..functions.flat_values import TensorLeaf, leaves_of
from ..kernels.constant_arguments import Constants
from .frame import Place, Sources, branches, is_written, place_of_piece, returned
from .storage_views import Rows, is_reshape, piece_offsets, piece_rows, view_offsets, view_rows

BYTES_OF_A_KERNEL = 4096
"""Pieces of so many bytes or more are computed sooner by a kernel each than by one that asks for every element which piece it is in."""

SHORTEST_ROW = 64
"""Rows of fewer bytes are less than a vector: they are copied, all of them by one kernel."""

MOST_COPIED = 1 << 16
"""A piece of more bytes that has to be copied is copied by a kernel, in parallel."""


def share_storage(function: relay.FuncOp) -> set[Operation]:
    """Moves such operators from kernels to the function; returns the operators that need no kernel."""
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

    @property
    def rows(self) -> int:
        """Returns the number of rows in which each of its pieces is stored."""
        return piece_rows(self.op) or 1


class _Sharing:
    """One function on its way."""

    def __init__(self) -> None:
        self.kept: set[Operation] = set()
        self.sources = Sources()
        self.constants = Constants()
        self.results: set[tuple[SSAValue, int]] = set()
        self.placed: set[Place] = set()
        self.in_rows: dict[tuple[SSAValue, int], int] = {}
        """Tensors in rows of another one, and the number of rows: only kernels may read them."""
        self.static: dict[relay.CallOp, bool] = {}

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
                        erase_op(old)

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
        # Each takes the result of the one before it.
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
        rows = 1
        for op in ops:
            if rows > 1 and not isinstance(op, relay.TupleGetItemOp) and not is_reshape(op):
                return False
            found = view_rows(op)
            rows = rows if found is None else found.count
        if (source, leaf) in self.in_rows or (rows > 1 and _row_bytes(call.result.type, rows) < SHORTEST_ROW):
            return False
        # What depends on constants only is computed before the program runs, by kernels.
        if self.constants(source) or (not fresh and not self._only_kernels_read(call.result, rows)):
            return False
        mapper: dict[SSAValue, SSAValue] = dict(zip(body.args, call.arguments, strict=True))
        for op in ops:
            self._move(call, op, mapper)
        made = mapper[ops[-1].results[0]]
        self._replace(call, made)
        if rows > 1:
            self.in_rows |= {self.sources.of(made, k): rows for k in range(len(leaves_of(made.type)))}
        return True

    def _only_kernels_read(self, value: SSAValue, rows: int = 1) -> bool:
        """Returns whether nothing can keep the value, or return it.

        In `rows`, only kernels that this pass makes may read it, in shapes of which so many rows are the first dimensions.
        """
        if rows > 1 and not _fits(value.type, rows):
            return False
        pending, seen = [value], {value}
        while pending:
            for use in pending.pop().uses:
                op = use.operation
                if isinstance(op, relay.LetOp | relay.TupleOp | relay.TupleGetItemOp) or op in self.kept:
                    if rows > 1 and op in self.kept and not (is_reshape(op) and _fits(op.results[0].type, rows)):
                        return False
                    if piece_offsets(op) is None and op.results[0] not in seen:
                        seen.add(op.results[0])
                        pending.append(op.results[0])
                elif isinstance(op, relay.CallOp):
                    kernel = op.callee.owner
                    if not isinstance(kernel, relay.FnOp) or not is_kernel(kernel):
                        return False
                    if rows > 1 and not self._is_static(op):
                        return False
                elif rows > 1 or not isinstance(op, relay.CallTirOp):
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
        rows = joins[-1].rows
        placed: set[Place] = set()
        copied: set[_Piece] = set()
        for piece in pieces:
            place = None if piece.source is None else self._place(call, piece, rows)
            if place is not None and place not in self.placed and place not in placed:
                placed.add(place)
            elif piece.source is not None:
                copied.add(piece)
                if not self._can_be_copied(piece):
                    return False
        computed = {piece for piece in pieces if piece.ops}
        large = {piece for piece in copied if rows > 1 or piece.bytes > MOST_COPIED or piece.source in self.in_rows}
        whole = sum(piece.bytes for piece in joins[-1].pieces)
        if whole < BYTES_OF_A_KERNEL * (len(computed) + len(large) - 1) or (large and not placed and not computed):
            return False  # one kernel does it as quickly
        if rows > 1:
            saved = sum(piece.bytes for piece in pieces if piece not in copied and piece not in computed)
            if 2 * saved < whole or not self._is_static(call):
                return False
            self.in_rows |= {(op.results[0], leaf): rows for op, leaf in placed}
        self.placed |= placed
        self._emit(call, joins, large)
        return True

    def _joins(self, call: relay.CallOp, body: Block) -> list[_Join]:
        """Returns the concatenations of which alone a kernel consists, inner ones first, or none."""
        joins: list[_Join] = []
        outer = _join_of(returned(body))
        pending = [] if outer is None else [outer]
        places = {op: place for place, op in enumerate(body.ops)} if pending else {}
        for join in pending:
            joins.append(join)
            for value in join.made.fields:
                inner = _join_of(value)
                if (
                    inner is not None
                    and join.rows == inner.rows == 1
                    and all(op.results[0].has_one_use() for op in (inner.op, *inner.reshapes))
                ):
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

    def _place(self, call: relay.CallOp, piece: _Piece, rows: int) -> Place | None:
        """Returns the place of a piece in a concatenation at `call`, in so many rows; None where it has none."""
        source = piece.source
        # What depends on constants only is computed before the program runs.
        if source is None or source in self.results or self.constants(source[0]):
            return None
        place = place_of_piece(call, source)
        if rows == 1 or place is None:
            return place
        maker = place[0]
        if isinstance(maker, relay.CallOp):
            kernel = maker.callee.owner
            if not isinstance(kernel, relay.FnOp) or not is_kernel(kernel) or not self._is_static(maker):
                return None
        elif maker not in self.kept or piece_rows(maker) != rows:
            return None
        if piece.bytes < SHORTEST_ROW * rows or not all(_fits(op.results[0].type, rows) for op in piece.moves):
            return None
        return place if self._only_kernels_read(source[0], rows) else None

    def _is_static(self, call: relay.CallOp) -> bool:
        """Returns whether all arguments and results of a kernel are tensors of known shapes."""
        if call not in self.static:
            values = (*call.arguments, call.result)
            self.static[call] = all(isinstance(leaf, TensorLeaf) for v in values for leaf in leaves_of(v.type, v))
        return self.static[call]

    def _can_be_copied(self, piece: _Piece) -> bool:
        """Returns whether a kernel can read the piece at its current place."""
        rows = 1 if piece.source is None else self.in_rows.get(piece.source, 1)
        return rows == 1 or all(_fits(op.results[0].type, rows) for op in piece.moves)

    def _emit(self, call: relay.CallOp, joins: Sequence[_Join], large: Set[_Piece]) -> None:
        """Inserts the pieces and the concatenations before the call, and replaces its result by the last."""
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
            insert_op_before(made, call)
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


def _row_bytes(type: Attribute, rows: int) -> int:
    """Returns the bytes of a row of the tensor of a type that has the shortest ones."""
    return min((leaf.bytes // rows for leaf in leaves_of(type) if isinstance(leaf, TensorLeaf)), default=0)


def _fits(type: Attribute, rows: int) -> bool:
    """Returns whether so many rows are the first dimensions of all tensors of a type."""
    return all(
        isinstance(leaf, TensorLeaf) and Rows(rows, 0).strides(leaf.shape) is not None for leaf in leaves_of(type)
    )


def _peel(value: SSAValue) -> tuple[list[OperatorOp], SSAValue]:
    """Returns the reshapes, the last one first, that end in a value, and what they take."""
    reshapes: list[OperatorOp] = []
    while isinstance(value, OpResult) and isinstance(value.op, OperatorOp) and is_reshape(value.op):
        reshapes.append(value.op)
        value = value.op.args[0]
    return reshapes, value


def _join_of(value: SSAValue) -> _Join | None:
    """Returns the concatenation that a value is, through reshapes."""
    reshapes, inner = _peel(value)
    op = inner.op if isinstance(inner, OpResult) else None
    if op is None or piece_offsets(op) is None or not op.operands[0].has_one_use():
        return None
    made = op.operands[0].owner
    return _Join(op, reshapes, made) if isinstance(made, relay.TupleOp) else None


def _computing(value: SSAValue, places: Mapping[Operation, int]) -> list[Operation]:
    """Returns the ops of a kernel that a value comes from, in the order of their places there."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending += op.operands
    return sorted(found, key=places.__getitem__)


def _copy(call: relay.CallOp, op: Operation, mapper: dict[SSAValue, SSAValue]) -> Operation:
    """Clones an op of the kernel before its call."""
    copy = op.clone(mapper)
    copy.location = op.location
    insert_op_before(copy, call)
    mapper[op.results[0]] = copy.results[0]
    return copy


def _kernel(call: relay.CallOp, ops: Sequence[Operation], mapper: Mapping[SSAValue, SSAValue]) -> SSAValue:
    """Returns the result of a kernel of these ops, which is called before the call."""
    # A reshape among them may be one that moves another piece, too: outside of the kernel it has a copy of its own.
    inside = dict(mapper)
    return outline([_copy(call, op, inside) for op in ops]).result


def _copy_kernel(call: relay.CallOp, value: SSAValue) -> SSAValue:
    from ....dialects.relay.emit import Emitter

    copy = Emitter(call).call("copy", value).owner
    assert isinstance(copy, OperatorOp) and isinstance(value.type, TensorType)
    return outline([copy]).result
