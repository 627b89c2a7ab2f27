"""The pass `loop-partition`: a loop is split where a condition in its body changes, as in TVM.

    for i in range(10):                       for i in range(8):
        if T.likely(i < 8):           →           B[i] = A[i]
            B[i] = A[i]                       for i in range(2): …

The part of the loop's range where the condition surely holds (or surely does not) becomes a loop of its own, without the condition.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr, Kind
from ....dialects.arith import expr as x
from ....dialects.arith.analyzer import linear_in
from ....dialects.arith.expr import logical_not
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.arith.int_set import IntervalSet, relax
from ....dialects.arith.to_ssa import to_ssa
from ....dialects.tir.types import I1
from ....support.edit import builder_before, erase_op, replace_all_uses_with
from ....support.walk import enclosing, owner_op, walk_ops
from ..analyzed_walk import AnalyzedWalk, Visit
from ..clone_body import add_to_variable, hoist_views, insert_iteration, variables_of
from ..rewriting import PrimFuncPass, erase_dead

# Where a condition is decided


@dataclass(frozen=True)
class Decided:
    """The intervals of the variable where a condition is true, and where it is false.

    In both it is so whatever the inner variables are.
    """

    where_true: IntervalSet | None = None
    where_false: IntervalSet | None = None


NOWHERE = Decided()


def deduce(condition: Expr, variable: Atom, inner: AbstractSet[Atom], analyzer: Analyzer) -> Decided:
    """Returns the intervals of the variable where the condition is decided.

    `inner` are the variables of the body, whose ranges the analyzer knows. Comparisons that are linear in the variable are decided; the ends
    of the intervals are expressions of values outside the loop.
    """
    atom = condition.atom
    if atom is not None and atom.kind is Kind.GE:
        return _of_inequality(atom.operands[0], variable, inner, analyzer)
    if atom is not None and atom.kind is Kind.EQ:
        return _of_equality(atom.operands[0], variable, inner, analyzer)
    negated = logical_not(condition).atom
    if negated is not None and negated.kind in (Kind.GE, Kind.EQ):
        opposite = deduce(logical_not(condition), variable, inner, analyzer)
        return Decided(opposite.where_false, opposite.where_true)
    return NOWHERE


def _of_inequality(e: Expr, variable: Atom, inner: AbstractSet[Atom], analyzer: Analyzer) -> Decided:
    """Decides c*v + r >= 0."""
    parts = linear_in(e, variable)
    if parts is None or parts[0].value is None:
        return NOWHERE
    factor, ends = parts[0].const, relax(parts[1], inner, analyzer)
    if ends is None:
        return NOWHERE
    low, high = ends
    by = x.as_expr(abs(factor))
    if factor > 0:
        first_true = -x.floordiv(low, by)  # v >= ceil(-low / c)
        last_false = x.floordiv(-high - 1, by)
        return Decided(
            IntervalSet(analyzer.simplify(first_true), None), IntervalSet(None, analyzer.simplify(last_false))
        )
    last_true = x.floordiv(low, by)
    first_false = x.floordiv(high, by) + 1
    return Decided(IntervalSet(None, analyzer.simplify(last_true)), IntervalSet(analyzer.simplify(first_false), None))


def _of_equality(e: Expr, variable: Atom, inner: AbstractSet[Atom], analyzer: Analyzer) -> Decided:
    """Decides v == r, for an r that is the same in the whole body."""
    parts = linear_in(e, variable)
    if parts is None or parts[0].value not in (1, -1) or any(a in inner for a in x.free_vars(parts[1])):
        return NOWHERE
    return Decided(IntervalSet.point(analyzer.simplify(parts[1].scaled(-parts[0].const))))


HINT = "pragma_loop_partition_hint"

MAX_OPS = 50_000
"""How many ops the parts of one loop may be."""

MAX_ROUNDS = 6
"""How often a part may be split again."""


@dataclass(frozen=True)
class KnownInterval:
    """The part of a loop's range where some conditions are known.

    It is from `begin` (None: the loop's start) to before `end` (None: its end).
    """

    begin: Expr | None
    end: Expr | None
    conditions: tuple[SSAValue, ...]
    value: bool


class LoopPartitioner(AnalyzedWalk):
    """Splits the loops of one function, outer ones first."""

    def __init__(self, options: LoopPartition, hinted: set[SSAValue]):
        super().__init__(Analyzer())
        self.options = options
        self.hinted = hinted
        self.rounds: dict[Operation, int] = {}
        self.hinted_loops: set[Operation] = set()

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """Splits a loop, if it can be split; its parts are visited instead."""
        if isinstance(op, tir.ForOp) and self.is_candidate(op):
            parts = self.split(op)
            if parts is not None:
                return parts
        yield from self.inside(op)
        return None

    def is_candidate(self, loop: tir.ForOp) -> bool:
        """Returns whether the options allow splitting the loop."""
        if loop.kind.data == "thread_binding" or not is_index_type(loop.loop_var.type):
            return False
        if self.rounds.get(loop, 0) >= MAX_ROUNDS:
            return False
        numbers = self.analyzer.expr(loop.min).value is not None and self.analyzer.expr(loop.extent).value is not None
        return self.options.partition_const_loop or not numbers

    def is_hinted(self, loop: tir.ForOp) -> bool:
        """Returns whether the loop may also be split at conditions that are not marked likely."""
        return (
            loop in self.hinted_loops
            or HINT in loop.annotations.data
            or (loop.var is not None and loop.var in self.hinted)
        )

    def split(self, loop: tir.ForOp) -> list[Operation] | None:
        """Splits a loop; returns the statements that replaced it, None where it stays."""
        inside = {op for op in walk_ops(loop) if op is not loop}
        conditions = list(_conditions(loop, inside, self.is_hinted(loop)))
        if not conditions or any(_forbids(op) for op in inside) or len(inside) * 3 > MAX_OPS:
            return None
        choice = self.choose(loop, conditions, inside)
        return None if choice is None else self.build(loop, choice)

    def choose(self, loop: tir.ForOp, conditions: Sequence[SSAValue], inside: set[Operation]) -> KnownInterval | None:
        """Chooses the part of the range where most conditions hold, otherwise where most fail."""
        analyzer = self.analyzer
        low = analyzer.expr(loop.min)
        whole = IntervalSet(low, low + analyzer.expr(loop.extent) - 1)
        with analyzer.constraint(x.TRUE):
            self.bind_loop(loop)
            for op in inside:
                if isinstance(op, tir.LaunchThreadOp):
                    analyzer.bind(op.result, 0, op.extent)
            found: dict[SSAValue, tuple[IntervalSet | None, IntervalSet | None]] = {}
            for value in conditions:
                e = analyzer.expr(value)
                variable = next((a for a in map(self._atom, variables_of(loop)) if a in x.free_vars(e)), None)
                if variable is None:
                    continue
                inner = {a for a in x.free_vars(e) if a is not variable and _owner(a) in inside}
                inner |= {a for a in map(self._atom, variables_of(loop)) if a is not None and a is not variable}
                with analyzer.constraint(x.TRUE):
                    self.bind_around(value, inside)
                    decided = deduce(e, variable, inner, analyzer)
                found[value] = (decided.where_true, decided.where_false)
        for index, value in ((0, True), (1, False)):
            intervals = {c: interval for c, both in found.items() if (interval := both[index]) is not None}
            choice = self._intersect(intervals, whole, value)
            if choice is not None:
                return choice
        return None

    def bind_around(self, value: SSAValue, inside: set[Operation]) -> None:
        """Binds the loops around a value: of the extents of others nothing is known there."""
        assert isinstance(value, OpResult)
        for op in reversed([op for op in enclosing(value.op) if op in inside]):
            if isinstance(op, tir.ForOp):
                self.bind_loop(op)

    def _atom(self, value: SSAValue) -> Atom | None:
        return self.analyzer.expr(value).atom

    def _intersect(
        self, intervals: dict[SSAValue, IntervalSet], whole: IntervalSet, value: bool
    ) -> KnownInterval | None:
        """Intersects the intervals of conditions, the last first, while something of the range is left."""
        begin: Expr | None = None
        end: Expr | None = None
        chosen: list[SSAValue] = []
        for condition in reversed(intervals):
            interval = intervals[condition]
            common = IntervalSet(begin, None if end is None else end - 1).intersect(interval, self.analyzer)
            inside = common.intersect(whole, self.analyzer)
            if self._is_empty(inside):
                continue
            begin, end = common.min, None if common.max is None else common.max + 1
            chosen.append(condition)
        return KnownInterval(begin, end, tuple(chosen), value) if chosen else None

    def _is_empty(self, interval: IntervalSet) -> bool:
        low, high = interval.min, interval.max
        return low is not None and high is not None and self.analyzer.can_prove_ge0(low - high - 1)

    def build(self, loop: tir.ForOp, choice: KnownInterval) -> list[Operation]:
        """Builds the loops before, over and after the part where the conditions are known."""
        analyzer = self.analyzer
        low = analyzer.expr(loop.min)
        stop = low + analyzer.expr(loop.extent)
        begin = low if choice.begin is None else analyzer.simplify(choice.begin)
        end = stop if choice.end is None else analyzer.simplify(choice.end)
        # Each limit within the loop's range, whatever the sizes are.
        sure = True
        if analyzer.can_prove_ge0(low - begin):
            begin = low
        elif not analyzer.can_prove_ge0(begin - low):
            begin, sure = analyzer.simplify(x.maximum(begin, low)), False
        if analyzer.can_prove_ge0(end - stop):
            end = stop
        elif not analyzer.can_prove_ge0(stop - end):
            end, sure = analyzer.simplify(x.minimum(end, stop)), False
        # A loop without iterations may end before it starts: what begins at its start has none either then.
        if begin != low and not analyzer.can_prove_ge0(stop - begin):
            begin, sure = analyzer.simplify(x.minimum(begin, stop)), False
        if not analyzer.can_prove_ge0(end - begin):
            end, sure = analyzer.simplify(x.maximum(end, begin)), False
        hoist_views(loop)
        rounds = self.rounds.get(loop, 0) + 1 if sure else MAX_ROUNDS
        made: list[Operation] = []
        if not analyzer.can_prove_equal(begin, low):
            made += self.part(loop, low, begin, (), True, rounds)
        if not analyzer.can_prove_ge0(begin - end):
            made += self.part(loop, begin, end, choice.conditions, choice.value, rounds)
        if not analyzer.can_prove_equal(end, stop):
            made += self.part(loop, end, stop, (), True, rounds)
        erase_op(loop)
        return made

    def part(
        self, loop: tir.ForOp, begin: Expr, end: Expr, known: Sequence[SSAValue], value: bool, rounds: int
    ) -> list[Operation]:
        """Clones the loop from `begin` to before `end`, with the `known` conditions replaced by `value`."""
        builder, type_ = builder_before(loop), loop.loop_var.type
        extent = self.analyzer.simplify(end - begin)
        stop = self.analyzer.expr(loop.min) + self.analyzer.expr(loop.extent)
        mapper: dict[SSAValue, SSAValue] = {}
        copy = loop.clone(mapper)
        low = builder.insert(tir.ConstOp.int(0, type_)).result
        count = to_ssa(extent, builder, type_, shared=False)
        builder.insert(copy)
        copy.operands = [low, count]
        copy.annotations = DictionaryAttr({k: v for k, v in loop.annotations.data.items() if k != HINT})
        for condition in known:
            _settle(mapper[condition], value)
        if loop.var is not None:
            inside = set(walk_ops(copy))
            loop.var.replace_uses_with_if(copy.loop_var, lambda use: use.operation in inside)
        if begin != x.ZERO:
            add_to_variable(copy, lambda inner: to_ssa(begin, inner, type_, shared=False))
        self.rounds[copy] = rounds
        if self.is_hinted(loop):
            self.hinted_loops.add(copy)
        alone = extent.value == 1 and not self.options.no_unroll_loop_with_extent_one
        if not alone or copy.annotations.data:
            return [copy]
        return _inline(copy, ends_region=end == stop and loop.next_op is None)


def _inline(loop: tir.ForOp, ends_region: bool) -> list[Operation]:
    zero = builder_before(loop).insert(tir.ConstOp.int(0, loop.loop_var.type)).result
    replace_all_uses_with(loop.loop_var, zero)
    ops = list(loop.body.block.ops)
    for op in ops:
        op.detach()
    made = insert_iteration(ops, loop, is_last=ends_region)
    erase_op(loop)
    return made


def _settle(condition: SSAValue, value: bool) -> None:
    owner = condition.owner
    assert isinstance(owner, Operation)
    made = builder_before(owner).insert(tir.ConstOp.int(int(value), I1)).result
    replace_all_uses_with(condition, made)


def _conditions(loop: tir.ForOp, inside: set[Operation], hinted: bool) -> Iterable[SSAValue]:
    """Returns the comparisons inside `T.likely` in the body; with a hint, also those that branches test."""
    found: dict[SSAValue, None] = {}
    for op in walk_ops(loop):
        pending: list[SSAValue] = []
        if isinstance(op, tir.CallOp) and op.intrinsic.data == "likely":
            pending = [op.arguments[0]]
        elif hinted and isinstance(op, tir.IfOp | tir.IfThenElseOp):
            pending = [op.condition]
        while pending:
            value = pending.pop()
            owner = value.owner
            if not isinstance(owner, Operation) or owner not in inside or value.type != I1:
                continue
            if isinstance(owner, tir.AndOp | tir.OrOp | tir.NotOp):
                pending += reversed(owner.operands)
            elif isinstance(owner, tir.CompareOp):
                found[value] = None
            elif isinstance(owner, tir.CallOp) and owner.intrinsic.data == "likely":
                pending += owner.arguments
    return found


def _forbids(op: Operation) -> bool:
    """Returns whether the op must not be in a part of a loop: all threads must reach it."""
    return isinstance(op, tir.CallOp) and op.intrinsic.data in ("tvm_thread_allreduce", "tvm_storage_sync")


def _owner(atom: Atom) -> Operation | None:
    return owner_op(atom.payload) if isinstance(atom.payload, SSAValue) else None


def _hinted(func: tir.PrimFuncOp) -> set[SSAValue]:
    """Returns the variables that an attribute hints at."""
    found: set[SSAValue] = set()
    for op in walk_ops(func):
        if isinstance(op, tir.AttrOp) and op.key.data == HINT:
            node = op.node.owner
            found.add(node.var if isinstance(node, tir.IterVarOp) else op.node)
    return found


def _remove_hints(func: tir.PrimFuncOp) -> None:
    """Hints have done their work, and what is likely is no longer of interest."""
    for op in list(walk_ops(func)):
        if isinstance(op, tir.AttrOp) and op.key.data == HINT:
            node = op.node.owner
            erase_op(op)
            if isinstance(node, tir.IterVarOp) and not node.result.uses:
                erase_op(node)
        elif isinstance(op, tir.CallOp) and op.intrinsic.data == "likely" and op.result is not None:
            replace_all_uses_with(op.result, op.arguments[0])
        elif isinstance(op, tir.ForOp) and HINT in op.annotations.data:
            op.annotations = DictionaryAttr({k: v for k, v in op.annotations.data.items() if k != HINT})
    erase_dead(func)
    for op in list(walk_ops(func)):
        if isinstance(op, tir.VarOp) and not op.result.uses:
            erase_op(op)


@dataclass(frozen=True)
class LoopPartition(PrimFuncPass):
    """Splits loops where a condition called `T.likely` changes.

    Loops of constant range are split only with `partition_const_loop`. A loop with the annotation (or attribute)
    `pragma_loop_partition_hint` is split at any condition of a branch. A part of one iteration is inlined, unless
    `no_unroll_loop_with_extent_one`.
    """

    name = "loop-partition"
    partition_const_loop: bool = False
    no_unroll_loop_with_extent_one: bool = False

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Splits the loops of one prim_func."""
        LoopPartitioner(self, _hinted(func)).run(func)
        _remove_hints(func)
