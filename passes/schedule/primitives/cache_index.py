"""cache_index: what a block computes of its axes alone is computed once, to a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.types import lanes_of
from ....support.edit import builder_before
from ....support.walk import walk_ops
from ...tir.rewriting import erase_if_dead
from ..analysis.access import Box, reads_of, replace_regions
from ..analysis.commutative_reducer import ValueNumbers
from ..analysis.structure import child_under, is_inside, scope_of
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.block_axes import Axis, axes_of
from .common.clone_expression import clone_value
from .common.loops import require_block
from .common.new_blocks import elementwise_block, new_buffer
from .set_scope import require_scope


@primitive
def cache_index(state: State, block: tir.BlockOp, storage_scope: str, cse_thresh: int = 0) -> list[Operation]:
    """Computes the indices of a block's loads before it, into buffers in `storage_scope`.

                                                 for ax0, ax1 in T.grid(80, 80):
                                                     with T.block("index_0"): index_var_0[v0, v1] = v0 // 4 + v1 // 4
    for i, j in T.grid(80, 80):           →      for i, j in T.grid(80, 80):
        with T.block("B"):                           with T.block("B"):
            B[vi, vj] = A[vi // 4 + vj // 4]             B[vi, vj] = A[index_var_0[vi, vj]]

    With a `cse_thresh` above 0, computes instead whatever the block computes so many times of its axes alone, larger
    expressions first. The buffers hold the values for all values of the axes. Returns the blocks that compute.
    """
    block = require_block(block, "cache_index")
    require_scope(block, storage_scope, "cache_index")
    if cse_thresh < 0:
        raise refuse(
            block,
            f"cache_index: cse_thresh is {cse_thresh}",
            "give how many times an expression must occur, or 0 for the indices of loads",
        )
    search = _Search(block)
    chosen = search.indices() if cse_thresh == 0 else search.repeated(cse_thresh)
    scope = scope_of(block)
    analyzer = Analyzer()
    axes = axes_of(block, analyzer)
    made: list[Operation] = []
    places: dict[int, tuple[SSAValue, list[Axis]]] = {}
    anchor = child_under(scope, block)
    for count, number in enumerate(chosen):
        value = search.example[number]
        used = search.axes_in(value)
        own = [a for a in axes if a.atom.payload in used]
        index_type = own[0].type
        assert isinstance(index_type, tir.types.IntegerType)
        buffer = new_buffer(
            state,
            scope,
            state.fresh_buffer_name(scope, f"index_var_{count}"),
            [a.extent for a in own],
            value.type,
            storage_scope,
            index_type,
        )
        places[number] = buffer, own
        made.append(_computed(state, block, anchor, f"index_{count}", buffer, value, own))
    _use(block, search, places, everywhere=cse_thresh > 0)
    _declare(block, places)
    return made


class _Search:
    """The expressions of a block that depend on its axes alone: by number, as `ValueNumbers` counts them."""

    def __init__(self, block: tir.BlockOp):
        self.block = block
        self.axes = set(block.iter_vars)
        self.numbers = ValueNumbers()
        self.example: dict[int, SSAValue] = {}
        self._usable: dict[SSAValue, bool] = {}
        self._reaches: dict[SSAValue, bool] = {}

    def number(self, value: SSAValue) -> int:
        """Returns the number of a value."""
        found = self.numbers.of(value)
        self.example.setdefault(found, value)
        return found

    def usable(self, value: SSAValue) -> bool:
        """Returns whether the block computes a value from its axes and from values outside of its scope."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._usable:
                pending.pop()
                continue
            op = current.owner
            if not isinstance(op, Operation) or not is_inside(op, self.block):
                self._usable[current] = current in self.axes or not self._varies(current)
                self._reaches[current] = current in self.axes
            elif op.regions or not is_side_effect_free(op) or isinstance(op, AccessOp) or lanes_of(current.type) != 1:
                self._usable[current] = False
            else:
                missing = [v for v in op.operands if v not in self._usable]
                if missing:
                    pending += missing
                    continue
                self._usable[current] = all(self._usable[v] for v in op.operands)
                self._reaches[current] = any(self._reaches.get(v, False) for v in op.operands)
            pending.pop()
        return self._usable[value]

    def _varies(self, value: SSAValue) -> bool:
        """Returns whether a value from outside the block differs between iterations of its or inner loops."""
        owner = value.owner
        place = owner if isinstance(owner, Operation) else owner.parent_op()
        return place is not None and is_inside(place, child_under(scope_of(self.block), self.block))

    def axes_in(self, value: SSAValue) -> set[SSAValue]:
        """Returns the axes that a usable value is computed from."""
        found: set[SSAValue] = set()
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in self.axes:
                found.add(current)
            elif isinstance(current, OpResult):
                pending += current.op.operands
        return found

    def worthwhile(self, value: SSAValue) -> bool:
        """Returns whether a value is computed from axes, rather than an axis or a constant."""
        return (
            isinstance(value, OpResult)
            and is_inside(value.op, self.block)
            and not isinstance(value.op, tir.LetOp)
            and self.usable(value)
            and self._reaches[value]
        )

    def indices(self) -> list[int]:
        """Returns the indices of all loads, in order."""
        found: dict[int, None] = {}
        for op in walk_ops(self.block):
            if isinstance(op, tir.LoadOp):
                found.update((self.number(i), None) for i in op.indices if self.worthwhile(i))
        return list(found)

    def repeated(self, times: int) -> list[int]:
        """Returns expressions that occur `times` times in the block's stores, larger ones first.

        Occurrences in an expression that was chosen do not count.
        """
        ops = list(walk_ops(self.block))
        counts: dict[int, int] = {}
        order: dict[int, int] = {}
        uses = _uses(ops, [op for op in ops if isinstance(op, tir.StoreOp | tir.LetOp)])
        for op in ops:
            for value in op.results:
                if uses.get(value) and self.worthwhile(value):
                    number = self.number(value)
                    counts[number] = counts.get(number, 0) + uses[value]
                    order.setdefault(number, len(order))
        sizes = _sizes(ops)
        chosen: list[int] = []
        for number in sorted(counts, key=lambda n: (-sizes[self.example[n]], order[n])):
            count = counts[number]
            if count < times:
                continue
            chosen.append(number)
            owner = self.example[number].owner
            assert isinstance(owner, Operation)
            for value, n in _uses(ops, [owner]).items():
                if self.worthwhile(value):
                    counts[self.number(value)] -= n * count
        return chosen


def _uses(ops: Sequence[Operation], roots: Sequence[Operation]) -> dict[SSAValue, int]:
    """Counts the computations of each value for the roots, were every use written out; `ops` are in order."""
    wanted = set(roots)
    found: dict[SSAValue, int] = {}
    for op in reversed(ops):
        times = 1 if op in wanted else sum(found.get(result, 0) for result in op.results)
        if times and not (isinstance(op, tir.LetOp) and op not in wanted):
            for operand in op.operands:
                found[operand] = found.get(operand, 0) + times
    return found


def _sizes(ops: Sequence[Operation]) -> dict[SSAValue, int]:
    """Returns the size of each value, written out; `ops` are in order."""
    sizes: dict[SSAValue, int] = {}
    for op in ops:
        for result in op.results:
            sizes[result] = 1 + sum(sizes.get(operand, 1) for operand in op.operands)
    return sizes


def _computed(
    state: State,
    block: tir.BlockOp,
    anchor: Operation,
    name: str,
    buffer: SSAValue,
    value: SSAValue,
    own: Sequence[Axis],
) -> tir.BlockOp:
    """Loops and a block that compute a value for all values of its axes."""

    def build(builder: Builder, variables: Sequence[SSAValue]) -> SSAValue:
        fresh = Analyzer()
        known: dict[SSAValue, SSAValue] = {}
        for axis, variable in zip(own, variables, strict=True):
            known[axis.variable] = fresh.to_ssa(fresh.expr(variable) + axis.min, builder, axis.variable.type)
        return clone_value(value, known, builder, block)

    return elementwise_block(
        state,
        scope_of(block),
        anchor,
        name,
        buffer,
        [a.extent for a in own],
        build,
        analyzer=Analyzer(),
        type_=own[0].type,
    )


def _use(block: tir.BlockOp, search: _Search, places: dict[int, tuple[SSAValue, list[Axis]]], everywhere: bool) -> None:
    """Replaces indices of loads, or all stored expressions, by loads of the computed values."""
    pending: list[Operation] = []
    for op in walk_ops(block):
        if isinstance(op, tir.StoreOp if everywhere else tir.LoadOp):
            pending.append(op)
    seen: set[Operation] = set(pending)
    while pending:
        op = pending.pop()
        for position, operand in enumerate(op.operands):
            owner = operand.owner
            if not isinstance(owner, Operation) or not is_inside(owner, block):
                continue
            place = places.get(search.number(operand)) if search.worthwhile(operand) else None
            if place is not None:
                buffer, own = place
                builder, analyzer = builder_before(op), Analyzer()
                indices = [analyzer.to_ssa(a.symbol - a.min, builder, a.type) for a in own]
                op.operands[position] = builder.insert(tir.LoadOp(buffer, indices)).result
                erase_if_dead(operand)
            elif everywhere and owner not in seen:
                seen.add(owner)
                pending.append(owner)


def _declare(block: tir.BlockOp, places: dict[int, tuple[SSAValue, list[Axis]]]) -> None:
    """Adds to the block's reads what was computed; where it read before, it reads still."""
    analyzer = Analyzer()
    boxes = reads_of(block, analyzer)
    for buffer, own in places.values():
        boxes.append(Box(buffer, tuple((a.symbol - a.min, a.symbol - a.min) for a in own)))
    replace_regions(block, tir.ReadsOp, boxes, analyzer)
