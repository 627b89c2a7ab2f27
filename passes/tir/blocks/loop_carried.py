"""Decides whether a buffer's contents outlast an iteration of a loop: a later one reads what it wrote.

    for i in range(10):
        for j in range(10):
            C[i, j] = A[i, j]
        for ax0, j in T.grid(3, 9):
            if 2 <= i + ax0 < 10:
                D[i + ax0 - 2, j] = C[i + ax0 - 2, j] + C[i + ax0, j]    # row i - 2 of C is of two iterations before

A read does not need earlier iterations where each element that it may read was written before in the same one, or where no
earlier iteration writes such an element. Where neither is proven, the contents are taken to outlast the iteration.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr, Kind
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import ONE, ZERO, conjuncts, free_vars, ge, le, logical_not, substitute, symbol
from ....dialects.arith.int_set import Ends, relax
from ....dialects.arith.iter_map import filled
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.stmt import RegionsOp
from ....dialects.tir.types import I1
from ....support.walk import enclosing, op_around
from ...schedule.analysis.structure import read_regions, runs_before, write_regions

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class _Use:
    """A read or write: the ends in each dimension, in terms of loops only."""

    op: Operation
    dims: tuple[Ends, ...]
    element: bool
    """Of one element, which must be in the buffer."""


@dataclass(frozen=True)
class _Part:
    """The region that a write fills before a read: between these ends, where the conditions hold."""

    write: _Use
    ends: list[Ends]
    inner: tuple[tir.ForOp, ...]
    conditions: list[Expr]


@dataclass
class _Place:
    """The loops, conditions and blocks around an op, innermost first."""

    loops: list[tir.ForOp] = field(default_factory=list[tir.ForOp])
    repeated: list[tir.WhileOp] = field(default_factory=list[tir.WhileOp])
    conditions: list[tuple[Operation, Expr]] = field(default_factory=list[tuple[Operation, Expr]])
    """With the ops that ask for them."""
    bound: list[dict[Atom, Expr]] = field(default_factory=list[dict[Atom, Expr]])
    """What the axes of each block are bound to."""


class CarriedValues:
    """Decides which loops carry the contents of a buffer from one iteration to the next."""

    def __init__(self, buffer: SSAValue):
        self._analyzer = Analyzer()
        self._buffer = buffer
        self._places: dict[Block | None, _Place] = {}
        self._ranges: dict[tir.ForOp, tuple[Expr, Expr, Expr]] = {}
        self._extents = _extents(buffer, self._analyzer)
        self._reads, self._writes = self._uses()
        self._join_digits()
        self._covered: dict[tuple[_Use, tuple[_Use, ...]], bool] = {}
        self._begun: dict[_Use, frozenset[Atom]] = {}
        self._reached: dict[tuple[_Use, tir.ForOp], list[Ends | None]] = {}
        self._filled: dict[tuple[_Use, Block | None], list[Ends] | None] = {}

    def outlasts(self, loop: tir.ForOp | tir.WhileOp) -> bool:
        """Returns whether an iteration of a loop around all uses may read what an earlier iteration wrote."""
        if self._reads is None:
            return True
        atom = self._analyzer.expr(loop.loop_var).atom if isinstance(loop, tir.ForOp) else None
        # What T.init stores is there in the first iteration of the reduction's loops alone.
        writes = tuple(write for write in self._writes if atom not in self._reduced(write))
        return any(
            # What covers a read does so for every loop, and is asked for once.
            not self._is_covered(read, writes)
            and (not isinstance(loop, tir.ForOp) or not all(self._apart(read, write, loop) for write in self._writes))
            for read in self._reads
        )

    def _uses(self) -> tuple[list[_Use] | None, list[_Use]]:
        """Returns (reads, writes); None for the reads where it is not known what is read."""
        reads: dict[Operation, list[_Use]] = {}
        writes: dict[Operation, list[_Use]] = {}
        for use in self._buffer.uses:
            op = use.operation
            if isinstance(op, AccessOp) and all(isinstance(i.type, IntegerType) for i in op.indices):
                if isinstance(op, tir.LoadOp):
                    reads[op] = [self._use(op, self._element(op), True)]
                    continue
                if isinstance(op, tir.StoreOp) and op.predicate is None:
                    writes[op] = [self._use(op, self._element(op), True)]
                    continue
            if isinstance(op, tir.BufferRegionOp) and all(isinstance(u.operation, RegionsOp) for u in op.result.uses):
                continue
            # What is done with an address, or a vector of indices, is what the block says.
            block = next((each for each in enclosing(op) if isinstance(each, tir.BlockOp)), None)
            if block is None:
                return None, []
            for found, regions in ((reads, read_regions(block)), (writes, write_regions(block))):
                found[block] = [self._region(block, r) for r in regions if r.buffer is self._buffer]
        return [use for each in reads.values() for use in each], [use for each in writes.values() for use in each]

    def _join_digits(self) -> None:
        """Joins two dimensions where all uses index them by the digits of one number: B[x // 4, x % 4], B[x]."""
        uses = [*(self._reads or ()), *self._writes]
        if not all(use.element for use in uses):
            return
        analyzer = self._analyzer
        while (found := self._digits(uses)) is not None:
            high, low, joined = found
            uses = [
                replace(use, dims=_joined(use.dims, high, low, (number, number)))
                for use, number in zip(uses, joined, strict=True)
            ]
            extent = analyzer.simplify(self._extents[high] * self._extents[low])
            self._extents = [*_joined(self._extents, high, low, extent)]
        split = len(self._reads or ())
        self._reads, self._writes = (None if self._reads is None else uses[:split]), uses[split:]

    def _digits(self, uses: Sequence[_Use]) -> tuple[int, int, list[Expr]] | None:
        """Finds two dimensions indexed by x // n and x % n of one number x in each use: (high, low, numbers)."""
        for low, extent in enumerate(self._extents):
            base = extent.value
            if base is None or not any(_has_division(use.dims[low][0]) for use in uses):
                continue
            for high in range(len(self._extents)):
                joined: list[Expr] = []
                for use in uses:
                    with self._running(use.op):
                        number = self._analyzer.simplify(use.dims[high][0].scaled(base) + use.dims[low][0])
                    if high == low or _has_division(number):
                        break
                    joined.append(number)
                else:
                    return high, low, joined
        return None

    def _element(self, op: AccessOp) -> list[Ends]:
        places = [self._analyzer.expr(index) for index in op.indices]
        return [(place, place) for place in places]

    def _region(self, block: tir.BlockOp, region: tir.BufferRegionOp) -> _Use:
        dims: list[Ends] = []
        for low, extent in zip(region.mins, region.extents, strict=True):
            start = self._analyzer.expr(low)
            dims.append((start, start + self._analyzer.expr(extent) - 1))
        return self._use(region, dims, False)

    def _use(self, op: Operation, dims: Sequence[Ends], element: bool) -> _Use:
        bound = self._place(op).bound
        ends: list[Ends] = []
        for low, high in dims:
            start = _in_loops(low, bound)
            ends.append((start, start if high is low else _in_loops(high, bound)))
        if not all(_is_linear(e) for both in ends for e in both):
            simplify = self._analyzer.simplify
            with self._running(op):
                ends = [((start := simplify(low)), start if high is low else simplify(high)) for low, high in ends]
        return _Use(op, tuple(ends), element)

    @contextmanager
    def _running(self, *ops: Operation) -> Generator[None]:
        """Makes the analyzer know that the loops around these ops run, hence that their extents are positive."""
        loops = dict.fromkeys(loop for op in ops for loop in reversed(self._place(op).loops))
        with self._analyzer.constraint(1):
            for loop in loops:
                self._analyzer.bind(*self._range_of(loop))
            yield

    def _range_of(self, loop: tir.ForOp) -> tuple[Expr, Expr, Expr]:
        """Returns the variable of a loop, its first value and its extent."""
        found = self._ranges.get(loop)
        if found is None:
            expr = self._analyzer.expr
            found = self._ranges[loop] = expr(loop.loop_var), expr(loop.min), expr(loop.extent)
        return found

    def _place(self, op: Operation) -> _Place:
        """Returns the loops, conditions and blocks around an op."""
        found = self._places.get(op.parent)
        if found is not None:
            return found
        place = self._places[op.parent] = _Place()
        asked: list[tuple[Operation, int, Expr]] = []
        inner, parent = op, op_around(op)
        while parent is not None:
            match parent:
                case tir.ForOp():
                    place.loops.append(parent)
                case tir.WhileOp():
                    place.repeated.append(parent)
                case tir.IfOp() | tir.IfThenElseOp():
                    if parent.condition.type == I1 and not _is_first_of_reduction(parent):
                        condition = self._analyzer.expr(parent.condition)
                        if inner.parent is not None and inner.parent.parent is not parent.then_region:
                            condition = logical_not(condition)
                        asked.append((parent, len(place.bound), condition))
                case tir.BlockOp():
                    place.bound.append(
                        {
                            atom: self._analyzer.expr(binding)
                            for axis, binding in zip(parent.iter_vars, parent.bindings, strict=True)
                            if (atom := self._analyzer.expr(axis).atom) is not None
                        }
                    )
                    if parent.predicate is not None:
                        # It is a condition on what is around the block.
                        asked.append((parent, len(place.bound), self._analyzer.expr(parent.predicate)))
                case _:
                    pass
            inner, parent = parent, op_around(parent)
        if asked:
            with self._running(op):
                place.conditions = [
                    (asker, self._analyzer.simplify(_in_loops(part, place.bound[depth:])))
                    for asker, depth, condition in asked
                    for part in conjuncts(condition)
                ]
        return place

    # Written before, in the same iteration

    def _is_covered(self, read: _Use, writes: tuple[_Use, ...]) -> bool:
        """Returns whether `writes` are proven to fill all that a read reads, before it in the same iteration.

        The iteration is that of the loops around both.
        """
        found = self._covered.get((read, writes))
        if found is None:
            analyzer = self._analyzer
            with self._running(read.op):
                for _, condition in self._place(read.op).conditions:
                    analyzer.constraint(condition)
                parts = [part for write in writes if (part := self._before(write, read)) is not None]
                found = any(self._holds(part, read) for part in parts)
                if not found and parts and read.element:
                    for (index, _), extent in zip(read.dims, self._extents, strict=True):
                        analyzer.constraint(ge(index, ZERO))
                        analyzer.constraint(le(index, extent - 1))
                    found = any(self._holds(part, read) for part in parts) or self._hold_together(parts, read)
            self._covered[(read, writes)] = found
        return found

    def _before(self, write: _Use, read: _Use) -> _Part | None:
        """Returns the region that a write fills before the read, in one iteration of all loops around both."""
        if not runs_before(write.op, read.op):
            return None
        there, here = self._place(write.op), self._place(read.op)
        if any(loop not in here.repeated for loop in there.repeated):
            return None
        inner = tuple(loop for loop in there.loops if loop not in here.loops)
        # All that is read in a block is read where the same loops run and the same conditions hold.
        key = (write, read.op.parent)
        if key not in self._filled:
            self._filled[key] = self._box(write, inner)
        ends = self._filled[key]
        if ends is None:
            return None
        return _Part(write, ends, inner, [c for op, c in there.conditions if not op.is_ancestor(read.op)])

    def _box(self, write: _Use, inner: Sequence[tir.ForOp]) -> list[Ends] | None:
        """Returns the ends between which a write fills the buffer while `inner` run, without its conditions.

        None unless these loops are proven to run.
        """
        analyzer = self._analyzer
        if not all(analyzer.can_prove_ge0(analyzer.expr(loop.extent) - 1) for loop in inner):
            return None
        starts = [low for low, _ in write.dims]
        sizes = [ONE if high is low else analyzer.simplify(high - low + 1) for low, high in write.dims]
        if any(_is_computed(e) for e in (*starts, *sizes)) or self._begins_another(write, starts):
            return None
        if not inner:
            return list(write.dims)
        ranges = [self._range_of(loop) for loop in inner[::-1]]
        iters: dict[Value, tuple[Value, Value]] = {variable: (low, extent) for variable, low, extent in ranges}
        written = filled(starts, sizes, iters, analyzer)
        return None if isinstance(written, str) else written

    def _holds(self, part: _Part, read: _Use, but: int | None = None) -> bool:
        """Returns whether a write covers a read: in every dimension except `but`, and under its conditions."""
        analyzer = self._analyzer
        return all(
            number == but or (analyzer.can_prove_ge0(low - least) and analyzer.can_prove_ge0(most - high))
            for number, ((least, most), (low, high)) in enumerate(zip(part.ends, read.dims, strict=True))
        ) and self._hold_where_read(part, read)

    def _hold_together(self, parts: Sequence[_Part], read: _Use) -> bool:
        """Returns whether several adjacent regions together cover an element, as `loop_partition` makes them."""
        if len(parts) < 2 or not read.element:
            return False
        analyzer = self._analyzer
        for number, (index, _) in enumerate(read.dims):
            reached = index - 1
            left = list(parts)
            while not analyzer.can_prove_ge0(reached - index):
                for part in left:
                    least, most = part.ends[number]
                    starts = analyzer.can_prove_ge0((index if reached == index - 1 else reached + 1) - least)
                    if not starts or analyzer.can_prove_ge0(reached - most):
                        continue
                    with analyzer.constraint(ge(index, least)):
                        analyzer.constraint(le(index, most))
                        inside = self._holds(part, read, number)
                    if inside:
                        reached = most
                        left.remove(part)
                        break
                else:
                    break
            else:
                return True
        return False

    def _begins_another(self, write: _Use, starts: list[Expr]) -> bool:
        """Returns whether a write of `T.init` stores at an index that depends on the loops of its reduction.

        Such a write sees only the first iteration of them.
        """
        return not self._reduced(write).isdisjoint(atom for e in starts for atom in free_vars(e))

    def _reduced(self, write: _Use) -> frozenset[Atom]:
        """Returns the variables of the reduction loops whose first iteration a write initializes.

        Such a write is in `T.init`, or in the branch that replaced it.
        """
        found = self._begun.get(write)
        if found is None:
            reduced: set[Atom] = set()
            for parent in enclosing(write.op):
                if not isinstance(parent, tir.InitOp) and not (
                    isinstance(parent, tir.IfOp) and _is_first_of_reduction(parent)
                ):
                    continue
                block = op_around(parent)
                assert isinstance(block, tir.BlockOp)
                outer = self._place(block).bound
                for binding, kind in zip(block.bindings, block.iter_types.data, strict=True):
                    if kind.data == "R":
                        reduced.update(free_vars(_in_loops(self._analyzer.expr(binding), outer)))
            found = self._begun[write] = frozenset(reduced)
        return found

    def _hold_where_read(self, part: _Part, read: _Use) -> bool:
        """Returns whether a write's conditions hold for some inner iteration of it that writes what is read."""
        if not part.conditions:
            return True
        analyzer = self._analyzer
        starts = [low for low, _ in part.write.dims]
        variables = {atom: loop for loop in part.inner if (atom := analyzer.expr(loop.loop_var).atom) is not None}
        indexing = {atom for e in starts for atom in free_vars(e)}
        # An element is written in each iteration of the loops that do not say which one: take their first.
        first = {atom: analyzer.expr(loop.min) for atom, loop in variables.items() if atom not in indexing}
        for condition in part.conditions:
            e = analyzer.simplify(substitute(condition, first))
            if _is_computed(e) or not self._holds_where_read(e, starts, variables.keys() & indexing, read):
                return False
        return True

    def _holds_where_read(self, condition: Expr, starts: list[Expr], variables: set[Atom], read: _Use) -> bool:
        """Returns whether one condition holds where an index of the write equals the index that is read."""
        analyzer = self._analyzer
        if not variables.intersection(free_vars(condition)):
            return analyzer.can_prove(condition)
        atom = condition.atom
        if atom is None or atom.kind is not Kind.GE:
            return False
        (e,) = atom.operands
        for start, ends in zip(starts, read.dims, strict=True):
            for sign in (1, -1):
                rest = analyzer.simplify(e - start.scaled(sign))
                if not variables.intersection(free_vars(rest)):
                    return all(analyzer.can_prove_ge0(end.scaled(sign) + rest) for end in ends)
        return False

    # Not written by earlier iterations

    def _apart(self, read: _Use, write: _Use, loop: tir.ForOp) -> bool:
        """Returns whether no iteration of a loop writes what a later one reads; outer loops do not advance."""
        analyzer = self._analyzer
        atom = analyzer.expr(loop.loop_var).atom
        if atom is None:
            return False
        ends = [self._while_inner_run(use, loop) for use in (read, write)]
        for mine, theirs in zip(*ends, strict=True):
            if mine is None or theirs is None or not any(atom in free_vars(*e) for e in (mine, theirs)):
                continue
            before = symbol("before")
            with (
                self._running(read.op, write.op),
                analyzer.bind(before, 0, analyzer.expr(loop.loop_var) - analyzer.expr(loop.min)),
            ):
                earlier = {atom: analyzer.expr(loop.loop_var) - before - 1}
                low, high = (substitute(e, earlier) for e in theirs)
                if analyzer.can_prove_ge0(mine[0] - high - 1) or analyzer.can_prove_ge0(low - mine[1] - 1):
                    return True
        return False

    def _while_inner_run(self, use: _Use, loop: tir.ForOp) -> list[Ends | None]:
        """Returns the ends of a use in each dimension while the loops in `loop` run; None: not known."""
        known = self._reached.get((use, loop))
        if known is not None:
            return known
        analyzer = self._analyzer
        loops = self._place(use.op).loops
        inner = {atom for each in loops[: loops.index(loop)] if (atom := analyzer.expr(each.loop_var).atom) is not None}
        found: list[Ends | None] = []
        with self._running(use.op):
            for low, high in use.dims:
                first = relax(low, inner, analyzer)
                last = first if high is low else relax(high, inner, analyzer)
                computed = first is None or last is None or _is_computed(first[0]) or _is_computed(last[1])
                found.append(None if computed or first is None or last is None else (first[0], last[1]))
        self._reached[(use, loop)] = found
        return found


def _extents(buffer: SSAValue, analyzer: Analyzer) -> list[Expr]:
    owner = buffer.owner
    return [analyzer.expr(e) for e in owner.extents()] if isinstance(owner, tir.BufferOp) else []


def _joined(items: Sequence[_T], high: int, low: int, joined: _T) -> tuple[_T, ...]:
    """Returns items with `joined` in the place of `high`, and without `low`."""
    return tuple(joined if k == high else item for k, item in enumerate(items) if k != low)


def _in_loops(e: Expr, bound: Sequence[dict[Atom, Expr]]) -> Expr:
    """Substitutes their bindings for the axes of the blocks around, innermost first."""
    for values in bound:
        e = substitute(e, values)
    return e


def _is_linear(e: Expr) -> bool:
    return all(atom.kind is Kind.VAR for atom, _ in e.terms)


def _has_division(e: Expr) -> bool:
    return any(atom.kind in (Kind.FLOORDIV, Kind.FLOORMOD) for atom, _ in e.terms)


def _is_computed(e: Expr) -> bool:
    """Returns whether an expression contains results of ops, which may differ in each iteration."""
    return any(isinstance(a.payload, OpResult) and not isinstance(a.payload.op, tir.VarOp) for a in free_vars(e))


def _is_first_of_reduction(op: tir.IfOp | tir.IfThenElseOp) -> bool:
    """Returns whether a branch is a lowered `T.init`: taken in the first iteration of a reduction's loops."""
    block = op_around(op)
    if not isinstance(op, tir.IfOp) or not isinstance(block, tir.BlockOp):
        return False
    kinds = zip(block.iter_vars, block.iter_types.data, block.dom_mins, strict=True)
    starts = {axis: low for axis, kind, low in kinds if kind.data == "R"}
    pending = [op.condition]
    while pending:
        match pending.pop().owner:
            case tir.AndOp(lhs=lhs, rhs=rhs):
                pending += [lhs, rhs]
            case tir.EqOp(lhs=axis, rhs=low) if axis in starts and starts[axis] == low:
                pass
            case _:
                return False
    return bool(starts)
