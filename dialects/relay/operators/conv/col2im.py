"""Defines TE computes of strided transposed convolutions: a matrix product, then overlapping sums.

Every element of the data times every tap of every filter is one matrix product over the channels, without the zeros that spreading
the data out would multiply by: col[tap, place, filter]. An element of the result then adds the ceil(kernel / stride) products
along each axis that fall on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ..common._lazy import te
from ..common.layout_strings import Layout

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

FEW_FILTERS = 8
"""Filters below which vectors run along places instead."""

RUN = 8
"""Adjacent elements of one phase: as many vectors as there are phases hold a run of the result, interleaved."""


def te_conv_transposed(
    x: Tensor,
    w: Tensor,
    axes: str,
    layouts: tuple[Layout, Layout, Layout],
    strides: Sequence[int],
    before: Sequence[int],
    result: dict[str, Any],
    dtype: str,
) -> Tensor:
    """Returns the transposed convolution of x by w, without groups and dilation, all sizes known.

    `layouts` are those of the data, the weight (letters I and O) and the result; `result` holds the result's sizes by axis,
    `before` the elements that are cut off in front.
    """
    data_layout, kernel_layout, out_layout = layouts
    sizes, weights = data_layout.logical(x.shape), kernel_layout.logical(w.shape)
    places = [sizes[a] for a in axes]
    taps = [weights[a] for a in axes]
    rank = len(axes)

    def split(flat: Any) -> list[Any]:
        """Returns the place along each axis of a place's number."""
        found: list[Any] = []
        for n in reversed(range(rank)):
            found.insert(0, te.floormod(flat, places[n]) if n else flat)
            flat = te.floordiv(flat, places[n])
        return found

    def row(n: Expr, c: Expr, p: Expr) -> Any:
        return x(*data_layout.indices({"N": n, "C": c, **dict(zip(axes, split(p), strict=True))})).astype(dtype)

    data = te.compute((sizes["N"], sizes["C"], prod(places)), row, name="data_rows")
    rc = te.reduce_axis((0, sizes["C"]), name="dc")
    filters_last = weights["O"] >= FEW_FILTERS

    def multiplied(n: Expr, *i: Expr) -> Any:
        tap, (p, o) = i[:rank], (i[rank:] if filters_last else reversed(i[rank:]))
        at = {"I": rc, "O": o, **dict(zip(axes, tap, strict=True))}
        return te.sum(data(n, rc, p) * w(*kernel_layout.indices(at)).astype(dtype), axis=rc)

    inner = (prod(places), weights["O"]) if filters_last else (weights["O"], prod(places))
    col = te.compute((sizes["N"], *taps, *inner), multiplied, name="col")

    def reached(place: Any, axis: int) -> tuple[Any, Any]:
        """Returns the last data element that contributes to a result element along an axis, and its tap."""
        full = place + before[axis]
        return te.floordiv(full, strides[axis]), te.floormod(full, strides[axis])

    def element(n: Any, ends: Sequence[tuple[Any, Any]], o: Any) -> Any:
        total: Any = None
        for turn in product(*(range(-(-k // s)) for k, s in zip(taps, strides, strict=True))):
            flat: Any = 0
            tap: list[Any] = []
            inside: list[Any] = []
            for axis, (t, (end, first)) in enumerate(zip(turn, ends, strict=True)):
                tap.append(first + t * strides[axis])
                place = end - t
                flat = flat * places[axis] + place
                inside += [place >= 0, place < places[axis]]
                if taps[axis] % strides[axis]:
                    inside.append(tap[-1] < taps[axis])
            last = (flat, o) if filters_last else (o, flat)
            value = te.if_then_else(te.all(*inside), col(n, *tap, *last), te.const(0, dtype))
            total = value if total is None else total + value
        return total

    sums: Any = None
    step, length = strides[-1], result[axes[-1]]
    if filters_last:
        # In vectors of filters, as the products are stored; then in the result's layout.
        shape = (sizes["N"], *(result[a] for a in axes), weights["O"])

        def summed(*i: Expr) -> Any:
            return element(i[0], [reached(place, axis) for axis, place in enumerate(i[1:-1])], i[-1])

        sums = te.compute(shape, summed, name="col_sums")
    elif step > 1 and out_layout.text.endswith(axes[-1]):
        # Phase by phase, as the products are stored; runs of them are put in order afterwards.
        shape = (sizes["N"], weights["O"], *(result[a] for a in axes[:-1]), -(-length // (RUN * step)), step, RUN)

        def in_phases(n: Expr, o: Expr, *i: Expr) -> Any:
            *outer, run, phase, turn = i
            moved, tap = reached(phase, rank - 1)
            ends = [reached(place, axis) for axis, place in enumerate(outer)]
            return element(n, [*ends, (run * RUN + turn + moved, tap)], o)

        sums = te.compute(shape, in_phases, name="col_sums")

    def laid_out(*i: Expr) -> Any:
        at = out_layout.logical_indices(i)
        where = [at[a] for a in axes]
        if sums is None:
            return element(at["N"], [reached(place, axis) for axis, place in enumerate(where)], at["C"])
        if filters_last:
            return sums(at["N"], *where, at["C"])
        turn = te.floordiv(where[-1], step)
        runs = (te.floordiv(turn, RUN), te.floormod(where[-1], step), te.floormod(turn, RUN))
        return sums(at["N"], at["C"], *where[:-1], *runs)

    return te.compute(out_layout.physical(result), laid_out, name=f"conv{rank}d_transpose")


def te_conv_transposed_place(
    x: Tensor,
    w: Tensor,
    axes: str,
    layouts: tuple[Layout, Layout, Layout],
    before: Sequence[int],
    result: dict[str, Any],
    dtype: str,
) -> Tensor:
    """Returns the transposed convolution (`te_conv_transposed`) of data of one pixel.

    It is the product of the matrices (N, C) and (C, O * taps), whose columns are in the order of the result.
    """
    data_layout, kernel_layout, out_layout = layouts
    sizes, weights = data_layout.logical(x.shape), kernel_layout.logical(w.shape)
    taps = [weights[a] for a in axes]
    count = prod(taps)

    def column(c: Expr, j: Expr) -> Any:
        at: dict[str, Any] = {"I": c, "O": te.floordiv(j, count)}
        for n, a in enumerate(axes):
            at[a] = te.floormod(te.floordiv(j, prod(taps[n + 1 :])), taps[n])
        return w(*kernel_layout.indices(at))

    columns = te.compute((sizes["C"], weights["O"] * count), column, name="kernel_columns")
    rc = te.reduce_axis((0, sizes["C"]), name="dc")

    def multiplied(n: Expr, j: Expr) -> Any:
        datum = x(*data_layout.indices({"N": n, "C": rc, **dict.fromkeys(axes, te.const(0, "int32"))}))
        return te.sum(datum.astype(dtype) * columns(rc, j).astype(dtype), axis=rc)

    products = te.compute((sizes["N"], weights["O"] * count), multiplied, name="products")

    def laid_out(*i: Expr) -> Any:
        at = out_layout.logical_indices(i)
        flat: Any = at["C"]
        inside: list[Any] = []
        for a, low, extent in zip(axes, before, taps, strict=True):
            flat = flat * extent + (at[a] + low)
            if result[a] + low > extent:
                inside.append(at[a] + low < extent)
        value = products(at["N"], flat)
        return te.if_then_else(te.all(*inside), value, te.const(0, dtype)) if inside else value

    return te.compute(out_layout.physical(result), laid_out, name=f"conv{len(axes)}d_transpose")
