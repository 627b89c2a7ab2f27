"""The pass `allocate-in-output`: a temporary that becomes an output element by element is that output.

    for i in T.parallel(8):                                  for i in T.parallel(8):
        E = T.alloc_buffer((8, 1000))
        for j in range(1000): E[i, j] = T.exp(A[i, j])           for j in range(1000): B[i, j] = T.exp(A[i, j])
        ... S[i] = S[i] + E[i, j]                                ... S[i] = S[i] + B[i, j]
        for j in range(1000): B[i, j] = E[i, j] / S[i]           for j in range(1000): B[i, j] = B[i, j] / S[i]

(each statement a block). The rows of a softmax then need no memory of their own, and the output's lines come into the cache while the
exponentials are computed, rather than after. That is what `storage-rewrite` does for two allocations; an output lives longer.

It is done where one block computes the output, each element from the same element of the temporary; where every other block that
accesses the temporary runs before that block; where both have one type; and where nothing else reads or writes
the output. All of that is read off the axes of blocks and their bindings, so this pass runs before `convert-blocks-to-opaque`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import free_vars, substitute
from ....dialects.arith.iter_map import IterMapLevel
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.operators import as_const
from ....dialects.tir.stmt import RegionsOp
from ....support.edit import erase_op
from ....support.walk import enclosing
from ..rewriting import PrimFuncPass, ops_of

NO_ALIAS = "tir.noalias"
"""Attribute of a function no two of whose buffers share memory."""


def output_for(alloc: tir.AllocBufferOp) -> SSAValue | None:
    """Returns the output whose memory a temporary may use, None where there is none."""
    home, accesses = alloc.parent, _accesses(alloc.result)
    if home is None or not accesses or alloc.stride_dims.data or alloc.result.type.static_shape is None:
        return None
    users: dict[tir.BlockOp, list[AccessOp]] = {}
    for access in accesses:
        block = access.parent_op()
        if not isinstance(block, tir.BlockOp):
            return None
        users.setdefault(block, []).append(access)
    last = next(
        (
            block
            for block, own in users.items()
            if all(isinstance(a, tir.LoadOp) for a in own) and _writes(block, alloc)
        ),
        None,
    )
    if last is None:
        return None
    store = _writes(last, alloc)
    if store is None or any(list(access.indices) != list(store.indices) for access in users.pop(last)):
        return None
    return store.buffer if _comes_last(last, users, store, home) else None


def _accesses(buffer: SSAValue) -> list[AccessOp] | None:
    """Returns the loads and stores of a buffer; None if it is used in another way."""
    found: list[AccessOp] = []
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, tir.LoadOp | tir.StoreOp) and op.predicate is None:
            found.append(op)
        elif not isinstance(op, tir.BufferRegionOp) or any(
            not isinstance(u.operation, RegionsOp) for u in op.result.uses
        ):
            return None
    return found


def _writes(block: tir.BlockOp, alloc: tir.AllocBufferOp) -> tir.StoreOp | None:
    """Returns the store of a block that computes a whole output of the temporary's type, once an element.

    None for other blocks.
    """
    stores = ops_of(block, tir.StoreOp)
    if len(stores) != 1 or stores[0].parent is not block.body.block or stores[0].buffer.type != alloc.result.type:
        return None
    (store,) = stores
    buffer = store.buffer
    function = buffer.owner.parent_op() if isinstance(buffer, BlockArgument) else None
    if (
        not isinstance(function, tir.PrimFuncOp)
        or not _is_true(function.attrs.data.get(NO_ALIAS))
        or _accesses(buffer) != [store]
    ):
        return None
    shape = alloc.result.type.static_shape
    axes = list(block.iter_vars)
    if shape is None or len(set(store.indices)) != len(shape) or set(store.indices) != set(axes):
        return None
    for axis, kind, low, extent in zip(axes, block.iter_types.data, block.dom_mins, block.dom_extents, strict=True):
        first, count = as_const(low), as_const(extent)
        if kind.data != "S" or first is None or count is None:
            return None
        if first.value != 0 or count.value != shape[list(store.indices).index(axis)]:
            return None
    return store


def _is_true(attribute: Attribute | None) -> bool:
    return isinstance(attribute, IntegerAttr) and bool(attribute.value.data)


def _comes_last(last: tir.BlockOp, users: dict[tir.BlockOp, list[AccessOp]], store: tir.StoreOp, home: Block) -> bool:
    """Returns whether each element is stored to the output after all accesses of it by other blocks."""
    analyzer = Analyzer()
    around = list(enclosing(last))
    if any(not isinstance(op, tir.ForOp | tir.BlockOp | tir.PrimFuncOp | ModuleOp) for op in around):
        return False
    loops = [op for op in around if isinstance(op, tir.ForOp)]
    for loop in reversed(loops):
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    bindings = dict(zip(last.iter_vars, last.bindings, strict=True))
    domain: dict[SSAValue, tuple[SSAValue, SSAValue]] = {loop.loop_var: (loop.min, loop.extent) for loop in loops}
    indices = [bindings[index] for index in store.indices]
    predicate = 1 if last.predicate is None else last.predicate
    found = analyzer.detect_iter_map(indices, domain, predicate, IterMapLevel.BIJECTIVE)  # pyright: ignore[reportArgumentType]
    if not found:
        return False
    final = home.find_ancestor_op_in_block(last)
    if final is None or any(
        (op := home.find_ancestor_op_in_block(user)) is None or not op.is_before_in_block(final) for user in users
    ):
        return False
    if _overlaps_itself(
        last, indices[-1:], [loop for loop in loops if final is loop or final in enclosing(loop)], analyzer
    ):
        return False
    # Along each dimension the output is filled while the temporary lives, or both stay at one place.
    inner = {analyzer.expr(loop.loop_var).atom for loop in loops if final is loop or final in enclosing(loop)}
    for dim, binding in enumerate(indices):
        place = analyzer.simplify(binding)
        variables = {atom for atom in free_vars(place) if atom not in inner}
        if not variables:
            continue
        if len(variables) != len(set(free_vars(place))):
            return False
        for user, accesses in users.items():
            if any(_in_terms_of_loops(access.indices[dim], user, analyzer) != place for access in accesses):
                return False
    return True


def _overlaps_itself(last: tir.BlockOp, innermost: list[SSAValue], loops: list[tir.ForOp], analyzer: Analyzer) -> bool:
    """Returns whether each row ends with a masked vector: its store seems to overlap the next row.

    The next row would have to wait for that store.
    """
    lanes = [as_const(loop.extent) for loop in loops if loop.kind.data == "vectorized"]
    whole = all(count is not None and int(count.value).bit_count() == 1 for count in lanes)
    if whole and last.predicate is None:
        return False
    used = {atom for index in innermost for atom in free_vars(analyzer.expr(index))}
    counts = [as_const(loop.extent) for loop in loops if analyzer.expr(loop.loop_var).atom not in used]
    return any(count is None or count.value != 1 for count in counts)


def _in_terms_of_loops(index: SSAValue, block: tir.BlockOp, analyzer: Analyzer) -> Expr:
    values = {
        atom: analyzer.expr(b)
        for v, b in zip(block.iter_vars, block.bindings, strict=True)
        if (atom := analyzer.expr(v).atom) is not None
    }
    return analyzer.simplify(substitute(analyzer.expr(index), values))


@dataclass(frozen=True)
class AllocateInOutput(PrimFuncPass):
    """Puts temporary buffers into the outputs that their elements become."""

    name = "allocate-in-output"

    def apply_to(self, function: tir.PrimFuncOp) -> None:
        """Looks at every allocation of the module."""
        for alloc in ops_of(function, tir.AllocBufferOp):
            output = output_for(alloc)
            if output is not None:
                alloc.result.replace_all_uses_with(output)
                erase_op(alloc)
