"""A parameter that is a handle, and only matched to a simple buffer, becomes the buffer itself."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, NoneType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.tir.buffer import BufferGetOp, MatchBufferOp
from ...dialects.tir.stmt import PrimFuncOp
from ...dialects.tir.types import HandleType
from ...support.edit import erase_op
from .reader import hint


def inline_simple_matches(op: PrimFuncOp) -> None:
    """A handle that is only matched to a simple buffer becomes the buffer itself, as TVM prints it."""
    names = list(op.param_names.data)
    for arg in list(op.body.block.args):
        if not isinstance(arg.type, HandleType) or not isinstance(arg.type.pointee, NoneType):
            continue
        use = arg.get_unique_use()
        match = use.operation if use is not None else None
        if not isinstance(match, MatchBufferOp) or match.parent_block() is not op.body.block:
            continue
        type_ = match.result.type
        plain = (
            match.source is arg
            and match.data is None
            and not _shares_data(match.result)
            and type_.static_shape is not None
            and not match.stride_dims.data
            and match.elem_offset is None
            and type_.scope.data == "global"
            and not (match.data_alignment or match.offset_factor or match.buffer_type or match.axis_separators)
        )
        if not plain:
            continue
        index = arg.index
        name, location = match.var_name, match.location
        new = Rewriter.replace_value_with_new_type(arg, type_)
        assert isinstance(new, BlockArgument)
        match.result.replace_all_uses_with(new)
        erase_op(match)
        new.name_hint = hint(name.data)
        new.location = location
        names[index] = name
    op.properties["param_names"] = ArrayAttr(names)


def _shares_data(buffer: SSAValue) -> bool:
    """Returns whether another parameter is matched to the same memory."""
    return any(
        isinstance(use.operation, BufferGetOp)
        and any(isinstance(inner.operation, MatchBufferOp) for inner in use.operation.result.uses)
        for use in buffer.uses
    )
