"""The loops of a block that its vectors run over: the innermost contiguous or repeated axes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.arith import Analyzer, Expr
from ...dialects.arith.expr import free_vars
from ..tir.buffers.strides import extents_of, memory_extents
from .block_shape import Shape


def contiguous_suffix(shape: Shape) -> int:
    """Returns how many of the innermost spatial axes may be fused and vectorized together; 0: none.

    Over n fused axes every access must either not use them, or index the last n dimensions of its buffer by them, each
    of full extent but the first.
    """
    axes = shape.spatial
    analyzer = Analyzer()
    best = 0
    for count in range(1, len(axes) + 1):
        chosen = axes[-count:]
        if all(_fits(buffer, indices, chosen, shape, analyzer) for buffer, indices in _accesses(shape, analyzer)):
            best = count
        elif count > 1:
            break
    return best


def contiguous_reduction(shape: Shape) -> int:
    """Returns how many of the innermost reduction axes run over adjacent elements of all reads; 0: none.

    What does not use them at all may be anywhere. They may be fused, and their elements taken in vectors.
    """
    axes = shape.reduction
    analyzer = Analyzer()
    outputs = {s.buffer for s in shape.stores}
    best = 0
    for count in range(1, len(axes) + 1):
        chosen = axes[-count:]
        loads = [load for load in shape.loads if load.buffer not in outputs]
        if all(_fits(load.buffer, load.indices, chosen, shape, analyzer) for load in loads):
            best = count
        elif count > 1:
            break
    return best


def _accesses(shape: Shape, analyzer: Analyzer) -> list[tuple[SSAValue, tuple[Expr, ...]]]:
    loads = [(load.buffer, load.indices) for load in shape.loads]
    stores = [(s.buffer, tuple(analyzer.expr(i) for i in s.indices)) for s in shape.stores]
    return [*loads, *stores]


def _fits(
    buffer: SSAValue, indices: tuple[Expr, ...], chosen: list[SSAValue], shape: Shape, analyzer: Analyzer
) -> bool:
    atoms = [analyzer.expr(a) for a in chosen]
    used = [any(atom.atom in free_vars(i) for atom in atoms) for i in indices]
    if not any(used):
        return True
    count = len(chosen)
    if len(indices) < count or any(used[:-count]):
        return False
    if count == 1:
        # The last index may also be shifted: A[…, j + k].
        return indices[-1].coefficient(atoms[0].terms[0][0]) == 1 and not _nested(indices[-1], atoms[0])
    if list(indices[-count:]) != atoms:
        return False
    extents = memory_extents(buffer)
    if extents is None:
        return False
    return all(shape.extent(a) == e for a, e in zip(chosen[1:], extents[len(extents) - count + 1 :], strict=True))


def column_block(shape: Shape) -> int | None:
    """Returns the length of the rows that a block reads along its last axis: 8 of `A[…, j // 8, j % 8]`.

    None where no buffer of such rows is read, or several of different ones.
    """
    if not shape.spatial:
        return None
    analyzer = Analyzer()
    axis = analyzer.expr(shape.spatial[-1])
    found: set[int] = set()
    for load in shape.loads:
        if len(load.indices) < 2:
            continue
        *_, row, place = load.indices
        length = extents_of(analyzer, load.buffer)[-1].value
        if length is not None and length > 1 and place == axis % length and row == axis // length:
            found.add(length)
    return found.pop() if len(found) == 1 else None


def _nested(e: Expr, axis: Expr) -> bool:
    """Returns whether the axis also occurs inside of a term that is not linear."""
    atom = axis.terms[0][0]
    rest = Expr(tuple(t for t in e.terms if t[0] is not atom), e.const)
    return atom in free_vars(rest)
