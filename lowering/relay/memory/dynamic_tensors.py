"""Uses the memory of tensors of dynamic shape again once nothing reads them.

Their sizes are known only at run time, so that no plan can place them: each takes its memory from the call's heap. Which of them are
no longer used is known at compile time, and whether their memory is large enough is asked when the next tensor needs some:

    %a = relu(%x); %b = tanh(%a); %c = exp(%b)       %c is written where %a was, if it fits there

A function's intermediate results then stay near, in the caches, instead of each being in memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.relay import ir as relay
from ....dialects.relay.operator import OperatorOp
from ....support.walk import walk_ops
from ..functions.flat_values import DynamicTensorLeaf, leaves_of
from ..functions.match_cast import MatchCastOp
from ..functions.prepare_constants import PreparedOp
from . import heap
from .frame import Place

if TYPE_CHECKING:
    from ..functions.emitter import RelayEmitter

MOST_PIECES = 4
"""Pieces of memory that are kept for tensors to come, those that were given up last."""
LARGEST = 2
"""A tensor takes memory of at most 2^2 times its size, so that small ones leave the large pieces to others."""

Places = frozenset[Place]
Predicate = llvm.ICmpPredicateFlag


def last_uses(body: Block, is_view: Callable[[relay.CallTirOp], bool]) -> dict[Operation, list[Place]]:
    """Returns the dynamic tensors of kernels that each op of a function's body is the last to use.

    `is_view` tells whether a kernel's result is its first argument in another shape. Tensors that an op with regions, a call or the
    function's result may hold on to are never given up.
    """
    held: dict[SSAValue, Places] = {}
    last: dict[Place, Operation] = {}
    kept: set[Place] = set()
    none: Places = frozenset()
    for op in body.ops:
        used = none.union(*(held.get(value, none) for value in op.operands))
        last.update(dict.fromkeys(used, op))
        match op:
            case relay.CallTirOp() if not is_view(op):
                leaves = enumerate(leaves_of(op.result.type, op.result))
                used = frozenset((op, k) for k, leaf in leaves if isinstance(leaf, DynamicTensorLeaf))
                last.update(dict.fromkeys(used, op))
            case (
                relay.CallTirOp()
                | relay.LetOp()
                | relay.TupleOp()
                | relay.TupleGetItemOp()
                | relay.ConstantOp()
                | PreparedOp()
                | MatchCastOp()
                | OperatorOp()
            ):
                pass
            case _:
                kept |= used.union(*(held.get(value, none) for value in _used_inside(op)))
        for result in op.results:
            held[result] = used
    dying: dict[Operation, list[Place]] = {}
    for place, op in last.items():
        if place not in kept:
            dying.setdefault(op, []).append(place)
    return dying


def _used_inside(op: Operation) -> Iterator[SSAValue]:
    return (value for inner in walk_ops(op) for value in inner.operands) if op.regions else iter(())


@dataclass(frozen=True)
class Piece:
    """Memory of the call's heap, and its bytes."""

    address: SSAValue
    bytes: SSAValue


@dataclass
class DynamicTensors:
    """The memory of one function's dynamic tensors while the function is emitted."""

    emit: RelayEmitter
    dying: dict[Operation, list[Place]]
    taken: dict[Place, Piece] = field(default_factory=dict[Place, Piece])
    free: list[Piece] = field(default_factory=list[Piece])
    """Pieces that nothing uses, those given up last first; the last ones may have no bytes."""

    def take(self, place: Place, size: SSAValue, context: SSAValue, fail: Block) -> SSAValue:
        """Emits what finds `size` bytes for a tensor, in the first piece that fits or new memory.

        Returns their address.
        """
        emit, free = self.emit, self.free
        done = emit.new_block(*[heap.PTR, i64] * (1 + len(free)))
        nothing = Piece(emit.value(llvm.ZeroOp.build(result_types=[heap.PTR])), emit.int(0))
        for number, piece in enumerate(free):
            enough, fits, following = emit.new_block(), emit.new_block(), emit.new_block()
            emit.branch_if(emit.compare(size, piece.bytes, Predicate("ule")), enough, following)
            emit.block = enough
            least = emit.value(llvm.LShrOp(piece.bytes, emit.int(LARGEST)))
            emit.branch_if(emit.compare(size, least, Predicate("uge")), fits, following)
            emit.block = fits
            emit.branch(done, *_flat([piece, *free[:number], *free[number + 1 :], nothing]))
            emit.block = following
        fresh = heap.take_bytes(emit, context, size, fail)
        emit.branch(done, *_flat([Piece(fresh, size), *free]))
        emit.block = done
        found, *self.free = (Piece(*done.args[at : at + 2]) for at in range(0, len(done.args), 2))
        self.taken[place] = found
        return found.address

    def give_up(self, op: Operation) -> None:
        """Frees the memory of tensors that nothing uses after an op of the function's body."""
        freed = [self.taken.pop(place) for place in self.dying.get(op, ()) if place in self.taken]
        self.free = [*freed, *self.free][:MOST_PIECES]


def _flat(pieces: Sequence[Piece]) -> list[SSAValue]:
    return [value for piece in pieces for value in (piece.address, piece.bytes)]
