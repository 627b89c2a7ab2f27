"""Stores whose elements are all stored again, by a later statement, before anything reads them.

A statement's stores are taken as the box that they reach; only a loop nest whose stores surely fill their box makes an
earlier one superfluous. Buffers that share memory with others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith import expr as x
from ....dialects.arith.int_set import IntervalSet, eval_set
from ....dialects.tir.buffer import AccessOp, BufferOp
from ....dialects.tir.operators import as_const
from ....dialects.tir.stmt import RegionsOp
from ....support.edit import erase_op
from ....support.effects import is_side_effect_free
from ....support.walk import walk_ops


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
    """The effects of a loop nest or store, in terms of what is outside of it."""
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
