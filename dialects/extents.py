"""Limits the sizes of tensors and buffers: below 2^63 bytes, runtime dimensions up to 2^31 - 1."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Attribute

MOST_BYTES = (1 << 63) - 1
MOST_EXTENT = (1 << 31) - 1
"""Kernels count runtime extents in int32."""


def why_too_large(extents: Iterable[int], element: Attribute) -> str | None:
    """Returns why no memory holds elements of these extents, None where one may.

    (4000000000, 4000000000), float32 → "takes 64000000000000000000 bytes, more than 9223372036854775807"
    """
    from xdsl.dialects.builtin import FixedBitwidthType, IntegerType, VectorType

    extents = tuple(extents)
    if (negative := min(extents, default=0)) < 0:
        return f"has the negative size {negative}"
    lanes = 1
    if isinstance(element, VectorType):
        lanes, element = prod(element.get_shape()), element.element_type
    bits = 8
    if isinstance(element, IntegerType):
        bits = max(8, element.width.data)
    elif isinstance(element, FixedBitwidthType):
        bits = element.bitwidth
    total = prod(extents) * lanes * bits // 8
    return f"takes {total} bytes, more than {MOST_BYTES}" if total > MOST_BYTES else None
