"""Keeps candidates of a reduction such as argmax in lanes of vectors, for `lower-lane-reduction`.

The body of such a loop has one condition, under which each output stays as it is, and the terms that replace it otherwise:

    keep = m[i] > A[i, k] or m[i] == A[i, k] and at[i] < k
    at[i] = T.Select(keep, at[i], k)
    m[i] = T.Select(keep, m[i], A[i, k])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.expr import Expr, free_vars
from ....dialects.tir.operators import as_const
from ....support.edit import builder_before
from ..analyzed_walk import analyzer_at
from ..blocks.convert_blocks_to_opaque import REASSOCIATE
from ..clone_body import copy_ops
from ..rewriting import is_statement
from .arg_reduction import behind_let, choice_order


@dataclass(frozen=True)
class _Output:
    """An output of the choice: the store, and the term that may replace it."""

    store: tir.StoreOp
    term: SSAValue


@dataclass(frozen=True)
class ArgLoop:
    """A loop that reduces by choosing."""

    loop: tir.ForOp
    extent: int
    outputs: list[_Output]
    body: list[Operation]
    """The ops that what is stored is computed by."""
    terms: dict[SSAValue, int]
    """Values that are the term of an output, by its number."""
    olds: dict[SSAValue, int]
    """Values that are what an output was, likewise."""
    later: _Later | None
    """How a term of a later iteration is compared with the chosen value."""


@dataclass(frozen=True)
class _Later:
    """A condition, and the comparison that it reduces to for an output chosen in an earlier iteration.

    `conditions` are all values that are the condition. A tie is already decided then.
    """

    conditions: frozenset[SSAValue]
    old: SSAValue
    term: SSAValue
    order: type[tir.GtOp | tir.LtOp]
    first: bool
    """Whether of equal ones the first is chosen, and of NaNs; else the last."""
    nan: bool
    """Whether a NaN beats every number."""
    places: frozenset[int]
    """The numbers of the outputs that are the place; each grows by the same amount in every iteration."""

    def stays(self, builder: Builder, old: SSAValue, term: SSAValue) -> SSAValue:
        """Returns whether what an earlier iteration chose stays."""
        wide = tir.GeOp if self.order is tir.GtOp else tir.LeOp
        if not self.nan:
            return builder.insert((wide if self.first else self.order)(old, term)).result
        if self.first:
            compared = builder.insert(wide(old, term)).result
            return builder.insert(tir.OrOp(compared, builder.insert(tir.NeOp(old, old)).result)).result
        # What is no more than a number goes; NaN is more.
        other = tir.LeOp if self.order is tir.GtOp else tir.GeOp
        more = builder.insert(tir.NotOp(builder.insert(other(old, term)).result)).result
        return builder.insert(tir.AndOp(builder.insert(tir.EqOp(term, term)).result, more)).result


def match_choice(loop: tir.ForOp) -> ArgLoop | None:
    """Matches a reduction that chooses, such as argmax."""
    low, extent = as_const(loop.min), as_const(loop.extent)
    if loop.kind.data != "serial" or low is None or low.value != 0 or extent is None:
        return None
    ops = list(loop.body.block.ops)
    stores = [op for op in ops if isinstance(op, tir.StoreOp)]
    others = [op for op in ops if is_statement(op) and op not in stores]
    if len(stores) < 2 or others or any(op.regions for op in ops):
        return None
    outputs: list[_Output] = []
    conditions: set[object] = set()
    keys = _Keys(loop.body.block)
    for store in stores:
        select = behind_let(store.value).owner
        if not isinstance(select, tir.SelectOp) or REASSOCIATE not in select.attributes or store.predicate is not None:
            return None
        kept = behind_let(select.true_value).owner
        if not isinstance(kept, tir.LoadOp) or kept.buffer is not store.buffer:
            return None
        conditions.add(keys.of(select.condition))
        outputs.append(_Output(store, select.false_value))
    if len(conditions) != 1:
        return None
    buffers = [o.store.buffer for o in outputs]
    terms: dict[SSAValue, int] = {}
    olds: dict[SSAValue, int] = {}
    wanted = {keys.of(o.term): k for k, o in enumerate(outputs)}
    if len(wanted) != len(outputs):
        return None
    analyzer = Analyzer()
    for op in ops:
        if isinstance(op, tir.LoadOp) and op.buffer in buffers:
            number = buffers.index(op.buffer)
            there = [analyzer.expr(i) for i in outputs[number].store.indices]
            if [analyzer.expr(i) for i in op.indices] != there:
                return None
            olds[op.result] = number
        for result in op.results:
            if keys.of(result) in wanted:
                terms[result] = wanted[keys.of(result)]
    if keys.of(loop.loop_var) in wanted:
        terms[loop.loop_var] = wanted[keys.of(loop.loop_var)]
    own = {loop.loop_var, *(r for op in ops if isinstance(op, tir.LoadOp) for r in op.results)}
    for output in outputs:
        if any(a.payload in own for i in output.store.indices for a in free_vars(analyzer.expr(i))):
            return None
    body = [op for op in ops if not isinstance(op, tir.StoreOp)]
    selects = [s for store in stores if isinstance(s := behind_let(store.value).owner, tir.SelectOp)]
    later = _match_later(loop, [behind_let(s.condition) for s in selects], terms, olds)
    return ArgLoop(loop, int(extent.value), outputs, body, terms, olds, later)


def _match_later(
    loop: tir.ForOp, conditions: list[SSAValue], terms: Mapping[SSAValue, int], olds: Mapping[SSAValue, int]
) -> _Later | None:
    """Matches equal conditions such as `old > term or old == term and (at < place and at >= 0)`.

    The places must grow from iteration to iteration.
    """
    found = choice_order(conditions[0])
    if found is None or found.equal is None or found.places is None or not isinstance(found.order, tir.GtOp | tir.LtOp):
        return None
    order, equal = found.order, found.equal
    old, term = behind_let(order.lhs), behind_let(order.rhs)
    if old not in olds or olds[old] != terms.get(term):
        return None
    number = olds[old]
    if [olds.get(behind_let(equal.lhs)), terms.get(behind_let(equal.rhs))] != [number] * 2:
        return None
    if found.nan is not None:
        nan, ordered, tied = ([behind_let(v) for v in op.operands] for op in found.nan)
        if any(olds.get(v) != number for v in (*nan, *tied)) or any(terms.get(v) != number for v in ordered):
            return None
    pending, directions, places = [behind_let(found.places).owner], set[bool](), set[int]()
    while pending:
        op = pending.pop()
        if isinstance(op, tir.AndOp):
            pending += [behind_let(op.lhs).owner, behind_let(op.rhs).owner]
            continue
        if not isinstance(op, tir.LtOp | tir.GtOp | tir.GeOp):
            return None
        chosen, bound = olds.get(behind_let(op.lhs)), behind_let(op.rhs)
        least = as_const(bound)
        if isinstance(op, tir.GeOp):
            # -1 represents no place.
            place = next((v for v, k in terms.items() if k == chosen), None)
            if least is None or least.value != 0 or place is None or not _grows(loop, place, from_zero=True):
                return None
        elif chosen is None or terms.get(bound) != chosen or not _grows(loop, bound):
            return None
        else:
            directions.add(isinstance(op, tir.LtOp))
            places.add(chosen)
    if len(directions) != 1:
        return None
    # Of equal ones the first, which stays, or the last.
    return _Later(
        frozenset(conditions), old, term, type(order), directions == {True}, found.nan is not None, frozenset(places)
    )


def _grows(loop: tir.ForOp, place: SSAValue, *, from_zero: bool = False) -> bool:
    """Returns whether a place grows by a constant in each iteration, and, `from_zero`, is never below 0."""
    analyzer = analyzer_at(loop)
    analyzer.bind(loop.loop_var, loop.min, loop.extent)
    step, start = _line(loop, place, analyzer)
    if step <= 0:
        return False
    loaded = {r for op in loop.body.block.ops if isinstance(op, tir.LoadOp) for r in op.results}
    inside = loaded | {loop.loop_var}
    return not any(a.payload in inside for a in free_vars(start)) and (
        not from_zero or analyzer.can_prove_greater_equal(place, 0)
    )


def _line(loop: tir.ForOp, place: SSAValue, analyzer: Analyzer) -> tuple[int, Expr]:
    """Returns (step, start) of a place `step * iteration + start`."""
    e, iteration = analyzer.simplify(analyzer.expr(place)), analyzer.expr(loop.loop_var)
    step = 0 if iteration.atom is None else e.coefficient(iteration.atom)
    return step, e - iteration.scaled(step)


class _Keys:
    """Equal keys for values that are computed alike."""

    def __init__(self, block: Block):
        self.block = block
        self.known: dict[SSAValue, object] = {}

    def of(self, value: SSAValue) -> object:
        """Returns the key of a value."""
        value = behind_let(value)
        if value not in self.known:
            op = value.owner
            if isinstance(op, Operation) and op.parent is self.block and len(op.results) == 1 and not op.regions:
                properties = tuple(sorted((k, v) for k, v in op.properties.items() if k != "name"))
                self.known[value] = (op.name, value.type, properties, *(self.of(o) for o in op.operands))
            elif isinstance(op, tir.ConstOp):
                self.known[value] = (op.name, op.value)
            else:
                self.known[value] = value
        return self.known[value]


class ChoiceLanes:
    """Writes the loops that take the place of one that chooses."""

    def __init__(self, found: ArgLoop, lanes: int):
        self.found, self.lanes = found, lanes
        self.type = found.loop.loop_var.type
        self.before = builder_before(found.loop)
        analyzer = Analyzer()
        self.bases = self._bases(analyzer)
        self.places = [
            [analyzer.to_ssa(analyzer.expr(i), self.before, i.type) for i in o.store.indices] for o in found.outputs
        ]

    def _bases(self, analyzer: Analyzer) -> dict[int, tuple[int, SSAValue]]:
        """Returns the growth in an iteration and the first value of each output that is the place, by number.

        While lanes are filled, all lanes of an iteration over vectors hold the place of the first: it is one number for all vectors, and
        the distance of each lane from the first is added once, at the end.
        """
        found = self.found
        bases: dict[int, tuple[int, SSAValue]] = {}
        for k in sorted(found.later.places) if found.later is not None else ():
            term = found.outputs[k].term
            step, start = _line(found.loop, term, analyzer)
            if term.type == self.type:
                bases[k] = step, analyzer.to_ssa(start, self.before, self.type)
        return bases

    def write(self, vectors: int) -> None:
        """Fills the lanes of `vectors` vectors with candidates; then reduces all candidates by halves.

        The first candidates are those of the first iterations.
        """
        b, found = self.before, self.found
        width = self.lanes * vectors
        partial: list[SSAValue] = []
        for output in found.outputs:
            type_ = output.store.value.type
            name = f"{tir.buffer_name(output.store.buffer)}_lanes"
            buffer = b.insert(tir.DeclBufferOp(name, tir.BufferType.get([width], type_, "local"))).result
            buffer.name_hint = name
            partial.append(buffer)
        self.each(b, vectors, lambda inner, at: self.start(inner, partial, at))
        whole = found.extent // width

        def block_of(inner: Builder, k: SSAValue) -> None:
            iteration = inner.insert(tir.AddOp(k, self.number(inner, 1))).result
            base = inner.insert(tir.MulOp(iteration, self.number(inner, width))).result

            def update(deep: Builder, at: SSAValue) -> None:
                index = deep.insert(tir.AddOp(base, at)).result
                self.update(deep, [(p, [at]) for p in partial], {found.loop.loop_var: index}, later=True, base=base)

            self.each(inner, vectors, update)

        self.loop_of(b, found.loop.var_name.data, whole - 1, "serial", block_of)
        self.each(b, vectors, lambda inner, at: self.spread(inner, partial, at))
        done = whole * width
        while done < found.extent:
            # The last vector may hold iterations that were taken before: to choose again changes nothing.
            first = min(done, found.extent - self.lanes)

            def vector(inner: Builder, lane: SSAValue, first: int = first, later: bool = first == done) -> None:
                index = inner.insert(tir.AddOp(lane, self.number(inner, first))).result
                self.update(inner, [(p, [lane]) for p in partial], {found.loop.loop_var: index}, later=later)

            self.loop_of(b, "lane", self.lanes, "vectorized", vector)
            done += self.lanes

        def fold(distance: int) -> Callable[[Builder, SSAValue], None]:
            def body(inner: Builder, lane: SSAValue) -> None:
                other = inner.insert(tir.AddOp(lane, self.number(inner, distance))).result
                self.update(inner, [(p, [lane]) for p in partial], self.terms_at(inner, partial, other))

            return body

        left = vectors
        while left > 1:
            # By halves, of which no fold waits for another; an odd one stays.
            others = left // 2
            self.each(b, others, fold((left - others) * self.lanes))
            left -= others
        half = self.lanes
        while half % 2 == 0:
            half //= 2
            self.loop_of(b, "lane", half, "vectorized", fold(half))
        outputs = [(o.store.buffer, p) for o, p in zip(found.outputs, self.places, strict=True)]

        def last(inner: Builder, lane: SSAValue) -> None:
            self.update(inner, outputs, self.terms_at(inner, partial, lane))

        self.loop_of(b, "lane", half, "serial", last)

    def start(self, builder: Builder, targets: list[SSAValue], at: SSAValue) -> None:
        """Stores the terms of an iteration as candidates."""
        found, values = self.found, [o.term for o in self.found.outputs]
        needed: set[Operation] = set()
        pending = list(values)
        while pending:
            owner = pending.pop().owner
            if isinstance(owner, Operation) and owner in found.body and owner not in needed:
                needed.add(owner)
                pending += owner.operands
        ops = [op for op in found.body if op in needed]
        copies = copy_ops(ops, {found.loop.loop_var: at})
        made: dict[SSAValue, SSAValue] = {found.loop.loop_var: at}
        for op, copy in zip(ops, copies, strict=True):
            builder.insert(copy)
            made.update(zip(op.results, copy.results, strict=True))
        for k, (value, target) in enumerate(zip(values, targets, strict=True)):
            known = self.bases.get(k)
            builder.insert(tir.StoreOp(made.get(value, value) if known is None else known[1], target, [at]))

    def spread(self, builder: Builder, targets: list[SSAValue], at: SSAValue) -> None:
        """Adds to the place that a lane holds what the lane is apart from the first."""
        for k, (step, _) in self.bases.items():
            held = builder.insert(tir.LoadOp(targets[k], [at])).result
            apart = self.times(builder, at, step)
            builder.insert(tir.StoreOp(builder.insert(tir.AddOp(held, apart)).result, targets[k], [at]))

    def times(self, builder: Builder, value: SSAValue, factor: int) -> SSAValue:
        """Multiplies a number of iterations by the place's growth."""
        return value if factor == 1 else builder.insert(tir.MulOp(value, self.number(builder, factor))).result

    def terms_at(self, builder: Builder, buffers: list[SSAValue], at: SSAValue) -> dict[SSAValue, SSAValue]:
        """Candidates in place of the terms."""
        loaded = [builder.insert(tir.LoadOp(buffer, [at])).result for buffer in buffers]
        return {value: loaded[k] for value, k in self.found.terms.items()}

    def update(
        self,
        builder: Builder,
        targets: list[tuple[SSAValue, list[SSAValue]]],
        values: Mapping[SSAValue, SSAValue],
        *,
        later: bool = False,
        base: SSAValue | None = None,
    ) -> None:
        """Clones the loop's body with other outputs and terms; `later`: outputs of an earlier iteration.

        With `base` places are that of this iteration, whatever the lane.
        """
        made = dict(values)
        olds = [builder.insert(tir.LoadOp(buffer, place)).result for buffer, place in targets]
        for value, k in self.found.olds.items():
            made[value] = olds[k]
        known = self.found.later if later else None
        compared: SSAValue | None = None
        for op in self.found.body:
            if any(r in made for r in op.results):
                continue
            if known is not None and any(r in known.conditions for r in op.results):
                compared = compared or known.stays(builder, made[known.old], made[known.term])
                made[op.results[0]] = compared
                continue
            (copy,) = copy_ops([op], made)
            builder.insert(copy)
            made.update(zip(op.results, copy.results, strict=True))
        for k, (output, (buffer, place)) in enumerate(zip(self.found.outputs, targets, strict=True)):
            value = made[output.store.value]
            if base is not None and k in self.bases:
                assert compared is not None
                step, start = self.bases[k]
                there = self.times(builder, base, step)
                first = as_const(start)
                if first is None or first.value != 0:
                    there = builder.insert(tir.AddOp(start, there)).result
                value = builder.insert(tir.SelectOp(compared, olds[k], there)).result
            builder.insert(tir.StoreOp(value, buffer, place))

    def number(self, builder: Builder, value: int) -> SSAValue:
        """Builds a number of the type of the loop's variable."""
        return builder.insert(tir.ConstOp.int(value, self.type)).result

    def each(self, builder: Builder, vectors: int, body: Callable[[Builder, SSAValue], None]) -> None:
        """Builds a loop over the vectors, and one over the lanes in it."""

        def of_vector(outer: Builder, u: SSAValue) -> None:
            base = outer.insert(tir.MulOp(u, self.number(outer, self.lanes))).result

            def of_lane(inner: Builder, lane: SSAValue) -> None:
                body(inner, inner.insert(tir.AddOp(base, lane)).result)

            self.loop_of(outer, "lane", self.lanes, "vectorized", of_lane)

        self.loop_of(builder, "vector", vectors, "unrolled", of_vector)

    def loop_of(
        self, builder: Builder, name: str, extent: int, kind: str, body: Callable[[Builder, SSAValue], None]
    ) -> None:
        """Builds a loop from 0."""
        block = Block(arg_types=[self.type])
        block.args[0].name_hint = name
        inner = Builder(InsertPoint.at_end(block))
        inner.operation_insertion_handler = builder.operation_insertion_handler
        low, many = self.number(builder, 0), self.number(builder, extent)
        body(inner, block.args[0])
        builder.insert(tir.ForOp(name, low, many, kind=kind, body=Region(block)))
