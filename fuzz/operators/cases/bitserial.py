"""Cases of bit-serial operators: words packed bit by bit, products summed as plain integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .conv import pack, padding_of, unpack

WIDTH = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def packed(x: np.ndarray, bits: int, axis: int, place: int, dtype: str) -> np.ndarray:
    """Packs bits into words along an axis, with an axis of the bits inserted."""
    width, planes = WIDTH[dtype], []
    for bit in range(bits):
        rows = np.moveaxis(x, axis, -1).reshape(*np.delete(x.shape, axis), -1, width)
        words = np.zeros(rows.shape[:-1], dtype)
        for at in np.ndindex(*words.shape):
            words[at] = int("".join(str(int(v) >> bit & 1) for v in rows[at]), 2)
        planes.append(np.moveaxis(words, -1, axis))
    return np.stack(planes, place)


@st.composite
def _packs(draw: Any) -> Any:
    dtype, axis = draw(st.sampled_from(tuple(WIDTH))), draw(st.integers(0, 2))
    shape = [draw(st.integers(1, 3)) for _ in range(3)]
    shape[axis] = WIDTH[dtype] * draw(st.integers(1, 2))
    attrs = {
        "bits": draw(st.integers(1, 4)),
        "pack_axis": axis,
        "bit_axis": draw(st.integers(0, 3)),
        "pack_type": dtype,
    }
    return attrs, [values(shape, draw(st.sampled_from(("int32", "uint8"))), draw(seeds), 0, 15)]


case("nn.bitpack", _packs(), lambda a, x: packed(x, a.bits, a.pack_axis, a.bit_axis, a.pack_type))


def _meant(w: np.ndarray, bits: int, unipolar: bool) -> np.ndarray:
    return 2 * w.astype(int) - (2**bits - 1) if unipolar else w.astype(int)


class _Weight(np.ndarray):
    """A weight that remembers what it was before packing."""

    plain: np.ndarray


def _remember(w: np.ndarray, plain: np.ndarray) -> _Weight:
    result = w.view(_Weight)
    result.plain = plain
    return result


@st.composite
def _denses(draw: Any) -> Any:
    bits, width = (draw(st.integers(1, 3)), draw(st.integers(1, 3))), draw(st.sampled_from(("uint8", "uint32")))
    inner, units = WIDTH[width], draw(st.integers(1, 3))
    x, w = (values((n, inner), "int32", draw(seeds), 0, 2**b - 1) for n, b in zip((2, units), bits, strict=True))
    attrs = {
        "units": units, "data_bits": bits[0], "weight_bits": bits[1], "pack_dtype": width,
        "out_dtype": draw(st.sampled_from(("int16", "int32"))), "unipolar": draw(st.booleans()),
    }  # fmt: skip
    return attrs, [x, _remember(packed(w, bits[1], 1, 1, width) if draw(st.booleans()) else w, w)]


def _dense(a: Any, x: np.ndarray, w: _Weight) -> np.ndarray:
    weights = _meant(w.plain, a.weight_bits, a.unipolar)
    return np.array(
        [[sum(int(p) * int(q) for p, q in zip(r, s, strict=True)) for s in weights] for r in x], a.out_dtype
    )


case("nn.bitserial_dense", _denses(), _dense)


@st.composite
def _convolutions(draw: Any) -> Any:
    bits, word = (draw(st.integers(1, 2)), draw(st.integers(1, 2))), "uint8"
    layouts = draw(st.sampled_from((("NCHW", "OIHW"), ("NHWC", "HWIO"))))
    outer = draw(st.integers(1, 2))
    x = values((1, 8, 3, 4), "int32", draw(seeds), 0, 2 ** bits[0] - 1)
    w = values((outer, 8, 2, 2), "int32", draw(seeds), 0, 2 ** bits[1] - 1)
    attrs = {
        "strides": (draw(st.integers(1, 2)), 1), "padding": draw(st.sampled_from(((0, 0), (1, 0, 0, 1)))),
        "kernel_size": (2, 2), "channels": outer, "activation_bits": bits[0], "weight_bits": bits[1],
        "data_layout": layouts[0], "kernel_layout": layouts[1], "pack_dtype": word, "out_dtype": "int16",
        "unipolar": draw(st.booleans()),
    }  # fmt: skip
    given = pack(w, "OIHW", layouts[1])
    held = packed(given, bits[1], layouts[1].index("I"), 4, word) if draw(st.booleans()) else given
    return attrs, [pack(x, "NCHW", layouts[0]), _remember(held, w)]


def _convolution(a: Any, x: np.ndarray, w: _Weight) -> np.ndarray:
    (top, left), (bottom, right) = padding_of(a.padding, 2)
    data = np.pad(unpack(x, "NCHW", a.data_layout), ((0, 0), (0, 0), (top, bottom), (left, right)))
    weights = _meant(w.plain, a.weight_bits, a.unipolar)
    rows, columns = (data.shape[2] - 2) // a.strides[0] + 1, (data.shape[3] - 2) // a.strides[1] + 1
    result = np.zeros((1, len(weights), rows, columns), np.int64)
    for _, o, i, j in np.ndindex(*result.shape):
        top, left = i * a.strides[0], j * a.strides[1]
        result[0, o, i, j] = (data[0, :, top : top + 2, left : left + 2] * weights[o]).sum()
    return pack(result.astype(a.out_dtype), "NCHW", a.data_layout)


case("nn.bitserial_conv2d", _convolutions(), _convolution)
