"""Cases of convolutions and pooling in several layouts, references by loops over places in NCHW."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ....dialects.array import numpy_dtype
from ..sampling import FLOATS, NUMBERS, case, in_float64, retyped, seeds, values

AXES = {1: "W", 2: "HW", 3: "DHW"}


def pack(x: np.ndarray, axes: str, layout: str) -> np.ndarray:
    """Brings a tensor of dimensions `axes` into a layout with at most one block of each axis."""
    outer = [c for c in layout if c.isupper()]
    x = x.transpose([axes.index(c) for c in outer])
    for inner in [c for c in layout if c.islower()]:
        digits = layout[: layout.index(inner)]
        block = int("".join(c for c in digits[-2:] if c.isdigit()))
        axis = outer.index(inner.upper())
        x = x.reshape(*x.shape[:axis], x.shape[axis] // block, block, *x.shape[axis + 1 :])
        x = np.moveaxis(x, axis + 1, -1)
    return np.ascontiguousarray(x)


def convolution(x: np.ndarray, w: np.ndarray, a: Any, dtype: Any) -> np.ndarray:
    """Convolves x (N, C, …) with w (O, I, …), place by place."""
    rank = x.ndim - 2
    before, after = padding_of(a.padding, rank)
    wide = np.int64 if x.dtype.kind in "iu" else np.float64
    x = np.pad(x.astype(wide), [(0, 0), (0, 0), *zip(before, after, strict=True)])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], a.dilation, strict=True)]
    places = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, a.strides, strict=True)]
    inner, outer = x.shape[1] // a.groups, w.shape[0] // a.groups
    result = np.zeros((len(x), len(w), *places), wide)
    for place in product(*map(range, places)):
        window = tuple(
            slice(p * s, p * s + r, d) for p, s, r, d in zip(place, a.strides, reach, a.dilation, strict=True)
        )
        part = x[(slice(None), slice(None), *window)]
        for o in range(len(w)):
            g = o // outer
            result[(slice(None), o, *place)] = (part[:, g * inner : (g + 1) * inner] * w[o]).reshape(len(x), -1).sum(1)
    return result.astype(dtype)


def padding_of(padding: Any, rank: int) -> tuple[Any, Any]:
    if len(padding) == 1:
        return padding * rank, padding * rank
    return (padding, padding) if len(padding) == rank else (padding[:rank], padding[rank:])


def paddings(draw: Any, rank: int) -> tuple[int, ...]:
    """Draws a padding in one of TVM's forms; two numbers in 1d are before and after."""
    count = draw(st.sampled_from((1, rank, 2 * rank)))
    return tuple(draw(st.integers(0, 2)) for _ in range(count))


LAYOUTS = {
    1: (("NCW", "OIW"), ("NWC", "WIO")),
    2: (("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NCHW2c", "OIHW2i2o"), ("NHWC", "OHWI"), ("HWNC", "HWOI")),
    3: (("NCDHW", "OIDHW"), ("NDHWC", "DHWIO")),
}


@st.composite
def convolutions(draw: Any, rank: int) -> Any:
    data_layout, kernel_layout = draw(st.sampled_from(LAYOUTS[rank]))
    groups = draw(st.sampled_from((1, 1, 2)))
    inner, outer = 2 * draw(st.integers(1, 2)), 2 * draw(st.integers(1, 2))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilation = [draw(st.integers(1, 2)) for _ in range(rank)]
    size = [(k - 1) * d + draw(st.integers(1, 3)) for k, d in zip(kernel, dilation, strict=True)]
    dtype = draw(st.sampled_from((*FLOATS, "int8", "uint8", "int32")))
    weights_known = draw(st.booleans())
    attrs: dict[str, Any] = {
        "strides": tuple(draw(st.integers(1, 2)) for _ in range(rank)),
        "padding": paddings(draw, rank),
        "dilation": tuple(dilation),
        "groups": groups,
        "data_layout": data_layout,
        "kernel_layout": kernel_layout,
    }
    if dtype in ("int8", "uint8"):
        attrs["out_dtype"] = "int32"
    if weights_known:
        attrs |= {"channels": outer * groups, "kernel_size": tuple(kernel)}
    x = values((draw(st.integers(1, 2)), inner * groups, *size), dtype, draw(seeds))
    w = values((outer * groups, inner, *kernel), dtype, draw(seeds))
    return attrs, [pack(x, "NC" + AXES[rank], data_layout), pack(w, "OI" + AXES[rank], kernel_layout)]


def unpack(x: np.ndarray, axes: str, layout: str) -> np.ndarray:
    """Inverts `pack`."""
    outer, inner = [c for c in layout if c.isupper()], [c for c in layout if c.islower()]
    for c in reversed(inner):
        axis = outer.index(c.upper())
        x = np.moveaxis(x, -1, axis + 1)
        x = x.reshape(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])
    return x.transpose([outer.index(a) for a in axes])


def _reference(rank: int) -> Any:
    def reference(a: Any, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        axes = AXES[rank]
        data, weight = unpack(x, "NC" + axes, a.data_layout), unpack(w, "OI" + axes, a.kernel_layout)
        return pack(convolution(data, weight, a, numpy_dtype(a.out_dtype or x.dtype.name)), "NC" + axes, a.data_layout)

    return reference


for _rank in (1, 2, 3):
    case(f"nn.conv{_rank}d", convolutions(_rank), _reference(_rank), loose=3)


def _blocked(drawn: Any) -> bool:
    return drawn[0]["data_layout"] == "NCHW2c"


case("nn.contrib_conv2d_NCHWc", convolutions(2).filter(_blocked), _reference(2), loose=3)


@st.composite
def _blocked_depthwise(draw: Any) -> Any:
    x, w = values((1, 4, 4, 4), "float32", draw(seeds)), values((4, 1, 3, 2), "float32", draw(seeds))
    layouts = {"data_layout": "NCHW2c", "kernel_layout": "OIHW1i2o"}
    return {"groups": 4, **layouts}, [pack(x, "NCHW", "NCHW2c"), pack(w, "OIHW", "OIHW1i2o")]


case("nn.contrib_depthwise_conv2d_NCHWc", retyped(_blocked_depthwise(), FLOATS), _reference(2), loose=3)


@st.composite
def _depthwise(draw: Any) -> Any:
    channels, multiplier = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    x = values((1, channels, 4, 4), "float32", draw(seeds))
    w = values((channels, multiplier, 3, 2), "float32", draw(seeds))
    layouts = draw(st.sampled_from((("NCHW", "OIHW"), ("NHWC", "HWOI"))))
    attrs = {"groups": channels, "channels": channels * multiplier, "kernel_size": (3, 2), "padding": (1, 0)}
    attrs |= {"data_layout": layouts[0], "kernel_layout": layouts[1]}
    return attrs, [pack(x, "NCHW", layouts[0]), pack(w, "OIHW", layouts[1])]


def _depthwise_reference(a: Any, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    data, weight = unpack(x, "NCHW", a.data_layout), unpack(w, "OIHW", a.kernel_layout)
    weight = weight.reshape(-1, 1, *weight.shape[2:])
    return pack(convolution(data, weight, a, x.dtype), "NCHW", a.data_layout)


case("nn.conv2d", retyped(_depthwise(), FLOATS), _depthwise_reference, loose=3)


@st.composite
def transposed(draw: Any, rank: int) -> Any:
    groups, inner, outer = draw(st.sampled_from((1, 2))), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    kernel = [draw(st.integers(2, 3)) for _ in range(rank)]
    strides = [draw(st.integers(1, 2)) for _ in range(rank)]
    attrs = {
        "strides": tuple(strides),
        "padding": tuple(draw(st.integers(0, 1)) for _ in range(2 * rank)),
        "output_padding": tuple(s - 1 for s in strides),
        "dilation": tuple(draw(st.integers(1, 2)) for _ in range(rank)),
        "groups": groups,
        "channels": outer * groups,
        "kernel_size": tuple(kernel),
    }
    axes = AXES[rank]
    layouts = draw(st.sampled_from(((f"NC{axes}", f"IO{axes}"), (f"N{axes}C", f"{axes}OI"))))
    attrs |= {"data_layout": layouts[0], "kernel_layout": layouts[1]}
    x = values((1, inner * groups, *(draw(st.integers(2, 3)) for _ in range(rank))), "float32", draw(seeds))
    w = values((inner * groups, outer, *kernel), "float32", draw(seeds))
    return attrs, [pack(x, "NC" + axes, layouts[0]), pack(w, "IO" + axes, layouts[1])]


def _transposed_reference(rank: int) -> Any:
    """Every data element spreads the kernel around its place."""

    def reference(a: Any, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        axes = AXES[rank]
        data, weight = unpack(x, "NC" + axes, a.data_layout), unpack(w, "IO" + axes, a.kernel_layout)
        inner, outer = data.shape[1] // a.groups, weight.shape[1]
        before, after = padding_of(a.padding, rank)
        full = [
            (n - 1) * s + (k - 1) * d + 1 + e
            for n, s, k, d, e in zip(
                data.shape[2:], a.strides, weight.shape[2:], a.dilation, a.output_padding, strict=True
            )
        ]
        result = np.zeros((len(data), outer * a.groups, *full))
        for place in np.ndindex(*data.shape[1:]):
            for target in np.ndindex(*weight.shape[1:]):
                at = [p * s + k * d for p, s, k, d in zip(place[1:], a.strides, target[1:], a.dilation, strict=True)]
                channel = place[0] // inner * outer + target[0]
                result[(slice(None), channel, *at)] += data[(slice(None), *place)] * weight[(place[0], *target)]
        cut = tuple(slice(b, n - e) for b, n, e in zip(before, full, after, strict=True))
        return pack(result[(slice(None), slice(None), *cut)], "NC" + axes, a.data_layout)

    return reference


for _rank in (1, 2, 3):
    case(
        f"nn.conv{_rank}d_transpose",
        retyped(transposed(_rank), (*FLOATS, "int32")),
        in_float64(_transposed_reference(_rank)),
        loose=3,
    )


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


POOL_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC", "NCHW2c"), 3: ("NCDHW", "NDHWC")}


@st.composite
def pools(draw: Any, rank: int, average: bool) -> Any:
    layout = draw(st.sampled_from(POOL_LAYOUTS[rank]))
    window = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilation = [draw(st.integers(1, 2)) if rank < 3 else 1 for _ in range(rank)]
    size = [(k - 1) * d + draw(st.integers(1, 4)) for k, d in zip(window, dilation, strict=True)]
    # A padding below the window's reach, so that no window is wholly outside.
    limit = min((k - 1) * d for k, d in zip(window, dilation, strict=True))
    attrs: dict[str, Any] = {
        "pool_size": tuple(window),
        "strides": tuple(draw(st.integers(1, 2)) for _ in range(rank)),
        "dilation": tuple(dilation),
        "padding": tuple(draw(st.integers(0, min(1, limit))) for _ in range(2 * rank)),
        "layout": layout,
        "ceil_mode": draw(st.booleans()),
    }
    if average:
        attrs["count_include_pad"] = draw(st.booleans())
    dtype = draw(st.sampled_from((*FLOATS, "int32", "int64") if average else NUMBERS))
    return attrs, [pack(values((1, 2, *size), dtype, draw(seeds), -9, 9), "NC" + AXES[rank], layout)]


def _pool_reference(rank: int, average: bool) -> Any:
    def reference(a: Any, x: np.ndarray) -> np.ndarray:
        data = unpack(x, "NC" + AXES[rank], a.layout)
        before, after = padding_of(a.padding, rank)
        places = []
        for n, (size, low, high) in enumerate(zip(data.shape[2:], before, after, strict=True)):
            free = size + low + high - (a.pool_size[n] - 1) * a.dilation[n] - 1
            places.append((-(-free // a.strides[n]) if a.ceil_mode else free // a.strides[n]) + 1)
        result = np.empty((*data.shape[:2], *places), x.dtype)
        for place in product(*map(range, places)):
            inside = []
            for n, p in enumerate(place):
                steps = [p * a.strides[n] - before[n] + k * a.dilation[n] for k in range(a.pool_size[n])]
                inside.append([s for s in steps if 0 <= s < data.shape[2 + n]])
            window = data[(slice(None), slice(None), *np.ix_(*inside))].reshape(*data.shape[:2], -1)
            if average:
                count = np.prod(a.pool_size) if a.count_include_pad else max(window.shape[-1], 1)
                value = _wide(window).sum(-1) / count
                value = np.trunc(value) if x.dtype.kind in "iu" else value
            elif window.shape[-1]:
                value = window.max(-1)
            else:
                value = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
            result[(slice(None), slice(None), *place)] = value
        return pack(result, "NC" + AXES[rank], a.layout)

    return reference


@st.composite
def adaptive(draw: Any, rank: int, average: bool, whole: bool) -> Any:
    layout = draw(st.sampled_from(POOL_LAYOUTS[rank]))
    size = [draw(st.integers(1, 5)) for _ in range(rank)]
    attrs: dict[str, Any] = {"layout": layout}
    if not whole:
        attrs["output_size"] = draw(st.sampled_from((None, (1,) * rank, tuple(draw(st.integers(1, n)) for n in size))))
    dtype = draw(st.sampled_from((*FLOATS, "int32", "int64") if average else NUMBERS))
    return attrs, [pack(values((1, 2, *size), dtype, draw(seeds), -9, 9), "NC" + AXES[rank], layout)]


def _adaptive_reference(rank: int, average: bool, whole: bool) -> Any:
    def reference(a: Any, x: np.ndarray) -> np.ndarray:
        data = unpack(x, "NC" + AXES[rank], a.layout)
        sizes = data.shape[2:]
        places = (1,) * rank if whole else a.output_size or sizes
        result = np.empty((*data.shape[:2], *places), x.dtype)
        for place in product(*map(range, places)):
            window = tuple(
                slice(int(np.floor(p * n / m)), int(np.ceil((p + 1) * n / m)))
                for p, n, m in zip(place, sizes, places, strict=True)
            )
            part = data[(slice(None), slice(None), *window)].reshape(*data.shape[:2], -1)
            value = _wide(part).mean(-1) if average else part.max(-1)
            value = np.trunc(value) if x.dtype.kind in "iu" else value
            result[(slice(None), slice(None), *place)] = value
        return pack(result, "NC" + AXES[rank], a.layout)

    return reference


for _rank in (1, 2, 3):
    for _average in (False, True):
        _kind = "avg" if _average else "max"
        case(f"nn.{_kind}_pool{_rank}d", pools(_rank, _average), _pool_reference(_rank, _average))
        for _whole in (False, True):
            _how = "global" if _whole else "adaptive"
            case(
                f"nn.{_how}_{_kind}_pool{_rank}d",
                adaptive(_rank, _average, _whole),
                _adaptive_reference(_rank, _average, _whole),
            )
