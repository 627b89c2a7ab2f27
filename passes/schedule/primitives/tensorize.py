"""tensorize: an intrinsic takes the place of the loops that compute what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import ONE, ZERO, Atom, free_vars, substitute
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.buffer import AccessOp, BufferOp
from ....support.edit import builder_at_end, builder_before
from ....support.text import counted
from ....support.walk import walk_ops
from ...tir.rewriting import erase_dead
from ..analysis.access import extents_of, index_type
from ..analysis.block_kind import analyzer_for, axis_kinds, bind_axes
from ..analysis.structure import all_loops_above, body_of
from ..engine.errors import ScheduleError, describe, refuse
from ..engine.primitive import primitive
from ..engine.state import State
from ..engine.tensor_intrinsics import TensorIntrin, find_intrinsic, parameter_buffers, statements
from .blockize import blockized_part
from .common.block_axes import Axis, axes_of
from .common.blockizing import OuterAxes, Part, inner_axes, wrap


@primitive
def tensorize(state: State, block_or_loop: Operation, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
    """Replaces loops, or a block's inside, that match an intrinsic's description by its implementation.

    for i0, j0 in T.grid(4, 4):                 for i0, j0 in T.grid(4, 4):
        for i1, j1 in T.grid(16, 16):               with T.block("C_o"):
            with T.block("C"):             →            A_1 = T.match_buffer(A[vi_o * 16:vi_o * 16 + 16, …], (16, 16))
                C[vi, vj] = A[vi, vj] * 2               C_1 = T.match_buffer(C[vi_o * 16:vi_o * 16 + 16, …], (16, 16))
                                                        T.call_extern("double_tile", C_1.data, A_1.data)
    sch.tensorize(i1, "double_tile")

    Loops become one block. An intrinsic is a pair of prim_funcs: see `TensorIntrin`.
    """
    intrinsic = find_intrinsic(state.module, tensor_intrin, block_or_loop)
    ops, _ = statements(intrinsic.desc)
    if isinstance(block_or_loop, tir.BlockOp):
        _tensorize_block(state, block_or_loop, intrinsic, ops)
        return
    part, nest = blockized_part(block_or_loop, "tensorize", preserve_unit_iters)
    outer = OuterAxes()
    outer.add(part)
    matcher = _matcher_of_part(part, outer, intrinsic)
    initializes = any(isinstance(inner, tir.InitOp) for op in ops for inner in walk_ops(op))
    has_init = part.block.find(tir.InitOp) is not None and "R" in axis_kinds(part.block)
    if has_init and not initializes:
        matcher.initialized_before.add(part.block)
    elif has_init:
        _require_whole(part, intrinsic)
    matcher.match([nest], ops, nest)
    regions = _regions(matcher, intrinsic, part.block)
    block = wrap(state, [part], outer, f"{part.block.block_name.data}_o", [nest])
    made = {axis.atom: Analyzer().expr(v) for axis, v in zip(outer.axes, block.iter_vars, strict=True)}
    starts = [(r.buffer, [substitute(e, made) for e in r.starts]) for r in regions]
    _implement(state, block, intrinsic, starts, keeps_init=not initializes)


def _tensorize_block(state: State, block: tir.BlockOp, intrinsic: TensorIntrin, ops: Sequence[Operation]) -> None:
    """Replaces the inside of a block by the implementation."""
    analyzer = analyzer_for(all_loops_above(block))
    bind_axes(analyzer, block)
    matcher = Matcher(intrinsic, analyzer, "tensorize")
    # The init of a block runs before its body: what is left is compared.
    matcher.match([op for op in body_of(block).ops if not isinstance(op, tir.InitOp)], ops, block)
    regions = _regions(matcher, intrinsic, block)
    _implement(state, block, intrinsic, [(r.buffer, r.starts) for r in regions], keeps_init=True)


def _matcher_of_part(part: Part, outer: OuterAxes, intrinsic: TensorIntrin) -> Matcher:
    """Compares a block as it will be inside of the outer block."""
    analyzer = analyzer_for(all_loops_above(part.block))
    for axis in outer.axes:
        analyzer.bind(axis.symbol, axis.min, axis.extent)
    matcher = Matcher(intrinsic, analyzer, "tensorize")
    axes, values = inner_axes(part, {axis.atom: axis.symbol for axis in outer.axes})
    for variable, value in values.items():
        atom = Analyzer().variable(variable)
        matcher.values[atom] = value
    matcher.prepared[part.block] = axes
    return matcher


def _require_whole(part: Part, intrinsic: TensorIntrin) -> None:
    """Raises where an outer loop continues a reduction whose output the intrinsic initializes."""
    for old, axis in zip(axes_of(part.block, Analyzer()), part.outer, strict=True):
        if axis.kind == "R" and axis.extent != ONE:
            raise refuse(
                part.block,
                f"tensorize: '{intrinsic.name}' initializes its output, but the loops around go on with reduction axis '{old.name}' of block '{part.block.block_name.data}'",
                "decompose_reduction, and use an intrinsic that only updates; or tensorize the whole reduction",
            )


def _regions(matcher: Matcher, intrinsic: TensorIntrin, block: tir.BlockOp) -> list[Region]:
    """Returns the region of the program for each parameter of the intrinsic; raises when there is none."""
    desc = parameter_buffers(intrinsic.desc, intrinsic.name)
    written = {op.buffer for op in walk_ops(intrinsic.desc) if isinstance(op, tir.StoreOp)}
    found: list[Region] = []
    for buffer in desc:
        region = matcher.regions.get(buffer)
        if region is None:
            raise refuse(
                intrinsic.desc,
                f"tensorize: the description of '{intrinsic.name}' does not access its parameter '{tir.buffer_name(buffer)}'",
            )
        found.append(region)
    for buffer, region in zip(desc, found, strict=True):
        for other, second in zip(desc, found, strict=True):
            if other is not buffer and region.buffer is second.buffer and buffer in written:
                raise refuse(
                    block,
                    f"tensorize: '{tir.buffer_name(region.buffer)}' would be both '{tir.buffer_name(buffer)}', which '{intrinsic.name}' writes, and '{tir.buffer_name(other)}'",
                    "the buffers of an intrinsic do not overlap",
                )
        _require_inside(matcher, buffer, region, block)
    for param, region in zip(parameter_buffers(intrinsic.impl, intrinsic.name), found, strict=True):
        _require_aligned(matcher, param, region, block)
    return found


def _require_inside(matcher: Matcher, param: SSAValue, region: Region, block: tir.BlockOp) -> None:
    """Raises unless a parameter's region is inside its buffer, including parts that are not accessed."""
    analyzer = matcher.analyzer
    sizes = _sizes(param, region)
    for number, (start, size, extent) in enumerate(
        zip(region.starts, sizes, extents_of(region.buffer, analyzer), strict=True)
    ):
        if not (analyzer.can_prove_ge0(start) and analyzer.can_prove_ge0(extent - start - size)):
            raise refuse(
                block,
                f"tensorize: '{tir.buffer_name(param)}' of '{matcher.intrinsic.name}' would reach from {start!r} over {size} elements of dimension {number} of '{tir.buffer_name(region.buffer)}', which is not known to be inside",
            )


def _sizes(param: SSAValue, region: Region) -> list[int]:
    assert isinstance(param.type, tir.BufferType)
    shape = param.type.static_shape or ()
    return [1] * (len(region.starts) - len(shape)) + list(shape)


def _require_aligned(matcher: Matcher, param: SSAValue, region: Region, block: tir.BlockOp) -> None:
    """Raises unless the implementation's offset_factor divides the offset of the region."""
    owner = param.owner
    factor = owner.offset_factor.value.data if isinstance(owner, BufferOp) and owner.offset_factor is not None else 1
    source = region.buffer.owner
    if factor <= 1 or (isinstance(source, BufferOp) and source.stride_dims.data):
        return
    offset, step = ZERO, ONE
    for start, extent in reversed(list(zip(region.starts, extents_of(region.buffer, matcher.analyzer), strict=True))):
        offset = offset + start * step
        step = step * extent
    modular = matcher.analyzer.modular_set(matcher.analyzer.simplify(offset))
    if modular.coeff % factor or modular.base % factor:
        raise refuse(
            block,
            f"tensorize: '{tir.buffer_name(param)}' of '{matcher.intrinsic.name}' must begin at a multiple of {factor} elements (offset_factor), which {offset!r} in '{tir.buffer_name(region.buffer)}' is not known to be",
        )


# Application


def _implement(
    state: State,
    block: tir.BlockOp,
    intrinsic: TensorIntrin,
    parts: Sequence[tuple[SSAValue, list[Expr]]],
    keeps_init: bool,
) -> None:
    """Replaces a block's statements by the implementation, which works on the given regions of buffers."""
    body = body_of(block)
    why = f"tensor intrinsic '{intrinsic.name}' took its place"
    kept = (tir.ReadsOp, tir.WritesOp, tir.InitOp) if keeps_init else (tir.ReadsOp, tir.WritesOp)
    for op in list(body.ops):
        if not isinstance(op, kept) and not op.results:
            state.erase(op, why)
    erase_dead(block)
    init = block.find(tir.InitOp)
    builder = builder_at_end(body, block.location) if init is None else builder_before(init, block.location)
    mapper: dict[SSAValue, SSAValue] = {}
    ops, root = statements(intrinsic.impl)
    for op in body_of(intrinsic.impl).ops:
        if isinstance(op, tir.VarOp):
            copy = builder.insert(op.clone(mapper))
            mapper[op.result] = copy.result
    for param, (buffer, starts) in zip(parameter_buffers(intrinsic.impl, intrinsic.name), parts, strict=True):
        mapper[param] = _matched(state, block, param, buffer, starts, mapper)
    place = builder_at_end(body, block.location)
    for op in ops:
        if isinstance(op, tir.BufferRegionOp | tir.ReadsOp | tir.WritesOp):
            continue
        copy = place.insert(op.clone(mapper))
        for inner in walk_ops(copy):
            inner.location = block.location
            if isinstance(inner, tir.BlockOp):
                inner.properties["block_name"] = StringAttr(state.fresh_block_name(block, inner.block_name.data))
                state.added(inner)
    erase_dead(block)
    if root is not None and root.annotations.data:
        block.properties["annotations"] = DictionaryAttr({**block.annotations.data, **root.annotations.data})


def _matched(
    state: State,
    block: tir.BlockOp,
    param: SSAValue,
    buffer: SSAValue,
    starts: Sequence[Expr],
    mapper: dict[SSAValue, SSAValue],
) -> SSAValue:
    """Builds `T.match_buffer(buffer[…], shape, …)` with the properties of the implementation's parameter."""
    init = block.find(tir.InitOp)
    body = body_of(block)
    builder = builder_at_end(body, block.location) if init is None else builder_before(init, block.location)
    type_ = index_type(buffer)
    analyzer = Analyzer()
    mins = [analyzer.to_ssa(start, builder, type_) for start in starts]
    extents = [builder.insert(tir.ConstOp.int(n, type_)).result for n in _sizes(param, Region(buffer, list(starts)))]
    region = builder.insert(tir.BufferRegionOp(buffer, mins, extents))
    assert isinstance(param.type, tir.BufferType)
    name = state.fresh_buffer_name(block, tir.buffer_name(param))
    owner = param.owner
    if not isinstance(owner, tir.MatchBufferOp):
        match = tir.MatchBufferOp(name, param.type, source=region)
    else:
        properties = {
            key: value
            for key, value in owner.properties.items()
            if key not in ("var_name", "stride_dims", "operandSegmentSizes")
        }
        match = tir.MatchBufferOp(
            name,
            param.type,
            source=region,
            strides=[mapper[s] for s in owner.strides],
            stride_dims=owner.stride_dims.data,
            elem_offset=None if owner.elem_offset is None else mapper[owner.elem_offset],
            properties=properties,
        )
    result = builder.insert(match).result
    state.named_buffer(match)
    result.name_hint = name if SSAValue.is_valid_name(name) else None
    return result


# Matching: loops, blocks and statements must be the same, one by one. Indices may differ by where they start: A[vi_o * 16 + vi_i, …]
# is A[vi, …] of the description where its buffer is the part of the program's that begins at vi_o * 16.


@dataclass
class Region:
    """The part of a program's buffer that a description's buffer matches: its start in each dimension."""

    buffer: SSAValue
    starts: list[Expr]


@dataclass
class Matcher:
    """Compares statements of the program with those of a description."""

    intrinsic: TensorIntrin
    analyzer: Analyzer
    """Knows the ranges of the variables of the program that `values` are made of."""
    primitive: str
    values: dict[Atom, Expr] = field(default_factory=dict[Atom, Expr])
    """What variables of the program are, where that is not themselves."""
    mapped: dict[Atom, Expr] = field(default_factory=dict[Atom, Expr])
    """The variables of the description, in terms of the program's."""
    inner: set[Atom] = field(default_factory=set[Atom])
    """The variables that only what is matched has."""
    regions: dict[SSAValue, Region] = field(default_factory=dict[SSAValue, Region])
    """For each buffer of the description, the part of a buffer of the program that it is."""
    prepared: dict[Operation, Sequence[Axis]] = field(default_factory=dict[Operation, Sequence[Axis]])
    """The axes that blocks of the program are to have, where those are not the ones that they have."""
    initialized_before: set[Operation] = field(default_factory=set[Operation])
    """Blocks whose T.init() is not compared, for it stays outside of what is matched."""
    _pairs: dict[tuple[SSAValue, SSAValue], bool] = field(default_factory=dict[tuple[SSAValue, SSAValue], bool])
    _plain: Analyzer = field(default_factory=Analyzer)

    # Statements

    def match(self, ours: Sequence[Operation], theirs: Sequence[Operation], where: Operation) -> None:
        """Raises at the first statement that differs."""
        a, b = _statements(ours), _statements(theirs)
        for mine, other in zip(a, b, strict=False):
            self.statement(mine, other)
        if len(a) != len(b):
            raise self.differs(
                a[len(b)] if len(a) > len(b) else where,
                f"{describe_statement(where)} holds {counted(len(a), 'statement')}, where the description has {len(b)}",
                b[len(a)] if len(b) > len(a) else None,
            )

    def statement(self, mine: Operation, other: Operation) -> None:
        if type(mine) is not type(other):
            raise self.differs(
                mine, f"{describe_statement(mine)} stands where the description has {describe_statement(other)}", other
            )
        match mine, other:
            case tir.ForOp(), tir.ForOp():
                self.loop(mine, other)
            case tir.BlockOp(), tir.BlockOp():
                self.block(mine, other, self.prepared[mine] if mine in self.prepared else axes_of(mine, self._plain))
            case tir.StoreOp(), tir.StoreOp():
                self.access(mine, other)
                if not self.same(mine.value, other.value):
                    raise self.differs(
                        mine, f"what {describe_statement(mine)} is another value than in the description", other
                    )
            case tir.IfOp(), tir.IfOp():
                if not self.same(mine.condition, other.condition):
                    raise self.differs(mine, "the condition of 'if' is another one than in the description", other)
                self.match(list(mine.then_region.block.ops), list(other.then_region.block.ops), mine)
                ours = [op for block in mine.else_region.blocks for op in block.ops]
                self.match(ours, [op for block in other.else_region.blocks for op in block.ops], mine)
            case tir.EvaluateOp(), tir.EvaluateOp():
                if not self.same(mine.value, other.value):
                    raise self.differs(mine, "the expression evaluated is another one than in the description", other)
            case tir.InitOp(), tir.InitOp():
                self.match(list(mine.body.block.ops), list(other.body.block.ops), mine)
            case _:
                raise self.differs(mine, f"{describe_statement(mine)} cannot be compared with a description", other)

    def loop(self, mine: tir.ForOp, other: tir.ForOp) -> None:
        """Compares loops: the same kind and trip count."""
        mine_extent, extent = self.ours(mine.extent), self.theirs(other.extent)
        if not self.analyzer.can_prove_equal(mine_extent, extent):
            raise self.differs(
                mine,
                f"{describe(mine)} has {mine_extent!r} iterations, where {describe(other)} of the description has {extent!r}",
                other,
            )
        if mine.kind != other.kind or mine.thread != other.thread:
            raise self.differs(
                mine,
                f"{describe(mine)} is {mine.kind.data}, where {describe(other)} of the description is {other.kind.data}",
                other,
            )
        variable = self._plain.expr(mine.loop_var)
        assert variable.atom is not None
        self.inner.add(variable.atom)
        self.analyzer.bind(variable, self.ours(mine.min), mine_extent)
        self.bind(other.loop_var, variable - self.ours(mine.min) + self.theirs(other.min))
        self.match(list(body_of(mine).ops), list(body_of(other).ops), mine)

    def block(self, mine: tir.BlockOp, other: tir.BlockOp, axes: Sequence[Axis]) -> None:
        """Compares blocks: the same axes, bound alike; `axes` are those that the program's block is to have."""
        wanted = axes_of(other, self._plain)
        name = mine.block_name.data
        # An axis of a single value says nothing.
        kept = [a for a in axes if self.analyzer.simplify(self.put(a.extent)) != ONE or len(axes) == len(wanted)]
        if len(kept) != len(wanted):
            raise self.differs(
                mine,
                f"block '{name}' has {counted(len(kept), 'axis')} in these loops ({', '.join(a.name for a in kept)}), where block '{other.block_name.data}' of the description has {len(wanted)}",
                other,
            )
        for a in axes:
            if a not in kept:
                self.values[a.atom] = self.put(a.min)
        for a, b in zip(kept, wanted, strict=True):
            extent, wanted_extent = self.put(a.extent), self.map(b.extent)
            if a.kind != b.kind or not self.analyzer.can_prove_equal(extent, wanted_extent):
                raise self.differs(
                    mine,
                    f"axis '{a.name}' of block '{name}' is {_called(a.kind)} over {extent!r}, where '{b.name}' of the description is {_called(b.kind)} over {wanted_extent!r}",
                    other,
                )
            start, wanted_start = self.put(a.min), self.map(b.min)
            if not self.analyzer.can_prove_equal(self.put(a.binding) - start, self.map(b.binding) - wanted_start):
                raise self.differs(
                    mine,
                    f"axis '{a.name}' of block '{name}' is bound to {self.put(a.binding)!r}, where '{b.name}' of the description is bound to {self.map(b.binding)!r}",
                    other,
                )
            self.inner.add(a.atom)
            self.analyzer.bind(a.symbol, start, extent)
            self.mapped[b.atom] = a.symbol - start + wanted_start
        if (mine.predicate is None) != (other.predicate is None) or (
            mine.predicate is not None
            and other.predicate is not None
            and not self.same(mine.predicate, other.predicate)
        ):
            raise self.differs(mine, f"block '{name}' has another predicate (T.where) than in the description", other)
        if mine.annotations != other.annotations:
            raise self.differs(
                mine,
                f"block '{name}' has other annotations than in the description",
                other,
                "annotate or unannotate the one or the other",
            )
        left_out = tir.InitOp if mine in self.initialized_before else ()
        self.match([op for op in body_of(mine).ops if not isinstance(op, left_out)], list(body_of(other).ops), mine)

    def access(self, mine: AccessOp, other: AccessOp) -> None:
        reason = self.why_not_accessed(mine, other)
        if reason is not None:
            raise self.differs(mine, reason, other)

    # Values

    def same(self, mine: SSAValue, other: SSAValue) -> bool:
        """Returns whether two values are the same; records which buffers correspond."""
        pending: list[tuple[SSAValue, SSAValue]] = [(_seen_through(mine), _seen_through(other))]
        while pending:
            a, b = pending.pop()
            known = self._pairs.get((a, b))
            if known is None:
                known = self._pairs[a, b] = self._alike(a, b)
            if known:
                continue
            if not self._equal_numbers(a, b):
                inputs = self._inputs(a, b)
                if inputs is None:
                    return False
                pending += reversed(inputs)
        return True

    def _alike(self, a: SSAValue, b: SSAValue) -> bool:
        """Returns whether two loads or constants are the same."""
        if a.type != b.type or not isinstance(a, OpResult) or not isinstance(b, OpResult):
            return False
        if isinstance(a.op, tir.LoadOp) and isinstance(b.op, tir.LoadOp):
            reason = self.why_not_accessed(a.op, b.op)
            if reason is not None:
                raise self.differs(a.op, reason, b.op)
            return True
        return isinstance(a.op, tir.ConstOp) and isinstance(b.op, tir.ConstOp) and a.op.value == b.op.value

    def _inputs(self, a: SSAValue, b: SSAValue) -> list[tuple[SSAValue, SSAValue]] | None:
        """Returns the pairs of operands when both values are computed by the same op; None otherwise."""
        if not isinstance(a, OpResult) or not isinstance(b, OpResult) or a.type != b.type:
            return None
        x, y = a.op, b.op
        if (
            type(x) is not type(y)
            or not x.operands
            or len(x.operands) != len(y.operands)
            or x.properties != y.properties
        ):
            return None
        if isinstance(x, AccessOp | tir.BufferOp | tir.VarOp):
            return None
        mine, other = list(x.operands), list(y.operands)
        if len(x.regions) != len(y.regions):
            return None
        for first, second in zip(x.regions, y.regions, strict=True):
            ends = first.block.last_op, second.block.last_op
            if not isinstance(ends[0], tir.YieldOp) or not isinstance(ends[1], tir.YieldOp):
                return None
            mine += ends[0].operands
            other += ends[1].operands
        return [(_seen_through(p), _seen_through(q)) for p, q in zip(mine, other, strict=True)]

    def _equal_numbers(self, a: SSAValue, b: SSAValue) -> bool:
        """Returns whether two index expressions are equal, however they are written."""
        if not is_index_type(a.type) or not is_index_type(b.type):
            return False
        return self.analyzer.can_prove_equal(self.ours(a), self.theirs(b))

    def why_not_accessed(self, mine: AccessOp, other: AccessOp) -> str | None:
        """Returns why an access differs from the description's; otherwise records its region, returns None."""
        name, wanted = tir.buffer_name(mine.buffer), tir.buffer_name(other.buffer)
        a, b = mine.buffer.type, other.buffer.type
        assert isinstance(a, tir.BufferType) and isinstance(b, tir.BufferType)
        if a.dtype != b.dtype or a.scope != b.scope:
            return f"'{name}' is {tir.type_to_dtype(a.dtype)} in scope '{a.scope.data}', where '{wanted}' of the description is {tir.type_to_dtype(b.dtype)} in '{b.scope.data}'"
        dropped = a.rank - b.rank
        if dropped < 0:
            return f"'{name}' has {counted(a.rank, 'dimension')}, fewer than '{wanted}' of the description"
        if isinstance(other, tir.LoadOp | tir.StoreOp) and (
            other.predicate is not None or getattr(mine, "predicate", None)
        ):
            return f"'{name}' is accessed under a mask"
        indices = [self.ours(i) for i in mine.indices]
        starts = indices[:dropped]
        for index, local in zip(indices[dropped:], other.indices, strict=True):
            starts.append(self.analyzer.simplify(index - self.theirs(local)))
        for number, start in enumerate(starts):
            varying = next((v for v in free_vars(start) if v in self.inner), None)
            if varying is not None:
                return f"index {number} of '{name}' is {indices[number]!r}, which does not move as that of '{wanted}' in the description"
        known = self.regions.get(other.buffer)
        if known is None:
            self.regions[other.buffer] = Region(mine.buffer, starts)
            return None
        if known.buffer is not mine.buffer:
            return f"'{name}' is accessed where '{tir.buffer_name(known.buffer)}' is '{wanted}' of the description elsewhere"
        if not all(self.analyzer.can_prove_equal(p, q) for p, q in zip(known.starts, starts, strict=True)):
            return f"'{name}' is accessed at another place than elsewhere as '{wanted}' of the description"
        return None

    # Expressions

    def put(self, e: Expr) -> Expr:
        """Returns an expression of the program, with its variables' values."""
        return self.analyzer.simplify(substitute(e, self.values)) if self.values else e

    def map(self, e: Expr) -> Expr:
        """Returns an expression of the description, in terms of the program's variables."""
        return self.analyzer.simplify(substitute(e, self.mapped))

    def ours(self, value: SSAValue) -> Expr:
        """Returns a value of the program as an expression."""
        return self.analyzer.simplify(self.put(self._plain.expr(value)))

    def theirs(self, value: SSAValue) -> Expr:
        """Returns a value of the description as an expression of the program's variables."""
        return self.map(self._plain.expr(value))

    def bind(self, variable: SSAValue, value: Expr) -> None:
        """Says what a variable of the description is."""
        atom = self._plain.variable(variable)
        self.mapped[atom] = value

    def differs(self, where: Operation, message: str, other: Operation | None, *notes: str) -> ScheduleError:
        """Returns the refusal at a statement."""
        error = refuse(where, f"{self.primitive}: {message}: it is not '{self.intrinsic.name}'", *notes)
        if other is None:
            return error
        (diagnostic,) = error.diagnostics
        return ScheduleError(
            diagnostic.with_note(f"the description has {describe_statement(other)} here", other.location)
        )


def describe_statement(op: Operation) -> str:
    """Returns a statement as messages call it."""
    match op:
        case tir.StoreOp():
            return f"the store to '{tir.buffer_name(op.buffer)}'"
        case tir.LoadOp():
            return f"the load of '{tir.buffer_name(op.buffer)}'"
        case tir.InitOp():
            return "T.init()"
        case _:
            return describe(op)


def _called(kind: str) -> str:
    return {"S": "spatial", "R": "a reduction"}.get(kind, kind)


def _statements(ops: Sequence[Operation]) -> list[Operation]:
    """Returns the statements to compare: not declarations of regions, and not values, compared where used."""
    return [
        op
        for op in ops
        if not isinstance(op, tir.ReadsOp | tir.WritesOp | tir.BufferRegionOp | tir.LoadOp | tir.CallOp)
        and not (op.results and is_side_effect_free(op))
    ]


def _seen_through(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, tir.LetOp):
        value = value.owner.value
    return value
