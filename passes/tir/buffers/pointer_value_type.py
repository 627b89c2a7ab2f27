"""Declares memory that only whole vectors access as vectors, as TVM's `PointerValueTypeRewrite`.

A = T.allocate([64], "float32")           A = T.allocate([4], "float32x16")
A[T.Ramp(i * 16, 1, 16)] = …       →      A[i] = …
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.operators import Const, ExprBuilder, as_const
from ....dialects.tir.types import BufferType, HandleType, is_scalable, lanes_of, with_lanes_of
from ....support.edit import builder_before, erase_op, insert_ops_before, set_type
from ....support.walk import walk_ops
from ..rewriting import set_indices


@dataclass(eq=False)
class _Memory:
    """The memory of a pointer, and all ops that reach it."""

    root: tir.AllocateOp | tir.LetOp | tir.DeclBufferOp
    views: list[tir.DeclBufferOp] = field(default_factory=list[tir.DeclBufferOp])
    accesses: list[tir.LoadOp | tir.StoreOp] = field(default_factory=list["tir.LoadOp | tir.StoreOp"])


def rewrite_pointer_value_types(func: tir.PrimFuncOp) -> None:
    """Rewrites the allocations of a function, and the pointers that it binds to names."""
    analyzer = Analyzer()
    roots: list[tir.AllocateOp | tir.LetOp | tir.DeclBufferOp] = []
    for op in walk_ops(func):
        match op:
            case tir.ForOp() if is_index_type(op.loop_var.type):
                analyzer.bind(op.loop_var, op.min, op.extent)
            case tir.AllocateOp():
                roots.append(op)
            case tir.LetOp() if isinstance(op.result.type, HandleType):
                roots.append(op)
            case tir.DeclBufferOp() if op.source is None and not op.implicit.value.data:
                roots.append(op)
            case _:
                pass
    for root in roots:
        memory = _reach(root)
        lanes = 0 if memory is None else _common_lanes(memory, analyzer)
        if memory is not None and lanes > 1 and _all_divisible(memory, lanes):
            _rewrite(memory, lanes)


def _reach(root: tir.AllocateOp | tir.LetOp | tir.DeclBufferOp) -> _Memory | None:
    """Returns all accesses to the memory; None where a pointer to it goes elsewhere."""
    memory = _Memory(root)
    pending: list[SSAValue] = [root.result]
    if isinstance(root, tir.DeclBufferOp):
        memory.views.append(root)
    while pending:
        value = pending.pop()
        for use in value.uses:
            match use.operation:
                case tir.LoadOp() as op if not _is_address(op):
                    memory.accesses.append(op)
                case tir.StoreOp() as op if op.buffer is value:
                    memory.accesses.append(op)
                case tir.DeclBufferOp() as op:
                    memory.views.append(op)
                    pending.append(op.result)
                case tir.BufferGetOp() as op if op.field.data == "data":
                    pending.append(op.result)
                case _:
                    return None
    return memory


def _is_address(op: tir.LoadOp) -> bool:
    return any(
        isinstance(u.operation, tir.CallOp) and u.operation.intrinsic.data == "address_of" for u in op.result.uses
    )


def _common_lanes(memory: _Memory, analyzer: Analyzer) -> int:
    """Returns the lanes of every access, 0 when they differ or one may begin within a vector."""
    found: set[int] = set()
    dtypes = {view.result.type.dtype for view in memory.views}
    if len(dtypes) != 1 or lanes_of(next(iter(dtypes))) != 1:
        return 0
    for access in memory.accesses:
        ramp = access.indices[-1].owner if access.indices else None
        if not isinstance(ramp, tir.RampOp) or access.predicate is not None or is_scalable(ramp.result.type):
            return 0
        lanes, stride = lanes_of(ramp.result.type), as_const(ramp.stride)
        base = analyzer.modular_set(ramp.base)
        if stride is None or stride.value != 1 or base.coeff % lanes or base.base % lanes:
            return 0
        found.add(lanes)
    return found.pop() if len(found) == 1 else 0


def _all_divisible(memory: _Memory, lanes: int) -> bool:
    """Returns whether everything that is declared ends with a whole vector."""
    if isinstance(memory.root, tir.AllocateOp):
        extent = as_const(memory.root.extents[-1]) if memory.root.extents else None
        if extent is None or int(extent.value) % lanes or memory.root.dtype != memory.views[0].result.type.dtype:
            return False
    return all(
        (dims := view.result.type.shape.data)
        and isinstance(last := dims[-1], IntegerAttr)
        and last.value.data % lanes == 0
        and view.elem_offset is None
        and not view.stride_dims.data
        for view in memory.views
    )


def _rewrite(memory: _Memory, lanes: int) -> None:
    example = memory.accesses[0].indices[-1].type
    vector = with_lanes_of(memory.views[0].result.type.dtype, example)
    root = memory.root
    if isinstance(root, tir.AllocateOp):
        extent = as_const(root.extents[-1])
        assert extent is not None
        count = builder_before(root).insert(tir.ConstOp.int(int(extent.value) // lanes, root.extents[-1].type))
        root.operands[len(root.extents) - 1] = count.result
        root.dtype = vector
    for value in (root.result, *(get.results[0] for get in _gets(memory))):
        if isinstance(value.type, HandleType):
            _retype(value, HandleType(vector, value.type.scope))
    for view in memory.views:
        old = view.result.type
        last = old.shape.data[-1]
        assert isinstance(last, IntegerAttr)
        shape = [*old.shape.data[:-1], IntegerAttr(last.value.data // lanes, last.type)]
        _retype(view.result, BufferType.get(shape, vector, old.scope.data))  # pyright: ignore[reportArgumentType]
    for access in memory.accesses:
        ramp = access.indices[-1].owner
        assert isinstance(ramp, tir.RampOp)
        builder = ExprBuilder(access.location)
        index = builder.value(builder.binary(tir.DivOp, ramp.base, Const(lanes, ramp.base.type)))
        insert_ops_before(builder.ops, access)
        set_indices(access, [*access.indices[:-1], index])
        if not ramp.result.uses:
            erase_op(ramp)


def _gets(memory: _Memory) -> list[Operation]:
    """Returns the ops that take the pointer out of a view."""
    return [u.operation for view in memory.views for u in view.result.uses if isinstance(u.operation, tir.BufferGetOp)]


def _retype(value: SSAValue, type: Attribute) -> None:
    set_type(value, type)
