"""The pass `compact-buffer-allocation`: an allocation keeps only the box accessed in one lifetime.

    for i in range(64):                           for i in range(64):
        B = T.alloc_buffer((64, 8))                   B = T.alloc_buffer((1, 8))
        … B[i, j] …                       →           … B[0, j] …

The box is the union of what all accesses may reach while the loops between the allocation and the access run. Where an
access is not understood (an index that is not a sum of loop variables and axes, the buffer's address taken) the dimension, or the
buffer, stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr
from ....dialects.arith.expr import free_vars
from ....dialects.arith.int_set import relax
from ....dialects.interned import integer
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.stmt import RegionsOp
from ....dialects.tir.types import element_of, lanes_of
from ....support.diagnostics import error_at
from ....support.edit import PlacedBuilder, builder_before, erase_op, insert_op_before, replace_all_uses_with
from ....support.walk import enclosing
from ..rewriting import erase_if_dead, ops_of, set_indices, set_operands


@dataclass
class Touch:
    """One access: the op, its index (or start) in each dimension, how far it extends there."""

    op: Operation
    starts: Sequence[SSAValue]
    extents: Sequence[int] | None
    counts: bool
    """False for regions in reads and writes, which follow what the accesses say."""


@dataclass(frozen=True)
class IndexPlace:
    """An index: where it begins, and of a vector of them how far apart its lanes are."""

    start: Expr
    stride: int = 0
    lanes: int = 0
    """0 for an index that is not a vector."""

    @property
    def reach(self) -> tuple[int, int]:
        """Returns how far the lanes extend before and after the start."""
        last = self.stride * max(self.lanes - 1, 0)
        return min(last, 0), max(last, 0)

    def rebuilt(self, start: Expr, analyzer: Analyzer, builder: PlacedBuilder, type_: Attribute) -> SSAValue:
        """Rebuilds the index with another start."""
        if not self.lanes:
            return analyzer.to_ssa(start, builder, type_)
        base = analyzer.to_ssa(start, builder, element_of(type_))
        if self.stride == 0:
            return builder.insert(tir.BroadcastOp(base, self.lanes)).result
        step = builder.insert(tir.ConstOp.int(self.stride, element_of(type_))).result
        return builder.insert(tir.RampOp(base, step, self.lanes)).result


def _place(value: SSAValue, analyzer: Analyzer) -> IndexPlace | None:
    """Returns the place of an index; None for a vector that is not a sum of ramps and broadcasts."""
    if isinstance(value.type, IntegerType):
        return IndexPlace(analyzer.simplify(value))
    match value.owner:
        case tir.BroadcastOp(value=base):
            return IndexPlace(analyzer.simplify(base), 0, lanes_of(value.type))
        case tir.RampOp(base=base, stride=step):
            stride = analyzer.simplify(step).value
            return None if stride is None else IndexPlace(analyzer.simplify(base), stride, lanes_of(value.type))
        case tir.AddOp(lhs=lhs, rhs=rhs):
            a, b = _place(lhs, analyzer), _place(rhs, analyzer)
            if a is None or b is None:
                return None
            return IndexPlace(analyzer.simplify(a.start + b.start), a.stride + b.stride, a.lanes)
        case _:
            return None


def _touches(alloc: tir.AllocBufferOp) -> list[Touch] | None:
    """Returns all accesses, None when the buffer is used in another way."""
    found: list[Touch] = []
    for use in alloc.result.uses:
        op = use.operation
        if isinstance(op, AccessOp):
            found.append(Touch(op, op.indices, None, True))
        elif isinstance(op, tir.BufferRegionOp):
            if not all(isinstance(u.operation, RegionsOp) for u in op.result.uses):
                return None
            found.append(Touch(op, op.mins, None, False))
        else:
            return None
    return found


def _bind_loops(op: Operation, until: Operation, analyzer: Analyzer, known: set[Operation]) -> set[Atom]:
    """Returns the loop variables and axes between `op` and `until`.

    Binds those of every loop and block around `op` in the analyzer, each once (`known`).
    """
    inner: set[Atom] = set()
    inside = True
    chain: list[tir.ForOp | tir.BlockOp] = []
    for parent in enclosing(op):
        inside = inside and parent is not until
        if type(parent) is tir.ForOp or type(parent) is tir.BlockOp:
            if inside:
                inner.update(atom for arg in parent.body.block.args if (atom := analyzer.expr(arg).atom) is not None)
            if parent not in known:
                chain.append(parent)
    for each in reversed(chain):
        known.add(each)
        if isinstance(each, tir.ForOp):
            analyzer.bind(each.loop_var, each.min, each.extent)
            continue
        for variable, low, extent in zip(each.iter_vars, each.dom_mins, each.dom_extents, strict=True):
            analyzer.bind(variable, low, extent)
    return inner


def _stays(e: Expr, home: Block, around: set[Block]) -> bool:
    """Returns whether an expression has only values known before `home` runs, or its axes: no loads."""
    for atom in free_vars(e):
        value = atom.payload
        if isinstance(value, OpResult) and not isinstance(value.op, tir.VarOp):
            if value.op.parent is home or value.op.parent not in around:
                return False
        elif isinstance(value, BlockArgument) and value.block not in around:
            return False
    return True


def compact(alloc: tir.AllocBufferOp) -> None:
    """Shrinks one buffer."""
    # None for extents that are not numbers.
    shape = [dim.value.data if isinstance(dim, IntegerAttr) else None for dim in alloc.result.type.shape.data]
    touches = _touches(alloc)
    home, alloc_block = alloc.parent_op(), alloc.parent
    if not shape or alloc.stride_dims.data or not touches or home is None or alloc_block is None:
        return
    if not any(t.counts for t in touches):
        return
    analyzer = Analyzer()
    bound_loops: set[Operation] = set()
    inner_of: dict[Block | None, set[Atom]] = {}
    around = {alloc_block, *(each.parent for each in enclosing(alloc) if each.parent is not None)}
    bases: list[Expr | None] = [None] * len(shape)
    least, most = [0] * len(shape), [0] * len(shape)
    whole = [False] * len(shape)
    indices: list[list[IndexPlace]] = []
    for touch in touches:
        inner = inner_of.get(touch.op.parent)
        if inner is None:
            inner = inner_of[touch.op.parent] = _bind_loops(touch.op, home, analyzer, bound_loops)
        row: list[IndexPlace] = []
        for index in touch.starts:
            place = _place(index, analyzer)
            if place is None:
                return
            row.append(place)
        indices.append(row)
        if not touch.counts:
            continue
        for dim, place in enumerate(row):
            ends = None if whole[dim] else relax(place.start, inner, analyzer)
            if ends is None or not _stays(ends[0], alloc_block, around):
                whole[dim] = True
                continue
            base = bases[dim]
            if base is None:
                base = bases[dim] = ends[0]
            low, high = (analyzer.simplify(end - base).value for end in ends)
            if low is None or high is None:
                whole[dim] = True
            else:
                before, behind = place.reach
                least[dim], most[dim] = min(least[dim], low + before), max(most[dim], high + behind)
    starts: list[Expr] = []
    extents: list[int] = []
    for dim, extent in enumerate(shape):
        base, size = bases[dim], most[dim] - least[dim] + 1
        if extent is None and (whole[dim] or base is None or alloc.elem_offset is not None or alloc.data is not None):
            return
        if extent is not None and (whole[dim] or base is None or size > extent):
            starts.append(Expr((), 0))
            extents.append(extent)
        else:
            assert base is not None
            starts.append(base + least[dim])
            extents.append(size)
    # A buffer of the right size may still be indexed from where its box begins.
    if extents == list(shape) and all(start.value == 0 for start in starts):
        return
    _resize(alloc, extents)
    for touch, row in zip(touches, indices, strict=True):
        _rebase(touch, row, starts, analyzer)


def _resize(alloc: tir.AllocBufferOp, extents: list[int]) -> None:
    """Replaces the allocation by one of the new shape."""
    old = alloc.result.type
    if old.static_shape is None:
        # Its extents are numbers now, so that it has no operands.
        kept = {name: value for name, value in alloc.properties.items() if name in ("data_alignment", "offset_factor")}
        type_ = tir.BufferType.get(extents, old.dtype, old.scope.data)
        new = tir.AllocBufferOp(alloc.var_name.data, type_, properties=kept)
    else:
        dims = [integer(e, d.type) for e, d in zip(extents, old.shape.data, strict=True) if isinstance(d, IntegerAttr)]
        type_ = tir.BufferType(ArrayAttr(dims), old.dtype, old.scope)
        new = tir.AllocBufferOp.create(operands=list(alloc.operands), properties=alloc.properties, result_types=[type_])
    new.location = alloc.location
    insert_op_before(new, alloc)
    new.result.name_hint = alloc.result.name_hint
    replace_all_uses_with(alloc.result, new.result)
    erase_op(alloc)


def _rebase(touch: Touch, row: list[IndexPlace], starts: list[Expr], analyzer: Analyzer) -> None:
    """Rebases the indices of an access to the start of the box."""
    builder = builder_before(touch.op)
    moved: list[SSAValue] = []
    for value, place, start in zip(touch.starts, row, starts, strict=True):
        if start.value == 0:
            moved.append(value)
        else:
            moved.append(place.rebuilt(analyzer.simplify(place.start - start), analyzer, builder, value.type))
    before = list(touch.starts)
    if isinstance(touch.op, AccessOp):
        set_indices(touch.op, moved)
    elif isinstance(touch.op, tir.BufferRegionOp):
        set_operands(touch.op, [touch.op.buffer], moved, list(touch.op.extents))
    erase_if_dead(*before)


@dataclass(frozen=True)
class CompactBufferAllocation(ModulePass):
    """Shrinks every `T.alloc_buffer` to what is touched of it.

    `is_strict` exists for TVM's signature: allocations never grow.
    """

    name = "compact-buffer-allocation"
    is_strict: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Compacts every allocation of the module. Raises MirError unless `is_strict`."""
        if not self.is_strict:
            raise error_at(op, "compact-buffer-allocation does not grow allocations", "leave is_strict out")
        for alloc in ops_of(op, tir.AllocBufferOp):
            compact(alloc)
