"""Compiles statements: loops as axes or serially, blocks, branches under masks, stores and updates."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....support.diagnostics import error_at
from ... import numeric
from ..arithmetic import AddOp, BinaryOp, MinOp, MulOp
from ..buffer import LoadOp, StoreOp
from ..expr import IfThenElseOp, LetOp, YieldOp
from ..stmt import AssertOp, AttrOp, BlockOp, EvaluateOp, ForOp, IfOp, InitOp, LaunchThreadOp, ScopeOp, WhileOp
from .compiler import Compiler, handles
from .frame import Frame, Step, run_all
from .memory import Access
from .plan import Mode, Update
from .scalar import binary_function, choose
from .values import Array, Value, View, as_array, dtype_of, is_vector

# Iterations that run at once: enough to hide the cost of a numpy call, few enough to stay in the cache.
CHUNK = 1 << 17
# With as many iterations running, an update runs once for each step of its loop rather than folding along an axis.
WIDE = 256


@handles(ForOp)
def compile_for(c: Compiler, op: ForOp) -> Step:
    mode = c.plan.modes.get(op, Mode.SERIAL)
    low, extent, var = c.slot(op.min), c.slot(op.extent), c.slot(op.loop_var)
    body = c.region(op.body)
    if mode is Mode.SERIAL:
        return _serial_loop(op, low, extent, var, body)
    axis, dtype = c.plan.axes[op], dtype_of(op.loop_var.type, op)
    private = max(1, c.plan.private.get(op, 0))
    serial = _serial_loop(op, low, extent, var, body)
    fold = mode is Mode.FOLD
    fold_size = c.plan.fold_size.get(op)
    is_leaf = op in c.plan.fold_leaves

    def step(f: Frame) -> None:
        start, count = f.v[low], f.v[extent]
        if isinstance(start, np.ndarray) or isinstance(count, np.ndarray) or count <= 1:
            serial(f)
            return
        room = max(1, CHUNK // (f.count * private))
        if fold and not f.folding and (f.count >= WIDE or (not is_leaf and (fold_size is None or fold_size > room))):
            serial(f)
            return
        if room == 1 and not f.folding:
            serial(f)
            return
        if fold:
            f.folding.add(axis)
        done = 0
        try:
            while done < count:
                size = min(room, count - done)
                if size == 1:
                    f.v[var] = start + done
                    run_all(body, f)
                else:
                    f.v[var] = (f.open_axis(axis, size) + (start + done)).astype(dtype)
                    try:
                        run_all(body, f)
                    finally:
                        f.close_axis(axis)
                done += size
        finally:
            f.folding.discard(axis)

    return step


def _serial_loop(op: ForOp, low: int, extent: int, var: int, body: tuple[Step, ...]) -> Step:
    def step(f: Frame) -> None:
        start, count = f.v[low], f.v[extent]
        if isinstance(start, np.ndarray) or isinstance(count, np.ndarray):
            uneven(f, start, count)
            return
        for value in range(start, start + count):
            f.v[var] = value
            for each in body:
                each(f)

    def uneven(f: Frame, start: Value, count: Value) -> None:
        """Runs a loop whose bounds differ between running iterations of outer loops: finished ones wait."""
        dtype = dtype_of(op.loop_var.type, op)
        for turn in range(int(np.max(count))):
            running = count > turn
            with f.masked(running if isinstance(running, np.ndarray) else np.full([1] * f.rank, running)) as any_runs:
                if not any_runs:
                    break
                f.v[var] = start + turn if not isinstance(start, np.ndarray) else (start + turn).astype(dtype)
                run_all(body, f)

    return step


@handles(BlockOp)
def compile_block(c: Compiler, op: BlockOp) -> Step | None:
    for var, binding in zip(op.iter_vars, op.bindings, strict=True):
        c.alias(var, binding)
    body = c.region(op.body)
    if op.predicate is None:
        return _sequence(body)
    return _guarded(c.slot(op.predicate), body, ())


@handles(InitOp)
def compile_init(c: Compiler, op: InitOp) -> Step:
    """Runs where every reduce axis of the block is at its domain's least value."""
    block, body = op.parent_op(), c.region(op.body)
    if not isinstance(block, BlockOp):
        raise error_at(op, "T.init stands outside of a block")
    axes = [
        (c.slot(binding), c.slot(least))
        for kind, binding, least in zip(block.iter_types.data, block.bindings, block.dom_mins, strict=True)
        if kind.data == "R"
    ]

    def step(f: Frame) -> None:
        condition: Value = True
        for value, least in axes:
            first = f.v[value] == f.v[least]
            if isinstance(first, np.ndarray) or first:
                condition = first if condition is True else condition & first
            else:
                return
        if isinstance(condition, np.ndarray):
            with f.masked(condition) as any_runs:
                if any_runs:
                    run_all(body, f)
        else:
            run_all(body, f)

    return step


def _sequence(body: tuple[Step, ...]) -> Step | None:
    if not body:
        return None
    if len(body) == 1:
        return body[0]

    def step(f: Frame) -> None:
        for each in body:
            each(f)

    return step


def _guarded(condition: int, then: tuple[Step, ...], otherwise: tuple[Step, ...]) -> Step:
    """Runs one of two sequences, or both under masks."""

    def step(f: Frame) -> None:
        chosen = f.v[condition]
        if not isinstance(chosen, np.ndarray):
            run_all(then if chosen else otherwise, f)
            return
        with f.masked(chosen) as any_runs:
            if any_runs:
                run_all(then, f)
        if otherwise:
            with f.masked(~chosen) as any_runs:
                if any_runs:
                    run_all(otherwise, f)

    return step


@handles(IfOp)
def compile_if(c: Compiler, op: IfOp) -> Step:
    return _guarded(c.slot(op.condition), c.region(op.then_region), c.region(op.else_region))


@handles(ScopeOp)
def compile_scope(c: Compiler, op: ScopeOp) -> Step | None:
    return _sequence(c.region(op.body))


@handles(WhileOp)
def compile_while(c: Compiler, op: WhileOp) -> Step:
    condition, body = c.region(op.condition), c.region(op.body)
    last = op.condition.block.last_op
    if not isinstance(last, YieldOp):
        raise error_at(op, "the condition of 'while' yields nothing")
    holds = c.slot(last.values[0])

    def step(f: Frame) -> None:
        before = f.mask
        try:
            while True:
                run_all(condition, f)
                chosen = f.v[holds]
                if isinstance(chosen, np.ndarray):
                    f.mask = chosen if f.mask is None else f.mask & chosen
                    if not f.mask.any():
                        return
                elif not chosen:
                    return
                run_all(body, f)
        finally:
            f.mask = before

    return step


@handles(YieldOp)
def compile_yield(c: Compiler, op: YieldOp) -> None:
    """Returns None: the op around a region reads its yielded value."""


@handles(IfThenElseOp)
def compile_if_then_else(c: Compiler, op: IfThenElseOp) -> Step:
    condition, result = c.slot(op.condition), c.slot(op.result)
    sides = [
        (c.region(region), c.slot(_yielded(region.block.last_op, op))) for region in (op.then_region, op.else_region)
    ]
    dtype = dtype_of(op.result.type, op)
    per_lane = is_vector(op.condition.type)
    vector = is_vector(op.result.type)
    (then, if_true), (otherwise, if_false) = sides

    def step(f: Frame) -> None:
        v = f.v
        chosen = v[condition]
        if not isinstance(chosen, np.ndarray):
            if chosen:
                run_all(then, f)
                v[result] = v[if_true]
            else:
                run_all(otherwise, f)
                v[result] = v[if_false]
            return
        if per_lane:
            run_all(then, f)
            run_all(otherwise, f)
            v[result] = choose(chosen, v[if_true], v[if_false], dtype)
            return
        values: list[Value] = []
        for mask, steps, slot in ((chosen, then, if_true), (~chosen, otherwise, if_false)):
            with f.masked(mask) as any_runs:
                if any_runs:
                    run_all(steps, f)
                values.append(v[slot] if any_runs else dtype.type(0))
        v[result] = choose(chosen[..., None] if vector else chosen, values[0], values[1], dtype)

    return step


def _yielded(last: Operation | None, op: Operation) -> SSAValue:
    if not isinstance(last, YieldOp):
        raise error_at(op, "a side of T.if_then_else yields nothing")
    return last.values[0]


@handles(AssertOp)
def compile_assert(c: Compiler, op: AssertOp) -> Step:
    condition = c.slot(op.condition)

    def step(f: Frame) -> None:
        holds = f.v[condition]
        if isinstance(holds, np.ndarray):
            failed = ~holds if f.mask is None else ~holds & f.mask
            if not failed.any():
                return
        elif holds:
            return
        raise error_at(op, op.message.data)

    return step


@handles(EvaluateOp)
def compile_evaluate(c: Compiler, op: EvaluateOp) -> None:
    """Returns None: the value was computed by its own op."""


# Loads and stores --------------------------------------------------------------------------------------------------


@handles(LoadOp)
def compile_load(c: Compiler, op: LoadOp) -> Step:
    buffer, indices, result = c.slot(op.buffer), [c.slot(i) for i in op.indices], c.slot(op.result)
    vector = any(is_vector(i.type) for i in op.indices)
    access = Access(op, op.buffer, vector)
    keep = not _used_at_once(op)
    predicate = None if op.predicate is None else c.slot(op.predicate)
    dtype = dtype_of(op.result.type, op)

    def step(f: Frame) -> None:
        v = f.v
        if predicate is not None:
            v[result] = _predicated(f, access, v[buffer], [v[i] for i in indices], v[predicate], dtype)
            return
        value = access.read(f, v[buffer], [v[i] for i in indices])
        if isinstance(value, np.ndarray):
            v[result] = value.copy() if keep else value
        else:
            v[result] = value.item() if isinstance(value, np.integer | np.bool_) else value

    return step


def _predicated(
    f: Frame, access: Access, view: View, indices: list[Value], predicate: Value, dtype: np.dtype[Any]
) -> Array:
    """Loads a vector under a predicate: lanes where it is false are not read, and are 0."""
    before, lanes = f.mask, np.asarray(predicate)
    if not lanes.any():
        # With no lanes, even the index 0 of excluded lanes would be out of bounds.
        return np.zeros(lanes.shape, dtype)
    try:
        values = access.read(f, view, access.of_lanes(f, indices, lanes))
    finally:
        f.mask = before
    return choose(lanes, values, 0, dtype)


def _used_at_once(op: LoadOp) -> bool:
    """Returns True if every use of a load precedes any change of the memory, so that a copy is not needed."""
    uses = {use.operation for use in op.result.uses}
    if any(isinstance(u, LetOp | YieldOp) or u.parent is not op.parent for u in uses):
        return False
    following = op.next_op
    for _ in range(100):
        if not uses:
            return True
        if following is None:
            return False
        uses.discard(following)
        if isinstance(following, StoreOp) or following.regions or following.name == "tir.call":
            return not uses
        following = following.next_op
    return False


@handles(StoreOp)
def compile_store(c: Compiler, op: StoreOp) -> Step:
    update = c.plan.updates.get(op)
    buffer, indices = c.slot(op.buffer), [c.slot(i) for i in op.indices]
    access = Access(op, op.buffer, any(is_vector(i.type) for i in op.indices))
    if update is not None:
        return _compile_update(c, op, update, access, buffer, indices)
    value = c.slot(op.value)
    predicate = None if op.predicate is None else c.slot(op.predicate)

    def step(f: Frame) -> None:
        v = f.v
        access.write(
            f, v[buffer], [v[i] for i in indices], v[value], None if predicate is None else np.asarray(v[predicate])
        )

    return step


def _compile_update(c: Compiler, op: StoreOp, update: Update, access: Access, buffer: int, indices: list[int]) -> Step:
    """Compiles `B[i] = B[i] + e`, along the folding axes if there are any."""
    operand = c.slot(update.operand)
    function = binary_function(update.combine)
    dtype = dtype_of(update.combine.result.type, op)
    load_is_lhs = update.load_is_lhs
    own_axes = sorted(c.plan.axes[loop] for loop in c.plan.folds.get(op, ()))

    def step(f: Frame) -> None:
        v = f.v
        view, at, e = v[buffer], [v[i] for i in indices], v[operand]
        held = access.read(f, view, at)
        if isinstance(held, np.integer | np.bool_):
            held = held.item()
        axes = [axis for axis in own_axes if f.sizes[axis] > 1]
        if not axes:
            access.write(f, view, at, function(held, e) if load_is_lhs else function(e, held))
            return
        folded = _fold(f, update.combine, function, load_is_lhs, held, e, axes, dtype)
        before = f.mask
        if before is not None:
            f.mask = np.asarray(before.any(axis=tuple(axes), keepdims=True))
        try:
            access.write(f, view, at, folded)
        finally:
            f.mask = before

    return step


def _fold(
    f: Frame,
    combine: BinaryOp,
    function: Any,
    load_is_lhs: bool,
    held: Value,
    e: Value,
    axes: list[int],
    dtype: np.dtype[Any],
) -> Array:
    """Computes held + e0 + e1 + … along the axes, in the loops' order."""
    start, terms = (as_array(v, dtype).reshape(np.shape(v) or [1] * f.rank) for v in (held, e))
    if f.mask is not None:
        terms = np.where(f.mask, terms, _identity(combine, dtype))
    shape = list(np.broadcast_shapes(terms.shape, start.shape))
    for axis in axes:
        shape[axis] = f.sizes[axis]
    terms = np.moveaxis(np.broadcast_to(terms, shape), axes, range(len(axes)))
    rest = terms.shape[len(axes) :]
    terms = terms.reshape(-1, *rest)
    total = np.broadcast_to(np.moveaxis(start, axes, range(len(axes)))[(0,) * len(axes)], rest)
    if isinstance(combine, AddOp | MulOp):
        ufunc = np.add if isinstance(combine, AddOp) else np.multiply
        if total.size < 64:
            total = ufunc.accumulate(np.concatenate([total[None], terms]), axis=0, dtype=dtype)[-1]
        else:
            for term in terms:
                total = ufunc(total, term)
    else:
        least = isinstance(combine, MinOp)
        best = terms.min(axis=0) if least else terms.max(axis=0)
        total = function(total, best) if load_is_lhs else function(best, total)
    folded_shape = [1 if axis in axes else size for axis, size in enumerate(shape)]
    return np.asarray(total).reshape(folded_shape)


def _identity(combine: BinaryOp, dtype: np.dtype[Any]) -> Any:
    """Returns the identity of an update's operator."""
    if isinstance(combine, AddOp):
        # -0.0: the only float that changes no other, not even -0.0.
        return dtype.type(0) if dtype.kind in "iub" else dtype.type(-0.0)
    if isinstance(combine, MulOp):
        return dtype.type(1)
    return numeric.highest(dtype) if isinstance(combine, MinOp) else numeric.lowest(dtype)


# Threads -----------------------------------------------------------------------------------------------------------


@handles(LaunchThreadOp)
def compile_launch_thread(c: Compiler, op: LaunchThreadOp) -> Step:
    """Compiles the rest of the block to run once for each thread, in order."""
    c.closers.add(op)
    if op.env is not None:
        c.alias(op.result, op.env)
    return _threads(c, op, op.result, op.extent)


@handles(AttrOp)
def compile_attr(c: Compiler, op: AttrOp) -> Step | None:
    """Compiles attributes that launch threads; others do nothing."""
    if op.key.data not in ("thread_extent", "virtual_thread"):
        return None
    iter_var = op.node.owner
    if not isinstance(iter_var, Operation) or not iter_var.operands:
        return None
    c.closers.add(op)
    return _threads(c, op, iter_var.operands[0], op.value)


def _threads(c: Compiler, op: Operation, variable: SSAValue, extent: SSAValue) -> Step:
    block = op.parent
    if block is None:
        raise error_at(op, "threads are launched outside of a function")
    var, count = c.slot(variable), c.slot(extent)
    body = c.block(block, after=op)

    def step(f: Frame) -> None:
        if isinstance(f.v[count], np.ndarray):
            raise error_at(op, "the number of threads differs between iterations of the loops around")
        for value in range(f.v[count]):
            f.v[var] = value
            run_all(body, f)

    return step
