"""Propagates what buffers are known to hold: an element just filled with a number is that number.

for i in range(8): A[i] = 0               for i in range(8): A[i] = 0
for i in range(8):                 →      for i in range(8):
    if A[i] == 0: …                           if 0 == 0: …
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom
from ....dialects.arith import expr as x
from ....dialects.arith.int_set import IntervalSet, eval_set
from ....dialects.tir.operators import as_const
from ....support.edit import builder_before
from ....support.walk import walk_ops
from .dead_stores import effects_of, is_alone


@dataclass(frozen=True)
class Contents:
    """A box of a buffer all of whose elements are one number, the value of `constant`."""

    box: tuple[IntervalSet, ...]
    constant: tir.ConstOp


def propagate_contents(func: tir.PrimFuncOp) -> None:
    """Replaces loads in comparisons of elements that an earlier statement of the region filled."""
    analyzer = Analyzer()
    blocks = [func.body.block]
    blocks += [op.body.block for op in walk_ops(func) if isinstance(op, tir.ForOp | tir.ScopeOp | tir.BlockOp)]
    for block in blocks:
        _visit(block, analyzer)


def _visit(block: Block, analyzer: Analyzer) -> None:
    known: dict[SSAValue, Contents] = {}
    for op in list(block.ops):
        if op.results and not op.regions and not isinstance(op, tir.CallOp):
            continue  # A part of a statement, which is looked at with that.
        writes = _written(op)
        if writes is None:
            known.clear()
            continue
        if known:
            _replace(op, {b: c for b, c in known.items() if b not in writes}, analyzer)
        for buffer in writes:
            known.pop(buffer, None)
        known.update(_filled(op, analyzer))


def _written(op: Operation) -> set[SSAValue] | None:
    """The buffers that a statement may store to; None where that cannot be told."""
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


def _replace(op: Operation, known: dict[SSAValue, Contents], analyzer: Analyzer) -> None:
    """Replaces what the comparisons in a statement load of known contents."""
    domain: dict[Atom, IntervalSet] = {}
    for inner in walk_ops(op):
        if isinstance(inner, tir.ForOp) and (atom := analyzer.expr(inner.loop_var).atom) is not None:
            low, extent = analyzer.expr(inner.min), analyzer.expr(inner.extent)
            if not any(a in domain for a in x.free_vars(low, extent)):
                domain[atom] = IntervalSet.of_range(low, extent)
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
