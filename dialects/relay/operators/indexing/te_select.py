"""Defines TE computes that select elements, whose number depends on the elements' values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute

from ...operator import Attrs
from ..common._lazy import te
from ..common.result_sizes import ResultShapes, result_shape
from ..common.te_computes import Dim
from ..sorting.radix_sort import te_order, te_sorted
from ..sorting.te_sort import comes_first, loops

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, Tensor


TOGETHER = 16
"""Elements that are looked at together, whether there is one among them."""


def _is_true(x: Expr) -> Expr:
    return x if x.dtype == "bool" else te.not_equal(x, te.const(0, x.dtype))


def te_argwhere(x: Tensor, out: Attribute) -> Tensor:
    """Computes `argwhere`."""
    return te_argwhere_of(x, result_shape(out))


def te_argwhere_of(x: Tensor, shape: Sequence[Dim]) -> Tensor:
    """Returns the places of true elements, as many as a result of this shape has room for."""
    if not x.shape:
        return te.compute(shape, lambda *i: te.const(0, "int32"), name="T_argwhere")

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (data,), (found,) = ins, outs
        ib = te.ir_builder.create()
        row, has_any = (ib.allocate("int32", (1,), name, scope="local") for name in ("row", "has_any"))
        row[0] = 0
        with loops(ib, x.shape[:-1]) as outer:

            def flag(k: Expr) -> Expr:
                return te.Select(_is_true(data[(*outer, k)]), te.const(1, "int32"), te.const(0, "int32"))

            def note(k: Expr) -> None:
                # Every place is written, and kept if its element is true: no branch is foreseen wrongly.
                with ib.if_scope(row[0] < te.convert(shape[0])):
                    for axis, index in enumerate((*outer, k)):
                        ib.emit(found.vstore((row[0], axis), index.astype("int32")))
                    row[0] = row[0] + flag(k)

            parts = te.floordiv(te.convert(x.shape[-1]), TOGETHER)
            with ib.for_range(0, parts, "part") as part:
                has_any[0] = 0
                with ib.for_range(0, TOGETHER, "lane", kind="vectorized") as lane:
                    has_any[0] = te.max(has_any[0], flag(part * TOGETHER + lane))
                with ib.if_scope(has_any[0] > 0), ib.for_range(0, TOGETHER, "n") as n:
                    note(part * TOGETHER + n)
            with ib.for_range(parts * TOGETHER, x.shape[-1], "k") as k:
                note(k)
        return ib.get()

    return te.extern(shape, [x], statements, name="argwhere", dtype="int32")


def argwhere_extents(x: Tensor) -> ResultShapes:
    """Computes the sizes of `argwhere`: as many rows as there are true elements."""
    axes = [te.reduce_axis((0, dim), name=f"k{axis}") for axis, dim in enumerate(x.shape)]

    def element() -> Any:
        counted = _is_true(x(*axes)).astype("int64")
        return te.sum(counted, axis=axes) if axes else counted

    return ResultShapes([[te.compute((), element, name="count")(), len(axes)]])


def te_unique(attrs: Attrs, x: Tensor, out: Attribute) -> list[Tensor]:
    """Computes `unique`."""
    assert isinstance(out, TupleType)
    (count,) = result_shape(out.types.data[0])
    return te_unique_of(x, count, attrs.sorted, len(out.types.data))


def te_unique_of(x: Tensor, count: Dim, is_sorted: bool, results: int) -> list[Tensor]:
    """Returns the groups of equal elements in sorted order, in results of `count` elements.

    The results are 0 after the last group.
    """
    (size,) = x.shape
    order = te_order(x, 0, True)

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (data, sorted_), (values, first, inverse, number, counts, ordered, group, start, begin, place, cursor) = (
            ins,
            outs,
        )
        ib = te.ir_builder.create()
        at = ib.buffer_ptr(cursor)
        with ib.for_range(0, size, "k") as k:
            ib.emit(ordered.vstore(k, data[sorted_[k]]))
        at[0] = te.const(-1, "int32")
        groups = ib.buffer_ptr(number)
        with ib.for_range(0, size, "k") as k:
            with ib.if_scope(_begins(ordered, k)):
                at[0] = at[0] + 1
                ib.emit(start.vstore(at[0], sorted_[k]))
                ib.emit(begin.vstore(at[0], k.astype("int32")))
            ib.emit((inverse if is_sorted else group).vstore(sorted_[k], at[0]))
        groups[0] = at[0] + 1
        if not is_sorted:
            at[0] = te.const(0, "int32")
            with ib.for_range(0, size, "k") as k, ib.if_scope(te.equal(start[group[k]], k.astype("int32"))):
                ib.emit(place.vstore(group[k], at[0]))
                at[0] = at[0] + 1
            with ib.for_range(0, size, "k") as k:
                ib.emit(inverse.vstore(k, place[group[k]]))
        with ib.for_range(0, groups[0], "g") as g:
            own = g if is_sorted else place[g]
            behind = te.if_then_else(g + 1 < groups[0], begin[g + 1], te.convert(size).astype("int32"))
            ib.emit(values.vstore(own, data[start[g]]))
            ib.emit(first.vstore(own, start[g]))
            ib.emit(counts.vstore(own, behind - begin[g]))
        with ib.for_range(groups[0], count, "g") as g:
            for result in (values, first, counts):
                ib.emit(result.vstore(g, te.const(0, result.dtype)))
        return ib.get()

    shapes = [(count,), (count,), (size,), (1,), (count,), (size,), (size,), (size,), (size,), (size,), (1,)]
    dtypes = [x.dtype, *["int32"] * 4, x.dtype, *["int32"] * 5]
    return list(te.extern(shapes, [x, order], statements, name="unique", dtype=dtypes)[:results])


def _begins(ordered: Any, k: Expr) -> Expr:
    """Returns whether element k in sorted order is the first of its group; NaNs are one group."""
    return te.if_then_else(te.equal(k, 0), te.const(1, "bool"), comes_first(ordered[k - 1], ordered[k], ascending=True))


def unique_extents(attrs: Attrs, x: Tensor) -> ResultShapes:
    """Computes the sizes of `unique`: as many as there are groups of equal elements."""
    ordered = te_sorted(x, 0, True)
    k = te.reduce_axis((0, x.shape[0]), name="k")
    count = te.compute((), lambda: te.sum(_begins(ordered, k).astype("int64"), axis=k), name="count")()
    counts = [[count]] if attrs.return_counts else []
    return ResultShapes([[count], [count], x.shape, [1], *counts])
