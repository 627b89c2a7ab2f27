"""Defines TE computes of sorting, searching and running sums, as statements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs
from ..common._lazy import te
from ..common.te_computes import Dim, constant, unflatten
from .bitonic_sort import LaneKeys, columns_of, te_network_first
from .bitonic_sort import cost as network_cost
from .radix_sort import MOST_RANKED, THREADED, order_cost, selection_cost, te_order, te_selected, te_sorted

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, IRBuilder, Tensor

MOST_STEPS = 30
"""Of a binary search among int32 many elements."""
LARGE = 1 << 16
"""Steps from which threads share them."""


@contextmanager
def loops(ib: IRBuilder, dims: Sequence[Dim], name: str = "i", first: str = "serial") -> Generator[list[Expr]]:
    """Opens loops over every index vector of a shape; `first` is the kind of the outermost one."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(ib.for_range(0, dim, f"{name}{n}", kind="serial" if n else first))
            for n, dim in enumerate(dims)
        ]


def is_large(shape: Sequence[Dim], each: int = 1) -> bool:
    """Returns whether a shape of known size, with `each` steps per element, is worth several threads."""
    known = [constant(dim) for dim in shape]
    return None not in known and prod(dim or 0 for dim in known) * each >= LARGE


def comes_first(a: Expr, b: Expr, ascending: bool) -> Expr:
    """Returns whether `a` precedes `b` in sorted order; NaN counts as the largest number."""
    if not ascending:
        a, b = b, a
    return te.any(a < b, te.all(te.isnan(b), te.logical_not(te.isnan(a))))


LANES = 16
"""Elements that are compared at once with the last one of those that are chosen."""
TOGETHER = 16
"""Values that are searched at once."""
CHUNK = 4 * LANES
"""Elements of which a single one that comes before it calls for a closer look."""
MOST_CHOSEN = 16
"""Up to this fraction of the elements a heap of the chosen ones is faster than sorting all."""


def te_chosen(x: Tensor, axis: int, ascending: bool, count: int) -> Tensor:
    """Returns the indices (int32) of the first `count` elements of `x` in sorted order along an axis.

    The axis is of known size; of equal elements those of lower index come first. A heap of the chosen elements, with the
    last of them at its root (Floyd, "Algorithm 245: Treesort", 1964), takes each element that precedes the root: most
    elements cost one comparison, all of them O(n log count). The heap is sorted in place at the end.
    """
    size = constant(x.shape[axis])
    assert size is not None and 0 < count <= size
    dims = [*x.shape[:axis], *x.shape[axis + 1 :]]
    shape = [*x.shape[:axis], count, *x.shape[axis + 1 :]]
    known = [constant(dim) for dim in dims]
    elements = size * prod(dim or 1 for dim in known)
    threads = bool(dims) and elements >= THREADED

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (data,), (chosen, cursors, keys) = ins, outs
        ib = te.ir_builder.create()
        # Next to each chosen index its element, and after them the element that is being inserted.
        cursor, key = ib.buffer_ptr(cursors), ib.buffer_ptr(keys)

        with loops(ib, dims, "row", "parallel" if threads else "serial") as row:
            own: Any = row[0] if threads else 0

            def element(index: Expr) -> Expr:
                return data[(*row[:axis], index, *row[axis:])]

            def held(place: Expr | int) -> Expr:
                return chosen[(*row[:axis], place, *row[axis:])]

            def hold(place: Expr | int, index: Expr, value: Expr) -> None:
                ib.emit(chosen.vstore((*row[:axis], place, *row[axis:]), index))
                key[own, place] = value

            def is_behind(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> Expr:
                """Returns whether a pair of an index and its element follows another one in order."""
                after = te.all(te.logical_not(comes_first(a[1], b[1], ascending)), a[0] > b[0])
                return te.any(comes_first(b[1], a[1], ascending), after)

            def pair(place: Expr) -> tuple[Expr, Expr]:
                return held(place), key[own, place]

            def sink(start: Expr | int, limit: Expr | int, index: Expr, value: Expr) -> None:
                """Moves an index down in the heap from `start` on, until no child follows it in order."""
                cursor[own, 2] = index
                key[own, count] = value
                cursor[own, 0] = start
                cursor[own, 4] = start
                with ib.for_range(0, count.bit_length(), "level"):
                    left = cursor[own, 0] * 2 + 1
                    with ib.if_scope(left < limit):
                        cursor[own, 1] = left
                        with ib.if_scope(
                            te.if_then_else(
                                left + 1 < limit, is_behind(pair(left + 1), pair(left)), te.const(0, "bool")
                            )
                        ):
                            cursor[own, 1] = left + 1
                        with ib.if_scope(is_behind(pair(cursor[own, 1]), (cursor[own, 2], key[own, count]))):
                            hold(cursor[own, 4], *pair(cursor[own, 1]))
                            cursor[own, 0] = cursor[own, 1]
                            cursor[own, 4] = cursor[own, 1]
                        with ib.else_scope():
                            cursor[own, 0] = limit
                hold(cursor[own, 4], cursor[own, 2], key[own, count])

            def is_wanted(index: Expr) -> Expr:
                return comes_first(element(index), key[own, 0], ascending)

            def offer(begin: Expr, number: int) -> None:
                with ib.for_range(0, number, "k") as k, ib.if_scope(is_wanted(begin + k)):
                    sink(0, count, begin + k, element(begin + k))

            @contextmanager
            def where_wanted(begin: Expr, number: int) -> Generator[None]:
                """Opens a scope of statements that run where one of some elements is wanted."""
                cursor[own, 3] = 0
                with ib.for_range(0, LANES, "lane", kind="vectorized") as lane:
                    wanted = te.any(*(is_wanted(begin + first + lane) for first in range(0, number, LANES)))
                    found = te.Select(wanted, te.const(1, "int32"), te.const(0, "int32"))
                    cursor[own, 3] = te.max(cursor[own, 3], found)
                with ib.if_scope(cursor[own, 3] > 0):
                    yield

            with ib.for_range(0, count, "k") as k:
                hold(k, k, element(k))
            with ib.for_range(0, count // 2, "k") as k:
                sink(count // 2 - 1 - k, count, *pair(count // 2 - 1 - k))
            chunks = (size - count) // CHUNK
            with ib.for_range(0, chunks, "chunk") as chunk:
                begin = count + chunk * CHUNK
                with (
                    where_wanted(begin, CHUNK),
                    ib.for_range(0, CHUNK // LANES, "part") as part,
                    where_wanted(begin + part * LANES, LANES),
                ):
                    offer(begin + part * LANES, LANES)
            rest = count + chunks * CHUNK
            parts = (size - rest) // LANES
            with ib.for_range(0, parts, "part") as part, where_wanted(rest + part * LANES, LANES):
                offer(rest + part * LANES, LANES)
            offer(te.const(rest + parts * LANES, "int32"), size - rest - parts * LANES)
            with ib.for_range(0, count - 1, "k") as k:
                last = count - 1 - k
                cursor[own, 5] = held(last)
                key[own, count + 1] = key[own, last]
                hold(last, *pair(te.const(0, "int32")))
                sink(0, last, cursor[own, 5], key[own, count + 1])
        return ib.get()

    own = dims[0] if threads else 1
    dtypes = ["int32", "int32", x.dtype]
    chosen, *_ = te.extern([shape, (own, 6), (own, count + 2)], [x], statements, name="chosen", dtype=dtypes)
    return chosen


def te_sort(attrs: Attrs, x: Tensor) -> Tensor:
    """Computes `sort`."""
    return te_sorted(x, attrs.axis, attrs.is_ascend)


def te_argsort(attrs: Attrs, x: Tensor) -> Tensor:
    """Computes `argsort`."""
    return te_order(x, attrs.axis, attrs.is_ascend, attrs.dtype or "int32")


def te_topk(attrs: Attrs, x: Tensor, count: Dim | None) -> list[Tensor]:
    """Computes `topk` of `count` elements; all for None."""
    axis: int = attrs.axis % len(x.shape)
    size, wanted = constant(x.shape[axis]), None if count is None else constant(count)
    if size is None or not wanted or wanted == size:
        order = te_order(x, axis, attrs.is_ascend)
    else:
        order = _first_ones(x, axis, attrs.is_ascend, wanted, size)
    shape = [*x.shape[:axis], x.shape[axis] if count is None else count, *x.shape[axis + 1 :]]
    dtype = attrs.dtype or "int32"
    result: list[Tensor] = []
    if attrs.ret_type != "indices":
        result.append(_taken(x, order, axis, shape))
    if attrs.ret_type != "values":
        result.append(te.compute(shape, lambda *i: order(*i).astype(dtype), name="T_topk_indices"))
    return result


def _first_ones(x: Tensor, axis: int, ascending: bool, count: int, size: int) -> Tensor:
    """Returns the indices of at least the first `count` elements, in order, by the fastest method."""
    keys = LaneKeys(x.dtype, ascending, places=True)
    columns = columns_of(x, axis, keys)
    rows = prod(constant(dim) or 1 for dim in x.shape) // size
    ways: list[tuple[float, Callable[[], Tensor]]] = [
        (order_cost(x, axis, ascending), lambda: te_order(x, axis, ascending))
    ]
    if size > MOST_RANKED:
        ways.append((selection_cost(x, axis, count), lambda: te_selected(x, axis, ascending, count)))
        if MOST_CHOSEN * count <= size:
            looked_at = size * (STRIDED_COST if axis < len(x.shape) - 1 else LOOK_COST)
            heap = rows * (looked_at + SINK_COST * count * count.bit_length() * (size // count).bit_length())
            ways.append((heap, lambda: te_chosen(x, axis, ascending, count)))
    if columns is not None:
        ways.append((network_cost(columns, keys, count), lambda: te_network_first(columns, keys, count, "chosen")))
    return min(ways, key=lambda way: way[0])[1]()


LOOK_COST, STRIDED_COST, SINK_COST = 0.7, 5.0, 25.0
"""Cycles in which an element is compared with the last one of a heap, in which one is that is not its row's neighbour in memory, and
in which it passes a level of the heap."""


def _taken(x: Tensor, order: Tensor, axis: int, shape: Sequence[Dim]) -> Tensor:
    """Returns the elements of `x` at the indices along an axis."""
    axis %= len(x.shape)
    return te.compute(shape, lambda *i: x(*i[:axis], order(*i), *i[axis + 1 :]), name="T_sorted")


def te_running(attrs: Attrs, x: Tensor, is_sum: bool) -> Tensor:
    """Computes `cumsum` and `cumprod`: each element from the one before."""
    dtype: str = attrs.dtype or x.dtype
    if attrs.axis is None:
        shape = list(x.shape)
        size: Any = 1
        for dim in shape:
            size = size * dim
        flat = te.compute((size,), lambda *i: x(*unflatten(i[0], shape)), name="T_flat")
        return _running(flat, 0, dtype, is_sum, attrs.exclusive)
    return _running(x, attrs.axis % len(x.shape), dtype, is_sum, attrs.exclusive)


def _running(x: Tensor, axis: int, dtype: str, is_sum: bool, exclusive: bool) -> Tensor:
    start = te.const(0 if is_sum else 1, dtype)

    def combine(a: Expr, b: Expr) -> Expr:
        if dtype == "bool":
            return te.any(a, b) if is_sum else te.all(a, b)
        return a + b if is_sum else a * b

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        data, result = ins[0], outs[0]
        ib = te.ir_builder.create()
        # The axis is not an innermost loop unless it is the last: memory is walked in its order.
        with loops(ib, x.shape, first="parallel" if axis and is_large(x.shape) else "serial") as at:

            def before(buffer: Buffer) -> Expr:
                return buffer[(*at[:axis], at[axis] - 1, *at[axis + 1 :])].astype(dtype)

            first = at[axis] == 0
            if exclusive:
                value = te.if_then_else(first, start, combine(before(result), before(data)))
            else:
                own = data[tuple(at)].astype(dtype)
                value = combine(te.if_then_else(first, start, before(result)), own)
            ib.emit(result.vstore(tuple(at), value))
        return ib.get()

    name = "cumsum" if is_sum else "cumprod"
    return te.extern(x.shape, [x], statements, name=name, dtype=dtype)


def te_searchsorted(attrs: Attrs, rows: Tensor, values: Tensor) -> Tensor:
    """Computes `searchsorted`: a binary search of each value, by ever smaller powers of two.

    Several values are searched at once, step by step: their loads do not wait for each other.
    """
    size = rows.shape[-1]
    known = constant(size)
    steps = MOST_STEPS if known is None else known.bit_length()
    outer: Sequence[Dim] = values.shape[:-1] if values.shape else ()
    count: Dim = values.shape[-1] if values.shape else 1
    shared = is_large(values.shape, steps)

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (row, value), (found,) = ins, outs
        ib = te.ir_builder.create()

        def search(at: list[Expr], first: Any, number: int) -> None:
            def here(n: Any) -> tuple[Any, ...]:
                return (*at, first + n) if values.shape else ()

            with ib.for_range(0, number, "n") as n:
                ib.emit(found.vstore(here(n), 0))
            with ib.for_range(0, steps, "step") as step, ib.for_range(0, number, "n") as n:
                reach = found[here(n)] + (te.const(1, "int32") << (steps - 1 - step))
                # An index beyond the end is compared with the last element, and not taken.
                element = row[(*(at if len(rows.shape) > 1 else ()), te.min(reach, size) - 1)]
                if attrs.right:
                    passed = te.logical_not(comes_first(value[here(n)], element, True))
                else:
                    passed = comes_first(element, value[here(n)], True)
                taken = te.Select(te.all(reach <= size, passed), reach, found[here(n)])
                ib.emit(found.vstore(here(n), taken))

        with loops(ib, outer, "i", "parallel" if shared else "serial") as at, ib.if_scope(te.convert(size) > 0):
            groups = te.floordiv(te.convert(count), TOGETHER)
            with ib.for_range(0, groups, "group", kind="parallel" if shared and not outer else "serial") as group:
                search(at, group * TOGETHER, TOGETHER)
            with ib.for_range(groups * TOGETHER, count, "k") as k:
                search(at, k, 1)
        with ib.if_scope(te.convert(size) <= 0), loops(ib, values.shape) as at:
            ib.emit(found.vstore(tuple(at), 0))
        return ib.get()

    found = te.extern(values.shape, [rows, values], statements, name="searchsorted", dtype="int32")
    return te.compute(values.shape, lambda *i: found(*i).astype(attrs.dtype or "int32"), name="T_searchsorted")


def te_invert_permutation(x: Tensor) -> Tensor:
    """Computes `invert_permutation`: the indices that sort it."""
    order = te_order(x, 0, True)
    return te.compute(x.shape, lambda *i: order(*i).astype(x.dtype), name="T_invert_permutation")
