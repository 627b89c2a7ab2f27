"""Replaces loops by a tensor intrinsic that computes the same (TVM, "te/operation/tensorize")."""

from __future__ import annotations

from collections.abc import Callable

from ....dialects.arith.ordered import Arith, is_one, number
from ....dialects.arith.ordered_int_set import Interval, IntSet
from ....dialects.te import extern as ext
from ....dialects.te import tensor as te
from ....dialects.te.expr_mutator import substitute
from ....dialects.te.tensor_intrin import TensorIntrin
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, IterVar, Range, fail, text_of
from ..schedule.infer_bound import reads_in
from ..schedule.message_passing import Domains, Values, make_bound_check, pass_up_set, spread, visible_ranges
from ..schedule.stage import StageData
from .loop_nest import conditions, loop_nest, merge
from .statements import Body, Statements

Predicates = Callable[[StageData, Values], list[Expr]]


def tensorize(stage: StageData, op: te.ComputeOp, domains: Domains, predicates: Predicates) -> Body:
    """Returns the loops of a stage down to its tensorized axis, around the intrinsic.

    Raises MirError where the intrinsic does not compute what the loops would.
    """
    place, intrin = _intrinsic(stage)
    values: Values = {}
    nest = loop_nest(stage, domains, values)
    checks = predicates(stage, values)
    inner = {id(a) for a in stage.leaves[place:]}
    for check in checks:
        if _uses(check, inner):
            raise fail(
                f"stage '{stage.name}' cannot be tensorized at axis '{stage.leaves[place].name}': elements past the end are in its part ({text_of(check)})",
                "split by factors that divide the extents",
            )
    regions = _output_region(stage, op, domains, place)
    region_of = {id(axis): region for axis, region in zip((*op.axis, *op.reduce_axis), regions, strict=True)}
    _verify(stage, op, intrin, region_of)
    reads = _input_regions(stage, op, region_of, domains)
    masks = {id(a): 2 for a in op.reduce_axis} | {id(a): 1 for a in op.axis}
    spread(stage, masks)
    common = next((i for i, a in enumerate(stage.leaves) if masks.get(id(a), 0) & 2), len(stage.leaves))
    outer = conditions(checks)
    if place <= common or not op.reduce_axis:
        if intrin.body is None:
            raise fail(
                f"intrinsic '{intrin.name}' has no statements for a whole computation, which stage '{stage.name}' tensorizes",
                "give them first: fcompute returns body, reset, update",
            )
        inside: Body = [_use(stage, op, intrin, intrin.body, region_of, reads, values)]
        return merge([*nest[: place + 1], outer], inside)
    if intrin.reset is None or intrin.update is None:
        raise fail(
            f"intrinsic '{intrin.name}' cannot add to a result, but reduction loops are around it in stage '{stage.name}'",
            "give fcompute's second and third value (reset, update), or tensorize outside of all reduction loops",
        )
    init_values: Values = {id(a): values[id(a)] for a in stage.leaves[:common]}
    skip = {key for key, mask in masks.items() if mask == 2}
    init_nest = loop_nest(stage, domains, init_values, begin=common, is_init=True, skip=skip)
    guards = conditions(make_bound_check(stage, domains, init_values, skip_domain=True, skip=skip))
    reset: Body = [_use(stage, op, intrin, intrin.reset, region_of, {}, init_values)]
    update: Body = [_use(stage, op, intrin, intrin.update, region_of, reads, values)]
    begin = merge([*init_nest[: place + 1], guards], reset)
    return merge(nest[: common + 1], [*begin, *merge([*nest[common + 1 : place + 1], outer], update)])


def _intrinsic(stage: StageData) -> tuple[int, TensorIntrin]:
    found = [
        (i, a.intrinsic)
        for i, axis in enumerate(stage.leaves)
        if (a := stage.known_attrs(axis)) and a.intrinsic is not None
    ]
    if len(found) != 1:
        raise fail(f"stage '{stage.name}' is tensorized at several axes", "tensorize the outermost of them")
    place, intrin = found[0]
    assert isinstance(intrin, TensorIntrin)
    return place, intrin


def _uses(e: Expr, variables: set[int]) -> bool:
    return any(id(part) in variables for part in te.parts_of([e]))


def _output_region(stage: StageData, op: te.ComputeOp, domains: Domains, place: int) -> list[Range]:
    """Returns the part of each axis that the loops from the tensorized one inward cover."""
    arith = Arith()
    interval = Interval(arith)
    for axis, range in visible_ranges(stage, domains):
        arith.bind(axis, range.min, range.extent)
    sets: dict[int, IntSet] = {}
    for i, axis in enumerate(stage.leaves):
        range, attrs = domains[axis], stage.known_attrs(axis)
        variable: IterVar = axis if attrs is None or attrs.thread is None else attrs.thread
        if is_one(range.extent):
            sets[id(axis)] = IntSet.point(range.min)
        else:
            sets[id(axis)] = IntSet.of_range(range) if i >= place else IntSet.point(variable)
    pass_up_set(stage, domains, sets, interval)
    return [_simplified(interval.range_of(sets[id(axis)], axis.domain), arith) for axis in (*op.axis, *op.reduce_axis)]


def _simplified(range: Range, arith: Arith) -> Range:
    return Range.from_min_extent(arith.simplify(range.min), arith.simplify(range.extent))


def _input_regions(
    stage: StageData, op: te.ComputeOp, region_of: dict[int, Range], domains: Domains
) -> dict[int, list[Range]]:
    """Returns the region of each tensor that is read while the axes run over `region_of`."""
    arith = Arith()
    interval = Interval(arith)
    for axis, range in visible_ranges(stage, domains):
        if id(axis) not in region_of:
            arith.bind(axis, range.min, range.extent)
    sets = {key: IntSet.of_range(region) for key, region in region_of.items()}
    found: dict[int, list[list[IntSet]]] = {}
    for read in reads_in(op.body):
        held = found.setdefault(id(read.tensor), [[] for _ in read.args])
        for dim, index in enumerate(read.args):
            held[dim].append(interval.of(index, sets))
    tensors = {id(t): t for t in op.input_tensors}
    result: dict[int, list[Range]] = {}
    for key, dims in found.items():
        result[key] = [
            _simplified(interval.range_of(interval.union(parts), Range.from_min_extent(number(0), extent)), arith)
            for parts, extent in zip(dims, tensors[key].dims, strict=True)
        ]
    return result


def _fitted(ranges: list[Range], shape: tuple[Expr, ...], what: str, intrin: TensorIntrin) -> int:
    """Returns how many leading dimensions of extent 1 the region has before those of the intrinsic.

    Raises MirError on a misfit.
    """
    arith = Arith()
    extra = len(ranges) - len(shape)
    fits = extra >= 0 and all(is_one(r.extent) for r in ranges[:extra])
    fits = fits and all(arith.prove_equal(r.extent, d) for r, d in zip(ranges[extra:], shape, strict=True))
    if not fits:
        region = ", ".join(text_of(r.extent) for r in ranges)
        raise fail(
            f"{what} is a region of ({region}), but intrinsic '{intrin.name}' takes ({', '.join(map(text_of, shape))})",
            "split the loops by the intrinsic's extents",
        )
    return extra


def _verify(stage: StageData, op: te.ComputeOp, intrin: TensorIntrin, region_of: dict[int, Range]) -> None:
    """The stage's values, on the regions, are the intrinsic's: same expressions of the intrinsic's axes."""
    spatial = [region_of[id(a)] for a in op.axis]
    extra = _fitted(spatial, intrin.op.outputs[0].dims, f"what stage '{stage.name}' tensorizes", intrin)
    reduced = [region_of[id(a)] for a in op.reduce_axis]
    skipped = _fitted(
        reduced, tuple(a.extent for a in intrin.op.reduce_axis), f"what stage '{stage.name}' reduces in it", intrin
    )
    values: dict[int, Expr] = {}
    for axes, own, skip in ((op.axis, intrin.op.axis, extra), (op.reduce_axis, intrin.op.reduce_axis, skipped)):
        for i, axis in enumerate(axes):
            low = region_of[id(axis)].min
            values[id(axis)] = low if i < skip else ex.add(own[i - skip], low)
    matched: dict[int, te.Tensor] = {}
    lows: dict[int, list[Expr]] = {}
    arith = Arith()
    for own in (*intrin.op.axis, *intrin.op.reduce_axis):
        arith.bind(own, own.min, own.extent)
    first, wanted = op.body[0], intrin.op.body[0]
    pairs: list[tuple[Expr, Expr]] = []
    if isinstance(first, te.Reduce) and isinstance(wanted, te.Reduce) and len(op.body) == len(intrin.op.body):
        if (
            first.reduction.reducer is not wanted.reduction.reducer
            and first.reduction.reducer != wanted.reduction.reducer
        ):
            raise _differs(stage, intrin, "they reduce by different operations")
        pairs += zip(first.reduction.sources, wanted.reduction.sources, strict=True)
        if (first.reduction.condition is None) != (wanted.reduction.condition is None) or first.reduction.init:
            raise _differs(stage, intrin, "one of them has a condition or a first value")
        if first.reduction.condition is not None and wanted.reduction.condition is not None:
            pairs.append((first.reduction.condition, wanted.reduction.condition))
    elif isinstance(first, te.Reduce) or isinstance(wanted, te.Reduce) or len(op.body) != len(intrin.op.body):
        raise _differs(stage, intrin, "one of them is a reduction")
    else:
        pairs += zip(op.body, intrin.op.body, strict=True)
    for mine, theirs in pairs:
        _match(stage, intrin, substitute(mine, values), theirs, arith, matched, lows)


def _match(
    stage: StageData,
    intrin: TensorIntrin,
    mine: Expr,
    theirs: Expr,
    arith: Arith,
    matched: dict[int, te.Tensor],
    lows: dict[int, list[Expr]],
) -> None:
    pending = [(mine, theirs)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, te.Read) and isinstance(b, te.Read):
            held = matched.setdefault(id(b.tensor), a.tensor)
            extra = len(a.args) - len(b.args)
            offsets = [
                arith.simplify(ex.subtract(i, j)) for i, j in zip(a.args[max(extra, 0) :], b.args, strict=extra < 0)
            ]
            known = lows.setdefault(id(b.tensor), offsets)
            own = {id(v) for v in (*intrin.op.axis, *intrin.op.reduce_axis)}
            same = held is a.tensor and all(arith.prove_equal(x, y) for x, y in zip(offsets, known, strict=True))
            if not same or any(_uses(o, own) for o in offsets) or a.dtype != b.dtype:
                raise _differs(stage, intrin, f"{text_of(a)} stands where it reads {text_of(b)}")
            continue
        one, other = te.children_of(a), te.children_of(b)
        alike = type(a) is type(b) and a.dtype == b.dtype and len(one) == len(other)
        if alike and not one:
            alike = a is b or repr(a) == repr(b)
        if not alike or getattr(a, "op", None) != getattr(b, "op", None) or getattr(a, "intrinsic", None) != getattr(b, "intrinsic", None):  # fmt: skip
            raise _differs(stage, intrin, f"{text_of(a)} stands where it has {text_of(b)}")
        pending += zip(one, other, strict=True)


def _differs(stage: StageData, intrin: TensorIntrin, why: str) -> Exception:
    return fail(
        f"stage '{stage.name}' does not compute what intrinsic '{intrin.name}' does: {why}",
        "the intrinsic's te.compute and the part of the stage have the same expression",
    )


def _use(
    stage: StageData,
    op: te.ComputeOp,
    intrin: TensorIntrin,
    statements: list[ext.Stmt],
    region_of: dict[int, Range],
    reads: dict[int, list[Range]],
    values: Values,
) -> Statements:
    """Returns the statements on the regions, in terms of the loops."""

    def placed(ranges: list[Range]) -> list[Range]:
        return [Range.from_min_extent(substitute(r.min, values), r.extent) for r in ranges]

    buffers: list[tuple[ex.Buffer, te.Tensor]] = []
    regions: dict[int, list[Range]] = {}
    for buffer, tensor in zip(intrin.out_buffers, op.outputs, strict=True):
        buffers.append((buffer, tensor))
        regions[id(buffer)] = placed([region_of[id(a)] for a in op.axis])
    pairs = _tensor_pairs(op, intrin)
    for buffer, tensor in zip(intrin.in_buffers, intrin.inputs, strict=True):
        source = pairs.get(id(tensor))
        if source is None or id(source) not in reads:
            continue
        ranges = reads[id(source)]
        _fitted(ranges, tensor.dims, f"what stage '{stage.name}' reads of '{source.name}'", intrin)
        buffers.append((buffer, source))
        regions[id(buffer)] = placed(ranges)
    return Statements(statements, buffers, regions)


def _tensor_pairs(op: te.ComputeOp, intrin: TensorIntrin) -> dict[int, te.Tensor]:
    """Returns the stage's tensor for each of the intrinsic's, by the order in which they are read."""
    pairs: dict[int, te.Tensor] = {}
    for theirs, mine in zip(reads_in(intrin.op.body), reads_in(op.body), strict=False):
        pairs.setdefault(id(theirs.tensor), mine.tensor)
    return pairs
