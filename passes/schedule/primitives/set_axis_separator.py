"""set_axis_separator: which dimensions of a buffer are flattened together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import BlockArgument, SSAValue

from ....dialects import tir
from ....dialects.tir.types import I32, HandleType
from ....support.text import counted
from ..analysis.structure import function_of
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block
from .set_scope import chosen_buffer


@primitive
def set_axis_separator(
    state: State, block: tir.BlockOp, buffer: str | tuple[str, int], axis_separators: Sequence[int] | None
) -> None:
    """Divides a buffer's dimensions into groups, each flattened to one dimension of memory.

    B = T.alloc_buffer((128, 128))   →   B = T.alloc_buffer((128, 128), axis_separators=[1])

    A separator is the first dimension of a group. `buffer` is the buffer's name, or ("read", k) or ("write", k). A parameter becomes
    a handle with a `T.match_buffer`.
    """
    block = require_block(block, "set_axis_separator")
    target = chosen_buffer(block, buffer, "set_axis_separator")
    type_ = target.type
    assert isinstance(type_, tir.BufferType)
    separators = list(axis_separators or ())
    for k, separator in enumerate(separators):
        if type(separator) is not int or not 0 <= separator <= type_.rank:
            raise refuse(
                block,
                f"set_axis_separator: {separator!r} separates no dimensions of '{tir.buffer_name(target)}'",
                f"it has {counted(type_.rank, 'dimension')}",
            )
        if k and separator < separators[k - 1]:
            raise refuse(block, f"set_axis_separator: the separators {separators} do not ascend")
    separate(function_of(block), target, separators)


def separate(function: tir.PrimFuncOp, buffer: SSAValue, separators: Sequence[int]) -> None:
    """Sets the separators of a buffer of the function, and of the buffers matched to regions of it."""
    if isinstance(buffer, BlockArgument):
        if not separators:
            return  # A parameter that is a buffer has none; a handle matched to the same would print as the buffer.
        buffer = _matched(function, buffer)
    pending = [buffer]
    while pending:
        value = pending.pop()
        owner = value.owner
        assert isinstance(owner, tir.BufferOp)
        if separators:
            owner.properties["axis_separators"] = ArrayAttr([IntegerAttr(s, I32) for s in separators])
        else:
            owner.properties.pop("axis_separators", None)
        for use in value.uses:
            if isinstance(use.operation, tir.BufferRegionOp):
                users = (outer.operation for outer in use.operation.result.uses)
                pending += [user.result for user in users if isinstance(user, tir.MatchBufferOp)]
    if not separators:
        from ....parser.tvmscript.inline_matches import inline_simple_matches

        # What `_matched` made is the parameter again: a handle matched to a plain buffer prints as that.
        inline_simple_matches(function)


def _matched(function: tir.PrimFuncOp, parameter: BlockArgument) -> SSAValue:
    """Returns a parameter that is a buffer, as a handle from which the buffer is matched."""
    body = function.body.block
    names = list(function.param_names.data)
    name = tir.buffer_name(parameter)
    handle = body.insert_arg(HandleType.get(), parameter.index)
    taken = {n.data for n in names}
    handle_name = f"{name}_handle"
    while handle_name in taken:
        handle_name += "_1"
    handle.name_hint = handle_name
    assert isinstance(parameter.type, tir.BufferType)
    match = tir.MatchBufferOp(name, parameter.type, source=handle)
    match.location = function.location
    first = body.first_op
    if first is None:
        body.add_op(match)
    else:
        body.insert_op_before(match, first)
    match.result.name_hint = parameter.name_hint
    names[handle.index] = type(names[0])(handle_name)
    function.properties["param_names"] = ArrayAttr(names)
    parameter.replace_all_uses_with(match.result)
    body.erase_arg(parameter)
    return match.result
