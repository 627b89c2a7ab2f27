"""Defines TE computes of sorting many rows at once by a network: a row in each vector lane.

The network is K. E. Batcher's bitonic sorter ("Sorting networks and their applications", 1968) in the form whose
exchanges all put the smaller key first: two sorted halves are merged by comparing the first half with the second one
reversed, and then elements at ever smaller distances. Eight vectors at a time go through three steps in registers. As
each exchange is the minimum and the maximum of two vectors, time depends neither on branches nor on the elements' order.

Keys are signed integers that are ordered as the elements are. Where indices are wanted, a key is twice as wide and holds
the element's index in its lower half, so that no two are equal and equal elements keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ..common._lazy import te
from ..common.te_computes import constant, unflatten

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, IRBuilder, Tensor

    Pairs = Sequence[tuple[int, int]]

VECTOR = 64
"""Bytes of a vector."""
GROUP = 8
"""Vectors that go through some steps in registers."""
MOST_SCRATCH = 1 << 18
"""Bytes of the keys of one group of rows at most: a part of the second-level cache."""
PASS_COST = 2.5
"""Cycles in which a pass loads, exchanges and stores a vector."""
THREADED = 1 << 12
"""Elements from which groups of rows are shared among threads."""
FLOATS = {"float16", "bfloat16", "float32", "float64"}

FLIP: tuple[Pairs, ...] = (
    ((0, 4), (1, 5), (2, 6), (3, 7)),
    ((0, 2), (1, 3), (6, 4), (7, 5)),
    ((0, 1), (2, 3), (5, 4), (7, 6)),
)
"""The first three steps of merging: 0 to 3 are of the first half, 4 to 7 of the second one, from its end on."""
HALVES: tuple[Pairs, ...] = (
    ((0, 4), (1, 5), (2, 6), (3, 7)),
    ((0, 2), (1, 3), (4, 6), (5, 7)),
    ((0, 1), (2, 3), (4, 5), (6, 7)),
)
"""Three steps at distances of 4, 2 and 1."""
SORT: tuple[Pairs, ...] = (
    HALVES[2],
    ((0, 3), (1, 2), (4, 7), (5, 6)),
    HALVES[2],
    ((0, 7), (1, 6), (2, 5), (3, 4)),
    HALVES[1],
    HALVES[2],
)
"""Eight keys in any order."""


def element_bits(dtype: str) -> int:
    """Returns the bits of an element in memory, where a bool takes a byte."""
    from ....tir.node import bits_of

    return 8 if dtype == "bool" else bits_of(dtype)


@dataclass(frozen=True)
class LaneKeys:
    """The keys of elements of a dtype, with places or without."""

    dtype: str
    ascending: bool
    places: bool

    @property
    def element_bits(self) -> int:
        """Of an element."""
        return element_bits(self.dtype)

    @property
    def bits(self) -> int:
        """Of a key."""
        return max(2 * self.element_bits, 32) if self.places else self.element_bits

    @property
    def key_dtype(self) -> str:
        """Of a key."""
        return f"int{self.bits}"

    @property
    def last(self) -> Expr:
        """The largest key, which sorts after all others."""
        return te.const((1 << (self.bits - 1)) - 1, self.key_dtype)

    def of(self, element: Expr, place: Expr) -> Expr:
        """Returns the key of the element at an index.

        NaN counts as the largest number; where indices decide, both zeros are equal.
        """
        bits, dtype = self.element_bits, f"int{self.element_bits}"
        if self.dtype in FLOATS:
            largest = te.const((1 << (bits - 1)) - 1, dtype)
            key = self._turned(te.reinterpret(dtype, element))
            if self.places:
                key = te.Select(te.equal(key, te.const(-1, dtype)), te.const(0, dtype), key)
            key = te.Select(te.isnan(element), largest, key)
        elif self.dtype.startswith("uint"):
            key = te.reinterpret(dtype, element) ^ te.const(-(1 << (bits - 1)), dtype)
        else:
            key = element.astype(dtype)
        if not self.ascending:
            key = te.bitwise_not(key)
        if not self.places:
            return key
        half = self.bits // 2
        return (key.astype(self.key_dtype) << te.const(half, self.key_dtype)) | place.astype(self.key_dtype)

    def _turned(self, bits: Expr) -> Expr:
        """Returns a float's bits as an integer that is ordered as floats are, and back."""
        width, dtype = self.element_bits, f"int{self.element_bits}"
        largest = te.const((1 << (width - 1)) - 1, dtype)
        return bits ^ ((bits >> te.const(width - 1, dtype)) & largest)

    def result(self, key: Expr) -> Expr:
        """Returns the place (int32) or else the element of a key."""
        bits, dtype = self.element_bits, f"int{self.element_bits}"
        if self.places:
            return (key & te.const((1 << (self.bits // 2)) - 1, self.key_dtype)).astype("int32")
        if not self.ascending:
            key = te.bitwise_not(key)
        if self.dtype in FLOATS:
            return te.reinterpret(self.dtype, self._turned(key))
        if self.dtype.startswith("uint"):
            return te.reinterpret(self.dtype, key ^ te.const(-(1 << (bits - 1)), dtype))
        return te.not_equal(key, te.const(0, dtype)) if self.dtype == "bool" else key


@dataclass(frozen=True)
class Columns:
    """The layout in which a tensor's rows along an axis are adjacent lanes: `count` per outer tensor.

    Rows along an inner axis are adjacent already; otherwise all rows of the tensor are transposed.
    """

    x: Tensor
    axis: int
    size: int
    lanes: int
    count: int
    outer: tuple[int, ...]
    transposed: bool

    @property
    def groups(self) -> int:
        """The number of vectors of an outer tensor's rows; the last one may overlap the one before."""
        return -(-self.count // self.lanes)

    @property
    def grouped(self) -> bool:
        """Returns whether transposed rows are stored vector by vector, each group apart.

        Two cache lines of a group then never share a place in the cache.
        """
        return self.transposed and len(self.x.shape) == 2 and self.count % self.lanes == 0

    def shape(self, size: int) -> tuple[int, ...]:
        """Returns the shape of a tensor of `count` elements of each row."""
        return (*self.outer, size, self.count)

    def source(self) -> Tensor:
        """Returns the elements, a row in each column."""
        if not self.transposed:
            return self.x
        others = [*self.x.shape[: self.axis], *self.x.shape[self.axis + 1 :]]

        def element(k: Expr, row: Expr) -> Expr:
            at = unflatten(row, others) if len(others) > 1 else [row]
            return self.x(*at[: self.axis], k, *at[self.axis :])

        def in_group(group: Expr, k: Expr, lane: Expr) -> Expr:
            return element(k, group * self.lanes + lane)

        if self.grouped:
            return te.compute((self.groups, self.size, self.lanes), in_group, name="T_columns")
        return te.compute(self.shape(self.size), element, name="T_columns")

    def restored(self, result: Tensor, size: int, name: str) -> Tensor:
        """Returns a result that was computed column by column with the axis back in its place."""
        if not self.transposed:
            return result
        others = [*self.x.shape[: self.axis], *self.x.shape[self.axis + 1 :]]
        shape = [*others[: self.axis], size, *others[self.axis :]]

        def element(*at: Expr) -> Expr:
            row: Any = 0
            for index, dim in zip((*at[: self.axis], *at[self.axis + 1 :]), others, strict=True):
                row = row * dim + index
            return result(at[self.axis], row)

        return te.compute(shape, element, name=name)


def columns_of(x: Tensor, axis: int, keys: LaneKeys) -> Columns | None:
    """Returns the rows along an axis as columns; None where sizes are not known, or there is but one row."""
    known = [constant(dim) for dim in x.shape]
    sizes = [dim for dim in known if dim is not None]
    if len(sizes) != len(known) or 0 in sizes:
        return None
    most = VECTOR * 8 // keys.bits
    size, inner = sizes[axis], sizes[axis + 1 :]
    rows = prod(sizes) // size
    if len(inner) == 1 and inner[0] >= most:
        return Columns(x, axis, size, most, inner[0], tuple(sizes[:axis]), False)
    if rows < 2:
        return None
    lanes = min(most, 1 << (rows.bit_length() - 1))
    return Columns(x, axis, size, lanes, rows, (), True)


def cost(columns: Columns, keys: LaneKeys, chosen: int = 0) -> float:
    """Returns the cycles in which the network sorts all rows; infinity where it cannot.

    With `chosen` it finds only the first elements of each row.
    """
    chunk = _power_of_two(chosen or columns.size)
    held = 2 * chunk if chosen else chunk
    if held * columns.lanes * keys.bits // 8 > MOST_SCRATCH or (keys.places and _too_far(columns.size, keys)):
        return float("inf")
    levels = range(max(chunk.bit_length() - 1 - 3, 0))
    passes = 3 + sum(2 + level // 3 for level in levels)
    if chosen:
        passes += 2 + chunk.bit_length() // 3
    spent = PASS_COST * columns.lanes * keys.bits / (VECTOR * 8)
    shares = prod(columns.outer) * columns.groups
    # A single group is for one thread, where rows one by one could be shared.
    return max(shares, 2) * columns.size * passes * max(spent, PASS_COST / 2)


def _too_far(size: int, keys: LaneKeys) -> bool:
    """Returns whether indices do not fit into a key, or an integer of that width does not exist."""
    return keys.bits > 64 or size > 1 << (keys.bits // 2 - 1)


def _power_of_two(size: int) -> int:
    return max(1 << (size - 1).bit_length(), GROUP)


def te_network(columns: Columns, keys: LaneKeys, name: str, dtype: str | None = None) -> Tensor:
    """Returns the elements of all rows in order, or their indices where keys hold them.

    The indices are of `dtype`, int32 for None.
    """
    size = columns.size
    source = columns.source()

    def sort(group: _Group) -> None:
        padded = _power_of_two(size)
        group.fill(0, padded, te.const(0, "int32"))
        group.sort(0, size, padded)

    result = _in_groups(columns, keys, source, _power_of_two(size), size, sort, f"{name}_columns", dtype)
    return columns.restored(result, size, name)


def te_network_first(columns: Columns, keys: LaneKeys, count: int, name: str) -> Tensor:
    """Returns the indices (int32) of the first `count` elements of each row, in order, along the axis.

    As many elements as are kept, or some more, are sorted at a time and merged with those that are kept, unless none of them
    precedes the last one.
    """
    kept = _power_of_two(count)
    source = columns.source()

    def choose(group: _Group) -> None:
        group.clear(0, kept)
        with group.ib.for_range(0, -(-columns.size // kept), "chunk") as chunk:
            group.fill(kept, kept, chunk * kept)
            with group.where_wanted(kept, kept):
                group.sort(kept, kept, kept)
                group.keep(kept)

    result = _in_groups(columns, keys, source, 2 * kept, count, choose, f"{name}_columns")
    return columns.restored(result, count, name)


def _in_groups(
    columns: Columns,
    keys: LaneKeys,
    source: Tensor,
    held: int,
    count: int,
    body: Callable[[_Group], None],
    name: str,
    dtype: str | None = None,
) -> Tensor:
    """Returns the first `count` of the keys that `body` leaves for each group of rows."""
    lanes = columns.lanes
    shares = columns.groups * prod(columns.outer)
    parallel = shares > 1 and shares * lanes * columns.size >= THREADED

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (data,), (stored,) = ins, outs
        ib = te.ir_builder.create()
        with ib.for_range(0, shares, "share", kind="parallel" if parallel else "serial") as share:
            outer = unflatten(te.floordiv(share, columns.groups), columns.outer) if columns.outer else []
            place = te.floormod(share, columns.groups) if columns.outer else share
            first = te.min(place * lanes, columns.count - lanes)

            def element(k: Expr, lane: Expr) -> Expr:
                return data[place, k, lane] if columns.grouped else data[(*outer, k, first + lane)]

            group = _Group(ib, keys, lanes, held, columns.size, element)
            body(group)
            with ib.for_range(0, count, "k") as k, ib.for_range(0, lanes, "lane", kind="vectorized") as lane:
                result = keys.result(group.keys[k, lane]).astype(result_dtype)
                ib.emit(stored.vstore((*outer, k, first + lane), result))
        return ib.get()

    result_dtype = (dtype or "int32") if keys.places else keys.dtype
    return te.extern(columns.shape(count), [source], statements, name=name, dtype=result_dtype)


class _Group:
    """Emits the operations on the keys of some rows, each of which has a lane."""

    def __init__(
        self,
        ib: IRBuilder,
        keys: LaneKeys,
        lanes: int,
        held: int,
        size: int,
        element: Callable[[Expr, Expr], Expr],
    ):
        self.ib, self.lanes, self.size, self._keys, self._element = ib, lanes, size, keys, element
        self.keys = ib.allocate(keys.key_dtype, (held, lanes), "keys", scope="local")
        self._vectors = [
            [ib.allocate(keys.key_dtype, (lanes,), f"{side}{n}", scope="local") for n in range(GROUP)] for side in "ab"
        ]
        self._flag = ib.allocate("int32", (1,), "wanted", scope="local")

    def clear(self, begin: int, count: int) -> None:
        """Fills with the largest keys."""
        with self.ib.for_range(begin, begin + count, "k") as k, self._lane() as lane:
            self.keys[k, lane] = self._keys.last

    def fill(self, begin: int, count: int, first: Expr) -> None:
        """Writes the keys of `count` elements of each row; missing elements get the largest key."""
        known = constant(first)
        whole = te.min(self.size - first, count) if known is None else min(self.size - known, count)
        with self.ib.for_range(0, whole, "k") as k, self._lane() as lane:
            self.keys[begin + k, lane] = self._keys.of(self._element(first + k, lane), first + k)
        with self.ib.for_range(whole, count, "k") as k, self._lane() as lane:
            self.keys[begin + k, lane] = self._keys.last

    def where_wanted(self, begin: int, kept: int) -> Any:
        """Opens a scope of statements that run where a key of a chunk precedes the last one kept."""
        least = self._vectors[0][0]
        with self._lane() as lane:
            least[lane] = self.keys[begin, lane]
        with self.ib.for_range(1, kept, "k") as k, self._lane() as lane:
            least[lane] = te.min(least[lane], self.keys[begin + k, lane])
        self._flag[0] = 0
        with self._lane() as lane:
            is_wanted = te.Select(least[lane] < self.keys[kept - 1, lane], te.const(1, "int32"), te.const(0, "int32"))
            self._flag[0] = te.max(self._flag[0], is_wanted)
        return self.ib.if_scope(self._flag[0] > 0)

    def sort(self, begin: int, count: int, padded: int) -> None:
        """Sorts the first `padded` keys, a power of two; those from `count` on are the largest keys."""
        with self.ib.for_range(0, -(-count // GROUP), "block") as block:
            self._steps([begin + block * GROUP + n for n in range(GROUP)], SORT)
        levels = padded.bit_length() - 1 - 3
        if levels <= 0:
            return
        with self.ib.for_range(0, levels, "level") as level:
            half = te.const(GROUP, "int32") << level
            blocks = (count - half + 2 * half - 1) >> (level + 4)
            step = te.const(2, "int32") << level
            with self.ib.for_range(0, blocks, "block") as block, self.ib.for_range(0, step, "r") as r:
                low = begin + block * 2 * half + r
                high = begin + block * 2 * half + 2 * half - 1 - r
                self._steps([*(low + n * step for n in range(4)), *(high - n * step for n in range(4))], FLIP)
            self._merge(begin, count, level + 1)

    def keep(self, kept: int) -> None:
        """Merges a sorted chunk, stored after the sorted keys that are kept, with these."""
        with self.ib.for_range(0, kept, "k") as k, self._lane() as lane:
            self.keys[k, lane] = te.min(self.keys[k, lane], self.keys[2 * kept - 1 - k, lane])
        self._merge(0, kept, te.const(kept.bit_length() - 1, "int32"))

    def _merge(self, begin: int, count: int, steps: Expr) -> None:
        """Emits the last `steps` steps of merging: at distances of 2^(steps-1) to 1."""
        with self.ib.for_range(0, te.floordiv(steps, 3), "triple") as triple:
            shift = steps - 1 - triple * 3 - 2
            step = te.const(1, "int32") << shift
            blocks = (count + step * GROUP - 1) >> (shift + 3)
            with self.ib.for_range(0, blocks, "block") as block, self.ib.for_range(0, step, "r") as r:
                first = begin + block * GROUP * step + r
                self._steps([first + n * step for n in range(GROUP)], HALVES)
        for left in (1, 2):
            with (
                self.ib.if_scope(te.equal(te.floormod(steps, 3), left)),
                self.ib.for_range(0, -(-count // GROUP), "block") as block,
            ):
                self._steps([begin + block * GROUP + n for n in range(GROUP)], HALVES[3 - left :])

    def _steps(self, places: Sequence[Any], steps: Sequence[Pairs]) -> None:
        """Takes the vectors at eight places through some steps."""
        old, new = self._vectors
        with self._lane() as lane:
            for n, place in enumerate(places):
                old[n][lane] = self.keys[place, lane]
            for number, pairs in enumerate(steps):
                for front, behind in pairs:
                    smaller = te.min(old[front][lane], old[behind][lane])
                    larger = te.max(old[front][lane], old[behind][lane])
                    if number + 1 < len(steps):
                        new[front][lane] = smaller
                        new[behind][lane] = larger
                    else:
                        self.keys[places[front], lane] = smaller
                        self.keys[places[behind], lane] = larger
                old, new = new, old

    def _lane(self) -> Any:
        return self.ib.for_range(0, self.lanes, "lane", kind="vectorized")
