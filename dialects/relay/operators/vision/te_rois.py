"""Defines TE computes of regions of interest: their pooling, and proposals."""

from __future__ import annotations

import operator
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.ir import Attribute

from ...operator import Attrs
from ..common._lazy import te
from ..common.layout_strings import Layout, layout
from ..common.te_computes import constant, flat_index, lowest, unflatten, wide_dtype
from ..sorting.radix_sort import te_order
from ..sorting.te_sort import is_large, loops
from .te_nms import area

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, Tensor

SAMPLES = 4
"""The approximate number of pixels or samples of an element of the result."""
LANES = 16
"""Channels from which vectors hold them."""
EPSILON = 1e-5
"""Keeps a floor and a ceiling at an integer that is reached up to rounding."""


ROUNDING = 2.0**-21
"""The relative error of a sample's position and number: eight roundings to float32."""


FEW_SAMPLES = 64
"""As many samples of a bin along an axis are looked at wherever they are."""


class _Bin(NamedTuple):
    """A bin along one axis: its start, its length, its samples, and the range of those to compute."""

    begin: Expr
    step: Expr
    samples: Expr
    low: Expr
    high: Expr
    is_finite: Expr


def _real(value: Any, dtype: str) -> Any:
    return te.const(float(value), dtype) if isinstance(value, (int, float)) else value.astype(dtype)


def te_roi_align(attrs: Attrs, data: Tensor, rois: Tensor) -> Tensor:
    """Computes `vision.roi_align`."""
    pooled: tuple[int, int] = attrs.pooled_size
    if attrs.layout == "NCHW":
        shape = [rois.shape[0], data.shape[1], *pooled]
        if _is_turned(data.shape, shape):
            result = _roi_align(attrs, layout("NHWC"), _channels_last(data), rois)
            return te.compute(shape, lambda *i: result(*_last(i)).astype(data.dtype), name="T_roi_align")
    result = _roi_align(attrs, layout(attrs.layout), data, rois)
    return te.compute(result.shape, lambda *i: result(*i).astype(data.dtype), name="T_roi_align")


def _roi_align(attrs: Attrs, of: Layout, data: Tensor, rois: Tensor) -> Tensor:
    """Regions of images of a layout, in the dtype of their corners, of half precision in float32."""
    dtype = wide_dtype(rois.dtype)
    sizes = of.logical(data.shape)
    pooled: tuple[int, int] = attrs.pooled_size
    shape = of.physical({**sizes, "N": rois.shape[0], "H": pooled[0], "W": pooled[1]})
    is_mean = attrs.mode == "avg"
    one, half = te.const(1.0, dtype), te.const(0.5, dtype)
    inner, outer = (
        [d for d, (letter, _) in enumerate(of.dims) if (letter == "C") == is_inner] for is_inner in (True, False)
    )
    threads = "parallel" if is_large(shape, SAMPLES) else "serial"

    def whole(bin: Sequence[Any], channel: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the index vector of a bin in a channel."""
        index = dict(zip((*outer, *inner), (*bin, *channel), strict=True))
        return tuple(index[d] for d in range(len(index)))

    def bins(roi: Any, at: dict[str, Any], axis: str) -> _Bin:
        """Returns the bin of a place along an axis."""
        low, high = (1, 3) if axis == "W" else (2, 4)
        scale, count = te.const(attrs.spatial_scale, dtype), pooled["HW".index(axis)]
        start, end = (roi[at["N"], corner].astype(dtype) * scale for corner in (low, high))
        size = end - start if attrs.aligned else te.max(end - start, one)
        start = start - half if attrs.aligned else start
        step = size / te.const(float(count), dtype)
        samples = te.max(te.ceil(step).astype("int32"), 0)
        begin = start + at[axis].astype(dtype) * step
        is_finite = te.all(te.isfinite(start), te.isfinite(step))
        if attrs.sample_ratio > 0:
            samples = te.const(attrs.sample_ratio, "int32")
            return _Bin(begin, step, samples, te.const(0, "int32"), samples, is_finite)
        # Those far outside of the image, of which there may be 2^31, are left out.
        few = samples <= FEW_SAMPLES
        between = step / te.max(samples, 1).astype(dtype)
        limit = samples.astype(dtype)
        first = te.max(te.min((te.const(-1.0, dtype) - begin) / between - half, limit), te.const(0.0, dtype))
        last = te.max(te.min((_real(sizes[axis], dtype) - begin) / between - half, limit), te.const(0.0, dtype))
        low_end = te.if_then_else(few, 0, te.max((first - slack(first)).astype("int32"), 0))
        high_end = te.if_then_else(few, samples, te.min((last + slack(last)).astype("int32"), samples))
        return _Bin(begin, step, samples, low_end, te.if_then_else(is_finite, high_end, 0), is_finite)

    def slack(place: Expr) -> Expr:
        return te.const(3.0, dtype) + place * te.const(ROUNDING, dtype)

    def place_of(ends: dict[str, _Bin], axis: str, number: Expr) -> tuple[Expr, Expr]:
        """Returns a sample's position along an axis, clipped to the image, and whether it is far outside."""
        bin = ends[axis]
        place = bin.begin + (number.astype(dtype) + half) * bin.step / bin.samples.astype(dtype)
        outside = te.any(place < te.const(-1.0, dtype), place > _real(sizes[axis], dtype))
        return te.max(te.min(place, _real(sizes[axis] - 1, dtype)), te.const(0.0, dtype)), outside

    def sample(x: Any, roi: Any, at: dict[str, Any], position: dict[str, Expr]) -> Expr:
        batch = te.max(te.min(roi[at["N"], 0].astype("int32"), sizes["N"] - 1), 0)
        total: Any = None
        for high in (0, 1):
            for right in (0, 1):
                where: dict[str, Any] = {"N": batch, "C": at["C"]}
                weight: Any = None
                for axis, beyond in (("H", high), ("W", right)):
                    first = te.floor(position[axis])
                    part = position[axis] - first
                    part = part if beyond else one - part
                    weight = part if weight is None else weight * part
                    where[axis] = te.min(first.astype("int32") + beyond, sizes[axis] - 1)
                term = x[tuple(of.indices(where))].astype(dtype) * weight
                joined = te.max if attrs.mode == "max_pixel" else operator.add
                total = term if total is None else joined(total, term)
        return total

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (x, roi), (result,) = ins, outs
        ib = te.ir_builder.create()
        # The positions and weights of a bin's samples are the same for all channels: these are the inner loops.
        with loops(ib, [shape[d] for d in outer], first=threads) as bin:
            ends = {axis: bins(roi, of.logical_indices(whole(bin, [0] * len(inner))), axis) for axis in "HW"}

            @contextmanager
            def channels() -> Generator[tuple[Expr, ...]]:
                with loops(ib, [shape[d] for d in inner], "c") as channel:
                    yield whole(bin, channel)

            rows, columns = ends["H"], ends["W"]
            zero = te.const(0.0, dtype)
            is_whole = te.all(
                *(end for bin in (rows, columns) for end in (bin.low <= 0, bin.high >= bin.samples, bin.samples > 0))
            )
            # A sample outside is 0.
            first = zero if is_mean else te.if_then_else(is_whole, te.const(float("-inf"), dtype), zero)
            with channels() as here:
                ib.emit(result.vstore(here, first))
            counts = [te.max(bin.high - bin.low, 0) for bin in (rows, columns)]
            with loops(ib, counts[:1], "rh") as (rh,):
                row, is_outside = place_of(ends, "H", rows.low + rh)
                with ib.if_scope(is_outside):
                    if not is_mean:
                        with channels() as here:
                            ib.emit(result.vstore(here, te.max(result[here], zero)))
                with ib.else_scope(), loops(ib, counts[1:], "rw") as (rw,):
                    column, is_outside = place_of(ends, "W", columns.low + rw)
                    with channels() as here:
                        inside = sample(x, roi, of.logical_indices(here), {"H": row, "W": column})
                        value = te.Select(is_outside, zero, inside)
                        ib.emit(result.vstore(here, result[here] + value if is_mean else te.max(result[here], value)))
            count = te.max(rows.samples, 1).astype(dtype) * te.max(columns.samples, 1).astype(dtype)
            is_finite = te.all(rows.is_finite, columns.is_finite)
            with channels() as here:
                found = result[here] / count if is_mean else result[here]
                ib.emit(result.vstore(here, te.if_then_else(is_finite, found, te.const(float("nan"), dtype))))
        return ib.get()

    return te.extern(shape, [data, rois], statements, name="roi_align", dtype=dtype)


def te_roi_pool(attrs: Attrs, data: Tensor, rois: Tensor) -> Tensor:
    """Computes `vision.roi_pool`."""
    _, channels, *sizes = data.shape
    pooled: tuple[int, int] = attrs.pooled_size
    dtype = rois.dtype
    epsilon = te.const(EPSILON, dtype)

    def bounds(roi: Any, n: Expr, place: Expr, axis: int) -> tuple[Expr, Expr]:
        """Returns the first pixel of a bin along an axis, and the one after the last."""
        scale = te.const(attrs.spatial_scale, dtype)
        start = te.round(roi[n, 2 - axis] * scale).astype("int32")
        end = te.round(roi[n, 4 - axis] * scale).astype("int32")
        step = te.max(end - start + 1, 1).astype(dtype) / te.const(float(pooled[axis]), dtype)
        first = te.floor(place.astype(dtype) * step + epsilon).astype("int32") + start
        last = te.ceil((place + 1).astype(dtype) * step - epsilon).astype("int32") + start
        return tuple(te.min(te.max(p, 0), sizes[axis]) for p in (first, last))  # type: ignore[return-value]

    shape = [rois.shape[0], channels, *pooled]
    turned = _is_turned(data.shape, shape)

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (x, roi), (result,) = ins, outs
        ib = te.ir_builder.create()
        threads = "parallel" if is_large(shape, SAMPLES) else "serial"
        with loops(ib, [shape[0], *pooled] if turned else shape, first=threads) as (n, *channel, i, j):
            (top, bottom), (left, right) = bounds(roi, n, i, 0), bounds(roi, n, j, 1)
            batch = te.max(te.min(roi[n, 0].astype("int32"), data.shape[0] - 1), 0)
            least, zero = lowest(x.dtype), te.const(0, x.dtype)

            @contextmanager
            def lanes() -> Generator[tuple[Any, Any]]:
                """Opens the loop over all channels of a bin; yields the indices of a pixel and of the bin in it."""
                with loops(ib, [channels] if turned else [], "c") as inner:

                    def pixel(y: Expr, x: Expr) -> tuple[Expr, ...]:
                        return (batch, *channel, y, x, *inner)

                    yield pixel, (n, *channel, i, j, *inner)

            with lanes() as (_, here):
                ib.emit(result.vstore(here, te.Select(te.all(top < bottom, left < right), least, zero)))
            with (
                loops(ib, [te.max(bottom - top, 0), te.max(right - left, 0)], "r") as (rh, rw),
                lanes() as (pixel, here),
            ):
                ib.emit(result.vstore(here, te.max(result[here], x[pixel(top + rh, left + rw)])))
        return ib.get()

    if not turned:
        return te.extern(shape, [data, rois], statements, name="roi_pool", dtype=data.dtype)
    source = _channels_last(data)
    result = te.extern(_last(shape), [source, rois], statements, name="roi_pool", dtype=data.dtype)
    return te.compute(shape, lambda *i: result(*_last(i)), name="T_roi_pool")


TURNED_PIXELS = 10
"""Pixels whose channels are brought to the end in about the time that a bin gains by it."""


def _is_turned(data: Sequence[Any], shape: Sequence[Any]) -> bool:
    """Returns whether images (NCHW) are transposed to NHWC first, so that vectors hold channels.

    A bin is any rectangle of pixels, but the same one in all channels.
    """
    pixels, bins = ([constant(dim) for dim in (sizes[0], *sizes[2:])] for sizes in (data, shape))
    channels = constant(data[1])
    if channels is None or channels < LANES or None in (*pixels, *bins):
        return False
    return prod(dim or 0 for dim in pixels) <= TURNED_PIXELS * prod(dim or 0 for dim in bins)


def _channels_last(data: Tensor) -> Tensor:
    """Transposes NCHW to NHWC."""

    def element(n: Expr, h: Expr, w: Expr, c: Expr) -> Expr:
        return data(n, c, h, w)

    return te.compute(_last(data.shape), element, name="T_channels_last")


def _last(dims: Sequence[Any]) -> tuple[Any, ...]:
    """Returns sizes or indices of NCHW with channels last."""
    batch, channels, *rest = dims
    return batch, *rest, channels


def te_proposal(attrs: Attrs, anchors: Sequence[Sequence[float]], xs: Sequence[Tensor], out: Attribute) -> Tensor:
    """Computes `vision.proposal`, with the anchor of each place in a cell."""
    probabilities, deltas, info = xs
    batch, _, height, width = probabilities.shape
    dtype = deltas.dtype
    many = len(anchors)
    count = height * width * many
    one, half, zero = te.const(1.0, dtype), te.const(0.5, dtype), te.const(0.0, dtype)
    stride = te.const(float(attrs.feature_stride), dtype)

    def moved(low: Expr, high: Expr, shift: Expr, growth: Expr) -> tuple[Expr, Expr]:
        """Returns an anchor's sides along an axis, moved and scaled by the network's offsets."""
        if attrs.iou_loss:
            return low + shift, high + growth
        size = high - low + one
        center = low + half * (size - one) + shift * size
        size = te.exp(growth) * size
        return center - half * (size - one), center + half * (size - one)

    def box(b: Expr, place: Expr) -> Any:
        k, cell = te.floormod(place, many), te.floordiv(place, many)
        h, w = te.floordiv(cell, width), te.floormod(cell, width)
        delta = [deltas(b, k * 4 + n, h, w) for n in range(4)]
        corner: list[Any] = []
        for n in range(4):
            value: Any = te.const(anchors[-1][n], dtype)
            for number in range(many - 1):
                value = te.Select(k.equal(number), te.const(anchors[number][n], dtype), value)
            corner.append(value + (h if n % 2 else w).astype(dtype) * stride)
        x1, x2 = moved(corner[0], corner[2], delta[0], delta[2])
        y1, y2 = moved(corner[1], corner[3], delta[1], delta[3])
        rows, columns = info(b, 0), info(b, 1)
        x1, x2 = (te.max(te.min(x, columns - one), zero) for x in (x1, x2))
        y1, y2 = (te.max(te.min(y, rows - one), zero) for y in (y1, y2))
        least = info(b, 2) * te.const(float(attrs.rpn_min_size), dtype)
        small = te.any(x2 - x1 + one < least, y2 - y1 + one < least)
        beyond = te.any(h >= (rows / stride).astype("int32"), w >= (columns / stride).astype("int32"))
        more = te.Select(small, least * half, zero)
        score = te.Select(te.any(small, beyond), te.const(-1.0, dtype), probabilities(b, many + k, h, w).astype(dtype))
        return x1 - more, y1 - more, x2 + more, y2 + more, score

    *sides, score = te.compute((batch, count), box, name="T_boxes")
    order = te_order(score, 1, False)
    known = constant(count)
    limit: int = attrs.rpn_pre_nms_top_n
    kept: Any = count
    if limit > 0:
        kept = min(limit, known) if known is not None else te.min(limit, count)

    def ranked(side: Tensor) -> Tensor:
        return te.compute((batch, kept), lambda *i: side(i[0], order(*i)), name="T_ranked")

    size: int = attrs.rpn_post_nms_top_n

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        result, taken, state = outs
        ib = te.ir_builder.create()

        def grown(b: Expr, i: Expr) -> list[Expr]:
            # A pixel has an extent: the far sides are one further.
            return [side[b, i] + (one if n > 1 else zero) for n, side in enumerate(ins)]

        with ib.for_range(0, batch, "b") as b:
            ib.emit(state.vstore(0, 0))
            with ib.for_range(0, kept, "i") as i:
                ib.emit(taken.vstore(i, 1))
            with ib.for_range(0, kept, "i") as i, ib.if_scope(taken[i].equal(1)):
                ib.emit(state.vstore(0, state[0] + 1))
                with ib.for_range(i + 1, kept, "j") as j:
                    first, second = grown(b, i), grown(b, j)
                    width_of, height_of = (
                        te.max(te.min(first[n + 2], second[n + 2]) - te.max(first[n], second[n]), zero)
                        for n in range(2)
                    )
                    shared = width_of * height_of
                    part = shared / (area(first) + area(second) - shared)
                    with ib.if_scope(part > te.const(attrs.threshold, dtype)):
                        ib.emit(taken.vstore(j, 0))
            # Too few boxes are repeated in their order until there are enough.
            ib.emit(state.vstore(1, 0))
            turns = te.ceildiv(te.const(size, "int32"), te.max(state[0], 1))
            with (
                ib.for_range(0, turns, "turn"),
                ib.for_range(0, kept, "i") as i,
                ib.if_scope(te.all(taken[i].equal(1), state[1] < size)),
            ):
                row = b * size + state[1]
                ib.emit(result.vstore((row, 0), b.astype(dtype)))
                for n, side in enumerate(ins):
                    ib.emit(result.vstore((row, n + 1), side[b, i]))
                ib.emit(state.vstore(1, state[1] + 1))
        return ib.get()

    shapes = [(batch * size, 5), (kept,), (2,)]
    result, *_ = te.extern(
        shapes, [ranked(side) for side in sides], statements, name="proposal", dtype=[dtype, "int32", "int32"]
    )
    return result


def te_reorg(attrs: Attrs, x: Tensor, shape: Sequence[Any]) -> Tensor:
    """Computes `vision.yolo_reorg`: element by element, through places in memory."""
    stride: int = attrs.stride
    _, channels, height, width = x.shape
    inner = channels // (stride * stride) if isinstance(channels, int) else te.floordiv(channels, stride * stride)

    def body(b: Expr, *i: Expr) -> Expr:
        k, h, w = unflatten(flat_index(i, shape[1:]), [channels, height, width])
        off = te.floordiv(k, inner)
        wide = [te.floormod(k, inner), h * stride + te.floordiv(off, stride), w * stride + te.floormod(off, stride)]
        place = flat_index(wide, [inner, height * stride, width * stride])
        return x(b, *unflatten(place, [channels, height, width]))

    return te.compute(shape, body, name="T_reorg")
