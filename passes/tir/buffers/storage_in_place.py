"""Decides whether a statement may write where it reads: `dst[i] = f(src[i])`, each element read first."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.arith.iter_map import IterMapLevel
from ....support.edit import enclosing
from .storage_liveness import Allocation, Place


def can_run_in_place(place: Place, dst: Allocation, src: Allocation, order: dict[Operation, int]) -> bool:
    """Returns whether `dst`, first accessed by a statement, may be in the memory of `src`, last accessed.

    There must be one store to `dst`, whose iterations reach different elements, and `src` be loaded only for it, at its indices.
    Stronger than TVM's `InplaceOpVerifier`, which assumes that no element is written twice.
    """
    if dst.is_opaque or src.is_opaque or len(dst.touches[place]) != 1:
        return False
    store = dst.touches[place][0]
    if not isinstance(store, tir.StoreOp) or store.predicate is not None:
        return False
    analyzer = Analyzer()
    for load in src.touches[place]:
        if not isinstance(load, tir.LoadOp) or load.predicate is not None or order[load] > order[store]:
            return False
        if load.result.type != store.value.type or _home(load) is not store.parent:
            return False
        if not _same_layout(load.buffer, store.buffer) or len(load.indices) != len(store.indices):
            return False
        if not all(map(lambda a, b: _same(analyzer, a, b), load.indices, store.indices)):
            return False
    return _writes_once(place, store)


def _home(op: Operation) -> object:
    """The block of the statement that an op is part of."""
    while isinstance(parent := op.parent_op(), tir.IfThenElseOp):
        op = parent
    return op.parent


def _same_layout(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether equal indices mean equal places, counted from the start of the memory."""
    makers = [a.owner, b.owner]
    for maker in makers:
        if not isinstance(maker, tir.DeclBufferOp) or maker.elem_offset is not None or maker.stride_dims.data:
            return False
    one, other = makers
    assert isinstance(one, tir.DeclBufferOp) and isinstance(other, tir.DeclBufferOp)
    if one.result.type.dtype != other.result.type.dtype:
        return False
    # The first extent does not matter.
    return one.result.type.rank == other.result.type.rank and one.extents()[1:] == other.extents()[1:]


def _same(analyzer: Analyzer, a: SSAValue, b: SSAValue) -> bool:
    if a.type != b.type:
        return False
    ramps = (a.owner, b.owner)
    if isinstance(ramps[0], tir.RampOp) and isinstance(ramps[1], tir.RampOp):
        return _same(analyzer, ramps[0].base, ramps[1].base) and _same(analyzer, ramps[0].stride, ramps[1].stride)
    return is_index_type(a.type) and analyzer.expr(a) == analyzer.expr(b)


def _writes_once(place: Place, store: tir.StoreOp) -> bool:
    """Returns whether the iterations of the loops between statement and store reach different elements."""
    if store is place.op:
        return True
    loops: list[tir.ForOp] = []
    for outer in enclosing(store):
        if isinstance(outer, tir.ForOp):
            loops.append(outer)
        elif not isinstance(outer, tir.IfOp | tir.ScopeOp):
            return False
        if outer is place.op:
            break
    else:
        return False
    if not loops:
        return True
    if not all(is_index_type(index.type) for index in store.indices):
        return False
    analyzer = Analyzer()
    for loop in reversed(loops):
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    domain: dict[object, tuple[SSAValue, SSAValue]] = {loop.loop_var: (loop.min, loop.extent) for loop in loops}
    found = analyzer.detect_iter_map(list(store.indices), domain, level=IterMapLevel.BIJECTIVE)  # pyright: ignore[reportArgumentType]
    return bool(found)
