"""set_scope: sets the memory of a buffer."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ....dialects import tir
from ....support.edit import erase_op
from ..analysis.structure import read_regions, write_regions
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block


def written_buffer(block: tir.BlockOp, index: int | str, name: str) -> SSAValue:
    """Returns the buffer that a block writes as number `index` or by that name; raises without one."""
    regions = write_regions(block)
    return _pick(block, [r.buffer for r in regions], index, name, "writes")


def read_buffer(block: tir.BlockOp, index: int | str, name: str) -> SSAValue:
    """Returns the buffer that a block reads as number `index` or by that name; raises without one."""
    return _pick(block, [r.buffer for r in read_regions(block)], index, name, "reads")


def chosen_buffer(block: tir.BlockOp, buffer: str | tuple[str, int], name: str) -> SSAValue:
    """Returns the buffer of that name that a block accesses, or that of ("read", k) or ("write", k)."""
    if isinstance(buffer, str):
        names = [tir.buffer_name(region.buffer) for region in write_regions(block)]
        choose = written_buffer if buffer in names else read_buffer
        return choose(block, buffer, name)
    kind, index = buffer
    if kind not in ("read", "write"):
        raise refuse(block, f"{name}: a buffer is chosen as ('read', k) or ('write', k), not ('{kind}', …)")
    return (read_buffer if kind == "read" else written_buffer)(block, index, name)


def _pick(block: tir.BlockOp, buffers: list[SSAValue], index: int | str, name: str, verb: str) -> SSAValue:
    called = block.block_name.data
    known = ", ".join(f"{k}: '{tir.buffer_name(b)}'" for k, b in enumerate(buffers)) or "nothing"
    if isinstance(index, str):
        for buffer in buffers:
            if tir.buffer_name(buffer) == index:
                return buffer
        raise refuse(block, f"{name}: block '{called}' {verb} no buffer '{index}'", f"it {verb} {known}")
    if not 0 <= index < len(buffers):
        raise refuse(block, f"{name}: block '{called}' {verb} no buffer number {index}", f"it {verb} {known}")
    return buffers[index]


SCOPES = (
    "global",
    "shared",
    "local",
    "warp",
    "wmma.matrix_a",
    "wmma.matrix_b",
    "wmma.accumulator",
    "texture",
    "m16n8k8.matrixA",
    "m16n8k8.matrixB",
    "m16n8k8.matrixC",
    "metal.simdgroup",
    "amx.tmm",
)


def require_scope(where: tir.BlockOp, scope: str, name: str) -> None:
    """Raises for an unknown storage scope; `global.x` and the like are memories that a target adds."""
    known = scope in SCOPES or scope.partition(".")[0] in ("global", "shared", "local", "texture")
    if not known:
        raise refuse(where, f"{name}: there is no storage scope '{scope}'", f"there are {', '.join(SCOPES)}")


def retype(buffer: SSAValue, type_: tir.BufferType) -> SSAValue:
    """Returns the allocation of `buffer` with another type; all uses go to it."""
    alloc = buffer.owner
    assert isinstance(alloc, tir.AllocBufferOp) and alloc.parent is not None
    new = tir.AllocBufferOp.create(
        operands=list(alloc.operands), properties=dict(alloc.properties), result_types=[type_]
    )
    new.location = alloc.location
    alloc.parent.insert_op_before(new, alloc)
    new.result.name_hint = buffer.name_hint
    buffer.replace_all_uses_with(new.result)
    erase_op(alloc)
    return new.result


@primitive
def set_scope(state: State, block: tir.BlockOp, buffer_index: int | str, storage_scope: str) -> None:
    """Changes the storage scope of a buffer that a block writes and its function allocates.

    B = T.alloc_buffer((8, 8))   →   B = T.alloc_buffer((8, 8), scope="local")
    """
    block = require_block(block, "set_scope")
    buffer = written_buffer(block, buffer_index, "set_scope")
    if not isinstance(buffer.owner, tir.AllocBufferOp):
        raise refuse(
            buffer,
            f"set_scope: buffer '{tir.buffer_name(buffer)}' is not an allocation of this function, so its scope is its caller's",
            "cache_write it first",
        )
    require_scope(block, storage_scope, "set_scope")
    old = buffer.type
    assert isinstance(old, tir.BufferType)
    if old.scope.data != storage_scope:
        new = retype(buffer, tir.BufferType(old.shape, old.dtype, StringAttr(storage_scope)))
        rescope_matches(new, storage_scope)


def rescope_matches(buffer: SSAValue, scope: str) -> None:
    """Sets the scope of buffers that are matched to regions of a buffer to its scope."""
    for use in list(buffer.uses):
        if not isinstance(use.operation, tir.BufferRegionOp):
            continue
        for outer in list(use.operation.result.uses):
            match = outer.operation
            if isinstance(match, tir.MatchBufferOp):
                old = match.result.type
                new = Rewriter.replace_value_with_new_type(
                    match.result, tir.BufferType(old.shape, old.dtype, StringAttr(scope))
                )
                rescope_matches(new, scope)
