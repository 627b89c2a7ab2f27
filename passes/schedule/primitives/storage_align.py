"""storage_align: sets a stride of a buffer, so that rows begin in different banks or cache lines."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr
from xdsl.ir import Attribute

from ....dialects import tir
from ....dialects.tir.types import I32
from ....support.text import counted
from ..analysis.structure import write_regions
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block, require_countable
from .set_scope import written_buffer

BUFFER_DIM_ALIGN = "buffer_dim_align"
"""TVM's annotation: a list of [write region, dimension, factor, offset]."""


@primitive
def storage_align(
    state: State, block: tir.BlockOp, buffer_index: int | str, axis: int, factor: int, offset: int
) -> None:
    """Requests a stride of k * factor + offset, k as small as possible, for dimension `axis` of a buffer.

    with T.block("B"):          with T.block("B"):
        …                   →       T.block_attr({"buffer_dim_align": [[0, 0, 128, 127]]})
                                    …

    The buffer must be one that the function allocates; its layout follows when allocations are compacted. A later request for
    the same dimension replaces the first.
    """
    block = require_block(block, "storage_align")
    buffer = written_buffer(block, buffer_index, "storage_align")
    name, type_ = tir.buffer_name(buffer), buffer.type
    assert isinstance(type_, tir.BufferType)
    if factor <= 0:
        raise refuse(
            block,
            f"storage_align: factor {factor} for dimension {axis} of buffer '{name}' is not a positive number",
            "the stride is made a multiple of the factor, plus the offset",
        )
    if not -type_.rank <= axis < type_.rank:
        raise refuse(
            buffer,
            f"storage_align: buffer '{name}' has no dimension {axis}",
            f"it has {counted(type_.rank, 'dimension')}, 0 to {type_.rank - 1}",
        )
    if not isinstance(buffer.owner, tir.AllocBufferOp):
        raise refuse(
            buffer,
            f"storage_align: buffer '{name}' is not an allocation of this function, so its strides are its caller's",
            "cache_write it first",
        )
    for what, number in (("the factor", factor), ("the offset", abs(offset))):
        require_countable(block, "storage_align", what, number, I32)
    place = [region.buffer for region in write_regions(block)].index(buffer)
    asked = IntegerAttr(place, I32), IntegerAttr(axis % type_.rank, I32)
    known = block.annotations.data.get(BUFFER_DIM_ALIGN)
    kept: list[Attribute] = []
    if isinstance(known, ArrayAttr):
        kept = [item for item in known.data if not (isinstance(item, ArrayAttr) and item.data[:2] == asked)]
    added = ArrayAttr[Attribute]([*asked, IntegerAttr(factor, I32), IntegerAttr(offset, I32)])
    annotations = {**block.annotations.data, BUFFER_DIM_ALIGN: ArrayAttr([*kept, added])}
    block.properties["annotations"] = DictionaryAttr(dict(sorted(annotations.items())))
