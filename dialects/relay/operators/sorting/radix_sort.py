"""Defines TE computes of sorting: the indices of the elements in order along an axis, or the elements.

Elements are compared by keys, unsigned integers that are ordered as the elements are: those of floats are their bits, changed
so that negative numbers come first, with one key for both zeros and the largest one for every NaN; in descending order keys are
inverted. Long axes are sorted by the digits of the keys, the lowest first (H. H. Seward, 1954; Knuth, "The Art of Computer
Programming", vol. 3, 5.2.5); in short ones each element's rank is the number of elements before it, counted for the lanes of
vectors at once. Both keep equal elements in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ..common._lazy import te
from ..common.te_computes import Dim, constant, unflatten
from .bitonic_sort import LaneKeys, columns_of, element_bits, te_network
from .bitonic_sort import cost as network_cost

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, IRBuilder, Tensor

    Stored = Callable[[Buffer, tuple[Expr, ...], Expr], Expr]

MOST_RANKED = 112
"""Elements of an axis up to which each is compared with each."""
LANES = 16
"""Elements whose ranks are counted together."""
TOGETHER = 8
"""The elements compared before ranks are stored: a sum in memory waits for the previous store."""
DIGIT = 8
"""Bits of a digit: as many lists are written at once as the first cache has lines for."""
THREADED = 1 << 14
"""Elements from which rows are shared among threads."""
SHARES = 16
"""Parts into which rows are shared, each with scratch memory of its own."""
INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}
"""The bits of the largest number."""


@dataclass(frozen=True)
class Keys:
    """The order of a dtype's elements."""

    dtype: str
    ascending: bool

    @property
    def bits(self) -> int:
        """Of a key."""
        return element_bits(self.dtype)

    @property
    def key_dtype(self) -> str:
        """Of the keys."""
        return f"uint{self.bits}"

    @property
    def can_be_undone(self) -> bool:
        """Returns whether an element follows from its key, except for the bits of NaN."""
        return self.bits <= 32

    def _number(self, value: int) -> Expr:
        return te.const(value, self.key_dtype)

    @property
    def _sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def _all(self) -> int:
        return (1 << self.bits) - 1

    def of(self, element: Expr, *, zeros: bool = True) -> Expr:
        """Returns the key of an element; without `zeros`, -0 precedes 0."""
        dtype = self.dtype
        if dtype in INFINITY:
            raw = te.reinterpret(self.key_dtype, element)
            size = raw & self._number(self._all ^ self._sign)
            turned = raw ^ te.Select(raw >= self._number(self._sign), self._number(self._all), self._number(self._sign))
            key = te.Select(size > self._number(INFINITY[dtype]), self._number(self._all), turned)
            if zeros:
                key = te.Select(te.equal(size, self._number(0)), self._number(self._sign), key)
        else:
            key = element.astype(self.key_dtype)
            if dtype.startswith("int"):
                key = key ^ self._number(self._sign)
        return key if self.ascending else key ^ self._number(self._all)

    def element(self, key: Expr) -> Expr:
        """Returns the element that has a key made without `zeros`; a NaN for that of every NaN."""
        if not self.ascending:
            key = key ^ self._number(self._all)
        if self.dtype in INFINITY:
            flipped = te.Select(key >= self._number(self._sign), self._number(self._sign), self._number(self._all))
            return te.reinterpret(self.dtype, key ^ flipped)
        if self.dtype.startswith("int"):
            key = key ^ self._number(self._sign)
        return te.not_equal(key, self._number(0)) if self.dtype == "bool" else key.astype(self.dtype)


@dataclass(frozen=True)
class Rows:
    """The rows of a tensor along an axis, and the shares in which they are sorted."""

    shape: tuple[Dim, ...]
    axis: int

    @property
    def size(self) -> Dim:
        """Elements of a row."""
        return self.shape[self.axis]

    @property
    def others(self) -> list[Dim]:
        """The dimensions beside the axis."""
        return [*self.shape[: self.axis], *self.shape[self.axis + 1 :]]

    @property
    def shares(self) -> int:
        """Into how many parts the rows are divided."""
        known = [constant(dim) for dim in self.shape]
        if any(dim is None for dim in known) or prod(dim or 0 for dim in known) < THREADED:
            return 1
        return max(1, min(SHARES, prod(constant(dim) or 0 for dim in self.others)))

    @contextmanager
    def each(self, ib: IRBuilder) -> Generator[tuple[Any, list[Expr]]]:
        """Loops over all rows: the number of the share, and the indices beside the axis."""
        count: Any = 1
        for dim in self.others:
            count = count * dim
        if self.shares == 1:
            with ib.for_range(0, count, "row") as row:
                yield 0, unflatten(row, self.others)
            return
        turns = -(-count // self.shares)
        with ib.for_range(0, self.shares, "share", kind="parallel") as share, ib.for_range(0, turns, "turn") as turn:
            row = share * turns + turn
            if count % self.shares:
                with ib.if_scope(row < count):
                    yield share, unflatten(row, self.others)
            else:
                yield share, unflatten(row, self.others)

    def at(self, row: Sequence[Expr], index: Expr) -> tuple[Expr, ...]:
        """Returns the indices of an element of a row."""
        return (*row[: self.axis], index, *row[self.axis :])


def te_order(x: Tensor, axis: int, ascending: bool, dtype: str = "int32") -> Tensor:
    """Returns the indices that sort `x` along an axis, of `dtype` and in the shape of `x`.

    Equal elements keep their order, and NaN counts as the largest number.
    """
    rows, keys = Rows(tuple(x.shape), axis % len(x.shape)), Keys(x.dtype, ascending)
    network = _by_network(x, rows, keys, "order", dtype)
    if network is not None:
        return network
    known = constant(rows.size)
    if known is not None and known <= MOST_RANKED:
        order = _ranked(x, rows, keys, "order", "int32", lambda data, at, index: index)
    else:
        order = _by_digits(x, rows, keys, with_places=True)
    if dtype == "int32":
        return order
    return te.compute(x.shape, lambda *i: order(*i).astype(dtype), name="T_order")


def te_sorted(x: Tensor, axis: int, ascending: bool) -> Tensor:
    """Returns the elements of `x` in order along an axis, NaN as the largest number.

    Along a long axis, negative zeros come before positive ones.
    """
    rows, keys = Rows(tuple(x.shape), axis % len(x.shape)), Keys(x.dtype, ascending)
    network = _by_network(x, rows, keys, "T_sorted")
    if network is not None:
        return network
    known = constant(rows.size)
    if known is not None and known <= MOST_RANKED:
        return _ranked(x, rows, keys, "T_sorted", x.dtype, lambda data, at, index: data[at])
    if keys.can_be_undone:
        return _by_digits(x, rows, keys, with_places=False)
    order = _by_digits(x, rows, keys, with_places=True)
    place = rows.axis
    return te.compute(x.shape, lambda *i: x(*i[:place], order(*i), *i[place + 1 :]), name="T_sorted")


def order_cost(x: Tensor, axis: int, ascending: bool) -> float:
    """Cycles in which `te_order` sorts rows of known sizes."""
    rows, keys = Rows(tuple(x.shape), axis), Keys(x.dtype, ascending)
    lane_keys = LaneKeys(x.dtype, ascending, places=True)
    columns = columns_of(x, axis, lane_keys)
    one_by_one = cost_by_one(rows, keys)
    return one_by_one if columns is None else min(network_cost(columns, lane_keys), one_by_one)


def _by_network(x: Tensor, rows: Rows, keys: Keys, name: str, places: str | None = None) -> Tensor | None:
    """Returns the elements in order, or their indices of a dtype, by a network; None where that is slower."""
    lane_keys = LaneKeys(x.dtype, keys.ascending, places is not None)
    columns = columns_of(x, rows.axis, lane_keys)
    if columns is None or network_cost(columns, lane_keys) >= cost_by_one(rows, keys):
        return None
    return te_network(columns, lane_keys, name, places)


RANK_COST, DIGIT_COST = 0.23, 5.0
"""Cycles in which two elements are compared for their ranks, and in which an element is put in its place by a digit."""


def cost_by_one(rows: Rows, keys: Keys) -> float:
    """Cycles in which rows of known sizes are sorted one after the other."""
    size, count = constant(rows.size) or 0, prod(constant(dim) or 1 for dim in rows.others)
    if size <= MOST_RANKED:
        return count * size * size * RANK_COST
    return count * (size + (1 << DIGIT)) * DIGIT_COST * (keys.bits // DIGIT)


def _ranked(x: Tensor, rows: Rows, keys: Keys, name: str, dtype: str, result: Stored) -> Tensor:
    """Returns for each element, in order, `result(data, indices, index)`: each is stored at its rank."""
    size = constant(rows.size) or 0
    padded = max(-(-size // LANES), 1) * LANES

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (data,), (stored, scratch, ranks) = ins, outs
        ib = te.ir_builder.create()
        key, rank = ib.buffer_ptr(scratch), ib.buffer_ptr(ranks)
        with rows.each(ib) as (share, row):
            with ib.for_range(0, size, "k") as k:
                key[share, k] = keys.of(data[rows.at(row, k)])
            with ib.for_range(0, padded // LANES, "part") as part:
                first = part * LANES
                with ib.for_range(0, LANES, "lane", kind="vectorized") as lane:
                    rank[share, first + lane] = 0

                def count(other: Expr, number: int, first: Expr, equal: bool | None) -> None:
                    """Adds the number of `number` other elements that precede each of the part's.

                    `equal` ones precede, or not, or in their order (None).
                    """
                    with ib.for_range(0, LANES, "lane", kind="vectorized") as lane:
                        k = first + lane
                        total: Expr = rank[share, k]
                        for n in range(number):
                            one, own = key[share, other + n], key[share, k]
                            before = one <= own if equal else one < own
                            if equal is None:
                                before = te.any(before, te.all(te.equal(one, own), other + n < k))
                            total = total + te.Select(before, te.const(1, "int32"), te.const(0, "int32"))
                        rank[share, k] = total

                behind = te.min(first + LANES, size)
                with ib.for_range(0, part * (LANES // TOGETHER), "others") as others:
                    count(others * TOGETHER, TOGETHER, first, True)
                with ib.for_range(first, behind, "other") as other:
                    count(other, 1, first, None)
                groups = te.floordiv(size - behind, TOGETHER)
                with ib.for_range(0, groups, "others") as others:
                    count(behind + others * TOGETHER, TOGETHER, first, False)
                with ib.for_range(behind + groups * TOGETHER, size, "other") as other:
                    count(other, 1, first, False)
            with ib.for_range(0, size, "k") as k:
                at = rows.at(row, k)
                ib.emit(stored.vstore(rows.at(row, rank[share, k]), result(data, at, k)))
        return ib.get()

    scratch = (rows.shares, padded)
    dtypes = [dtype, keys.key_dtype, "int32"]
    stored, *_ = te.extern([x.shape, scratch, scratch], [x], statements, name=name, dtype=dtypes)
    return stored


@dataclass(frozen=True)
class _Digits:
    """Sorts some elements of a row by the digits of their keys, the lowest digit first.

    Keys and indices are stored in the first half of scratch memory; each digit sorts them from one half into the other. A
    digit that all of them share is skipped.
    """

    ib: IRBuilder
    keys: Keys
    key: Any
    """[share, half, element]"""
    place: Any
    """Likewise; None where no indices are needed."""
    count: Any
    """[share, digit, value]"""
    cursor: Any
    """[share, 3]: the half that holds the elements, a sum, its previous value."""

    @property
    def number(self) -> int:
        """The digits of a key."""
        return self.keys.bits // DIGIT

    def _digit(self, value: Expr, number: Any) -> Expr:
        shift = number * DIGIT if isinstance(number, int) else (number * DIGIT).astype(self.keys.key_dtype)
        part = value >> shift if self.number > 1 else value
        return (part & te.const((1 << DIGIT) - 1, self.keys.key_dtype)).astype("int32")

    def sort(self, share: Any, size: Any) -> None:
        """Sorts `size` elements. The occurrences of each digit are counted for all digits at once."""
        ib, key, place, count, cursor = self.ib, self.key, self.place, self.count, self.cursor
        with ib.for_range(0, self.number, "n") as n, ib.for_range(0, 1 << DIGIT, "d") as d:
            count[share, n, d] = 0
        with ib.for_range(0, size, "k") as k:
            for n in range(self.number):
                own = self._digit(key[share, 0, k], n)
                count[share, n, own] = count[share, n, own] + 1
        cursor[share, 0] = 0
        with ib.for_range(0, self.number, "n") as n:
            source = cursor[share, 0]
            # Do all elements have the first one's digit? Without elements there is nothing to do, either.
            alike = te.if_then_else(
                te.convert(size) > 0, count[share, n, self._digit(key[share, source, 0], n)], te.const(0, "int32")
            )
            with ib.if_scope(alike < size):
                cursor[share, 1] = 0
                with ib.for_range(0, 1 << DIGIT, "d") as d:
                    cursor[share, 2] = count[share, n, d]
                    count[share, n, d] = cursor[share, 1]
                    cursor[share, 1] = cursor[share, 1] + cursor[share, 2]
                with ib.for_range(0, size, "k") as k:
                    own = self._digit(key[share, source, k], n)
                    cursor[share, 2] = count[share, n, own]
                    count[share, n, own] = cursor[share, 2] + 1
                    key[share, 1 - source, cursor[share, 2]] = key[share, source, k]
                    if place is not None:
                        place[share, 1 - source, cursor[share, 2]] = place[share, source, k]
                cursor[share, 0] = 1 - source

    def key_at(self, share: Any, k: Expr) -> Expr:
        """Returns a key in order."""
        return self.key[share, self.cursor[share, 0], k]

    def place_at(self, share: Any, k: Expr) -> Expr:
        """Returns a place in order."""
        return self.place[share, self.cursor[share, 0], k]


def _by_digits(x: Tensor, rows: Rows, keys: Keys, *, with_places: bool) -> Tensor:
    """Returns the indices in order, or the elements themselves."""
    size = rows.size

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (data,), (stored, scratch, counts, cursors, *others) = ins, outs
        ib = te.ir_builder.create()
        key = ib.buffer_ptr(scratch)
        place: Any = ib.buffer_ptr(others[0]) if with_places else None
        digits = _Digits(ib, keys, key, place, ib.buffer_ptr(counts), ib.buffer_ptr(cursors))
        with rows.each(ib) as (share, row):
            with ib.for_range(0, size, "k") as k:
                key[share, 0, k] = keys.of(data[rows.at(row, k)], zeros=with_places)
                if with_places:
                    place[share, 0, k] = k
            digits.sort(share, size)
            with ib.for_range(0, size, "k") as k:
                value = digits.place_at(share, k) if with_places else keys.element(digits.key_at(share, k))
                ib.emit(stored.vstore(rows.at(row, k), value))
        return ib.get()

    shares = rows.shares
    shapes: list[Any] = [x.shape, (shares, 2, size), (shares, keys.bits // DIGIT, 1 << DIGIT), (shares, 3)]
    dtypes = ["int32" if with_places else x.dtype, keys.key_dtype, "int32", "int32"]
    if with_places:
        shapes.append((shares, 2, size))
        dtypes.append("int32")
    name = "order" if with_places else "T_sorted"
    stored, *_ = te.extern(shapes, [x], statements, name=name, dtype=dtypes)
    return stored


CLASS_BITS = 11
"""The number of upper bits of a key that select candidates: of a float, sign, exponent and two more."""
SELECT_COST = 8.0
"""Cycles in which an element is counted in its class, and is taken or not."""


def selection_cost(x: Tensor, axis: int, count: int) -> float:
    """Cycles in which `te_selected` finds the first elements of rows of known sizes."""
    rows, keys = Rows(tuple(x.shape), axis), Keys(x.dtype, True)
    size, number = constant(rows.size) or 0, prod(constant(dim) or 1 for dim in rows.others)
    # About as many as are wanted are sorted for nothing.
    sorted_ = (2 * count + (1 << DIGIT)) * DIGIT_COST * (keys.bits // DIGIT)
    return number * (size * SELECT_COST + 2 * (1 << min(CLASS_BITS, keys.bits)) + sorted_)


def te_selected(x: Tensor, axis: int, ascending: bool, count: int) -> Tensor:
    """Returns the indices (int32) of the first `count` elements along an axis, as `te_order`.

    Elements are counted by the upper bits of their keys; only the elements of the classes that hold the first `count` are
    sorted.
    """
    rows, keys = Rows(tuple(x.shape), axis), Keys(x.dtype, ascending)
    size, classes = rows.size, 1 << min(CLASS_BITS, keys.bits)
    shape = [*x.shape[:axis], count, *x.shape[axis + 1 :]]

    def class_of(key: Expr) -> Expr:
        shift = max(keys.bits - CLASS_BITS, 0)
        return (key >> te.const(shift, keys.key_dtype) if shift else key).astype("int32")

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (data,), (stored, scratch, places, counts, cursors, numbers) = ins, outs
        ib = te.ir_builder.create()
        key, place, number = (ib.buffer_ptr(b) for b in (scratch, places, numbers))
        digits = _Digits(ib, keys, key, place, ib.buffer_ptr(counts), ib.buffer_ptr(cursors))
        with rows.each(ib) as (share, row):
            with ib.for_range(0, classes, "c") as c:
                number[share, c] = 0
            with ib.for_range(0, size, "k") as k:
                key[share, 1, k] = keys.of(data[rows.at(row, k)])
            with ib.for_range(0, size, "k") as k:
                own = class_of(key[share, 1, k])
                number[share, own] = number[share, own] + 1
            # The last class that is needed: those before it hold too few.
            held, last = (ib.allocate("int32", (1,), name, scope="local") for name in ("held", "last"))
            held[0], last[0] = te.const(0, "int32"), te.const(-1, "int32")
            with ib.for_range(0, classes, "c") as c, ib.if_scope(held[0] < count):
                held[0] = held[0] + number[share, c]
                last[0] = c
            held[0] = te.const(0, "int32")
            with ib.for_range(0, size, "k") as k:
                # All are written, and kept if they are needed: no branch is mispredicted.
                key[share, 0, held[0]] = key[share, 1, k]
                place[share, 0, held[0]] = k
                wanted = class_of(key[share, 1, k]) <= last[0]
                held[0] = held[0] + te.Select(wanted, te.const(1, "int32"), te.const(0, "int32"))
            digits.sort(share, held[0])
            with ib.for_range(0, count, "k") as k:
                ib.emit(stored.vstore(rows.at(row, k), digits.place_at(share, k)))
        return ib.get()

    shares = rows.shares
    halves, values = (shares, 2, size), (shares, keys.bits // DIGIT, 1 << DIGIT)
    shapes: list[Any] = [shape, halves, halves, values, (shares, 3), (shares, classes)]
    dtypes = ["int32", keys.key_dtype, *["int32"] * 4]
    stored, *_ = te.extern(shapes, [x], statements, name="selected", dtype=dtypes)
    return stored
