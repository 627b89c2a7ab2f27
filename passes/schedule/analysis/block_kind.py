"""Classifies blocks (complete, reduction, affine bindings), and edits their bindings and predicates.

The terms are those of TVM's `tir/schedule/analysis.h`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import pairwise

from xdsl.ir import Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import INF, Analyzer, Atom, Expr, Kind
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import TRUE, conjuncts, free_vars, logical_and, substitute
from ....dialects.arith.int_set import relax
from ....dialects.arith.iter_map import IterMapLevel
from ....dialects.tir.types import I1
from ....support.edit import builder_before
from ....support.walk import all_ops, op_around
from ...tir.rewriting import erase_if_dead, set_operands
from .structure import (
    all_loops_above,
    blocks_above,
    buffers_read,
    buffers_written,
    child_blocks,
    const_int,
    is_inside,
    loops_above,
    scope_of,
    write_regions,
    writers,
)


def analyzer_for(loops: Iterable[tir.ForOp]) -> Analyzer:
    """Returns an analyzer that knows the ranges of these loops (outer ones first)."""
    analyzer = Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    return analyzer


def bind_axes(analyzer: Analyzer, block: tir.BlockOp) -> None:
    """Binds a block's axes to their domains, and those axes of outer blocks that have several values."""
    for each in blocks_above(block):
        for variable, low, extent in zip(each.iter_vars, each.dom_mins, each.dom_extents, strict=True):
            if const_int(extent) != 1:
                analyzer.bind(variable, low, extent)
    for variable, low, extent in zip(block.iter_vars, block.dom_mins, block.dom_extents, strict=True):
        analyzer.bind(variable, low, extent)


def axis_kinds(block: tir.BlockOp) -> list[str]:
    """Returns the kind of each axis: S, R, scan or opaque."""
    return [t.data for t in block.iter_types.data]


def driving_variables(block: tir.BlockOp, kinds: Container[str]) -> set[object]:
    """Returns the variables that the bindings of a block's axes of some kinds use."""
    analyzer = Analyzer()
    return {
        atom.payload
        for kind, binding in zip(axis_kinds(block), block.bindings, strict=True)
        if kind in kinds
        for atom in free_vars(analyzer.expr(binding))
    }


def why_not_affine(block: tir.BlockOp, within: tir.ForOp | None = None, with_predicate: bool = True) -> str | None:
    """Returns why a block's bindings are not an independent quasi-affine map of its loops, or None.

    With `within`, the map is over that loop and those inside it, the outer loops being fixed (TVM's partial affine binding).
    Without the predicate it is over all iterations of the loops, whether the block runs in them or not.
    """
    loops = loops_above(block)
    if within is not None:
        loops = loops[loops.index(within) :]
    trivial = len(loops) == len(block.bindings) and all(
        loop.loop_var is binding for loop, binding in zip(loops, block.bindings, strict=True)
    )
    if trivial and block.predicate is None:
        return None
    if block.predicate is None and _are_digits(block.bindings, loops):
        return None
    analyzer = analyzer_for(all_loops_above(block))
    predicate: Expr | int = 1
    if block.predicate is not None and with_predicate:
        predicate = analyzer.expr(block.predicate)
        if within is not None:
            # Conditions on the fixed loops alone bound no iteration.
            variables = {loop.loop_var for loop in loops}
            parts = [p for p in conjuncts(predicate) if any(a.payload in variables for a in free_vars(p))]
            predicate = logical_and(*parts)
    iters: dict[Value, tuple[Value, Value]] = {loop.loop_var: (loop.min, loop.extent) for loop in loops}
    result = analyzer.detect_iter_map(list(block.bindings), iters, predicate, IterMapLevel.SURJECTIVE)
    return None if result else result.errors[0]


def why_partial(block: tir.BlockOp) -> str | None:
    """Returns a condition that may keep a block from some values of its axes; None where none does.

    Of an axis over 8 values bound to i: `T.where(i < 4)`. A condition such as `i * 3 + j < 8`, of an axis bound to that sum, only
    keeps the axis in its domain.
    """
    if block.predicate is None:
        return None
    analyzer = analyzer_for(all_loops_above(block))
    domains: list[tuple[Expr, Expr, Expr]] = []
    for binding, low, extent in zip(block.bindings, block.dom_mins, block.dom_extents, strict=True):
        first = analyzer.expr(low)
        domains.append((analyzer.expr(binding), first, first + analyzer.expr(extent) - 1))

    def is_of_domain(condition: Expr) -> bool:
        return any(
            is_at_least(condition, binding - low) or is_at_least(condition, high - binding)
            for binding, low, high in domains
        )

    def is_at_least(condition: Expr, e: Expr) -> bool:
        atom = condition.atom
        return atom is not None and atom.kind is Kind.GE and analyzer.can_prove_ge0(atom.operands[0] - e)

    rest = [c for c in conditions_of(block.predicate, analyzer) if not is_of_domain(c) and not analyzer.can_prove(c)]
    if not rest:
        return None
    iters: dict[Value, tuple[Value, Value]] = {loop.loop_var: (loop.min, loop.extent) for loop in loops_above(block)}
    predicate = logical_and(*conditions_of(block.predicate, analyzer))
    found = analyzer.detect_iter_map(list(block.bindings), iters, predicate, IterMapLevel.SURJECTIVE)
    for total, (_, low, high) in zip(found.indices if found else (), domains, strict=bool(found)):
        last = total.base
        for split in total.args:
            last = last + (split.extent - 1) * split.scale
        if not analyzer.can_prove_equal(total.base, low) or not analyzer.can_prove_equal(last, high):
            break
    else:
        if found:
            return None
    return f"it runs only where {rest[0]!r}"


def are_all_digits_of(loop: tir.ForOp, block: tir.BlockOp, bindings: Sequence[SSAValue]) -> bool:
    """Returns whether bindings of a block determine a loop's iteration, as 4 * (f // 3) + k and f % 3 do."""
    if loop.loop_var in bindings:
        return True
    loops = loops_above(block)
    extent = const_int(loop.extent)
    if extent is None or not _are_digits(bindings, loops[loops.index(loop) :]):
        return False
    analyzer = Analyzer()
    own = analyzer.expr(loop.loop_var).atom
    parts = [_part(atom) for binding in bindings for atom, _ in analyzer.expr(binding).terms]
    reached = 1
    for lower, upper in sorted((lower, upper) for variable, lower, upper in parts if variable == own):
        if lower == reached:
            reached = min(upper, extent)
    return reached >= extent


def _are_digits(bindings: Iterable[SSAValue], loops: Iterable[tir.ForOp]) -> bool:
    """Returns whether loops, or parts of fused loops, are independent digits of each binding.

    12 * i + 4 * j + k and 4 * (f // 3) + k are such numbers, as most bindings are; others need an iteration map to be accepted.
    Other variables, which are fixed, may be added.
    """
    analyzer = Analyzer()
    extents = {analyzer.expr(loop.loop_var).atom: const_int(loop.extent) for loop in loops}
    # Of each loop the parts that bindings use: f % upper // lower, as (lower, upper).
    parts: dict[Atom, list[tuple[int, int]]] = {}
    for binding in bindings:
        digits: list[tuple[int, int]] = []
        for atom, scale in analyzer.expr(binding).terms:
            variable, lower, upper = _part(atom)
            extent = extents.get(variable, 1)
            if variable.kind is not Kind.VAR or extent is None or extent < 1 or scale < 1:
                return False
            upper = min(upper, extent)
            if extent > 1 and lower < upper:
                if upper % lower:
                    return False
                digits.append((scale, upper // lower))
                parts.setdefault(variable, []).append((lower, upper))
        digits.sort()
        if any(scale * extent != above for (scale, extent), (above, _) in pairwise(digits)):
            return False
    return all(_are_apart(found, extents[variable] or 1) for variable, found in parts.items())


def _part(atom: Atom) -> tuple[Atom, int, int]:
    """Returns (x, lower, upper) of x % upper // lower with constants; (atom, 1, INF) of other atoms."""
    divisor = atom.operands[1].value if atom.kind in (Kind.FLOORDIV, Kind.FLOORMOD) else None
    inner = None if divisor is None or divisor < 1 else atom.operands[0].atom
    if inner is None or divisor is None:
        return atom, 1, INF
    variable, lower, upper = _part(inner)
    if atom.kind is Kind.FLOORDIV:
        return variable, lower * divisor, upper
    if upper < INF and upper % (lower * divisor):
        return atom, 1, INF
    return variable, lower, lower * divisor


def _are_apart(parts: list[tuple[int, int]], extent: int) -> bool:
    """Returns whether parts (lower, upper) of a number below `extent` take all their values independently."""
    parts.sort()
    return all(extent % upper == 0 for _, upper in parts) and all(
        lower % upper == 0 for (_, upper), (lower, _) in pairwise(parts)
    )


def why_not_dominant(block: tir.BlockOp, within: Operation | None = None) -> str | None:
    """Returns why a block is not its outputs' only writer in its scope (or inside `within`), or None."""
    scope = scope_of(block)
    for buffer in dict.fromkeys(buffers_written(block)):
        for other in writers(buffer, scope):
            if other is not block and (within is None or is_inside(other, within)):
                return f"'{tir.buffer_name(buffer)}' is also written by block '{other.block_name.data}'"
    return None


def why_not_complete(block: tir.BlockOp, within: Operation | None = None) -> str | None:
    """Returns why a block is not complete: each instance writes elements of its own, from finished inputs."""
    for name, kind in zip(block.iter_names.data, axis_kinds(block), strict=True):
        if kind != "S":
            return f"axis '{name.data}' is not a spatial axis"
    reason = why_not_dominant(block, within)
    if reason is not None:
        return reason
    overlap = set(buffers_written(block)) & set(buffers_read(block))
    for buffer in overlap:
        return f"it reads and writes '{tir.buffer_name(buffer)}'"
    return None


def why_not_reduction(block: tir.BlockOp, within: Operation | None = None, started: bool = True) -> str | None:
    """Returns why a block is not a reduction: spatial and reduction axes, an init, spatial output indices.

    Without `started` the init need not run in this scope (`why_not_started`): then the block adds to what was there.
    """
    kinds = axis_kinds(block)
    for name, kind in zip(block.iter_names.data, kinds, strict=True):
        if kind not in ("S", "R"):
            return f"axis '{name.data}' is neither spatial nor a reduction axis"
    if block.find(tir.InitOp) is None:
        return "it has no T.init()"
    reason = why_not_dominant(block, within) or _why_init_differs(block)
    if reason is not None:
        return reason
    return why_init_repeats(block) or (why_not_started(block) if started else None)


def why_init_repeats(block: tir.BlockOp) -> str | None:
    """Returns why `T.init()` of a block may run several times for one element; None where it cannot.

    With `B[0] = B[0] + A[vi, vk]` each vi starts B[0] again; with `B[vk] = …` only the vk of the first instance is started. Either
    way the result depends on the order of the instances.
    """
    reduction = {v for v, kind in zip(block.iter_vars, axis_kinds(block), strict=True) if kind == "R"}
    analyzer = Analyzer()
    for region in write_regions(block):
        for start in region.mins:
            for atom in free_vars(analyzer.expr(start)):
                if atom.payload in reduction:
                    return f"a reduction axis indexes its output '{tir.buffer_name(region.buffer)}'"
    return _why_elements_shared(block)


def _why_elements_shared(block: tir.BlockOp) -> str | None:
    """Returns why several sums may share an element that each starts again by T.init(), or None."""
    spatial = {
        variable: extent
        for variable, kind, extent in zip(block.iter_vars, axis_kinds(block), block.dom_extents, strict=True)
        if kind == "S" and const_int(extent) != 1
    }
    for region in write_regions(block):
        starts = set(region.mins)
        if not all(variable in starts for variable in spatial):
            analyzer = Analyzer()
            bind_axes(analyzer, block)
            domains: dict[Value, tuple[Value, Value]] = {v: (0, extent) for v, extent in spatial.items()}
            found = analyzer.detect_iter_map([*region.mins], domains, TRUE, IterMapLevel.BIJECTIVE)
            if not found:
                return (
                    f"several sums may be made in one element of '{tir.buffer_name(region.buffer)}': {found.errors[0]}"
                )
    return None


def why_not_started(block: tir.BlockOp) -> str | None:
    """Returns why `T.init()` of a block does not precede all other updates of an element; None if it does.

    T.init() runs where each reduction axis has the first value of its domain. The loops of the block's own scope must bring
    all of them there, for each element, and before any other instance that updates it:

    for i, k in T.grid(4, 3):                     for i, k in T.grid(4, 1):
        with T.block("B"):                            with T.block("B_k1"):
            vi, vk = T.axis.remap("SR", [i, k])           vi = T.axis.spatial(4, i)
            with T.init(): …                              vk = T.axis.reduce(3, k + 2)
                                                          with T.init(): …

    The first block starts its sums; the second, a part of a partitioned loop, adds to sums that others started.
    """
    loops = loops_above(block)
    lows = {loop.loop_var: const_int(loop.min) for loop in loops}
    reduced = [
        (name.data, binding, low)
        for name, kind, binding, low in zip(
            block.iter_names.data, axis_kinds(block), block.bindings, block.dom_mins, strict=True
        )
        if kind == "R"
    ]
    # Each axis is bound to a loop that begins where the axis does: most are.
    driving = {b for _, b, _ in reduced}
    plain = len(driving) == len(reduced)
    plain = plain and all(lows.get(b) is not None and lows[b] == const_int(low) for _, b, low in reduced)
    if plain and block.predicate is None and _why_under_branch(block) is None:
        return None
    analyzer = analyzer_for(all_loops_above(block))
    for outer in blocks_above(block):
        for variable, low, extent in zip(outer.iter_vars, outer.dom_mins, outer.dom_extents, strict=True):
            analyzer.bind(variable, low, extent)
    variables = {atom for v in lows if (atom := analyzer.expr(v).atom) is not None}
    for name, binding, low in reduced:
        ends = relax(analyzer.simplify(binding), variables, analyzer)
        if ends is None:
            return f"where reduction axis '{name}' begins is not known"
        first = analyzer.simplify(ends[0])
        if not analyzer.can_prove_equal(first, analyzer.expr(low)):
            return (
                f"reduction axis '{name}' begins at {first!r} there, not at {analyzer.expr(low)!r}, where T.init() runs"
            )
    reason = None if plain else _why_not_first_once(block, loops, reduced, analyzer)
    if reason is not None:
        return reason
    # Where the innermost loops are those of the sums, one is finished before the next begins, be it of the same element.
    finished = plain and driving == {loop.loop_var for loop in loops[len(loops) - len(driving) :]}
    if not finished and not _are_digits(block.bindings, loops) and why_not_affine(block, None, False) is not None:
        reason = why_not_affine(block)
        if reason is not None:
            return f"whether T.init() runs first is not known: {reason}"
    return _why_under_branch(block) or _why_start_is_left_out(block, [b for _, b, _ in reduced], analyzer)


def _why_not_first_once(
    block: tir.BlockOp,
    loops: Sequence[tir.ForOp],
    reduced: Sequence[tuple[str, SSAValue, SSAValue]],
    analyzer: Analyzer,
) -> str | None:
    """Returns why a reduction's axes do not begin exactly in the first iterations of its loops, or None.

    An axis bound to n - 1 - j has its first value in the last iteration of j, one bound to j // 2 in two of them.
    """
    bindings = [(name, analyzer.expr(binding), analyzer.expr(low)) for name, binding, low in reduced]
    driving = {atom for _, e, _ in bindings for atom in free_vars(e)}
    of_reduction = [loop for loop in loops if analyzer.expr(loop.loop_var).atom in driving]
    firsts: dict[Atom, Expr] = {}
    for loop in of_reduction:
        firsts[analyzer.variable(loop.loop_var)] = analyzer.expr(loop.min)
    for name, e, low in bindings:
        first = substitute(e, firsts)
        if not analyzer.can_prove_equal(analyzer.simplify(first), low):
            return f"reduction axis '{name}' is {first!r} in the first iteration, not {low!r}, where T.init() runs"
    if all(atom.kind is Kind.VAR for _, e, _ in bindings for atom, _ in e.terms):
        return None
    iters: dict[Value, tuple[Value, Value]] = {loop.loop_var: (loop.min, loop.extent) for loop in of_reduction}
    own = [b for b in block.bindings if not firsts.keys().isdisjoint(free_vars(analyzer.expr(b)))]
    conditions = [] if block.predicate is None else conditions_of(block.predicate, analyzer)
    bounds = logical_and(*(c for c in conditions if not firsts.keys().isdisjoint(free_vars(c))))
    if any(analyzer.detect_iter_map(own, iters, p, IterMapLevel.BIJECTIVE) for p in dict.fromkeys((TRUE, bounds))):
        return None
    names = " and ".join(f"'{loop.var_name.data}'" for loop in of_reduction)
    return f"whether T.init() runs once for each element is not known: the bindings do not tell all iterations of {names} apart"


def _why_under_branch(block: tir.BlockOp) -> str | None:
    """Returns why an instance may not run: a branch in the loops that drive the reduction."""
    driving = driving_variables(block, "R")
    branch: Operation | None = None
    parent = op_around(block)
    while parent is not None and type(parent) is not tir.BlockOp and type(parent) is not tir.PrimFuncOp:
        if type(parent) is not tir.ForOp:
            branch = parent
        elif branch is not None and parent.loop_var in driving:
            return f"it is in a branch in loop '{parent.var_name.data}', which drives its reduction"
        parent = op_around(parent)
    return None


def _why_start_is_left_out(block: tir.BlockOp, reduced: list[SSAValue], analyzer: Analyzer) -> str | None:
    """Returns why a predicate may exclude the instance that runs T.init(), and admit later ones."""
    if block.predicate is None:
        return None
    bindings = [analyzer.simplify(b) for b in reduced]
    driving = {atom for e in bindings for atom in free_vars(e)}
    for part in conditions_of(block.predicate, analyzer):
        part = analyzer.simplify(part)
        if analyzer.can_prove(part) or not driving.intersection(free_vars(part)):
            continue
        # e >= 0 that only falls with the loops holds in their first iterations if it holds anywhere.
        atom = part.atom
        left = atom.operands[0] if atom is not None and atom.kind is Kind.GE else None
        if left is None or not all(
            scale < 0 and _is_least_first(term, analyzer)
            for term, scale in left.terms
            if driving.intersection(free_vars(Expr(((term, 1),), 0)))
        ):
            return f"its predicate, {part!r}, may leave out the instance in which T.init() runs"
    return None


def _is_least_first(atom: Atom, analyzer: Analyzer) -> bool:
    """Returns whether a loop's variable, or a part of it (f // 3, f % 3), is least in the first iteration."""
    variable = _part(atom)[0]
    return variable.kind is Kind.VAR and (variable is atom or analyzer.known(variable).bound.min_value == 0)


def _why_init_differs(block: tir.BlockOp) -> str | None:
    """Returns why T.init() and the update use different elements; None when each instance has one element."""
    analyzer = Analyzer()
    places: dict[SSAValue, set[tuple[Expr, ...]]] = {}
    loads: list[tir.LoadOp] = []
    for op in all_ops(block):
        if type(op) is tir.BlockOp and op is not block:
            # The blocks inside say themselves what they initialize and update.
            return None
        if type(op) is tir.StoreOp:
            places.setdefault(op.buffer, set()).add(tuple([analyzer.expr(i) for i in op.indices]))
        elif type(op) is tir.LoadOp:
            loads.append(op)
    for op in loads:
        if op.buffer in places:
            places[op.buffer].add(tuple([analyzer.expr(i) for i in op.indices]))
    for buffer, found in places.items():
        if len(found) > 1:
            return f"it sets, reads and updates different elements of '{tir.buffer_name(buffer)}'"
    return None


def why_neither(block: tir.BlockOp, within: Operation | None = None, started: bool = True) -> tuple[str, str] | None:
    """Returns why a block is neither complete nor a reduction (both reasons); None when it is one of them."""
    complete = why_not_complete(block, within)
    if complete is None:
        return None
    reduction = why_not_reduction(block, within, started)
    return None if reduction is None else (complete, reduction)


# Edits


def set_block(
    block: tir.BlockOp,
    *,
    dom_mins: Iterable[SSAValue] | None = None,
    dom_extents: Iterable[SSAValue] | None = None,
    bindings: Iterable[SSAValue] | None = None,
    predicate: SSAValue | None = None,
    drop_predicate: bool = False,
) -> None:
    """Changes some of a block's operands; a predicate stays unless it is given or dropped."""
    before = list(block.operands)
    kept = [] if block.predicate is None or drop_predicate else [block.predicate]
    set_operands(
        block,
        list(block.dom_mins) if dom_mins is None else list(dom_mins),
        list(block.dom_extents) if dom_extents is None else list(dom_extents),
        list(block.bindings) if bindings is None else list(bindings),
        kept if predicate is None else [predicate],
    )
    erase_if_dead(*before)


def simplify_bindings(block: tir.BlockOp, extra: Expr = TRUE, keep_units: bool = True) -> None:
    """Simplifies a block's bindings, and its predicate with `extra`; drops implied conditions.

    With `keep_units`, the variables of loops of one iteration stay in the bindings. Those of loops without iterations stay always:
    anything follows from an empty range, also that a binding is constant, and a reduction over it would not be recognized.
    """
    loops = all_loops_above(block)
    analyzer = analyzer_for(loops)
    shortener = analyzer
    kept = (0, 1) if keep_units else (0,)
    if any(const_int(loop.extent) in kept for loop in loops):
        shortener = analyzer_for(loop for loop in loops if const_int(loop.extent) not in kept)
    builder = builder_before(block)
    bindings: list[SSAValue] = []
    for binding in block.bindings:
        # Built again even where it is short already: it must not depend on values that other statements share.
        keep = type(binding) is not OpResult or type(binding.op) is tir.ConstOp
        bindings.append(binding if keep else analyzer.to_ssa(shortener.simplify(binding), builder, binding.type))
    old = [] if block.predicate is None else conditions_of(block.predicate, analyzer)
    parts: list[Expr] = []
    for part in (*old, *conjuncts(extra)):
        short = analyzer.simplify(part)
        if short != TRUE and not analyzer.can_prove(short) and short not in parts:
            parts.append(short)
    if not parts:
        set_block(block, bindings=bindings, drop_predicate=True)
    elif parts == old:
        set_block(block, bindings=bindings)
    else:
        # One after the other: as one expression they would be in an order that depends on what was analysed before.
        condition = analyzer.to_ssa(parts[0], builder, I1)
        for part in parts[1:]:
            condition = builder.insert(tir.AndOp(condition, analyzer.to_ssa(part, builder, I1))).result
        set_block(block, bindings=bindings, predicate=condition)


def conditions_of(predicate: SSAValue, analyzer: Analyzer) -> list[Expr]:
    """Returns the conditions whose conjunction a predicate is, in the order in which they are written."""
    found: list[Expr] = []
    pending = [predicate]
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, tir.AndOp):
            pending += [owner.rhs, owner.lhs]
        else:
            found += conjuncts(analyzer.expr(value))
    return found


def simplify_blocks_under(loop: Operation, extra: Expr = TRUE, keep_units: bool = True) -> None:
    """Simplifies the bindings of every block under a loop."""
    for block in child_blocks(loop):
        simplify_bindings(block, extra, keep_units)


def why_order_matters(block: tir.BlockOp, loop: tir.ForOp) -> str | None:
    """Returns why iterations of `loop` and its inner loops may run an instance of the block twice.

    Iterations that a predicate excludes run no instance, so the map without the predicate is one-to-one all the more.
    """
    analyzer, loops = Analyzer(), loops_above(block)
    driving = {atom.payload for binding in block.bindings for atom in free_vars(analyzer.expr(binding))}
    for each in loops[loops.index(loop) :]:
        # What only sets its elements sets them to the same again.
        if "R" in axis_kinds(block) and const_int(each.extent) != 1 and each.loop_var not in driving:
            return f"loop '{each.var_name.data}' drives no axis, so that its iterations run the same instances again"
    if _are_digits(block.bindings, loops):
        return None
    first = why_not_affine(block)
    if first is None:
        return None
    for within in (None, loop):
        for with_predicate in (True, False):
            if why_not_affine(block, within, with_predicate) is None:
                return None
    return first
