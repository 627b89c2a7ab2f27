"""Analyzes stores: those without effect, those that are overwritten, and contents that are known.

    A[i] = A[i]                                                nothing: it stores what is there
    for i in range(8): A[i] = 1                                overwritten: each element is stored again before it is read
    for i in range(8): A[i] = 0
    for i in range(8):
        if A[i] == 0: …                                        known: `if 0 == 0`

A statement's stores are taken as the box that they reach; only a loop nest whose stores surely fill their box overwrites an
earlier one, or leaves known contents. Buffers that share memory with others are not analyzed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom
from ....dialects.arith import expr as x
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.arith.int_set import IntervalSet, eval_set
from ....dialects.tir.buffer import AccessOp, BufferOp
from ....dialects.tir.operators import as_const
from ....dialects.tir.stmt import RegionsOp
from ....support.edit import builder_before, erase_op
from ....support.effects import is_side_effect_free
from ....support.walk import walk_ops

# Known contents


@dataclass(frozen=True)
class Contents:
    """A box of a buffer all of whose elements are one number, the value of `constant`."""

    box: tuple[IntervalSet, ...]
    constant: tir.ConstOp


def propagate_contents(func: tir.PrimFuncOp, *, everywhere: bool = False) -> None:
    """Replaces loads, in comparisons or everywhere, of elements that an earlier statement filled."""
    analyzer = Analyzer()
    blocks = [func.body.block]
    blocks += [op.body.block for op in walk_ops(func) if isinstance(op, tir.ForOp | tir.ScopeOp | tir.BlockOp)]
    for block in blocks:
        _visit(block, analyzer, everywhere)


def _visit(block: Block, analyzer: Analyzer, everywhere: bool) -> None:
    known: dict[SSAValue, Contents] = {}
    for op in list(block.ops):
        if op.results and not op.regions and not isinstance(op, tir.CallOp):
            # A part of a statement, which is looked at with that, except for a load: that is where it is evaluated.
            compared = isinstance(op, tir.LoadOp) and all(
                isinstance(u.operation, tir.CompareOp) for u in op.result.uses
            )
            if isinstance(op, tir.LoadOp) and (everywhere or compared):
                _replace(op, known, analyzer, True)
            continue
        writes = _written(op)
        if writes is None:
            known.clear()
            continue
        if known:
            _replace(op, {b: c for b, c in known.items() if b not in writes}, analyzer, everywhere)
        for buffer in writes:
            known.pop(buffer, None)
        known.update(_filled(op, analyzer))


def _written(op: Operation) -> set[SSAValue] | None:
    """Returns the buffers that a statement may store to; None where that is not known."""
    found: set[SSAValue] = set()
    for inner in walk_ops(op):
        if isinstance(inner, tir.StoreOp):
            found.add(inner.buffer)
        elif isinstance(inner, tir.CallOp | tir.LaunchThreadOp | tir.AttrOp | tir.WhileOp):
            return None
    return found


def _filled(op: Operation, analyzer: Analyzer) -> dict[SSAValue, Contents]:
    """Returns the contents that a loop nest around one store of a number leaves in the buffer."""
    if not isinstance(op, tir.ForOp | tir.StoreOp):
        return {}
    stores = [inner for inner in walk_ops(op) if isinstance(inner, tir.StoreOp)]
    if len(stores) != 1 or not isinstance(constant := stores[0].value.owner, tir.ConstOp):
        return {}
    if as_const(stores[0].value) is None or not is_alone(stores[0].buffer):
        return {}
    effects = effects_of(op, analyzer)
    boxes = effects.filled.get(stores[0].buffer, [])
    return {} if effects.opaque or len(boxes) != 1 else {stores[0].buffer: Contents(boxes[0], constant)}


def _replace(op: Operation, known: dict[SSAValue, Contents], analyzer: Analyzer, everywhere: bool) -> None:
    """Replaces what a statement, or only its comparisons, load of known contents."""
    domain: dict[Atom, IntervalSet] = {}
    for inner in walk_ops(op):
        if isinstance(inner, tir.ForOp) and (atom := analyzer.expr(inner.loop_var).atom) is not None:
            low, extent = analyzer.expr(inner.min), analyzer.expr(inner.extent)
            if not any(a in domain for a in x.free_vars(low, extent)):
                domain[atom] = IntervalSet.of_range(low, extent)
        if everywhere and isinstance(inner, tir.LoadOp) and inner.predicate is None:
            contents = known.get(inner.buffer)
            if contents is not None and _covers(contents, inner, domain, analyzer):
                made = builder_before(inner).insert(contents.constant.clone())
                inner.result.replace_all_uses_with(made.result)
        if not isinstance(inner, tir.CompareOp):
            continue
        for place, operand in enumerate(inner.operands):
            load = operand.owner
            contents = known.get(load.buffer) if isinstance(load, tir.LoadOp) and load.predicate is None else None
            if isinstance(load, tir.LoadOp) and contents is not None and _covers(contents, load, domain, analyzer):
                inner.operands[place] = builder_before(inner).insert(contents.constant.clone()).result


def _covers(contents: Contents, load: tir.LoadOp, domain: dict[Atom, IntervalSet], analyzer: Analyzer) -> bool:
    if load.result.type != contents.constant.result.type:
        return False
    box = [eval_set(analyzer, analyzer.expr(index), domain) for index in load.indices]
    return all(known.covers(own, analyzer) for known, own in zip(contents.box, box, strict=True))


MAX_DISTANCE = 64
"""A load further away from its store, in ops, is not looked at."""


def stores_what_is_there(op: tir.StoreOp, analyzer: Analyzer) -> bool:
    """Returns whether a store writes back what was loaded from its element, nothing written in between."""
    load = op.value.owner
    if not isinstance(load, tir.LoadOp) or load.buffer is not op.buffer or load.parent is not op.parent:
        return False
    if op.predicate is not None or load.predicate is not None or not only_reads_between(load, op):
        return False
    return all(_equal(a, b, analyzer) for a, b in zip(load.indices, op.indices, strict=True))


def _equal(a: SSAValue, b: SSAValue, analyzer: Analyzer) -> bool:
    return a is b or (a.type == b.type and is_index_type(a.type) and analyzer.can_prove_equal(a, b))


def only_reads_between(first: Operation, last: Operation) -> bool:
    """Returns whether two ops of a block, in this order and not far apart, have only reads between them."""
    op = first.next_op
    for _ in range(MAX_DISTANCE):
        if op is last:
            return True
        if op is None or op.regions or not op.results or isinstance(op, tir.CallOp):
            return False
        op = op.next_op
    return False


# Overwritten stores


@dataclass
class StatementEffects:
    """The effects of a statement: the boxes that it stores to or fills, the buffers that it reads.

    `opaque`: it may do anything.
    """

    stores: dict[SSAValue, list[tuple[IntervalSet, ...]]]
    filled: dict[SSAValue, list[tuple[IntervalSet, ...]]]
    reads: set[SSAValue]
    opaque: bool = False


def remove_overwritten(func: tir.PrimFuncOp) -> bool:
    """Erases superfluous statements in every block of the function; whether there was one."""
    analyzer = Analyzer()
    found = False
    blocks = [func.body.block]
    blocks += [op.body.block for op in walk_ops(func) if isinstance(op, tir.ForOp | tir.ScopeOp | tir.BlockOp)]
    for block in blocks:
        found = _clean(block, analyzer) or found
    return found


def _clean(block: Block, analyzer: Analyzer) -> bool:
    found = False
    later: dict[SSAValue, list[tuple[IntervalSet, ...]]] = {}
    for op in reversed(list(block.ops)):
        if not isinstance(op, tir.ForOp | tir.StoreOp):
            if op.regions or not (isinstance(op, tir.LoadOp) or op.results) or isinstance(op, tir.CallOp):
                later.clear()
            elif isinstance(op, tir.LoadOp):
                later.pop(op.buffer, None)
            continue
        effects = effects_of(op, analyzer)
        if effects.opaque:
            later.clear()
            continue
        if effects.stores and all(_covered(b, boxes, later, analyzer) for b, boxes in effects.stores.items()):
            erase_op(op)
            found = True
            continue
        for buffer in effects.reads:
            later.pop(buffer, None)
        for buffer, boxes in effects.filled.items():
            if buffer not in effects.reads and is_alone(buffer):
                later.setdefault(buffer, []).extend(boxes)
    return found


def _covered(
    buffer: SSAValue,
    boxes: Iterable[tuple[IntervalSet, ...]],
    later: dict[SSAValue, list[tuple[IntervalSet, ...]]],
    analyzer: Analyzer,
) -> bool:
    known = later.get(buffer, [])
    return all(
        any(all(a.covers(b, analyzer) for a, b in zip(outer, box, strict=True)) for outer in known[-4:])
        for box in boxes
    )


def is_alone(buffer: SSAValue) -> bool:
    """Returns whether the buffer's memory is accessed by nothing except loads and stores of it."""
    owner = buffer.owner
    if isinstance(owner, BufferOp) and owner.source is not None and not isinstance(owner, tir.MatchBufferOp):
        return False
    return all(isinstance(use.operation, AccessOp | RegionsOp) for use in buffer.uses)


def effects_of(op: Operation, analyzer: Analyzer) -> StatementEffects:
    """Returns the effects of a loop nest or store, in terms of values outside of it."""
    effects = StatementEffects({}, {}, set())
    domain: dict[x.Atom, IntervalSet] = {}
    loops: dict[SSAValue, tir.ForOp] = {}
    for inner in walk_ops(op):
        match inner:
            case tir.ForOp():
                atom = analyzer.expr(inner.loop_var).atom
                low, extent = analyzer.expr(inner.min), analyzer.expr(inner.extent)
                if atom is None or any(a in domain for a in x.free_vars(low, extent)) or inner.var is not None:
                    effects.opaque = True
                    return effects
                domain[atom] = IntervalSet.of_range(low, extent)
                loops[inner.loop_var] = inner
            case tir.LoadOp():
                effects.reads.add(inner.buffer)
            case tir.StoreOp():
                box = tuple(eval_set(analyzer, analyzer.expr(i), domain) for i in inner.indices)
                effects.stores.setdefault(inner.buffer, []).append(box)
                if _fills(inner, op, loops):
                    effects.filled.setdefault(inner.buffer, []).append(box)
            case tir.IfOp():
                pass
            case _ if not inner.results or inner.regions or isinstance(inner, tir.CallOp | tir.DeclBufferOp):
                if not _is_pure_call(inner):
                    effects.opaque = True
                    return effects
            case _:
                pass
    return effects


def _is_pure_call(op: Operation) -> bool:
    return isinstance(op, tir.CallOp | tir.YieldOp) and is_side_effect_free(op)


def _fills(store: tir.StoreOp, root: Operation, loops: dict[SSAValue, tir.ForOp]) -> bool:
    """Returns whether the store fills its box: each index is a loop's variable of its own, or a number.

    The loops between the store and `root` must surely run.
    """
    if store.predicate is not None:
        return False
    variables = [i for i in store.indices if i in loops]
    if len(set(variables)) != len(variables) or any(i not in loops and as_const(i) is None for i in store.indices):
        return False
    inner: Operation = store
    while inner is not root:
        parent = inner.parent_op()
        if not isinstance(parent, tir.ForOp):
            return False
        extent = as_const(parent.extent)
        if parent.loop_var not in variables and (extent is None or extent.value < 1):
            return False
        inner = parent
    return True
