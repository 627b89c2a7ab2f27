"""Infers the regions that a block reads and writes, as TVM's `BlockReadWriteDetector`.

    for k in range(4):
        B[vi] = B[vi] + A[vi * 2 + k, I[vi]]        # reads A[vi * 2:vi * 2 + 4, I[vi]], I[vi]; writes B[vi]

The indices of each access are evaluated as interval sets (`int_set`) with the loops inside the block relaxed, operator by operator
as the text has them, so that `k * 2 + vi - k` covers `vi - 3` to `vi + 6`. Accesses of one buffer are united, in order of first
access: a store before the value it stores, a load before those in its indices. One value stays as it is written; where an end is
not known (a call, a float, an element that depends on a loop), the whole dimension is taken.

Source: TVM 0.16, src/tir/analysis/block_access_region_detector.cc and `EvalSet` of src/arith/int_set.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerAttr, IntegerType, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from ...support.diagnostics import error_at
from ...support.edit import add_op, clone_op, create_op, insert_op_before, move_before, move_to_end
from ..interned import i32_array
from ..plain_op import SEGMENTS
from ..tir.arithmetic import AddOp, BinaryOp, MaxOp, MinOp, MulOp, NotOp, SubOp
from ..tir.buffer import (
    AllocateOp,
    AllocBufferOp,
    BufferGetOp,
    BufferOp,
    BufferRegionOp,
    DeclBufferOp,
    LoadOp,
    MatchBufferOp,
    StoreOp,
    buffer_name,
)
from ..tir.expr import BroadcastOp, CallOp, CastOp, ConstOp, IfThenElseOp, LetOp, RampOp, SelectOp, VarOp
from ..tir.scalar_ops import BINARY_ROWS
from ..tir.stmt import BlockOp, ForOp, IfOp, InitOp, ReadsOp, WritesOp
from ..tir.types import I32, BufferType, RegionType, element_of
from .analyzer import Analyzer
from .expr import TRUE, Atom, Expr, Kind, as_expr, conjuncts, free_vars, logical_not
from .from_ssa import ARITHMETIC, from_ssa, is_index_type
from .int_set import EVERYTHING, Ends, IntervalSet, division, extremum, product, union
from .to_ssa import to_ssa

Index: TypeAlias = SSAValue | IntervalSet
"""The set that an index covers: one value, to be copied unchanged, or an interval."""


@dataclass(slots=True)
class BufferAccess:
    """All accesses of a block to a buffer: distinct indices per dimension, and dtypes of the first.

    Each index has the value that it was evaluated from, which determines the order of its variables.
    """

    buffer: SSAValue
    dims: list[dict[Index, SSAValue | None]]
    types: list[IntegerType]


def infer_regions(block: BlockOp) -> None:
    """Declares the accesses of a body at the head of an attached block without reads and writes.

    Raises MirError where the block accesses memory through a handle.
    """
    body = block.body.block
    detector = BlockReadWriteDetector(body.ops, block.block_name.data)
    head = detector.declare(
        block.location, (ReadsOp, detector.reads_beside_init()), (WritesOp, detector.writes.values())
    )
    move_to_front(head.ops, body)


def move_to_front(ops: Iterable[Operation], block: Block) -> None:
    """Moves ops, in order, before those of `block`."""
    if block.first_op is None:
        move_to_end(ops, block)
    else:
        move_before(ops, block.first_op)


class BlockReadWriteDetector:
    """Infers the regions that a block's body reads and writes: boxes by buffer, in order of first access.

    The body need not be attached. With a `name`, that of the block, `tvm_access_ptr` accesses whole buffers, and other uses of a
    buffer's address raise MirError; without, buffers whose address is used are `opaque`: only a declaration can list their accesses.
    """

    def __init__(self, body: Iterable[Operation], name: str | None = None):
        self.name = name
        self.reads: dict[SSAValue, BufferAccess] = {}
        self.writes: dict[SSAValue, BufferAccess] = {}
        self.opaque: set[SSAValue] = set()
        self.has_init = False
        self._body = list(body)
        # Every op of the body met so far, and those whose accesses are known.
        self.inside: set[Operation] = set()
        self._seen: set[Operation] = set()
        self._postponed: list[SSAValue] = []
        self._own: set[SSAValue] = set()
        self._views: dict[SSAValue, SSAValue] = {}
        # Loop variables and axes inside the block, and the sets of values while they run.
        self._domain: dict[SSAValue, IntervalSet] = {}
        self._indices: dict[SSAValue, Index] = {}
        self._converted: dict[SSAValue, Expr] = {}
        self._loads: dict[tuple[SSAValue, tuple[Expr, ...]], Expr] = {}
        self._visit(self._body)

    @cached_property
    def analyzer(self) -> Analyzer:
        """Knows nothing of the block's axes, as TVM's: an axis of extent 1 stands as itself, not as its value."""
        return Analyzer()

    def reads_beside_init(self) -> list[BufferAccess]:
        """Returns the reads, without those of written buffers if the block initializes these by `T.init()`."""
        return [a for a in self.reads.values() if not self.has_init or a.buffer not in self.writes]

    # Accesses

    def _visit(self, ops: Iterable[Operation]) -> None:
        """Records the accesses of consecutive ops; expressions are visited at their uses."""
        for op in ops:
            self.inside.add(op)
            results = op.results
            if not results or type(op) in _STATEMENTS or results[0].first_use is None:
                self._statement(op)

    def _statement(self, op: Operation) -> None:
        match op:
            case StoreOp():
                self._access(self.writes, op.buffer, op.indices)
                self._evaluate([op.value, *op.indices], op.parent)
            case LoadOp() | IfThenElseOp():
                self._evaluate(op.results, op.parent)
            case AllocBufferOp() | AllocateOp():
                self._own.add(op.results[0])
            case DeclBufferOp():
                if op.source is None or op.source in self._own:
                    self._own.add(op.result)
            case MatchBufferOp():
                if op.source is not None:
                    self._views[op.result] = op.source
                    source = op.source.owner
                    self._evaluate(source.operands[1:] if isinstance(source, BufferRegionOp) else (), op.parent)
            case ForOp():
                self._evaluate([op.min, op.extent], op.parent)
                low, count = self._set(op.min), self._set(op.extent)
                self._domain[op.loop_var] = IntervalSet(low.min, (low + count + _LAST).max)
                if _constant(op.extent) is None:
                    # Where the body runs, its size is at least 1.
                    with self.analyzer.bind(op.loop_var, self._expr(op.min), self._expr(op.extent)):
                        self._visit(op.body.block.ops)
                else:
                    self._visit(op.body.block.ops)
                self._resume(op.parent)
            case IfOp():
                self._evaluate([op.condition], op.parent)
                self._sides(op.condition, [region.blocks for region in op.regions], op.parent)
            case BlockOp():
                self._evaluate(op.operands, op.parent)
                self._nested(op)
            case ReadsOp() | WritesOp() | BufferRegionOp():
                pass
            case _:
                self.has_init = self.has_init or isinstance(op, InitOp)
                self._evaluate(op.operands, op.parent)
                for region in op.regions:
                    for inner in region.blocks:
                        self._visit(inner.ops)
                self._resume(op.parent)

    def _evaluate(self, values: Iterable[SSAValue], home: Block | None) -> None:
        """Records loads that evaluate `values` in block `home`, the outer load before those in its indices."""
        pending = list(values)
        pending.reverse()
        while pending:
            op = pending.pop().owner
            if isinstance(op, Block) or op in self._seen or op not in self.inside:
                continue
            if op.parent is not home:
                # Computed outside of the branch or loop that it is used in.
                self._postponed.append(op.results[0])
                continue
            self._seen.add(op)
            match op:
                case LoadOp():
                    if not _is_address(op):
                        self._access(self.reads, op.buffer, op.indices)
                    elif self.name is None:
                        self.opaque.add(op.buffer)
                    pending += reversed(op.indices)
                case BufferGetOp():
                    if op.field.data == "data":
                        self._pointer(op)
                case IfThenElseOp():
                    self._evaluate([op.condition], home)
                    self._sides(op.condition, [op.then_region.blocks, op.else_region.blocks], home)
                case BufferOp() | LetOp() | BufferRegionOp():
                    pass
                case _:
                    if self.name is None and isinstance(op, CallOp):
                        self.opaque.update(a for a in op.arguments if isinstance(a.type, BufferType))
                    pending += reversed(op.operands)
                    for region in op.regions:
                        for inner in region.blocks:
                            self._visit(inner.ops)

    def _resume(self, home: Block | None) -> None:
        """Records loads that are used in a branch or loop and computed outside of it."""
        if self._postponed:
            postponed, self._postponed = self._postponed, []
            self._evaluate(postponed, home)

    def _sides(self, condition: SSAValue, sides: list[Iterable[Block]], home: Block | None) -> None:
        """Visits the branches of a choice, in each of which its condition bounds the loops."""
        holds = self._expr(condition) if self._domain else TRUE
        for case, blocks in zip((holds, logical_not(holds)), sides, strict=False):
            with self._narrowed(case):
                for block in blocks:
                    self._visit(block.ops)
        self._resume(home)

    @contextmanager
    def _narrowed(self, condition: Expr) -> Generator[None]:
        """Bounds the loops inside the block by numbers that a condition compares them with."""
        bounds: dict[SSAValue, IntervalSet] = {}
        for each in conjuncts(condition):
            atom = each.atom
            if atom is None or atom.kind not in (Kind.GE, Kind.EQ) or len(atom.operands[0].terms) != 1:
                continue
            # factor * variable + rest >= 0, or == 0
            ((variable, factor),), rest = atom.operands[0].terms, atom.operands[0].const
            value = cast("SSAValue", variable.payload)
            running = self._domain.get(value)
            if running is None:
                continue
            least, most = -(rest // factor), rest // -factor
            if atom.kind is Kind.EQ:
                limit = IntervalSet(as_expr(max(least, most)), as_expr(min(least, most)))
            else:
                limit = IntervalSet(as_expr(least), None) if factor > 0 else IntervalSet(None, as_expr(most))
            narrowed = bounds.get(value, running).intersect(limit, self.analyzer)
            low, high = narrowed.min, narrowed.max
            # A branch that is never taken bounds nothing.
            if low is None or high is None or (high - low).value is None or (high - low).const >= 0:
                bounds[value] = narrowed
        if not bounds:
            yield
            return
        domain, indices = self._domain, self._indices
        self._domain, self._indices = {**domain, **bounds}, {}
        yield
        self._domain, self._indices = domain, indices

    def _nested(self, block: BlockOp) -> None:
        """Records the declared regions of an inner block, its axes relaxed to their bindings."""
        for arg, binding in zip(block.iter_vars, block.bindings, strict=True):
            self._domain[arg] = self._set(binding)
        # The operands of the inner block's regions are defined in it, before them: the outer block needs expressions of its own.
        missing = 2
        for op in block.body.block.ops:
            missing -= isinstance(op, ReadsOp | WritesOp)
            if not missing:
                break
            self.inside.add(op)
        for kind, accesses in ((ReadsOp, self.reads), (WritesOp, self.writes)):
            op = block.find(kind)
            for region in op.operands if op is not None else ():
                made = region.owner
                if isinstance(made, BufferRegionOp):
                    self._region(accesses, made)

    def _region(self, accesses: dict[SSAValue, BufferAccess], region: BufferRegionOp) -> None:
        dims: list[Index] = []
        for low, extent in zip(region.mins, region.extents, strict=True):
            start, count = self._index(low), self._set(extent)
            if count.min is None or count.min.value != 1 or not count.is_point:
                first = self._set(low)
                start = IntervalSet(first.min, (first + count + _LAST).max)
            dims.append(start)
        self._add(accesses, region.buffer, dims, region.mins)

    def _pointer(self, op: BufferGetOp) -> None:
        """Records `A.data`, whose accesses are known only as the argument of an access pointer."""
        buffer = op.buffer
        if buffer in self._own:
            return
        if self.name is None:
            self.opaque.add(buffer)
            return
        for use in op.result.uses:
            call = use.operation
            is_pointer = isinstance(call, CallOp) and call.intrinsic.data == "tvm_access_ptr"
            mask = _constant(call.operands[-1]) if is_pointer else None
            if mask is None:
                raise error_at(
                    op,
                    f"what block '{self.name}' accesses through '{buffer_name(buffer)}.data' cannot be seen",
                    "write its T.reads(…) and T.writes(…)",
                )
            assert isinstance(buffer.type, BufferType)
            rank = buffer.type.rank
            for bit, accesses in ((1, self.reads), (2, self.writes)):
                if mask & bit:
                    self._add(accesses, buffer, [EVERYTHING] * rank, [None] * rank)

    def _access(self, accesses: dict[SSAValue, BufferAccess], buffer: SSAValue, indices: Iterable[SSAValue]) -> None:
        indices = list(indices)
        self._add(accesses, buffer, [self._index(i) for i in indices], indices)

    def _add(
        self,
        accesses: dict[SSAValue, BufferAccess],
        buffer: SSAValue,
        dims: Sequence[Index],
        values: Sequence[SSAValue | None],
    ) -> None:
        """Unites an access with those of the same buffer before it."""
        source = self._views.get(buffer)
        if source is not None:
            if isinstance(source.owner, BufferRegionOp):
                self._region(accesses, source.owner)
            return
        if buffer in self._own:
            return
        known = accesses.get(buffer)
        if known is None:
            types = [I32 if value is None else _index_type(value.type) for value in values]
            known = accesses[buffer] = BufferAccess(buffer, [{} for _ in dims], types)
        for before, index, value in zip(known.dims, dims, values, strict=True):
            before.setdefault(index, value)

    # Indices

    def _set(self, value: SSAValue) -> IntervalSet:
        return self._set_of(self._index(value))

    def _set_of(self, index: Index) -> IntervalSet:
        return index if isinstance(index, IntervalSet) else IntervalSet.point(self._expr(index))

    def _expr(self, value: SSAValue) -> Expr:
        return from_ssa(value, self._converted)

    def _index(self, root: SSAValue) -> Index:
        """Returns the set of a value while the loops inside the block run."""
        known = self._indices
        pending = [root]
        while pending:
            value = pending[-1]
            if value in known:
                pending.pop()
                continue
            op = value.owner
            if isinstance(op, Block) or op not in self.inside:
                known[value] = self._domain.get(value, value)
                continue
            inputs: Iterable[SSAValue] = op.operands
            if isinstance(op, LoadOp):
                inputs = op.indices
            elif isinstance(op, BufferOp | BufferGetOp) or op.regions:
                inputs = ()
            missing = [v for v in inputs if v not in known]
            if missing:
                pending += missing
            else:
                known[value] = self._result(op, value)
        return known[root]

    def _result(self, op: Operation, value: SSAValue) -> Index:
        """Returns the set of an op's result, from those of its operands."""
        if isinstance(op, LetOp):
            return self._indices[op.value]
        if isinstance(op, LoadOp):
            return self._loaded(op)
        type_ = value.type
        if isinstance(op, ConstOp):
            return value if isinstance(op.value, IntegerAttr) else EVERYTHING
        if isinstance(op, BufferGetOp):
            return EVERYTHING if op.buffer.owner in self.inside else value
        if isinstance(op, BroadcastOp):
            return self._indices[op.value]
        if isinstance(op, RampOp):
            base, stride = self._set(op.base), _constant(op.stride)
            if stride is None:
                return EVERYTHING
            reach = stride * (op.result.type.shape.data[0].data - 1)
            return base + IntervalSet(as_expr(min(reach, 0)), as_expr(max(reach, 0)))
        if not isinstance(op, BinaryOp | SelectOp | CastOp | NotOp):
            return EVERYTHING
        if all(self._indices[operand] is operand for operand in op.operands):
            return value
        sets = [self._set(operand) for operand in op.operands]
        if isinstance(op, SelectOp):
            return union(sets[1:], self.analyzer)
        if not is_index_type(type_):
            return EVERYTHING
        if isinstance(op, CastOp):
            return sets[0] if is_index_type(op.value.type) and _width(type_) >= _width(op.value.type) else EVERYTHING
        return _combined(type(op), sets[0], sets[1], self.analyzer)

    def _loaded(self, op: LoadOp) -> Index:
        """Returns a loaded index: one value if no loop varies it and the block does not store it."""
        is_fixed = all(self._indices[index] is index for index in op.indices)
        is_outer = op.buffer.owner not in self.inside and op.buffer not in self._stored
        if not isinstance(op.result.type, IntegerType) or not is_fixed or not is_outer:
            return EVERYTHING
        key = (op.buffer, tuple(self._expr(index) for index in op.indices))
        self._converted[op.result] = self._loads.setdefault(key, self._expr(op.result))
        return op.result

    @cached_property
    def _stored(self) -> set[SSAValue]:
        """Returns the buffers that the block stores to, through views, too."""
        inside = [op for each in self._body for op in each.walk()]
        stored: set[SSAValue] = {op.buffer for op in inside if isinstance(op, StoreOp)}
        for op in reversed(inside):
            if isinstance(op, MatchBufferOp | DeclBufferOp) and op.result in stored and op.source is not None:
                source = op.source.owner
                if isinstance(source, BufferRegionOp | BufferGetOp):
                    stored.add(source.buffer)
        return stored

    # Regions

    def box(self, access: BufferAccess) -> list[Index | None]:
        """Returns the set of each dimension's indices: one value, a set with both ends, or None for all."""
        return [self._united(list(indices)) for indices in access.dims]

    def _united(self, indices: list[Index]) -> Index | None:
        if len(indices) == 1 and not isinstance(indices[0], IntervalSet):
            return indices[0]
        ends = union([self._set_of(index) for index in indices], self.analyzer).ends
        if ends is None:
            return None
        low, high = ends
        return IntervalSet(low, low if self.analyzer.can_prove_equal(low, high) else high)

    def ends(self, access: BufferAccess) -> list[Ends]:
        """Returns the least and the greatest index of each dimension."""
        found: list[Ends] = []
        for dim, index in enumerate(self.box(access)):
            ends = None if index is None else self._set_of(index).ends
            if ends is None:
                size = _size(access.buffer, dim)
                whole = self._expr(size) if isinstance(size, SSAValue) else as_expr(size.value.data)
                ends = as_expr(0), whole - 1
            found.append(ends)
        return found

    def declare(
        self, location: LocationAttr, *lists: tuple[type[ReadsOp] | type[WritesOp], Iterable[BufferAccess]]
    ) -> Block:
        """Returns ops, to be moved out of their block, that declare accesses as reads and writes."""
        head = Head(self)
        for kind, accesses in lists:
            head.add(kind.create(operands=[head.region(access) for access in accesses]))
        for op in head.block.ops:
            op.location = location
        return head.block

    def places(self, indices: Mapping[Index, SSAValue | None]) -> dict[Atom, int]:
        """Returns the places of variables in the indices' text, then of those that only the ends have."""
        places: dict[Atom, int] = {}
        pending = [value for value in indices.values() if value is not None]
        pending.reverse()
        seen: set[SSAValue] = set()
        while pending:
            value = pending.pop()
            op = value.owner
            if value in seen:
                continue
            seen.add(value)
            if not isinstance(op, Block | LoadOp) and op in self.inside:
                pending += reversed(op.operands)
            else:
                for atom in free_vars(self._expr(value)):
                    places.setdefault(atom, len(places))
        for index in indices:
            for atom in free_vars(*(self._set_of(index).ends or ())):
                places.setdefault(atom, len(places))
        return places


class Head:
    """Builds the ops that declare regions, in a separate block, with clones of the body's expressions."""

    def __init__(self, detector: BlockReadWriteDetector):
        self.block = Block()
        self.detector = detector

    def region(self, access: BufferAccess) -> SSAValue:
        """Returns the accessed region of a buffer."""
        mins: list[SSAValue] = []
        counts: list[SSAValue] = []
        analyzed = self.detector
        for dim, (index, type_) in enumerate(zip(analyzed.box(access), access.types, strict=True)):
            if index is None:
                size = _size(access.buffer, dim)
                low = self._constant(0, size.type)
                count = size if isinstance(size, SSAValue) else self._constant(size.value.data, size.type)
            elif isinstance(index, SSAValue):
                low = self._copy(index)
                count = self._constant(1, low.type)
            else:
                first, last = cast("Ends", index.ends)
                places = analyzed.places(access.dims[dim])
                low = self._built(first, type_, places)
                count = self._built(analyzed.analyzer.simplify(last + 1 - first), type_, places)
            mins.append(low)
            counts.append(count)
        return self.add(buffer_region(access.buffer, mins, counts))

    def add(self, op: Operation) -> SSAValue:
        """Appends an op of a result at most, which it returns."""
        add_op(self.block, op)
        return op.results[0] if op.results else None  # pyright: ignore[reportReturnType]

    def _constant(self, value: int, type: Attribute) -> SSAValue:
        """Returns a number."""
        return self.add(ConstOp.int(value, type))

    def _built(self, e: Expr, type: Attribute, places: Mapping[Atom, int]) -> SSAValue:
        """Builds an analyzed expression; variables of earlier `places` come first if TVM's order is open."""
        if not e.terms:
            return self._constant(e.const, type)
        last = len(places)

        def order(atom: Atom) -> int:
            return min((places.get(v, last) for v in free_vars(Expr(((atom, 1),), 0))), default=last)

        payloads = {atom: atom.payload for atom in free_vars(e)}
        loads = {
            a: self._copy(v) for a, v in payloads.items() if isinstance(v, OpResult) and v.op in self.detector.inside
        }
        made = to_ssa(e, Builder(InsertPoint.at_end(self.block)), type, loads, order=order, shared=False)
        for load in loads.values():
            for use in list(load.uses)[1:]:
                # A value loaded twice would be printed under a name.
                use.operation.operands[use.index] = self._again(load, use.operation)
        return made

    def _again(self, value: SSAValue, user: Operation) -> SSAValue:
        """Returns a copy, before `user`, of an expression in this block."""
        assert isinstance(value, OpResult)
        again = clone_op(value.op, value.op.operands)
        insert_op_before(again, user)
        return again.results[0]

    def _copy(self, root: SSAValue) -> SSAValue:
        """Clones an expression: a value shared with the body would be printed as one value with two uses."""
        return copy_expression(root, self.add, self.detector.inside)


def copy_expression(
    root: SSAValue, add: Callable[[Operation], SSAValue], inside: Container[Operation] | None = None
) -> SSAValue:
    """Clones an expression down to variables, names and buffers, or down to ops that are not `inside`.

    `add` inserts each cloned op. The ops are in the order in which the expression's text would create them: an operator's
    constants last.
    """
    copies: dict[SSAValue, SSAValue] = {}
    pending = [root]
    while pending:
        value = pending[-1]
        op = value.owner
        if value in copies:
            pending.pop()
            continue
        if isinstance(op, Block | VarOp | LetOp | BufferOp) or op.regions or (inside is not None and op not in inside):
            copies[value] = value
            continue
        missing = [v for v in op.operands if v not in copies]
        if missing:
            pending += sorted(missing[::-1], key=_is_written_early) if len(missing) > 1 else missing
            continue
        pending.pop()
        copies[value] = add(clone_op(op, [copies[v] for v in op.operands]))
    return copies[root]


def _is_written_early(operand: SSAValue) -> bool:
    return not isinstance(operand.owner, ConstOp)


def buffer_region(buffer: SSAValue, mins: Sequence[SSAValue], extents: Sequence[SSAValue]) -> BufferRegionOp:
    """Creates a box of a buffer without the cost of the general constructor."""
    sizes = i32_array(1, len(mins), len(extents))
    return create_op(BufferRegionOp, [buffer, *mins, *extents], [_REGION], {SEGMENTS: sizes}, UNKNOWN_LOC)


def _combined(op: type[Operation], a: IntervalSet, b: IntervalSet, analyzer: Analyzer) -> IntervalSet:
    """Returns the set of an operator on a value of each set."""
    build = ARITHMETIC.get(op)
    if build is None:
        return EVERYTHING
    if a.is_point and b.is_point and a.min is not None and b.min is not None:
        return IntervalSet.point(build(a.min, b.min))
    if op is AddOp:
        return a + b
    if op is SubOp:
        return a + b.scaled(-1)
    if op is MulOp:
        return product(a, b, analyzer)
    if op in _EXTREMA:
        return extremum(_EXTREMA[op], (a, b))
    return division(_DIVISIONS[op], a, b, analyzer)


_REGION = RegionType()
_LAST = IntervalSet.point(as_expr(-1))
_STATEMENTS = frozenset((LetOp, AllocBufferOp, AllocateOp, DeclBufferOp, MatchBufferOp))
_EXTREMA: dict[type[Operation], Kind] = {MinOp: Kind.MIN, MaxOp: Kind.MAX}
_DIVISIONS: dict[type[Operation], Kind] = {
    op: Kind[row.analyzer.upper()] for op, row in BINARY_ROWS.items() if row.divides
}


def _size(buffer: SSAValue, dim: int) -> IntegerAttr[IntegerType] | SSAValue:
    assert isinstance(buffer.type, BufferType)
    sizes = buffer.type.shape.data
    size = sizes[dim]
    if isinstance(size, IntegerAttr):
        return cast("IntegerAttr[IntegerType]", size)
    made = buffer.owner
    assert isinstance(made, BufferOp)
    return made.shape[sum(not isinstance(size, IntegerAttr) for size in sizes[:dim])]


def _index_type(type: Attribute) -> IntegerType:
    element = element_of(type)
    return element if isinstance(element, IntegerType) else I32


def _width(type: Attribute) -> int:
    return type.width.data if isinstance(type, IntegerType) else 0


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    is_number = isinstance(op, ConstOp) and isinstance(op.value, IntegerAttr)
    return op.value.value.data if is_number else None  # pyright: ignore


def _is_address(load: LoadOp) -> bool:
    """Returns True if a load represents the address of its element."""
    uses = [use.operation for use in load.result.uses]
    return bool(uses) and all(isinstance(op, CallOp) and op.intrinsic.data == "address_of" for op in uses)
