"""Statements that need more than an op or two: reductions across threads, and prefetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Block, Region

from ....dialects import tir
from ....dialects.arith.ordered import number
from ....dialects.arith.ordered_int_set import Interval, IntSet
from ....dialects.te import expr as ex
from ....dialects.te import extern as ext
from ....dialects.te.axes import Range
from ....dialects.te.emit import type_of
from ....dialects.te.expr import Const, Var, fail
from ....dialects.te.expr_mutator import substitute
from ..schedule.infer_bound import reads_in
from . import statements as st
from .schedule_ops import combine, start_values

if TYPE_CHECKING:
    from .function_emitter import FunctionEmitter


def all_reduce(emitter: FunctionEmitter, node: st.AllReduce) -> None:
    """A value of each thread combined, by `T.tvm_thread_allreduce`."""
    scope = tir.ScopeOp()
    with emitter.inside(scope.body.block):
        reduction = node.reduction
        dtypes = [s.dtype for s in node.sources]
        left = [Var(f"x{i}" if len(dtypes) > 1 else "x", t) for i, t in enumerate(dtypes)]
        right = [Var(f"y{i}" if len(dtypes) > 1 else "y", t) for i, t in enumerate(dtypes)]
        identities = [emitter.expr(v) for v in start_values(reduction)]
        combiner = Block(arg_types=[type_of(v.dtype) for v in (*left, *right)])
        for variable, arg in zip((*left, *right), combiner.args, strict=True):
            emitter.define(variable, arg)
        with emitter.inside(combiner):
            results = [emitter.expr(v) for v in combine(reduction, list(left), list(right))]
            emitter.add_op(tir.YieldOp(*results))
        names = [v.name for v in (*left, *right)]
        reducer = tir.CommReducerOp(identities, Region(combiner), tir.ReducerType(), names)
        token = emitter.add(reducer)
        null = emitter.expr(ex.Call("reinterpret", (Const(0, "uint64"),), "handle"))
        emitter.add_op(tir.AttrOp(token, "reduce_scope", null))
        held = tuple(ext.Load(b, (number(0),)) for b in node.results)
        call = ex.Call(
            "tvm_thread_allreduce",
            (Const(len(dtypes), "uint32"), *node.sources, node.condition, *held, *node.threads),
            "handle",
        )
        emitter.add_op(tir.EvaluateOp(emitter.expr(emitter.simplified(call))))
    emitter.add_op(scope)


def prefetch(emitter: FunctionEmitter, node: st.Prefetch) -> None:
    """A hint for the box of all that the body reads of a tensor, with the loop's variable moved on."""
    memory = emitter.memories.get(id(node.tensor))
    if memory is None:
        raise fail(
            f"tensor '{node.tensor.name}' is prefetched, but neither computed before nor a parameter",
            "prefetch what the stage reads",
        )
    interval = Interval(emitter.arith)
    sets: dict[int, IntSet] = {}
    boxes: list[list[IntSet]] = [[] for _ in memory.shape]
    for inner in st.walk(node.body):
        if isinstance(inner, st.Loop):
            sets[id(inner.var)] = IntSet.of_range(Range(number(0, inner.extent.dtype), inner.extent))
    for inner in st.walk(node.body):
        for read in reads_in((inner.value,)) if isinstance(inner, st.Provide) else ():
            if emitter.memories.get(id(read.tensor)) is memory:
                for box, index in zip(boxes, read.args, strict=True):
                    box.append(interval.of(index, sets))
    if not all(boxes) or not boxes:
        return
    moved = {id(node.axis): ex.add(node.axis, node.offset)}
    ranges = [
        interval.range_of(interval.union(box), Range(number(0), extent))
        for box, extent in zip(boxes, memory.shape, strict=True)
    ]
    lows = tuple(emitter.simplified(substitute(r.min, moved)) for r in ranges)
    buffer, mins, extents = memory.buffer, list(lows), [emitter.simplified(r.extent) for r in ranges]
    if buffer is None:
        buffer, mins, extents = memory.declared, [emitter.simplified(memory.index(lows))], [number(1)]
    assert buffer is not None
    region = tir.BufferRegionOp(buffer, [emitter.expr(m) for m in mins], [emitter.expr(x) for x in extents])
    emitter.add_op(region)
    emitter.add_op(tir.PrefetchOp(region))
