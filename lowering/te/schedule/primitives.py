"""Applies primitives to the loops of a stage, and checks everything before it changes anything.

The rules are those of TVM's `te::Stage` ("te/schedule/schedule_lang"); names of new axes, too. What needs ranges (whether a loop
holds all readers, a vectorized loop's length) is checked when the schedule is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import UNKNOWN_LOC

from ....dialects.arith.ordered import number
from ....dialects.te import tensor as te
from ....dialects.te.axes import OPAQUE, ORDERED, REDUCE, SPATIAL, THREAD, is_virtual
from ....dialects.te.axes import axis as axis_of
from ....dialects.tir.node import Const, Expr, ExprLike, IterVar, convert, current_location, describe
from ....passes.schedule.engine.errors import ScheduleError, refuse
from .stage import INLINE, ROOT, SCOPE, Fuse, Singleton, Split, StageData, is_placeholder

_KINDS = {
    SPATIAL: "an axis of elements", REDUCE: "a reduction axis", THREAD: "a thread", ORDERED: "the steps of a scan",
    OPAQUE: "an axis that is not scheduled",
}  # fmt: skip
_RANK = {SPATIAL: 0, THREAD: 1, REDUCE: 2, ORDERED: 3, OPAQUE: 4}


def refused(stage: StageData, message: str, *notes: str) -> ScheduleError:
    """Returns the refusal of a primitive, at the current location or at the stage's operation."""
    location = current_location()
    if location == UNKNOWN_LOC and stage.op is not None:
        location = stage.op.location
    return refuse(location, message, *notes)


def _loops(stage: StageData) -> str:
    names = ", ".join(leaf.name for leaf in stage.leaves)
    return f"the loops of '{stage.name}' are {names}" if names else f"'{stage.name}' has no loops"


def leaf(stage: StageData, axis: IterVar, doing: str) -> int:
    """Returns the place of a loop. Raises ScheduleError for an axis that is not a loop of the stage."""
    place = stage.position(axis)
    if place is not None:
        return place
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.parent is axis:
            raise refused(
                stage,
                f"cannot {doing} axis '{axis.name}' of stage '{stage.name}': it was split",
                f"take one of its parts, '{relation.outer.name}' or '{relation.inner.name}'",
                _loops(stage),
            )
        if isinstance(relation, Fuse) and (axis is relation.outer or axis is relation.inner):
            raise refused(
                stage,
                f"cannot {doing} axis '{axis.name}' of stage '{stage.name}': it was fused",
                f"take the fused loop '{relation.fused.name}'",
                _loops(stage),
            )
    raise refused(
        stage,
        f"cannot {doing} axis '{axis.name}': it is not a loop of stage '{stage.name}'",
        f"an axis belongs to one stage: s[{stage.name}] takes its own, as s[{stage.name}].op.axis[0]",
        _loops(stage),
    )


def _schedulable(stage: StageData, axis: IterVar, doing: str) -> None:
    if axis.iter_type not in (SPATIAL, REDUCE, ORDERED):
        raise refused(
            stage,
            f"cannot {doing} axis '{axis.name}' of stage '{stage.name}': it is {_KINDS[axis.iter_type]}",
            "axes of elements, of reductions and the steps of scans are loops",
        )


def _computed(stage: StageData, doing: str) -> te.Operation:
    if stage.op is None or is_placeholder(stage.op):
        what = "a group" if stage.op is None else f"input '{stage.name}'"
        raise refused(
            stage,
            f"cannot {doing} {what}: it is not computed",
            "schedule what is computed from it; to keep a part of an input nearby, s.cache_read makes a stage",
        )
    return stage.op


def _count(stage: StageData, value: ExprLike, what: str) -> Expr:
    e = convert(value)
    if e.dtype not in ("int32", "int64"):
        raise refused(stage, f"the {what} is an integer, not {describe(value)}")
    if isinstance(e, Const) and e.value < 1:
        raise refused(stage, f"the {what} is {e.value}, but must be at least 1")
    return e


def split(
    stage: StageData, parent: IterVar, factor: ExprLike | None = None, nparts: ExprLike | None = None
) -> tuple[IterVar, IterVar]:
    """Splits a loop into two.

    `for i in range(n)` becomes `for i_outer in range(ceildiv(n, factor)): for i_inner in range(factor)`.
    With `nparts` the outer loop has that many iterations. Where the factor does not divide, an `if` skips values past the end.
    """
    place = leaf(stage, parent, "split")
    _schedulable(stage, parent, "split")
    if (factor is None) == (nparts is None):
        raise refused(
            stage,
            f"splitting axis '{parent.name}' takes {'both' if factor is not None else 'neither'} of factor and nparts",
            "give one: factor= is the length of the inner loop, nparts= that of the outer",
        )
    inner_extent = None if factor is None else _count(stage, factor, "factor of a split")
    outer_extent = None if nparts is None else _count(stage, nparts, "nparts of a split")
    outer = axis_of(f"{parent.name}.outer", None, parent.iter_type, parent.dtype)
    inner = axis_of(f"{parent.name}.inner", None, parent.iter_type, parent.dtype)
    stage.relations.append(Split(parent, outer, inner, inner_extent, outer_extent))
    stage.all_axes += [outer, inner]
    stage.leaves[place : place + 1] = [outer, inner]
    return outer, inner


def fuse(stage: StageData, *args: IterVar) -> IterVar:
    """Fuses adjacent loops into one.

    `for i in range(n): for j in range(m)` becomes `for i_j_fused in range(n * m)`, with i = i_j_fused // m, j = i_j_fused % m.
    Without arguments, for a tensor without dimensions, it makes a loop of one iteration.
    """
    if not args:
        axis = axis_of("singleton", None, SPATIAL)
        stage.relations.append(Singleton(axis))
        stage.all_axes.append(axis)
        stage.leaves.insert(0, axis)
        return axis
    fused = args[0]
    places = [leaf(stage, axis, "fuse") for axis in args]
    for axis in args:
        _schedulable(stage, axis, "fuse")
    for before, place, after, following in zip(args, places, args[1:], places[1:], strict=False):
        if following != place + 1:
            between = ", ".join(f"'{a.name}'" for a in stage.leaves[place + 1 : following])
            why = f"{between} stands between them" if between else "they are not in this order"
            raise refused(
                stage,
                f"cannot fuse axes '{before.name}' and '{after.name}' of stage '{stage.name}': {why}",
                f"fused loops follow each other, outer first: s[{stage.name}].reorder(…) brings them together",
                _loops(stage),
            )
    for axis in args[1:]:
        fused = _fuse_two(stage, fused, axis)
    return fused


def _fuse_two(stage: StageData, outer: IterVar, inner: IterVar) -> IterVar:
    kind = max(outer.iter_type, inner.iter_type, key=_RANK.__getitem__)
    fused = axis_of(f"{outer.name}.{inner.name}.fused", None, kind, outer.dtype)
    place = leaf(stage, outer, "fuse")
    stage.relations.append(Fuse(outer, inner, fused))
    stage.all_axes.append(fused)
    stage.leaves[place : place + 2] = [fused]
    return fused


def reorder(stage: StageData, *args: IterVar) -> None:
    """Reorders loops: `for i: for j` becomes `for j: for i` for `reorder(j, i)`."""
    places = [leaf(stage, axis, "reorder") for axis in args]
    for axis in args:
        _schedulable(stage, axis, "reorder")
    for i, axis in enumerate(args):
        if any(axis is other for other in args[:i]):
            raise refused(
                stage, f"axis '{axis.name}' of stage '{stage.name}' is given to reorder twice", "name each loop once"
            )
    leaves = list(stage.leaves)
    for place, axis in zip(sorted(places), args, strict=True):
        leaves[place] = axis
    for old, new in zip(_steps(stage.leaves), _steps(leaves), strict=True):
        if old is not new:
            raise refused(
                stage,
                f"cannot reorder stage '{stage.name}': '{new.name}' would come before '{old.name}', but the steps of a scan each"
                " read the one before",
                "loops of a scan's steps keep their order among each other",
            )
    stage.leaves[:] = leaves


def _steps(loops: Sequence[IterVar]) -> list[IterVar]:
    return [axis for axis in loops if axis.iter_type == ORDERED]


def tile(
    stage: StageData, x_parent: IterVar, y_parent: IterVar, x_factor: ExprLike, y_factor: ExprLike
) -> tuple[IterVar, IterVar, IterVar, IterVar]:
    """Tiles two loops.

    `for x: for y` becomes `for x_outer: for y_outer: for x_inner in range(x_factor): for y_inner in range(y_factor)`.
    """
    leaf(stage, x_parent, "tile")
    leaf(stage, y_parent, "tile")
    if x_parent is y_parent:
        raise refused(stage, f"axis '{x_parent.name}' of stage '{stage.name}' is given to tile twice", "name two loops")
    _count(stage, x_factor, "factor of a tile")
    _count(stage, y_factor, "factor of a tile")
    x_outer, x_inner = split(stage, x_parent, x_factor)
    y_outer, y_inner = split(stage, y_parent, y_factor)
    reorder(stage, x_outer, y_outer, x_inner, y_inner)
    return x_outer, y_outer, x_inner, y_inner


def bind(stage: StageData, ivar: IterVar, thread_ivar: IterVar) -> None:
    """Binds a loop to a thread: `for i in range(n)` becomes `i = T.launch_thread("threadIdx.x", n)`."""
    leaf(stage, ivar, "bind")
    if not thread_ivar.thread_tag:
        raise refused(
            stage,
            f"axis '{ivar.name}' of stage '{stage.name}' is bound to '{thread_ivar.name}', which is not a thread",
            'a thread is made by te.thread_axis("threadIdx.x")',
        )
    if ivar.iter_type not in (SPATIAL, REDUCE):
        raise refused(stage, f"cannot bind axis '{ivar.name}' of stage '{stage.name}': it is {_KINDS[ivar.iter_type]}")
    held = stage.known_attrs(ivar)
    if held is not None and held.thread is not None and held.thread is not thread_ivar:
        raise refused(
            stage,
            f"axis '{ivar.name}' of stage '{stage.name}' is bound to thread '{held.thread.thread_tag}' already",
            "split the axis to bind it to two threads",
        )
    tag = thread_ivar.thread_tag
    for other in stage.leaves:
        attrs = stage.known_attrs(other)
        if other is ivar or attrs is None or attrs.thread is None or attrs.thread.thread_tag != tag or is_virtual(tag):
            continue
        raise refused(
            stage,
            f"thread '{tag}' cannot run axis '{ivar.name}' of stage '{stage.name}': axis '{other.name}' is bound to it already",
            "fuse the axes, or bind this one to another thread",
        )
    stage.attrs_of(ivar).thread = thread_ivar


def _annotate(stage: StageData, var: IterVar, annotation: str, doing: str) -> None:
    leaf(stage, var, doing)
    if var.iter_type == REDUCE and annotation != "unrolled":
        instead = (
            "rfactor the reduction, and work on the axis of parts"
            if annotation == "parallel"
            else "take an axis of elements"
        )
        raise refused(
            stage,
            f"cannot {doing} axis '{var.name}' of stage '{stage.name}': it is a reduction axis, whose steps add to the same element",
            f"{instead}; or unroll",
        )
    if var.iter_type == ORDERED and annotation != "unrolled":
        raise refused(
            stage,
            f"cannot {doing} axis '{var.name}' of stage '{stage.name}': it is the steps of a scan, each of which reads the one before",
            "take an axis of elements, of the stages that update the scan; or unroll",
        )
    _schedulable(stage, var, doing)
    stage.attrs_of(var).annotation = annotation


def vectorize(stage: StageData, var: IterVar) -> None:
    """`for i in range(4): B[i] = A[i]` becomes `B[0:4] = A[0:4]`; the axis has a known number of elements."""
    _annotate(stage, var, "vectorized", "vectorize")


def unroll(stage: StageData, var: IterVar) -> None:
    """`for i in range(2): f(i)` becomes `f(0); f(1)`."""
    _annotate(stage, var, "unrolled", "unroll")


def parallel(stage: StageData, var: IterVar) -> None:
    """`for i in range(n)` becomes `for i in T.parallel(n)`: iterations may run at the same time."""
    _annotate(stage, var, "parallel", "parallelize")


def pragma(stage: StageData, var: IterVar, pragma_type: str, pragma_value: object = None) -> None:
    """`for i in …` gets `T.attr(i, "pragma_" + pragma_type, pragma_value)` inside."""
    leaf(stage, var, "attach a pragma to")
    value = number(1) if pragma_value is None else _pragma_value(stage, pragma_value)
    stage.attrs_of(var).pragmas.append((pragma_type, value))


def _pragma_value(stage: StageData, value: object) -> Expr:
    if isinstance(value, str):
        from ....dialects.tir.node import StringImm, call

        return call("tvm_stack_string", (StringImm(value),), "handle")
    if not isinstance(value, (Expr, int, float)):
        raise refused(stage, f"the value of a pragma is a number or a string, not {describe(value)}")
    return convert(value)


def prefetch(stage: StageData, tensor: te.Tensor, var: IterVar, offset: ExprLike) -> None:
    """The loop over `var` asks for the part of `tensor` that is read `offset` iterations later."""
    leaf(stage, var, "prefetch in")
    stage.attrs_of(var).prefetches.append((tensor, convert(offset)))


def storage_align(stage: StageData, axis: IterVar, factor: int, offset: int) -> None:
    """Sets the stride of the dimension of `axis` in the stage's tensor to `factor * k + offset` elements."""
    op = _computed(stage, "align the storage of")
    if not isinstance(op, te.ComputeOp) or not any(axis is each for each in op.axis):
        raise refused(
            stage,
            f"cannot align axis '{axis.name}': it is not a dimension of tensor '{stage.name}'",
            f"take one of s[{stage.name}].op.axis",
        )
    if factor < 1:
        raise refused(stage, f"the factor of storage_align is {factor}, but must be at least 1")
    for name, value in (("factor", factor), ("offset", offset)):
        if not -(1 << 31) <= value < 1 << 31:
            raise refused(stage, f"the {name} of storage_align is {value}, which does not fit int32")
    stage.attrs_of(axis).align = (factor, offset)


def tensorize(stage: StageData, var: IterVar, tensor_intrin: object) -> None:
    """Replaces the loop over `var` and its body by one use of a tensor intrinsic."""
    from ....dialects.te.tensor_intrin import TensorIntrin

    leaf(stage, var, "tensorize")
    if not isinstance(tensor_intrin, TensorIntrin):
        raise refused(
            stage,
            f"axis '{var.name}' of stage '{stage.name}' is tensorized with {describe(tensor_intrin)}",
            "an intrinsic is made by te.decl_tensor_intrin(op, fcompute)",
        )
    attrs = stage.attrs_of(var)
    attrs.annotation, attrs.intrinsic = "tensorized", tensor_intrin


def set_scope(stage: StageData, scope: str) -> None:
    """Memory of the stage's tensor is of this storage scope: global, shared, local…"""
    _computed(stage, "set the storage scope of")
    if stage.is_output and scope not in ("", "global"):
        raise refused(
            stage,
            f"cannot put output '{stage.name}' into {scope} memory: it is given by the caller",
            f's.cache_write({stage.name}, "{scope}") computes it there, and copies',
        )
    stage.scope = scope


def compute_at(stage: StageData, parent: StageData, scope: IterVar) -> None:
    """Computes the stage inside of the loop over `scope` of `parent`, as much of it as is read there."""
    _placeable(stage)
    if stage.is_output:
        raise refused(
            stage,
            f"cannot compute output '{stage.name}' inside of stage '{parent.name}'",
            "an output is computed by itself, at the root",
        )
    _movable(stage)
    around_parent: StageData | None = parent
    while around_parent is not None:
        # A group that has no place of its own yet is where the one around it is.
        spec, holders = around_parent, [around_parent]
        while spec.attach_type == ROOT and spec.group is not None:
            spec = spec.group
            holders.append(spec)
        if any(holder is stage for holder in holders):
            where = "itself" if parent is stage else f"'{parent.name}', which is computed inside of it"
            raise refused(
                stage, f"cannot compute stage '{stage.name}' inside of {where}", "name the stage that reads it"
            )
        around_parent = spec.attach_stage
    leaf(parent, scope, f"compute '{stage.name}' at")
    group = stage.group
    around = parent
    while group is not None:
        inner: StageData | None = around
        while inner is not None and inner.group is not group:
            inner = inner.group
        if inner is None:
            raise refused(
                stage,
                f"cannot compute stage '{stage.name}' at '{parent.name}': it is in a group that '{parent.name}' is not in",
                "place the group: g.compute_at(…)",
            )
        break
    stage.attach_type, stage.attach_axis, stage.attach_stage = SCOPE, scope, parent


def _placeable(stage: StageData) -> None:
    if stage.op is not None:
        _computed(stage, "place")


def _movable(stage: StageData) -> None:
    if _scan_of(stage, lambda scan: scan.update) is not None:
        raise refused(
            stage, "the updates of a scan are computed in its steps", "place what they read, or the scan itself"
        )


def _scan_of(stage: StageData, tensors: Callable[[te.ScanOp], Sequence[te.Tensor]]) -> te.ScanOp | None:
    """Returns the scan of which a stage computes one of these tensors."""
    schedule = stage.schedule
    if schedule is None or stage.op is None:
        return None
    scans = (other.op for other in schedule.stages if isinstance(other.op, te.ScanOp))
    return next((scan for scan in scans if any(schedule.stage_of(t.op) is stage for t in tensors(scan))), None)


def compute_inline(stage: StageData) -> None:
    """The stage's value is written out wherever it is read; it has no memory and no loops."""
    op = _computed(stage, "inline")
    if stage.is_output:
        raise refused(
            stage, f"cannot inline output '{stage.name}': nothing reads it", "inline what it is computed from"
        )
    _movable(stage)
    scan = _scan_of(stage, lambda scan: scan.init)
    if scan is not None:
        raise refused(
            stage,
            f"cannot inline stage '{stage.name}': scan '{scan.name}' begins with it, whose memory it fills",
            "inline what it is computed from",
        )
    if not isinstance(op, te.ComputeOp) or op.reduce_axis:
        what = "a reduction" if isinstance(op, te.ComputeOp) else "computed by statements"
        raise refused(
            stage,
            f"cannot inline stage '{stage.name}': it is {what}, which is not an expression of one element",
            f"compute it nearby instead: s[{stage.name}].compute_at(…)",
        )
    stage.attach_type, stage.attach_axis, stage.attach_stage = INLINE, None, None


def compute_root(stage: StageData) -> None:
    """The stage is computed by itself, before all that reads it."""
    _placeable(stage)
    stage.attach_type, stage.attach_axis, stage.attach_stage = ROOT, None, None


def double_buffer(stage: StageData) -> None:
    """The stage has memory twice, so that one part is filled while the other is read."""
    _computed(stage, "double-buffer")
    if stage.is_output:
        raise refused(stage, f"cannot double-buffer output '{stage.name}': its memory is the caller's")
    stage.double_buffer = True


def env_threads(stage: StageData, threads: Sequence[IterVar]) -> None:
    """All that a scan does runs on these threads, launched once around its steps."""
    if not isinstance(stage.op, te.ScanOp):
        raise refused(
            stage,
            f"stage '{stage.name}' is not a scan, and env_threads is for scans",
            "bind loops: s[…].bind(axis, thread)",
        )
    if stage.env_threads:
        raise refused(stage, f"the threads around scan '{stage.name}' are set already", "name all of them in one call")
    for thread in threads:
        if not thread.thread_tag or thread.dom is None:
            raise refused(
                stage,
                f"'{thread.name}' cannot be a thread around scan '{stage.name}'",
                'give threads with their number: te.thread_axis((0, 32), "threadIdx.x")',
            )
    stage.env_threads = list(threads)
    stage.leaves[:0] = threads
    stage.all_axes += threads


def set_store_predicate(stage: StageData, predicate: ExprLike) -> None:
    """Results are stored only where `predicate` holds: of many threads with one value, one stores it."""
    _computed(stage, "set the store predicate of")
    e = convert(predicate)
    if e.dtype != "bool":
        raise refused(stage, f"a store predicate is a condition, not {describe(predicate)}", "compare: tx.var.equal(0)")
    stage.store_predicate = e
