"""The pass `lower-transposed-loads`: transposes tiles read along one and written along another axis.

A loop says that it and the vectorized loop in it are such a tile by the annotation `transposed_tile`, which schedules make:

    for j in T.serial(16, annotations={"transposed_tile": 1}):
        for i in T.vectorized(16):
            B[j0 + j, i0 + i] = A[i0 + i, j0 + j]

The tile's elements of A are then read by whole vectors along j, transposed in registers (elements within 16 bytes, then blocks
of 16 bytes, for which every vector extension has shuffles), and the loops read the result:

    A_tile[0:16] = T.Shuffle(…); …
    for j in T.unroll(16):
        for i in T.vectorized(16):
            B[j0 + j, i0 + i] = A_tile[j * 16 + i]

The outer loop has as many iterations as a vector has lanes, a power of two up to 16; the inner one has as many, or another number up to 16.

Where the tile's loops have a condition, a tile that is not whole runs as it was written. Where only rows up to one are read, because
the rows after it are padding, that row is read instead of them, and not used:

    B[j0 + j, i0 + i] = T.Select(i0 + i < n, A_tile[j * 16 + i], T.float32(0))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.dialects.builtin import DictionaryAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind
from ....dialects.arith.expr import Atom, conjuncts, free_vars, logical_and, minimum, substitute
from ....dialects.tir.operators import as_const
from ....dialects.tir.types import I1, dtype_to_type, element_of
from ....support.edit import builder_before, erase_op, move_before, replace_all_uses_with
from ....support.walk import enclosing, walk_ops
from ..rewriting import PrimFuncPass, erase_dead, only_statement, ops_of, statements_of

TILE = "transposed_tile"
"""The annotation of the outer loop of a tile."""
SHUFFLED_BYTES = (1, 2, 4, 8)
"""Bytes of the elements that are transposed so."""
ELEMENT_BYTES = 4
"""Of the matrices that are transposed so while a product packs or stores them."""
WHOLE = (2, 4, 8, 16)
"""Lanes of the vectors that are shuffled."""
BLOCK_BYTES = 16
"""Within as many bytes, and of as many, shuffles are cheap."""


@dataclass(frozen=True)
class _Rows:
    """The rows that a load reads: its first element in the flat buffer, and the distance of the rows."""

    load: tir.LoadOp
    start: Expr
    distance: int
    last: Expr | None = None
    """The last row that may be read, counted from the first; None where all may."""


@dataclass(frozen=True)
class _Tile:
    """Two loops, the outer one over a vector's lanes, the inner one vectorized, and what they read across."""

    outer: tir.ForOp
    inner: tir.ForOp
    lanes: int
    """Turns of the outer loop: elements of a row that is read."""
    rows: int
    """Turns of the inner loop."""
    loads: list[_Rows]
    stores: list[tuple[tir.StoreOp, Expr, int]]
    """Stores of whole rows, likewise."""
    whole: Expr
    """When no element of the tile is left out."""


def _match(outer: tir.ForOp) -> _Tile | None:
    """Matches an annotated loop as a tile; None when it is something else."""
    inner = next((op for op in outer.body.block.ops if isinstance(op, tir.ForOp)), None)
    if inner is None or inner.kind.data != "vectorized" or only_statement(outer.body.block) is not inner:
        return None
    sizes = [as_const(loop.extent) for loop in (outer, inner)]
    lanes, rows = (None if size is None else int(size.value) for size in sizes)
    if lanes not in WHOLE or rows is None or not 2 <= rows <= max(WHOLE):
        return None
    if any(low is None or low.value != 0 for low in (as_const(outer.min), as_const(inner.min))):
        return None
    analyzer = Analyzer()
    for loop in reversed([op for op in enclosing(inner) if isinstance(op, tir.ForOp)]):
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    analyzer.bind(inner.loop_var, inner.min, inner.extent)
    j, i = (analyzer.expr(loop.loop_var).atom for loop in (outer, inner))
    assert j is not None and i is not None
    whole = _whole(inner, {j: lanes - 1, i: rows - 1}, analyzer)
    if whole is None:
        return None
    inside = set(walk_ops(outer))
    loads: list[_Rows] = []
    for op in ops_of(inner, tir.LoadOp):
        place = _linear(op, j, i, analyzer, inside)
        choice = op.parent_op()
        last = _last_row(op, choice, i, analyzer) if isinstance(choice, tir.IfThenElseOp) else None
        if isinstance(choice, tir.IfThenElseOp) and (last is None or {i, j} & set(free_vars(last))):
            return None
        if place is not None and place[1] == 1 and place[2] > 1 and _is_shuffled(op.result.type, lanes):
            loads.append(_Rows(op, place[0], place[2], last))
        elif last is not None:
            return None
    stores: list[tuple[tir.StoreOp, Expr, int]] = []
    for op in ops_of(inner, tir.StoreOp):
        place = _linear(op, j, i, analyzer, inside)
        if place is not None and place[2] == 1:
            stores.append((op, place[0], place[1]))
    return _Tile(outer, inner, lanes, rows, loads, stores, whole) if loads else None


def _whole(inner: tir.ForOp, last: dict[Atom, int], analyzer: Analyzer) -> Expr | None:
    """Returns when the loops' condition holds for all elements.

    It has bounds from above, which the last element meets last.
    """
    parts: list[Expr] = []
    statements = list(statements_of(inner.body.block))
    while len(statements) == 1 and isinstance(op := statements[0], tir.IfOp):
        if op.else_region.blocks:
            return None
        for part in conjuncts(analyzer.simplify(op.condition)):
            atom = part.atom
            if atom is None or atom.kind is not Kind.GE:
                return None
            bound = atom.operands[0]
            for variable in last:
                factor = bound.coefficient(variable)
                if factor > 0 or variable in free_vars(bound - _times(variable, factor)):
                    return None
            parts.append(substitute(part, {v: Expr((), n) for v, n in last.items()}))
        statements = list(statements_of(op.then_region.block))
    if any(not isinstance(op, tir.StoreOp) and not _is_choice(op) for op in statements):
        return None
    return logical_and(*parts)


def _is_choice(op: Operation) -> bool:
    """Returns whether the op chooses between two values that may both be computed in bounds of loads."""
    return isinstance(op, tir.IfThenElseOp) and all(
        isinstance(inner, tir.LoadOp) or inner.has_trait(Pure) for region in op.regions for inner in region.block.ops
    )


def _last_row(load: tir.LoadOp, choice: tir.IfThenElseOp, i: Atom, analyzer: Analyzer) -> Expr | None:
    """Returns the last row, counted along i, of a load whose condition is that rows are in the buffer.

    None for another condition.
    """
    type_ = load.buffer.type
    assert isinstance(type_, tir.BufferType)
    bound = analyzer.simplify(choice.condition).atom
    if bound is None or bound.kind is not Kind.GE or load.parent is not choice.then_region.block:
        return None
    along = [
        (index, extent)
        for index, extent in zip(map(analyzer.expr, load.indices), type_.static_shape or (), strict=False)
        if i in free_vars(index)
    ]
    if len(along) != 1:
        return None
    (index, extent), inside = along[0], bound.operands[0]
    final = analyzer.simplify(index + inside)
    if index.coefficient(i) != 1 or final.value is None or not 0 <= final.value < extent:
        return None
    return analyzer.simplify(final - index + _times(i, 1))


def _linear(
    op: tir.LoadOp | tir.StoreOp, j: Atom, i: Atom, analyzer: Analyzer, inside: set[Operation]
) -> tuple[Expr, int, int] | None:
    """Returns the start of an access in the flat buffer and its steps along both loops, if that is all."""
    type_, owner = op.buffer.type, op.buffer.owner
    assert isinstance(type_, tir.BufferType)
    shape = type_.static_shape
    strided = isinstance(owner, tir.BufferOp) and (owner.stride_dims.data or owner.elem_offset is not None)
    if shape is None or strided or op.predicate is not None:
        return None
    if isinstance(owner, Operation) and owner in inside:
        return None
    total = Expr((), 0)
    for extent, index in zip(shape, op.indices, strict=True):
        total = total.scaled(extent) + analyzer.expr(index)
    total = analyzer.simplify(total)
    steps = total.coefficient(j), total.coefficient(i)
    start = total - _times(j, steps[0]) - _times(i, steps[1])
    if {i, j} & set(free_vars(start)):
        return None
    if any(isinstance(v := a.payload, SSAValue) and v.owner in inside for a in free_vars(start)):
        return None
    return start, *steps


def _times(variable: Atom, factor: int) -> Expr:
    return Expr(((variable, factor),) if factor else (), 0)


def _in_memory(dtype: Attribute) -> Attribute:
    """Returns the type that elements are moved as: bools as the bytes that they are in memory."""
    return dtype_to_type("uint8") if dtype == I1 else dtype


def _bytes(dtype: Attribute) -> int:
    dtype = _in_memory(dtype)
    return dtype.width.data // 8 if isinstance(dtype, IntegerType) else getattr(dtype, "bitwidth", 0) // 8


def _is_shuffled(dtype: Attribute, lanes: int) -> bool:
    """Returns whether vectors of `lanes` such elements are transposed: of 16 bytes at least."""
    return _bytes(dtype) in SHUFFLED_BYTES and lanes * _bytes(dtype) >= BLOCK_BYTES


def transposed(builder: Builder, rows: Sequence[SSAValue], count: int, block: int) -> list[SSAValue]:
    """Returns the columns of rows of `count` elements, of which there are at least as many as rows.

    Both are powers of two, at least the `block` elements that are 16 bytes, and up to four times as many.
    """

    def zipped(a: SSAValue, b: SSAValue, half: int) -> SSAValue:
        """Interleaves the elements of one half of each block, alternately of a and b."""
        first = half * block // 2
        picked = [side * count + k for k in range(first, first + block // 2) for side in (0, 1)]
        return builder.insert(
            tir.ShuffleOp([a, b], [base + k for base in range(0, count, block) for k in picked])
        ).result

    def blocks(a: SSAValue, b: SSAValue, picked: Sequence[int]) -> SSAValue:
        """Picks whole blocks by number, first those of a, then those of b."""
        indices = [n * block + k for n in picked for k in range(block)]
        return builder.insert(tir.ShuffleOp([a, b], indices)).result

    groups: list[list[SSAValue]] = []
    for g in range(0, len(rows), block):
        group = list(rows[g : g + block])
        for _ in range(block.bit_length() - 1):
            pairs = zip(group[: block // 2], group[block // 2 :], strict=True)
            group = [zipped(a, b, half) for a, b in pairs for half in (0, 1)]
        groups.append(group)
    # Block b of what a group has as its number c is column block * b + c of its rows.
    columns: list[SSAValue] = [rows[0]] * count
    width = count // block
    for c in range(block):
        t = [group[c] for group in groups]
        if len(t) == 4:
            for half in range(2):
                a, b = (blocks(x, y, [half, half + 2, half + 4, half + 6]) for x, y in (t[:2], t[2:]))
                columns[block * half + c] = blocks(a, b, [0, 2, 4, 6])
                columns[block * (half + 2) + c] = blocks(a, b, [1, 3, 5, 7])
        elif len(t) == 2 and width == 2:
            columns[c], columns[block + c] = blocks(t[0], t[1], [0, 2]), blocks(t[0], t[1], [1, 3])
        elif len(t) == 2:
            for b in range(0, width, 2):
                pair = blocks(t[0], t[1], [b, width + b, b + 1, width + b + 1])
                for k in range(2):
                    columns[block * (b + k) + c] = blocks(pair, pair, [2 * k, 2 * k + 1])
        else:
            for b in range(width):
                columns[block * b + c] = t[0] if width == 1 else blocks(t[0], t[0], [b])
    return columns


def lower(outer: tir.ForOp) -> None:
    """Replaces one annotated tile, or takes the annotation away where it is none."""
    known = dict(outer.annotations.data)
    known.pop(TILE, None)
    outer.annotations = DictionaryAttr(known)
    tile = _match(outer)
    if tile is None:
        return
    before = builder_before(outer)
    if tile.whole.value == 0:
        return
    if tile.whole.value is None:
        copy = outer.clone()
        condition = Analyzer().to_ssa(tile.whole, before, I1)
        branch = before.insert(tir.IfOp(condition, Region(Block()), Region(Block([copy]))))
        outer.detach()
        branch.then_region.block.add_op(outer)
        before = builder_before(outer)
    _unconditional(tile.inner)
    _read_tile(tile, before)


def _unconditional(inner: tir.ForOp) -> None:
    """Takes the conditions away, which hold in a whole tile."""
    while True:
        branch = next((op for op in inner.body.block.ops if isinstance(op, tir.IfOp)), None)
        if branch is None:
            return
        move_before(branch.then_region.block.ops, branch)
        erase_op(branch)


def _read_tile(tile: _Tile, before: Builder) -> None:
    """Loads the tile's rows, transposes them, and has the loops read the result."""
    analyzer = Analyzer()
    lanes, counter = tile.lanes, tile.outer.loop_var.type
    for found in tile.loads:
        load, start, distance = found.load, found.start, found.distance
        type_ = load.buffer.type
        assert isinstance(type_, tir.BufferType)
        block = BLOCK_BYTES // _bytes(type_.dtype)
        # Rows of another number are followed by the last one again, and that many of them are shuffled together.
        depth = next(size for size in WHOLE if size >= max(tile.rows, block))
        together = min(depth, lanes)
        moved = _in_memory(type_.dtype)
        name, flat = tir.buffer_name(load.buffer), _flat(load.buffer, moved, before)
        local_type = tir.BufferType.get([lanes * depth], moved, "local")
        local = before.insert(tir.DeclBufferOp(f"{name}_tile", local_type)).result
        local.name_hint = f"{name}_tile"

        def vector_at(base: SSAValue, size: int) -> SSAValue:
            one = before.insert(tir.ConstOp.int(1, counter)).result
            return before.insert(tir.RampOp(base, one, size)).result

        for part in range(0, depth, together):
            if part >= tile.rows:
                break
            rows: list[SSAValue] = []
            for row in range(part, min(part + together, tile.rows)):
                which = Expr((), row) if found.last is None else minimum(Expr((), row), found.last)
                base = analyzer.to_ssa(start + which.scaled(distance), before, counter)
                rows.append(before.insert(tir.LoadOp(flat, [vector_at(base, lanes)])).result)
            rows += rows[-1:] * (together - len(rows))
            for number, column in enumerate(transposed(before, rows, lanes, block)):
                base = before.insert(tir.ConstOp.int(number * depth + part, counter)).result
                before.insert(tir.StoreOp(column, local, [vector_at(base, together)]))
        if found.last is not None:
            choice = load.parent_op()
            assert isinstance(choice, tir.IfThenElseOp)
            _choose(choice)
        inner = builder_before(load)
        width = inner.insert(tir.ConstOp.int(depth, counter)).result
        row_start = inner.insert(tir.MulOp(tile.outer.loop_var, width)).result
        place = inner.insert(tir.AddOp(row_start, tile.inner.loop_var)).result
        new = inner.insert(tir.LoadOp(local, [place])).result
        if new.type != load.result.type:
            new = inner.insert(tir.CastOp(new, load.result.type)).result
        replace_all_uses_with(load.result, new)
        erase_op(load)
    for store, start, distance in tile.stores:
        # One sum rather than quotients and remainders of fused loops.
        flat, first = _flat(store.buffer, element_of(store.value.type), before), analyzer.to_ssa(start, before, counter)
        inner = builder_before(store)
        step = inner.insert(tir.ConstOp.int(distance, counter)).result
        row_start = inner.insert(tir.AddOp(first, inner.insert(tir.MulOp(tile.outer.loop_var, step)))).result
        place = inner.insert(tir.AddOp(row_start, tile.inner.loop_var)).result
        inner.insert(tir.StoreOp(store.value, flat, [place]))
        erase_op(store)
    tile.outer.properties["kind"] = StringAttr("unrolled")


def _choose(choice: tir.IfThenElseOp) -> None:
    """Computes both values, and chooses between them."""
    values: list[SSAValue] = []
    for region in (choice.then_region, choice.else_region):
        end = region.block.last_op
        assert isinstance(end, tir.YieldOp)
        values.append(end.values[0])
        erase_op(end)
        move_before(region.block.ops, choice)
    chosen = builder_before(choice).insert(tir.SelectOp(choice.condition, *values)).result
    replace_all_uses_with(choice.result, chosen)
    erase_op(choice)


def _flat(buffer: SSAValue, dtype: Attribute, before: Builder) -> SSAValue:
    """Returns a view of a buffer of known extents as one row of this element type."""
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType) and type_.static_shape is not None
    name = f"{tir.buffer_name(buffer)}_flat"
    data = before.insert(tir.BufferGetOp(buffer, "data", tir.HandleType.get(dtype)))
    flat_type = tir.BufferType.get([prod(type_.static_shape)], dtype, type_.scope.data)
    flat = before.insert(tir.DeclBufferOp(name, flat_type, source=data.result)).result
    flat.name_hint = name
    return flat


@dataclass(frozen=True)
class LowerTransposedLoads(PrimFuncPass):
    """Transposes tiles annotated with `transposed_tile` in registers."""

    name = "lower-transposed-loads"

    def apply_to(self, function: tir.PrimFuncOp) -> None:
        """Lowers every such loop of the module."""
        loops = [loop for loop in ops_of(function, tir.ForOp) if TILE in loop.annotations.data]
        for loop in loops:
            lower(loop)
        if loops:
            erase_dead(function)
