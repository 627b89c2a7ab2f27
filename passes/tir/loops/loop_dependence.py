"""Decides whether the iterations of a loop may run at once: whether one accesses what another stores.

    for i in T.vectorized(4):
        B[i] = B[i] + A[i]        # independent: iteration i accesses element i alone
        C[i] = C[i + 4] + A[i]    # independent: four further on
        D[i] = D[3 - i] + A[i]    # iteration 3 reads what iteration 0 has stored

A loop computes what it computes serially, whatever its kind. The accesses of the loop are compared two by two: their places differ
by `factor * (distance of the iterations) + rest`, and of the rest its range and a divisor are known; otherwise they
are compared as regions that are digits of one number (`schedule.dependence`). Works on blocks as well as on loops alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from math import gcd
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import ZERO, Atom, Kind, conjuncts, free_vars, number, substitute
from ....dialects.arith.int_set import relax
from ....dialects.tir.buffer import AccessOp, buffer_type, tells_region
from ....dialects.tir.intrinsics import Effect, intrinsic_effect
from ....dialects.tir.stmt import RegionsOp
from ....dialects.tir.types import I1, HandleType, is_scalable, lanes_of
from ....support.diagnostics import Diagnostic, MirError
from ....support.walk import all_ops, enclosing, op_around
from ..buffers.strides import extents_of
from ..rewriting import is_same_tree
from ..threads.thread_storage_scope import share_memory

if TYPE_CHECKING:
    from ...schedule.analysis.access import Box

MAX_PAIRS = 4096
"""How many distances of two iterations, or pairs of iterations, are tried one by one."""
_HARMLESS = frozenset(("likely", "assume", "tvm_storage_sync", "undef"))
"""Calls that count as of any effect, but touch no memory."""

Extent = tuple[Expr, Expr]
"""The least index, and how much more the greatest is."""


@dataclass(frozen=True, eq=False)
class Access:
    """A load, a store, or a declared region of a block that contains a call.

    Of such a block only its regions say what it accesses.
    """

    op: Operation
    buffer: SSAValue
    writes: bool
    dims: tuple[Extent, ...] | None
    """In terms of loops, axes of blocks resolved; None where nothing is known."""
    around: tuple[Operation, ...]
    """What is around it in the loop, innermost first."""

    @property
    def is_certain(self) -> bool:
        """Returns whether each iteration accesses this one element, at a known index."""
        if self.dims is None or any(extra != ZERO for _, extra in self.dims):
            return False
        return not any(
            isinstance(each, tir.IfOp | tir.IfThenElseOp | tir.WhileOp | tir.InitOp)
            or (isinstance(each, tir.BlockOp) and each.predicate is not None)
            for each in self.around
        )


@dataclass(frozen=True)
class Conflict:
    """Two accesses that may be of one element in different iterations.

    `first` is None where `second` is a call of unknown effect.
    """

    first: Access | None
    second: Access
    iterations: tuple[Expr, Expr] | None = None
    """Iterations in which they are of one element, where such are known."""

    @property
    def reason(self) -> str:
        """Returns why the order of the iterations matters, as far as is known."""
        if self.first is None:
            return "a call in it may touch any memory"
        name = tir.buffer_name(self.first.buffer)
        if self.iterations is None:
            return f"it is not proven that its iterations touch different elements of '{name}'"
        first, second = self.iterations
        verb = "store to" if self.first.writes and self.second.writes else "store and read"
        return f"iterations {first} and {second} {verb} the same element of '{name}'"

    def error(self, message: str, loop: tir.ForOp, advice: str) -> MirError:
        """Returns the error for a loop that has this conflict, the accesses and advice in notes."""
        error = Diagnostic(f"{message}: {self.reason}", loop.location)
        for note, op in self.notes:
            error = error.with_note(note, op.location)
        return MirError(error.with_note(advice))

    @property
    def notes(self) -> list[tuple[str, Operation]]:
        """Returns the accesses as notes of a message."""
        if self.first is None:
            return [("the call", self.second.op)]
        return [
            ("one iteration stores here" if each.writes else "another one reads here", each.op)
            if number == 0 or self.first.writes != self.second.writes
            else ("another one stores here", each.op)
            for number, each in enumerate(sorted((self.first, self.second), key=lambda each: not each.writes))
        ]


class IterationOrder:
    """The accesses of one loop, and which of them may meet in different iterations."""

    def __init__(self, loop: tir.ForOp, ops: Sequence[Operation] | None = None):
        self.loop = loop
        self._ops = all_ops(loop) if ops is None else ops
        self._roots: dict[SSAValue, SSAValue] = {}
        self._displaced: set[SSAValue] = set()
        """Buffers that begin somewhere in other memory."""
        self._resolved: dict[tir.BlockOp, dict[Atom, Expr]] = {}
        self._analyzer = Analyzer()

    # Questions

    def conflict_of_lanes(self) -> Conflict | None:
        """Returns two accesses that break the loop's order where each runs for all iterations at once.

            for i in T.vectorized(4):
                B[i] = B[i + 1]        # no conflict: all are loaded before any is stored
                C[i + 1] = C[i]        # the conflict: iteration 1 reads what iteration 0 stores

        They are reported unless they are proven apart. A place that all iterations load and store is left to `vectorize-loop`.
        """
        for those in self._written():
            if len(those) == 1 and not self._in_inner_loop(those[0][0]):
                # A vector is stored in the order of its lanes.
                continue
            accesses = [self._access(*each) for each in those]
            for one, other in combinations_with_replacement(accesses, 2):
                if not (one.writes or other.writes):
                    continue
                shared = _share_loop(one, other)
                if one is other and not shared:
                    continue
                if one.buffer is other.buffer and not (self._varies(one) or self._varies(other)):
                    continue
                # Of two accesses the first runs first for all iterations: no iteration before may have run the second.
                if self._may_meet(one, other, backward=shared):
                    return Conflict(one, other)
        return None

    def conflict_of_threads(self) -> Conflict | None:
        """Returns two accesses that may be of one element in two iterations; certain ones are preferred.

        A buffer that is allocated in a block around the loop, but of which each iteration reads only what it wrote itself, is
        allocated for each iteration.
        """
        from ...schedule.analysis.dependence import is_of_iteration

        doubtful: Conflict | None = None
        for those in self._written(opaque=True):
            if is_of_iteration(self._root(those[0][1]), self.loop):
                continue
            accesses = [self._access(*each) for each in those]
            for one, other in combinations_with_replacement(accesses, 2):
                if (one.writes or other.writes) and self._may_meet(one, other, backward=True):
                    found = Conflict(one, other, self._iterations(one, other))
                    if found.iterations is not None:
                        return found
                    doubtful = doubtful or found
        return doubtful or self._unknown_call()

    def exchange_of_threads(self) -> Conflict | None:
        """Returns a load of an iteration that reads what another stores to memory that both see, or None.

            for i in T.thread_binding(8, thread="threadIdx.x"):
                s[i] = X[i]
                Y[i] = s[7 - i]        # the exchange: iteration 0 reads what iteration 7 stores
                T[0] = T[0] + X[i]     # none: each adds to what those before it have stored

        It must be certain, or likely. In memory that is allocated it is likely where an iteration may read what only a later one stores: nothing
        else is there. Not of elements that each iteration stores (`s[0]`). A block that copies what a group of threads has computed (`auto_copy`)
        does it again for each.
        """
        from ...schedule.analysis.dependence import is_of_iteration

        for those in self._written(launched=True):
            root = self._root(those[0][1])
            if not any(share_memory(self.loop, buffer_type(buffer).scope.data) for _, buffer, _ in those):
                continue
            if is_of_iteration(root, self.loop):
                continue
            is_allocated = isinstance(root.owner, tir.AllocBufferOp | tir.AllocateOp)
            accesses = [self._access(*each) for each in those]
            stores = [each for each in accesses if each.writes]
            for load in accesses:
                if load.writes or tells_region(cast(tir.LoadOp, load.op)) or _copies_for_all(load):
                    continue
                if any(_is_update(load, store) or self._is_stored_first(store, load) for store in stores):
                    continue
                for store in stores:
                    if not self._may_meet(store, load, backward=True):
                        continue
                    found = Conflict(load, store, self._iterations(load, store))
                    if found.iterations is not None:
                        return found
                    if is_allocated and not self._is_repeated(store) and self._may_meet(store, load, backward=False):
                        return found
        return None

    # What is touched

    def _written(
        self, opaque: bool = False, launched: bool = False
    ) -> Iterator[list[tuple[Operation, SSAValue, bool]]]:
        """Yields (op, buffer, writes) of all accesses of each outer memory that is written, in program order.

        Where the loop is of threads, also those of the memory that they share, though it is allocated in the loop.
        """
        touched: dict[SSAValue, list[tuple[Operation, SSAValue, bool]]] = {}
        written: dict[SSAValue, None] = {}
        for op in self._ops:
            found: Iterable[tuple[Operation, SSAValue, bool]] = ()
            if isinstance(op, AccessOp):
                found = [(op, op.buffer, isinstance(op, tir.StoreOp))]
            elif opaque and isinstance(op, tir.BufferRegionOp):
                uses = [use.operation for use in op.result.uses]
                around = op_around(op)
                if isinstance(around, tir.BlockOp) and around in self._opaque_blocks:
                    found = [
                        (op, op.buffer, isinstance(use, tir.WritesOp)) for use in uses if isinstance(use, RegionsOp)
                    ]
            for each in found:
                root = self._root(each[1])
                touched.setdefault(root, []).append(each)
                if each[2]:
                    written[root] = None
        for root in written:
            if not self._is_made_inside(root) or (
                launched
                and any(share_memory(self.loop, buffer_type(buffer).scope.data) for _, buffer, _ in touched[root])
            ):
                yield touched[root]

    def _root(self, buffer: SSAValue) -> SSAValue:
        """Returns the memory of a buffer: the first value that refers to it."""
        known = self._roots.get(buffer)
        if known is not None:
            return known
        value = buffer
        while isinstance(owner := value.owner, Operation):
            match owner:
                case tir.MatchBufferOp() if owner.data is not None:
                    value = owner.data
                case tir.MatchBufferOp() | tir.DeclBufferOp() if owner.source is not None:
                    value = owner.source
                case tir.BufferRegionOp() | tir.BufferGetOp():
                    value = owner.buffer
                case tir.LetOp():
                    value = owner.value
                case tir.CallOp() if pointers := _pointers(owner):
                    value = pointers[0]
                    self._displaced.add(buffer)
                case tir.LoadOp() if value is not buffer:
                    # The address of an element.
                    value = owner.buffer
                case _:
                    break
        self._roots[buffer] = value
        return value

    @cached_property
    def _variable(self) -> Atom:
        """Returns the loop's variable."""
        atom = self._analyzer.expr(self.loop.loop_var).atom
        assert atom is not None
        return atom

    @cached_property
    def _extent(self) -> int | None:
        """Returns the constant trip count, or None."""
        return self._analyzer.expr(self.loop.extent).value

    @cached_property
    def _numbers(self) -> dict[Operation, int]:
        """Returns the number of each op of the loop in program order."""
        return {op: number for number, op in enumerate(self._ops)}

    @cached_property
    def _opaque_blocks(self) -> set[tir.BlockOp]:
        """Blocks with calls in them that may touch memory."""
        return {around for op in self._ops if _is_opaque(op) and (around := self._block_around(op)) is not None}

    def _block_around(self, op: Operation) -> tir.BlockOp | None:
        """Returns the block inside the loop that an op is in."""
        return next((each for each in enclosing(op, self.loop) if isinstance(each, tir.BlockOp)), None)

    def _unknown_call(self) -> Conflict | None:
        """Returns a call that may access any memory, outside of a block that declares its regions."""
        for op in self._ops:
            if _is_opaque(op) and self._block_around(op) is None:
                return Conflict(None, Access(op, self.loop.loop_var, True, None, ()))
        return None

    def _is_made_inside(self, value: SSAValue) -> bool:
        """Returns whether a value is defined in the loop, so that it may differ in each iteration."""
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            return parent is not None and parent is not self.loop and parent in self._numbers
        return owner in self._numbers

    def _in_inner_loop(self, op: Operation) -> bool:
        return any(isinstance(each, tir.ForOp | tir.WhileOp) for each in enclosing(op, self.loop))

    def _access(self, op: Operation, buffer: SSAValue, writes: bool) -> Access:
        assert isinstance(op, AccessOp | tir.BufferRegionOp)
        around = list(enclosing(op, self.loop))
        if isinstance(op, tir.BufferRegionOp):
            dims = self._region(op, around)
        else:
            indices = [self._index(index, around) for index in op.indices]
            known = [index for index in indices if index is not None]
            dims = tuple(known) if len(known) == len(indices) else None
        while isinstance(owner := buffer.owner, Operation) and owner in self._numbers:
            # A view, which may be of another part in each iteration.
            if isinstance(owner, tir.DeclBufferOp) and owner.elem_offset is None and not owner.stride_dims.data:
                break
            region = owner.source.owner if isinstance(owner, tir.MatchBufferOp) and owner.source is not None else None
            if not isinstance(region, tir.BufferRegionOp):
                dims = None
                break
            buffer, dims = region.buffer, self._region(region, around)
        return Access(op, buffer, writes, dims, tuple(around))

    def _index(self, index: SSAValue, around: Sequence[Operation]) -> Extent | None:
        """Returns the range of an index: one element, or those of a ramp; None for other vectors."""
        if isinstance(index.type, IntegerType):
            return self._resolve(self._analyzer.expr(index), around), ZERO
        ramp = index.owner
        stride = self._analyzer.expr(ramp.stride).value if isinstance(ramp, tir.RampOp) else None
        if not isinstance(ramp, tir.RampOp) or stride is None or stride < 0 or is_scalable(index.type):
            return None
        return self._resolve(self._analyzer.expr(ramp.base), around), number(stride * (lanes_of(index.type) - 1))

    def _region(self, region: tir.BufferRegionOp, around: Sequence[Operation]) -> tuple[Extent, ...]:
        expr = self._analyzer.expr
        return tuple(
            (self._resolve(expr(low), around), self._resolve(expr(extent) - 1, around))
            for low, extent in zip(region.mins, region.extents, strict=True)
        )

    def _resolve(self, e: Expr, around: Sequence[Operation]) -> Expr:
        """Substitutes the bindings of blocks for their axes."""
        for block in around:
            if isinstance(block, tir.BlockOp) and e.terms:
                values = self._resolved.get(block)
                if values is None:
                    pairs = zip(block.iter_vars, block.bindings, strict=True)
                    values = {
                        atom: self._analyzer.expr(binding)
                        for axis, binding in pairs
                        if (atom := self._analyzer.expr(axis).atom) is not None
                    }
                    self._resolved[block] = values
                e = substitute(e, values)
        return e

    # Whether they meet

    def _varies(self, access: Access) -> bool:
        """Returns whether the place of an access may differ between iterations."""
        return access.dims is None or any(
            atom is self._variable or self._is_computed_inside(atom)
            for low, extra in access.dims
            for atom in free_vars(low, extra)
        )

    def _is_repeated(self, access: Access) -> bool:
        """Returns whether each iteration accesses the same elements, under the same conditions."""
        around = [
            value
            for op in access.around
            for value in op.operands
            if isinstance(op, tir.ForOp | tir.IfOp | tir.BlockOp | tir.WhileOp) and isinstance(value.type, IntegerType)
        ]
        asked = (self._resolve(self._analyzer.expr(value), access.around) for value in around)
        return not self._varies(access) and not any(
            atom is self._variable or self._is_computed_inside(atom) for e in asked for atom in free_vars(e)
        )

    def _is_stored_first(self, store: Access, load: Access) -> bool:
        """Returns whether each iteration itself has stored the element of a load before."""
        op = store.op
        if not isinstance(op, tir.StoreOp) or op.predicate is not None or not store.is_certain:
            return False
        if store.dims != load.dims or store.buffer is not load.buffer or self._numbers[op] > self._numbers[load.op]:
            return False
        loops = [each for each in store.around if isinstance(each, tir.ForOp) and each not in load.around]
        return all(self._ranges.can_prove_ge0(self._analyzer.expr(loop.extent) - 1) for loop in loops)

    def _is_computed_inside(self, atom: Atom) -> bool:
        """Returns whether an atom is the result of an op in the loop, as a load, which may vary."""
        value = atom.payload
        return isinstance(value, OpResult) and not isinstance(value.op, tir.VarOp) and self._is_made_inside(value)

    def _is_inner(self, atom: Atom) -> bool:
        """Returns whether an atom may differ in another iteration; the loop's own variable does not count."""
        return any(isinstance(a.payload, SSAValue) and self._is_made_inside(a.payload) for a in _variables(atom))

    def _may_meet(self, one: Access, other: Access, backward: bool) -> bool:
        """Returns whether `one` may access in an iteration what `other` accesses in an earlier one.

        With `backward`, in any other one.
        """
        if one.dims is None or other.dims is None:
            return True
        if one.buffer is other.buffer:
            pairs = zip(one.dims, other.dims, strict=True)
            if not all(self._dims_may_meet(a, b, backward) for a, b in pairs):
                return False
        # Buffers of other elements are not counted in the same unit.
        flat = [self._flat(each) for each in (one, other)] if _element(one) == _element(other) else [None, None]
        if flat[0] is not None and flat[1] is not None and not self._dims_may_meet(flat[0], flat[1], backward):
            return False
        return not (one.buffer is other.buffer and self._apart_as_regions(one, other))

    def _flat(self, access: Access) -> Extent | None:
        """Returns an access's place counted through the rows of a compact buffer: (first, distance to last)."""
        assert access.dims is not None
        owner = access.buffer.owner
        if isinstance(owner, tir.BufferOp) and (owner.stride_dims.data or owner.elem_offset is not None):
            return None
        if access.buffer in self._displaced:
            return None
        place = length = ZERO
        for extent, (low, extra) in zip(extents_of(self._analyzer, access.buffer), access.dims, strict=True):
            place, length = place * extent + low, length * extent + extra
        return self._ranges.simplify(place), self._ranges.simplify(length)

    @cached_property
    def _ranges(self) -> Analyzer:
        """Knows the ranges of the loops around the loop, of itself, and in it."""
        analyzer = Analyzer()
        loops = [each for each in enclosing(self.loop) if isinstance(each, tir.ForOp)]
        for loop in (*reversed(loops), *(op for op in self._ops if isinstance(op, tir.ForOp))):
            analyzer.bind(loop.loop_var, loop.min, loop.extent)
        return analyzer

    def _dims_may_meet(self, one: Extent, other: Extent, backward: bool) -> bool:
        """Returns whether two indices may be equal, the first in a later iteration (with `backward`: another)."""
        factors: list[int] = []
        rests: list[Expr] = []
        for low, _ in (one, other):
            factor = low.coefficient(self._variable)
            rest = low - Expr(((self._variable, factor),), 0) if factor else low
            if self._variable in free_vars(rest):
                return True
            factors.append(factor)
            rests.append(rest)
        # Terms that may be of other values in other iterations do not cancel.
        terms: dict[Atom, int] = {}
        apart: list[tuple[Atom, int]] = []
        for rest, sign in zip(rests, (1, -1), strict=True):
            for atom, c in rest.terms:
                if self._is_inner(atom):
                    apart.append((atom, sign * c))
                else:
                    terms[atom] = terms.get(atom, 0) + sign * c
        constant = rests[0].const - rests[1].const
        least = most = divisor = 0
        for atom, c in (*apart, *((atom, c) for atom, c in terms.items() if c)):
            bound = self._ranges.const_int_bound(Expr(((atom, c),), 0))
            least, most, divisor = least + bound.min_value, most + bound.max_value, gcd(divisor, c)
        for (_, extra), sign in ((one, 1), (other, -1)):
            if extra != ZERO:
                bound = self._ranges.const_int_bound(extra.scaled(sign))
                least, most, divisor = least + min(bound.min_value, 0), most + max(bound.max_value, 0), 1
        return self._solvable(factors, constant, least, most, divisor, backward)

    def _solvable(
        self, factors: Sequence[int], constant: int, least: int, most: int, divisor: int, backward: bool
    ) -> bool:
        """Returns whether factors[0] * p - factors[1] * q + constant + rest is 0 for some iterations p > q.

        With `backward`, for some p != q. The rest is a multiple of the divisor (0: it is 0) from `least` to `most`.
        """

        def is_rest(value: int) -> bool:
            return least <= value <= most and (value == 0 if divisor == 0 else value % divisor == 0)

        extent = self._extent
        a, b = factors
        if a == b:
            if a == 0:
                return is_rest(-constant)
            reach = max(abs(least + constant), abs(most + constant)) // abs(a)
            reach = reach if extent is None else min(reach, extent - 1)
            if reach > MAX_PAIRS:
                return True
            return any(
                is_rest(-constant - a * distance) or (backward and is_rest(-constant + a * distance))
                for distance in range(1, reach + 1)
            )
        start = self._analyzer.expr(self.loop.min).value
        if extent is None or start is None or extent * extent > MAX_PAIRS:
            return True
        numbers = range(start, start + extent)
        return any(
            is_rest(b * q - a * p - constant) for p in numbers for q in numbers if p > q or (backward and p != q)
        )

    def _apart_as_regions(self, one: Access, other: Access) -> bool:
        """Returns whether the regions that both access while inner loops run are disjoint across iterations."""
        from ...schedule.analysis.access import Box
        from ...schedule.analysis.dependence import iterations_apart

        assert one.dims is not None and other.dims is not None
        simplify = self._ranges.simplify
        boxes = [
            Box(access.buffer, tuple((simplify(low), simplify(low + extra)) for low, extra in access.dims or ()))
            for access in (one, other)
        ]
        return iterations_apart(self.loop, boxes[0], self._site(one), boxes[1], self._site(other))

    def _site(self, access: Access) -> _Site:
        """Returns the loops and conditions around an access."""
        loops = [self.loop, *(each for each in reversed(access.around) if isinstance(each, tir.ForOp))]
        conditions: list[Expr] = []
        below = access.op
        for place, op in enumerate(access.around):
            condition: SSAValue | None = None
            if isinstance(op, tir.BlockOp):
                condition = op.predicate
            elif isinstance(op, tir.IfOp) and below.parent is op.then_region.blocks.first and op.condition.type == I1:
                condition = op.condition
            if condition is not None:
                conditions += conjuncts(self._resolve(self._analyzer.expr(condition), access.around[place + 1 :]))
            below = op
        return _Site(loops, conditions, self._ranges, lambda e: not any(map(self._is_computed_inside, free_vars(e))))

    # Iterations that are known to meet

    def _iterations(self, one: Access, other: Access) -> tuple[Expr, Expr] | None:
        """Finds two iterations in which both accesses surely are of one element."""
        if not (one.is_certain and other.is_certain):
            return None
        indices = [[low for low, _ in access.dims or ()] for access in (one, other)]
        if one.buffer is not other.buffer:
            flat = [self._flat(each) for each in (one, other)] if _element(one) == _element(other) else [None]
            indices = [[each[0]] for each in flat if each is not None]
            if len(indices) < 2:
                return None
        if any(self._is_computed_inside(atom) for atom in free_vars(*indices[0], *indices[1])):
            return None
        if self._has_inner_bounds(one) or self._has_inner_bounds(other):
            return None
        simplify = self._ranges.simplify
        start, extent = self._analyzer.expr(self.loop.min), self._analyzer.expr(self.loop.extent)
        if self._extent is not None and self._extent < 2:
            return None
        if self._extent is not None and self._extent**2 <= MAX_PAIRS // 4:
            candidates = [start + k for k in range(self._extent)]
        else:
            ends = [start + extent - 1 - k for k in range(3)]
            candidates = [start + k for k in range(2 if self._extent is None else min(8, self._extent))]
            candidates += [end for end in ends if self._extent is None or end not in candidates]
            for a, b in zip(*indices, strict=True):
                distance = simplify(a - b).value
                factor = a.coefficient(self._variable)
                if distance is not None and factor and distance % factor == 0:
                    candidates.append(start + abs(distance // factor))
        for first, second in permutations(dict.fromkeys(map(simplify, candidates)), 2):
            if all(
                simplify(substitute(a, {self._variable: first}) - substitute(b, {self._variable: second})) == ZERO
                for a, b in zip(*indices, strict=True)
            ) and (self._extent is None or (self._is_iteration(first) and self._is_iteration(second))):
                return (
                    (first, second) if (second - first).value is None or (second - first).const > 0 else (second, first)
                )
        return None

    def _has_inner_bounds(self, access: Access) -> bool:
        """Returns whether the bounds of loops around an access depend on the iteration."""
        loops = [each for each in access.around if isinstance(each, tir.ForOp)]
        bounds = [
            self._resolve(self._analyzer.expr(bound), access.around)
            for each in loops
            for bound in (each.min, each.extent)
        ]
        return any(atom is self._variable or self._is_inner(atom) for atom in free_vars(*bounds))

    def _is_iteration(self, e: Expr) -> bool:
        distance = (e - self._analyzer.expr(self.loop.min)).value
        return distance is not None and self._extent is not None and 0 <= distance < self._extent


@dataclass(frozen=True)
class _Site:
    """The loops and conditions around an access, in the form that `schedule.dependence` asks for."""

    loops: list[tir.ForOp]
    conditions: list[Expr]
    analyzer: Analyzer
    is_known: Callable[[Expr], bool]

    def reached(self, box: Box, fixed: Sequence[tir.ForOp]) -> Box:
        """Returns the region that the access covers while all loops except the fixed ones run."""
        from ...schedule.analysis.access import Box, whole

        variables = {self.analyzer.expr(each.loop_var).atom for each in self.loops if each not in fixed}
        inner = {atom for atom in variables if atom is not None}
        dims: list[tuple[Expr, Expr]] = []
        for low, high in box.dims:
            starts, stops = (relax(end, inner, self.analyzer) for end in (low, high))
            if starts is None or stops is None or not (self.is_known(starts[0]) and self.is_known(stops[1])):
                return whole(box.buffer, self.analyzer)
            dims.append((self.analyzer.simplify(starts[0]), self.analyzer.simplify(stops[1])))
        return Box(box.buffer, tuple(dims))


def _element(access: Access) -> Attribute:
    """Returns the element type of the buffer of an access."""
    assert isinstance(access.buffer.type, tir.BufferType)
    return access.buffer.type.dtype


def _variables(atom: Atom) -> tuple[Atom, ...]:
    return (atom,) if atom.kind is Kind.VAR else tuple(free_vars(Expr(((atom, 1),), 0)))


def _pointers(call: tir.CallOp) -> list[SSAValue]:
    """Returns the memory operands of a call: buffers, pointers, and the element whose address it takes."""
    takes_address = call.intrinsic.data == "address_of"
    return [v for v in call.arguments if takes_address or isinstance(v.type, tir.BufferType | HandleType)]


def _share_loop(one: Access, other: Access) -> bool:
    """Returns whether an inner loop is around both accesses."""
    return any(isinstance(each, tir.ForOp | tir.WhileOp) and each in other.around for each in one.around)


def _is_update(load: Access, store: Access) -> bool:
    """Returns whether a load reads the element that an adjacent statement updates.

    Such a store relies on what was stored there before.
    """
    if load.buffer is not store.buffer or load.around != store.around:
        return False
    if load.dims == store.dims:
        return True
    # Places that are loaded themselves (`B[place[i]]`) are of several loads.
    one, other = load.op, store.op
    return (
        isinstance(one, tir.LoadOp)
        and isinstance(other, tir.StoreOp)
        and all(map(is_same_tree, one.indices, other.indices))
    )


def _copies_for_all(access: Access) -> bool:
    """Returns whether an access belongs to a block that copies for a group of threads."""
    return any(isinstance(each, tir.BlockOp) and "auto_copy" in each.annotations.data for each in access.around)


def _is_opaque(op: Operation) -> bool:
    """Returns whether an op may access memory that it does not name."""
    if isinstance(op, tir.CallOp):
        if op.callee is not None or _pointers(op):
            return True
        name = op.intrinsic.data
        return intrinsic_effect(name) is Effect.OPAQUE and name not in _HARMLESS
    return False
