"""`conv2d-to-winograd`: 3×3 convolutions by Winograd's algorithm where that takes less time.

`nn.conv2d(%x, w)` with a constant weight becomes

    %0 = nn.contrib_conv2d_winograd_products(%x, w, tile_size=4, …);
    nn.contrib_conv2d_winograd_output_transform(%0, tile_size=4, …)

Two kernels, so that all convolutions of a shape share the first, which is most of the code; bias, residual and activation are
fused to the second. The transform of the weight depends on constants only, so that it is made once, when the program is loaded. F(4×4, 3×3) multiplies a quarter as often as the sum itself, F(2×2, 3×3) less than half as often; against that stand
the transforms and a weight of 4 (or 1.8) times the size. Float32 is rounded more: measured against float64 on normal data
the largest error is below 1e-5 of the largest result with 4×4 tiles and 512 channels, below 3e-6 with 2×2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter, dtype_of, shape_of
from ....dialects.relay.operator import OperatorOp, is_operator
from ....dialects.relay.operators.conv.convolution import spatial_padding
from ....dialects.relay.operators.winograd.winograd_halves import OUTPUT, PRODUCTS
from ....support.trace import tracer
from ....support.walk import walk_ops
from ..common.rewriting import replace
from ..functional.infer_type import ensure_types

TILES = (4, 2)
TAPS = 3
LANES = 16
"""Channels are worked on so many at a time."""
PER_BYTE = 3.5
"""Operations in the time in which a byte of weights comes from memory, on one core."""
TRANSFORM = {4: 1000.0, 2: 700.0}
"""Operations in the time that a tile takes to be transformed, there or back, for each channel; by the tile's side."""
GAIN = 0.85
"""Part of the direct convolution's time that is worth the rounding.

Measured on Zen 4 with 32 to 512 channels, images of 7 to 112 and one or two threads, these numbers pick what is quickest, except for
64 and fewer channels on 7 × 7 (the direct one, 20 µs slower at most) and 512 on 7 × 7 (tiles of 2: 6 % slower on one thread when
the weights come from memory, a quarter quicker on two, which share its bandwidth).
"""


@dataclass(frozen=True)
class Conv2DToWinograd(ModulePass):
    """Multiply by Winograd's algorithm where a cost model of shapes says that it pays.

    The convolutions are float32, in NCHW and OIHW, 3×3, of stride, dilation and groups 1, with a constant weight.
    """

    name = "conv2d-to-winograd"
    tells: ClassVar[bool] = True

    tile_size: int = 0
    """The side of tiles, 2 to 8, without asking for costs; 0: 4, 2 or the direct convolution, by cost."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        trace = tracer(self.name)
        for conv in [inner for inner in walk_ops(op) if is_operator(inner, "nn.conv2d")]:
            assert isinstance(conv, OperatorOp)
            sizes = _sizes(conv)
            if sizes is None:
                continue
            tile = self.tile_size or best_tile(*sizes)
            if not tile:
                continue
            if trace is not None:
                trace(conv, f"nn.conv2d of {sizes[1]} to {sizes[2]} channels: tiles of {tile}x{tile}")
            _replace(conv, tile, sizes[0][1:])


def best_tile(places: tuple[int, int, int], channels: int, filters: int) -> int:
    """Returns the tile size with the least time for (batch, height, width) results.

    0 if the direct convolution wins.
    """
    batch, height, width = places
    inner, outer = (-(-c // LANES) * LANES for c in (channels, filters))

    def cost(tile: int) -> float:
        tiles, points = batch * -(-height // tile) * -(-width // tile), (tile + TAPS - 1) ** 2
        products = 2 * points * tiles * channels * outer
        return products + PER_BYTE * 4 * points * channels * filters + TRANSFORM[tile] * tiles * (inner + outer)

    best = min(TILES, key=cost)
    direct = (
        2 * TAPS * TAPS * batch * height * width * channels * outer + PER_BYTE * 4 * TAPS * TAPS * channels * filters
    )
    return best if cost(best) < GAIN * direct else 0


def _sizes(conv: OperatorOp) -> tuple[tuple[int, int, int], int, int] | None:
    """(batch, height, width) of the result, channels, filters; None for a convolution that stays as it is."""
    attrs = conv.attrs()
    weight, result = shape_of(conv.args[1]), shape_of(conv.result)
    if weight is None or result is None or not isinstance(conv.args[1].owner, ir.ConstantOp):
        return None
    plain = attrs.data_layout == "NCHW" and attrs.kernel_layout == "OIHW" and attrs.out_layout in ("", "NCHW")
    ones = all(v == 1 for v in (*attrs.strides, *attrs.dilation, attrs.groups))
    floats = all(isinstance(dtype_of(v), Float32Type) for v in (*conv.args, conv.result))
    if not (plain and ones and floats) or weight[2:] != (TAPS, TAPS) or 0 in result:
        return None
    return (result[0], result[2], result[3]), weight[1], weight[0]


def _replace(conv: OperatorOp, tile: int, places: tuple[int, ...]) -> None:
    make = Emitter(conv, [conv])
    padding = conv.attrs().padding
    before, after = spatial_padding(padding, 2) or ((0, 0), (0, 0))
    x, weight = conv.args
    products = make.call(PRODUCTS, x, weight, tile_size=tile, padding=(*before, *after))
    replace(conv, make.call(OUTPUT, products, tile_size=tile, output_size=places))
