"""Commutative reducers: how a reduction block combines an output's old value with a new one.

A reduction block holds T.init() with one constant per output, and stores to each output a combination of its old value and
a new one. `x + y`, `x * y`, `T.min`, `T.max`, `x and y`, `x or y` are commutative; so is, for several outputs, the choice
between all old and all new values by a comparison of one of them (argmax, argmin). Sums of floats round otherwise in
another order, and which of several equal elements an argmax names may change: both as TVM has it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....support.walk import walk_ops
from ...tir.vectors.arg_reduction import choice_order
from ..engine.errors import refuse

Leaf = Callable[[int, Builder], SSAValue]
"""Builds the old, or the new, value of output k at a place."""


class ValueNumbers:
    """Gives values that compute the same, from the same elements, the same number."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()
        self._known: dict[SSAValue, int] = {}
        self._table: dict[Hashable, int] = {}

    def of(self, value: SSAValue) -> int:
        """Returns a value's number; loads of one place share it, so nothing may be stored between them."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            inputs = self._inputs(current)
            missing = [v for v in inputs if v not in self._known]
            if missing:
                pending += missing
                continue
            key = self._key(current, inputs)
            self._known[current] = self._table.setdefault(key, len(self._table))
            pending.pop()
        return self._known[value]

    @staticmethod
    def _inputs(value: SSAValue) -> list[SSAValue]:
        if not isinstance(value, OpResult) or value.op.regions or not is_side_effect_free(value.op):
            return []
        return list(value.op.operands)

    def _key(self, value: SSAValue, inputs: list[SSAValue]) -> Hashable:
        if isinstance(value, OpResult) and isinstance(value.op, tir.LoadOp) and value.op.predicate is None:
            indices: tuple[Expr, ...] = tuple(self._analyzer.expr(i) for i in value.op.indices)
            return "load", value.op.buffer, indices
        if isinstance(value, OpResult) and isinstance(value.op, tir.LetOp):
            return self._known[value.op.value]
        if not isinstance(value, OpResult) or value.op.regions or not is_side_effect_free(value.op):
            return value
        op = value.op
        properties = tuple(sorted(op.properties.items()))
        return op.name, value.type, properties, tuple(self._known[v] for v in inputs)


@dataclass(frozen=True)
class Output:
    """An output of a reduction: buffer and indices, the initial constant, the stored and the new value."""

    buffer: SSAValue
    indices: tuple[SSAValue, ...]
    init: SSAValue
    stored: SSAValue
    new: SSAValue
    let_name: str | None


@dataclass(frozen=True)
class Reduction:
    """A reduction block's outputs, all indexed alike, and the way that they are combined."""

    block: tir.BlockOp
    outputs: tuple[Output, ...]
    chooses: bool
    """Whether it chooses between old and new values, rather than computing with them."""

    def combine(self, k: int, builder: Builder, old: Leaf, new: Leaf) -> SSAValue:
        """Builds the combination for output k of the values that `old` and `new` build."""
        numbers = ValueNumbers()
        fresh = [numbers.of(output.new) for output in self.outputs]
        buffers = {output.buffer: j for j, output in enumerate(self.outputs)}

        def build(value: SSAValue, beside: int) -> SSAValue:
            """Returns the value, where the new value of output `beside` is meant if several outputs have the same."""
            owner = value.owner
            if isinstance(owner, tir.LoadOp) and owner.buffer in buffers:
                return old(buffers[owner.buffer], builder)
            number = numbers.of(value)
            if number == fresh[beside]:
                return new(beside, builder)
            if number in fresh:
                return new(fresh.index(number), builder)
            assert isinstance(owner, Operation)
            if isinstance(owner, tir.LetOp):
                return build(owner.value, beside)
            olds = [
                v.owner.buffer for v in owner.operands if isinstance(v.owner, tir.LoadOp) and v.owner.buffer in buffers
            ]
            if olds and not isinstance(owner, tir.SelectOp):
                beside = buffers[olds[0]]
            made = type(owner).create(
                operands=[build(v, beside) for v in owner.operands],
                result_types=owner.result_types,
                properties=owner.properties,
            )
            return builder.insert(made).results[0]

        return build(self.outputs[k].stored, k)


def reduction_of(block: tir.BlockOp, primitive: str) -> Reduction:
    """Returns the reduction that a block computes; raises where it is not a commutative one."""
    name = block.block_name.data
    init = block.find(tir.InitOp)
    assert isinstance(init, tir.InitOp)
    starts = _stores(block, init, primitive, "T.init()")
    updates = _stores(block, block, primitive, "the update")
    if not updates:
        raise refuse(block, f"{primitive}: the update of block '{name}' stores nothing")
    if set(starts) != set(updates):
        only = next(iter(set(starts) ^ set(updates)))
        raise refuse(
            block,
            f"{primitive}: block '{name}' {'initializes' if only in starts else 'updates'} '{tir.buffer_name(only)}', but does not {'update' if only in starts else 'initialize'} it",
        )
    _require_alike(block, starts, updates, primitive)
    ordered = _in_order_of_lets(list(updates.values()))
    last = {op for op in block.body.block.ops if isinstance(op, tir.StoreOp)}
    if len(ordered) > 1:
        stored = False
        for op in block.body.block.ops:
            stored = stored or op in last
            if stored and isinstance(op, tir.LoadOp) and op.buffer in updates:
                raise refuse(
                    op,
                    f"{primitive}: block '{name}' reads its output '{tir.buffer_name(op.buffer)}' after it has stored an output",
                    "name every new value first (v: T.float32 = …), then store all of them",
                )
    for store in ordered:
        constant = _constant(starts[store.buffer].value)
        if constant is None:
            raise refuse(
                starts[store.buffer],
                f"{primitive}: T.init() of block '{name}' sets '{tir.buffer_name(store.buffer)}' to no constant",
            )
    return _matched(block, ordered, starts, primitive)


def _stores(
    block: tir.BlockOp, root: tir.BlockOp | tir.InitOp, primitive: str, what: str
) -> dict[SSAValue, tir.StoreOp]:
    """Returns the stores directly in `root`, by buffer; raises where there are other statements."""
    found: dict[SSAValue, tir.StoreOp] = {}
    name = block.block_name.data
    for op in root.body.block.ops:
        if isinstance(op, tir.StoreOp):
            if op.buffer in found:
                raise refuse(
                    op, f"{primitive}: {what} of block '{name}' stores '{tir.buffer_name(op.buffer)}' more than once"
                )
            if op.predicate is not None:
                raise refuse(op, f"{primitive}: {what} of block '{name}' stores under a mask")
            found[op.buffer] = op
        elif not op.results and not isinstance(op, tir.ReadsOp | tir.WritesOp | tir.InitOp):
            raise refuse(
                op,
                f"{primitive}: {what} of block '{name}' holds a statement besides stores, '{op.name}'",
                "a reduction must be B[…] = B[…] + x, or the like with *, T.min, T.max, or the choice of an argmax",
            )
    return found


def _require_alike(
    block: tir.BlockOp,
    starts: dict[SSAValue, tir.StoreOp],
    updates: dict[SSAValue, tir.StoreOp],
    primitive: str,
) -> None:
    """Raises unless all outputs have one shape, and init and update use the same element of each."""
    analyzer = Analyzer()
    name = block.block_name.data
    first = next(iter(updates.values()))
    place = tuple(analyzer.expr(i) for i in first.indices)
    assert isinstance(first.buffer.type, tir.BufferType)
    for op in walk_ops(block):
        if not isinstance(op, tir.StoreOp | tir.LoadOp) or op.buffer not in updates:
            continue
        assert isinstance(op.buffer.type, tir.BufferType)
        if op.buffer.type.shape != first.buffer.type.shape:
            raise refuse(
                op,
                f"{primitive}: the outputs '{tir.buffer_name(first.buffer)}' and '{tir.buffer_name(op.buffer)}' of block '{name}' have different shapes",
            )
        if tuple(analyzer.expr(i) for i in op.indices) != place:
            raise refuse(
                op,
                f"{primitive}: block '{name}' accesses its outputs at different indices",
                "init, reads and updates of all outputs must be at one place",
            )


def _in_order_of_lets(stores: list[tir.StoreOp]) -> list[tir.StoreOp]:
    """Stores in the order in which their values are named; as they stand when some are not."""
    lets = [store.value.owner for store in stores]
    if not all(isinstance(let, tir.LetOp) for let in lets) or not stores[0].parent:
        return stores
    wanted = dict(zip(lets, stores, strict=True))
    return [wanted[op] for op in stores[0].parent.ops if op in wanted]


def _constant(value: SSAValue) -> float | int | None:
    owner = value.owner
    if isinstance(owner, tir.CastOp):
        return _constant(owner.value)
    if isinstance(owner, tir.ConstOp) and isinstance(owner.value, IntegerAttr | FloatAttr):
        return owner.value.value.data
    return None


_IDENTITY: dict[type[Operation], int | None] = {
    tir.AddOp: 0,
    tir.MulOp: 1,
    # Taking a value in twice changes nothing, whatever it is.
    tir.MinOp: None,
    tir.MaxOp: None,
    tir.AndOp: None,
    tir.OrOp: None,
}
_ORDERS = (tir.GtOp, tir.GeOp, tir.LtOp, tir.LeOp)


def _matched(
    block: tir.BlockOp, stores: list[tir.StoreOp], starts: dict[SSAValue, tir.StoreOp], primitive: str
) -> Reduction:
    buffers = [store.buffer for store in stores]
    numbers = ValueNumbers()
    news: list[SSAValue] = []
    values = [_seen_through(store.value) for store in stores]
    chosen = False
    for store, value in zip(stores, values, strict=True):
        new = _simple(store, value, buffers)
        if new is None:
            new = _chosen(store, value, buffers)
            chosen = True
        if new is None:
            raise _unknown(block, store, primitive)
        news.append(new)
        identity = _IDENTITY.get(type(value.owner)) if isinstance(value.owner, Operation) else None
        start = _constant(starts[store.buffer].value)
        if identity is not None and start != identity:
            raise refuse(
                starts[store.buffer],
                f"{primitive}: block '{block.block_name.data}' starts '{tir.buffer_name(store.buffer)}' from {start}, which every part of the reduction would take in again",
                f"T.init() must set {identity} for this reducer",
            )
    if chosen and not _choose_together(values, news, buffers, numbers):
        raise _unknown(block, stores[0], primitive)
    outputs = tuple(
        Output(
            store.buffer,
            tuple(store.indices),
            starts[store.buffer].value,
            store.value,
            new,
            store.value.owner.var_name.data if isinstance(store.value.owner, tir.LetOp) else None,
        )
        for store, new in zip(stores, news, strict=True)
    )
    return Reduction(block, outputs, chosen)


def _unknown(block: tir.BlockOp, store: tir.StoreOp, primitive: str) -> Exception:
    name = tir.buffer_name(store.buffer)
    return refuse(
        store,
        f"{primitive}: block '{block.block_name.data}' updates '{name}' by no commutative reducer",
        f"the update must be {name}[…] = {name}[…] + x, or with *, T.min, T.max, `and`, `or`, where x does not use {name}; or T.Select(old >= new, old, new) for all outputs",
    )


def _seen_through(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, tir.LetOp):
        value = value.owner.value
    return value


def _uses(value: SSAValue, buffers: list[SSAValue]) -> bool:
    """Returns whether a value is computed from elements of the buffers."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if current in seen or not isinstance(current, OpResult):
            continue
        seen.add(current)
        for op in walk_ops(current.op):
            if isinstance(op, tir.LoadOp) and op.buffer in buffers:
                return True
            pending += op.operands
    return False


def _is_old(value: SSAValue, buffer: SSAValue) -> bool:
    return isinstance(value.owner, tir.LoadOp) and value.owner.buffer is buffer and value.owner.predicate is None


def _simple(store: tir.StoreOp, value: SSAValue, buffers: list[SSAValue]) -> SSAValue | None:
    """Returns x where the value is `old + x`, or the like."""
    if not isinstance(value.owner, Operation) or type(value.owner) not in _IDENTITY:
        return None
    left, right = value.owner.operands
    for old, new in ((left, right), (right, left)):
        if _is_old(old, store.buffer) and not _uses(new, buffers):
            return new
    return None


def _chosen(store: tir.StoreOp, value: SSAValue, buffers: list[SSAValue]) -> SSAValue | None:
    """Returns x where the value is `T.Select(…, old, x)`, or with the two exchanged."""
    if not isinstance(value.owner, tir.SelectOp):
        return None
    left, right = value.owner.operands[1:]
    for old, new in ((left, right), (right, left)):
        if _is_old(old, store.buffer) and not _uses(new, buffers):
            return new
    return None


def _choose_together(
    values: list[SSAValue], news: list[SSAValue], buffers: list[SSAValue], numbers: ValueNumbers
) -> bool:
    """Returns whether all outputs choose by the order of one: `T.Select(old_j >= new_j, old_k, new_k)`.

    The others may decide between equals by themselves: `old_j > new_j or (old_j == new_j and old_k < new_k)`.
    """
    for j, (value, new) in enumerate(zip(values, news, strict=True)):
        order = _direction(value, j, new, buffers, numbers)
        if order is None:
            continue
        if all(k == j or _follows(v, k, news[k], j, new, buffers, numbers, order) for k, v in enumerate(values)):
            return True
    return False


def _direction(value: SSAValue, j: int, new: SSAValue, buffers: list[SSAValue], numbers: ValueNumbers) -> bool | None:
    """Returns True if output j keeps its greatest value, False if its least, None if neither."""
    owner = value.owner
    if isinstance(owner, tir.MaxOp | tir.MinOp):
        return isinstance(owner, tir.MaxOp)
    if not isinstance(owner, tir.SelectOp):
        return None
    return _keeps_greater(owner, owner.condition, j, new, buffers, numbers, _is_old(owner.operands[1], buffers[j]))


def _keeps_greater(
    select: tir.SelectOp,
    condition: SSAValue,
    j: int,
    new: SSAValue,
    buffers: list[SSAValue],
    numbers: ValueNumbers,
    keeps_old: bool,
) -> bool | None:
    """Returns whether a comparison keeps the greater of output j and its new value; None: compares others."""
    test = condition.owner
    if not isinstance(test, _ORDERS):
        return None
    left, right = test.operands
    greater = isinstance(test, tir.GtOp | tir.GeOp)
    if _is_old(left, buffers[j]) and numbers.of(right) == numbers.of(new):
        return greater is keeps_old
    if _is_old(right, buffers[j]) and numbers.of(left) == numbers.of(new):
        return greater is not keeps_old
    return None


def _follows(
    value: SSAValue,
    k: int,
    new: SSAValue,
    j: int,
    key: SSAValue,
    buffers: list[SSAValue],
    numbers: ValueNumbers,
    order: bool,
) -> bool:
    """Returns whether output k takes its old or new value as output j does."""
    owner = value.owner
    if not isinstance(owner, tir.SelectOp):
        return False
    keeps_old = _is_old(owner.operands[1], buffers[k])
    found = choice_order(owner.condition)
    if found is None:
        return False
    if found.equal is not None and found.places is not None:
        if {numbers.of(v) for v in found.equal.operands} != {
            numbers.of(key),
            *(numbers.of(v) for v in found.equal.operands if _is_old(v, buffers[j])),
        }:
            return False
        if _keeps_greater(owner, found.places, k, new, buffers, numbers, keeps_old) is None:
            return False
        if found.nan is not None and not (keeps_old and _looks_at_nan(found.nan, buffers[j], key, numbers)):
            return False
    return _keeps_greater(owner, found.order.result, j, key, buffers, numbers, keeps_old) is order


def _looks_at_nan(
    nan: tuple[tir.NeOp, tir.EqOp, tir.NeOp], buffer: SSAValue, new: SSAValue, numbers: ValueNumbers
) -> bool:
    """Returns whether the NaN tests are of the old value, the new value and the old value, in this order."""
    first, number, tie = nan
    olds = all(_is_old(value, buffer) for op in (first, tie) for value in op.operands)
    return olds and all(numbers.of(value) == numbers.of(new) for value in number.operands)
