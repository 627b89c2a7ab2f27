"""The pass `vectorize-loop`: the iterations of a vectorized loop become the lanes of vectors.

    for i in T.vectorized(4):
        B[i] = A[i] + 1           →     B[0:4] = A[0:4] + T.Broadcast(1, 4)

An index that is linear in the loop variable becomes a ramp, whatever does not depend on it stays scalar. A condition that
differs between lanes becomes a mask, after a test whether all lanes take it. What has no vector form (a loop whose bounds
depend on the lane, a call with effects, memory of each lane's own) leaves the whole loop serial, as does what vectors would
compute in another order than the loop: where an iteration may read what an earlier one wrote (`loop_dependence.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ....dialects import tir
from ....dialects.arith.expr import FALSE, TRUE, free_vars, logical_and
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.intrinsics import Effect, intrinsic_effect
from ....dialects.tir.scalar_ops import INTRINSICS, OPERATORS
from ....dialects.tir.types import I1, element_of, is_vector, lanes_of, with_lanes
from ....support.edit import (
    PlacedBuilder,
    builder_at_end,
    create_op,
    detach,
    erase_op,
    move_before,
    replace_all_uses_with,
)
from ....support.op_kinds import Kinds
from ....support.operands import operands_of
from ....support.trace import tracer
from ....support.walk import all_ops, op_around, ops_in
from ...pass_info import explanation
from ..blocks.convert_blocks_to_opaque import REASSOCIATE
from ..clone_body import hoist_views
from ..loops.loop_dependence import IterationOrder
from ..rewriting import PrimFuncPass, erase_dead, ops_of
from .lane_analysis import LoopLanes, NoVectorForm, buffer_type, conjuncts_of
from .lane_permutation import LaneWindow

MAX_LANES = 1024
HORIZONTAL: dict[type[Operation], str] = {
    op: name for op, row in OPERATORS.items() if (name := f"vector_reduce_{row.name}") in INTRINSICS
}
"""The intrinsic that combines the lanes of a vector as an op combines a reduction's terms."""


_STATEMENTS = Kinds(
    tir.StoreOp, tir.LoadOp, tir.IfOp, tir.ForOp, tir.EvaluateOp, tir.AssertOp, tir.IfThenElseOp, tir.CallOp, tir.BufferOp,
    tir.AllocateOp, tir.AllocateConstOp, tir.ScopeOp, tir.AttrOp, tir.WhileOp, tir.BlockOp, tir.LaunchThreadOp, tir.RealizeOp,
    tir.PrefetchOp,
)  # fmt: skip
"""What is rebuilt where it stands; all else is rebuilt where its value is asked for."""
_SPECIAL = Kinds(
    tir.IfThenElseOp, tir.LoadOp, tir.CallOp, tir.RampOp, tir.BroadcastOp, tir.ShuffleOp, tir.CommReducerOp,
    tir.LetOp,
)  # fmt: skip
"""Values that are not rebuilt as the same op on vectors."""
_OPAQUE_CALLS = ("call_pure_extern", "call_llvm_pure_intrin", "address_of", "tvm_access_ptr")
"""Pure calls that have no form on vectors."""


class _Vectorizer(LoopLanes):
    """Rebuilds the body of one loop over vectors, at `builder`'s place."""

    # Statements

    def block(self, ops: Iterable[Operation], builder: PlacedBuilder) -> None:
        """Rebuilds statements in order; pure ops wait until their values are asked for."""
        around = builder.location
        for op in ops:
            if not _STATEMENTS[type(op)]:
                continue
            builder.location = _place(op, around)
            match op:
                case tir.StoreOp():
                    self.store(op, builder)
                case tir.LoadOp():
                    if op.result.uses:
                        self.load(op, builder)
                case tir.IfOp():
                    self.branch(op, builder)
                case tir.ForOp():
                    self.inner_loop(op, builder)
                case tir.EvaluateOp():
                    if self.is_varying(op.value):
                        raise NoVectorForm
                case tir.AssertOp():
                    condition = self.scalar(op.condition, builder)
                    builder.insert(tir.AssertOp(condition, op.message.data))
                case tir.IfThenElseOp():
                    if op.result.uses:
                        self.value(op.result, builder)
                case tir.CallOp() if op.callee is not None or intrinsic_effect(op.intrinsic.data) is Effect.OPAQUE:
                    raise NoVectorForm
                case tir.BufferOp() | tir.AllocateOp() | tir.AllocateConstOp() | tir.ScopeOp() | tir.AttrOp():
                    raise NoVectorForm
                case tir.WhileOp() | tir.BlockOp() | tir.LaunchThreadOp() | tir.RealizeOp() | tir.PrefetchOp():
                    raise NoVectorForm
                case _:
                    pass

    def branch(self, op: tir.IfOp, builder: PlacedBuilder) -> None:
        """Rebuilds a branch: one for all lanes, or one with a mask."""
        if not self.is_varying(op.condition):
            condition = self.value(op.condition, builder)
            then, otherwise = self.region(op.then_region, builder), Region()
            if op.else_region.blocks:
                otherwise = self.region(op.else_region, builder)
            builder.insert(tir.IfOp(condition, then, otherwise))
            return
        if op.else_region.blocks or self.masks:
            raise NoVectorForm
        uniform: SSAValue | None = None
        varying: list[SSAValue] = []
        for part in conjuncts_of(op.condition):
            if self.is_varying(part):
                varying.append(part)
            else:
                value = self.value(part, builder)
                uniform = value if uniform is None else builder.insert(tir.AndOp(uniform, value)).result
        if uniform is None:
            self.masked_branch(op, varying, builder)
            return
        # What holds for all lanes is tested first: it may be what keeps accesses that all lanes share in bounds.
        block = Block()
        inner = builder.at_end(block)
        saved = dict(self.mapped)
        self.masked_branch(op, varying, inner)
        self.mapped = saved
        builder.insert(tir.IfOp(uniform, Region(block)))

    def masked_branch(self, op: tir.IfOp, conditions: list[SSAValue], builder: PlacedBuilder) -> None:
        """Rebuilds a body for the lanes where all `conditions` hold: unmasked when they hold in all."""
        ends = self.ends(conditions)
        block = Block()
        inner = builder.at_end(block)
        saved = dict(self.mapped)
        mask: SSAValue | None = None
        for condition in conditions:
            value = self.spread(self.value(condition, inner), inner)
            mask = value if mask is None else inner.insert(tir.AndOp(mask, value)).result
        assert mask is not None
        self.conditions += conditions
        self.masks.append(mask)
        self.shared_loads = False
        self.block(op.then_region.block.ops, inner)
        self.masks.pop()
        self.mapped = saved
        if ends is None:
            if self.shared_loads:
                raise NoVectorForm
            del self.conditions[len(self.conditions) - len(conditions) :]
            for masked in ops_in(block):
                detach(masked)
                builder.insert(masked)
            return
        everywhere, somewhere = (self.analyzer.to_ssa(e, builder, I1, self.rebuilt(e)) for e in ends)
        otherwise = Region(block)
        if self.shared_loads:
            # An access that all lanes share is in bounds only where some lane is.
            otherwise = Region(Block([tir.IfOp(somewhere, otherwise)]))
        builder.insert(tir.IfOp(everywhere, self.region(op.then_region, builder), otherwise))
        del self.conditions[len(self.conditions) - len(conditions) :]

    def region(self, region: Region, builder: PlacedBuilder) -> Region:
        """Rebuilds a region in a new block; its values are not known outside."""
        block = Block()
        inner = builder.at_end(block)
        saved = dict(self.mapped)
        self.block(region.block.ops, inner)
        self.mapped = saved
        return Region(block)

    def inner_loop(self, op: tir.ForOp, builder: PlacedBuilder) -> None:
        """Rebuilds a loop with the same bounds for all lanes, around vectors."""
        start, extent = self.scalar(op.min, builder), self.scalar(op.extent, builder)
        block = Block(arg_types=[op.loop_var.type])
        inner = builder.at_end(block)
        saved = dict(self.mapped)
        self.mapped[op.loop_var] = block.args[0]
        block.args[0].name_hint = op.loop_var.name_hint
        # What is known of the extent because the body runs does not hold after the loop.
        with self.analyzer.bind(op.loop_var, op.min, op.extent):
            self.block(op.body.block.ops, inner)
        self.mapped = saved
        thread = op.thread.data if op.thread is not None else None
        kind = "serial" if op.kind.data == "vectorized" else op.kind.data
        builder.insert(
            tir.ForOp(
                op.var_name.data,
                start,
                extent,
                kind=kind,
                thread=thread,
                annotations=op.annotations,
                body=Region(block),
            )
        )

    # Accesses

    def indices(self, op: AccessOp, builder: PlacedBuilder) -> tuple[SSAValue, list[SSAValue]]:
        """Returns the buffer and the indices, the last one a vector where any depends on the lane."""
        varying = [self.is_varying(i) for i in op.indices]
        if any(lanes_of(i.type) > 1 for i in op.indices) or lanes_of(buffer_type(op.buffer).dtype) > 1:
            raise NoVectorForm
        if any(varying[:-1]) or (any(varying) and self.divides_in_vain(op)):
            return self.flat_access(op, builder)
        indices = [self.scalar(i, builder) for i in op.indices[:-1]]
        if op.indices:
            indices.append(self.index(op.indices[-1], builder))
        return self.operand(op.buffer, builder), indices

    def index(self, value: SSAValue, builder: PlacedBuilder) -> SSAValue:
        """Returns an index: scalar, a ramp, or any vector."""
        if not self.is_varying(value):
            return self.scalar(value, builder)
        e = self.analyzer.simplify(value)
        if not self.is_linear(e) and self.conditions:
            # Lanes for which a condition does not hold are masked: what they would read does not matter.
            with self.analyzer.constraint(logical_and(*map(self.analyzer.expr, self.conditions))):
                e = self.analyzer.simplify(e)
        if not self.is_linear(e) or (self.atom in free_vars(e) and self.hidden(e)):
            return self.value(value, builder)
        return self.linear(e, value.type, builder)

    def load(self, op: tir.LoadOp, builder: PlacedBuilder) -> None:
        if op.predicate is not None:
            raise NoVectorForm
        window = None if self.masks else self.window(op)
        if window is not None:
            self.mapped[op.result] = self.load_window(op, window, builder)
            return
        buffer, indices = self.indices(op, builder)
        varying = bool(indices) and lanes_of(indices[-1].type) > 1
        if self.choosing and indices and not varying:
            # Only some lanes may read it, perhaps none.
            indices[-1] = self.spread(indices[-1], builder)
            varying = True
        mask = self.masks[-1] if self.masks and varying else None
        self.shared_loads = self.shared_loads or (bool(self.masks) and not varying)
        new = builder.insert(tir.LoadOp(buffer, indices, mask))
        new.result.name_hint = op.result.name_hint
        self.mapped[op.result] = new.result

    def load_window(self, op: tir.LoadOp, window: LaneWindow, builder: PlacedBuilder) -> SSAValue:
        """Lanes picked out of the vectors that hold what they read; a scalar where that is one element."""
        view, type_ = self.flat_view(op, builder), op.indices[-1].type
        starts, width, picked = window.loads
        loaded: list[SSAValue] = []
        for start in starts:
            at = window.start + start
            place = self.analyzer.to_ssa(at, builder, type_, self.rebuilt(at))
            if width > 1:
                one = builder.insert(tir.ConstOp.int(1, type_)).result
                place = builder.insert(tir.RampOp(place, one, width)).result
            loaded.append(builder.insert(tir.LoadOp(view, [place])).result)
            loaded[-1].name_hint = op.result.name_hint
        if picked == tuple(range(width)) or width == 1:
            return loaded[0]
        return builder.insert(tir.ShuffleOp(loaded, picked)).result

    def store(self, op: tir.StoreOp, builder: PlacedBuilder) -> None:
        if op.predicate is not None:
            raise NoVectorForm
        buffer, indices = self.indices(op, builder)
        if not indices or lanes_of(indices[-1].type) == 1:
            value = self.combined(op, builder)
            if value is not None:
                builder.insert(tir.StoreOp(value, buffer, indices))
                return
        value = self.value(op.value, builder)
        if not indices or lanes_of(indices[-1].type) == 1:
            # Every lane stores to one place: only the last counts, and each may read what the one before stored.
            if lanes_of(value.type) > 1 or self.masks or self.reads_back(op):
                raise NoVectorForm
            builder.insert(tir.StoreOp(value, buffer, indices))
            return
        new = builder.insert(
            tir.StoreOp(self.spread(value, builder), buffer, indices, self.masks[-1] if self.masks else None)
        )
        new.attributes.update(op.attributes)

    def combined(self, op: tir.StoreOp, builder: PlacedBuilder) -> SSAValue | None:
        """Returns what a reduction whose lanes meet in one element stores there, the lanes combined; or None."""
        update = op.value.owner
        if not isinstance(update, Operation) or REASSOCIATE not in update.attributes or self.masks:
            return None
        name = HORIZONTAL.get(type(update))
        old = next(
            (o for o in update.operands if isinstance(o.owner, tir.LoadOp) and o.owner.buffer is op.buffer), None
        )
        terms = [o for o in update.operands if o is not old]
        if name is None or old is None or len(terms) != 1 or self.is_varying(old) or not self.is_varying(terms[0]):
            return None
        if not self.adds_up(op, old, terms[0].owner):
            return None
        term = self.spread(self.value(terms[0], builder), builder)
        total = builder.insert(tir.CallOp(name, [term], old.type)).results[0]
        operands = [self.value(old, builder), total]
        new = type(update).create(operands=operands, result_types=[old.type], attributes=update.attributes)
        return builder.insert(new).results[0]

    def adds_up(self, op: tir.StoreOp, old: SSAValue, term: Operation | Block) -> bool:
        """Returns whether the loop accesses the element that a store updates only to update it.

        Nothing else sees a part of the sum then. A maximum or minimum may have the old value as the term of some lanes:
        `T.max(v, T.if_then_else(lane < 7, A[lane], v))`.
        """
        load, update = old.owner, op.value.owner
        assert isinstance(load, tir.LoadOp)
        chooses = isinstance(update, tir.MinOp | tir.MaxOp)
        for use in old.uses:
            user = use.operation
            branch = isinstance(user, tir.YieldOp) and isinstance(term, tir.IfThenElseOp) and op_around(user) is term
            if user is not update and not (chooses and branch):
                return False
        expr = self.analyzer.expr
        return [*map(expr, load.indices)] == [*map(expr, op.indices)] and not any(
            isinstance(use.operation, AccessOp) and use.operation in self.inside
            for use in op.buffer.uses
            if use.operation is not op and use.operation is not load
        )

    # Values

    def scalar(self, value: SSAValue, builder: PlacedBuilder) -> SSAValue:
        """Returns a value that must be the same in all lanes."""
        new = self.value(value, builder)
        if lanes_of(new.type) > 1:
            raise NoVectorForm
        return new

    def value(self, value: SSAValue, builder: PlacedBuilder) -> SSAValue:
        """Returns the value in vector form where it differs between lanes, otherwise as a scalar."""
        known = self.mapped.get(value)
        if known is not None:
            return known
        if value is self.loop_var:
            one = builder.insert(tir.ConstOp.int(1, value.type)).result
            new = builder.insert(tir.RampOp(self.loop.min, one, self.lanes)).result
        elif type(value) is OpResult and value.op in self.inside:
            new = self.rebuild(value.op, builder)
        else:
            return value
        self.mapped[value] = new
        if new.name_hint is None:
            new.name_hint = value.name_hint
        return new

    def rebuild(self, op: Operation, builder: PlacedBuilder) -> SSAValue:
        """Rebuilds one pure op over vectors, which keeps its location."""
        around = builder.location
        builder.location = _place(op, around)
        rebuilt = self.in_vectors(op, builder)
        builder.location = around
        return rebuilt

    def in_vectors(self, op: Operation, builder: PlacedBuilder) -> SSAValue:
        """Returns the value of a pure op over vectors."""
        if _SPECIAL[type(op)] or op.regions:
            match op:
                case tir.IfThenElseOp():
                    return self.choice(op, builder)
                case tir.LoadOp():
                    self.load(op, builder)
                    return self.mapped[op.result]
                case tir.LetOp():
                    if op.var is not None:
                        # Of the variable that the text names it is one number.
                        return self.value(op.value, builder)
                case tir.CallOp():
                    opaque = (
                        op.callee is not None
                        or intrinsic_effect(op.intrinsic.data) is not Effect.PURE
                        or op.intrinsic.data in _OPAQUE_CALLS
                    )
                    if opaque and self.is_varying(op.results[0]):
                        raise NoVectorForm
                case _:
                    raise NoVectorForm
        operands: list[SSAValue] = []
        vector = False
        for operand in operands_of(op):
            kind = type(operand.type)
            if kind is tir.BufferType or kind is tir.HandleType:
                new = self.operand(operand, builder)
            else:
                new = self.value(operand, builder)
            vector = vector or is_vector(new.type)
            operands.append(new)
        (old,) = op.results
        result = old.type
        if vector:
            operands = [self.spread(o, builder) for o in operands]
            result = with_lanes(element_of(result), self.lanes)
        made = create_op(type(op), operands, (result,), dict(op.properties), builder.location)
        if op.attributes:
            made.attributes.update(op.attributes)
        (new,) = builder.insert(made).results
        return new

    def choice(self, op: tir.IfThenElseOp, builder: PlacedBuilder) -> SSAValue:
        """Rebuilds `T.if_then_else`: the side that all lanes take, one choice for all, or both sides.

        Of both sides each loads for its own lanes only.
        """
        ends = self.ends([op.condition]) if self.is_varying(op.condition) else None
        if ends is not None and ends[0] == TRUE:
            return self.side(op.then_region, builder)
        if ends is not None and ends[1] == FALSE:
            return self.side(op.else_region, builder)
        if ends is not None and ends[0] == ends[1]:
            condition = self.analyzer.to_ssa(ends[0], builder, I1, self.rebuilt(ends[0]))
        else:
            condition = self.value(op.condition, builder)
        if lanes_of(condition.type) > 1:
            return self.lane_choice(op, condition, builder)
        varying = self.is_varying(op.result)
        regions: list[Region] = []
        for region in (op.then_region, op.else_region):
            block = Block()
            inner = builder.at_end(block)
            saved = dict(self.mapped)
            value = self.side(region, inner)
            inner.insert(tir.YieldOp(self.spread(value, inner) if varying else value))
            self.mapped = saved
            regions.append(Region(block))
        type_ = with_lanes(op.result.type, self.lanes) if varying else op.result.type
        return builder.insert(tir.IfThenElseOp(condition, regions[0], regions[1], type_)).result

    def side(self, region: Region, builder: PlacedBuilder) -> SSAValue:
        """Rebuilds one side of a choice at `builder`; returns its value."""
        last = region.block.last_op
        assert isinstance(last, tir.YieldOp)
        self.block((o for o in region.block.ops if o is not last), builder)
        return self.value(last.values[0], builder)

    def lane_choice(self, op: tir.IfThenElseOp, condition: SSAValue, builder: PlacedBuilder) -> SSAValue:
        """Rebuilds a choice that differs between lanes."""
        values: list[SSAValue] = []
        for region, negated in ((op.then_region, False), (op.else_region, True)):
            mask = builder.insert(tir.NotOp(condition)).result if negated else condition
            if self.masks:
                mask = builder.insert(tir.AndOp(self.masks[-1], mask)).result
            saved, choosing = dict(self.mapped), self.choosing
            self.masks.append(mask)
            self.choosing = True
            values.append(self.spread(self.side(region, builder), builder))
            self.masks.pop()
            self.mapped, self.choosing = saved, choosing
        return builder.insert(tir.SelectOp(condition, values[0], values[1])).result


def vectorize(loop: tir.ForOp) -> bool:
    """Replaces one loop by vector ops; False when it had to become serial."""
    hoist_views(loop)
    owner = loop.extent.owner
    lanes = owner.value.value.data if isinstance(owner, tir.ConstOp) and isinstance(owner.value, IntegerAttr) else 0
    if lanes == 1:
        replace_all_uses_with(loop.loop_var, loop.min)
        move_before(loop.body.block.ops, loop)
        erase_op(loop)
        return True
    ops = all_ops(loop)
    if not 1 < lanes <= MAX_LANES or any(map(_is_vector, ops)) or _is_ordered(loop, ops):
        loop.properties["kind"] = StringAttr("serial")
        return False
    holder = Block()
    builder = builder_at_end(holder, loop.location)
    try:
        _Vectorizer(loop, lanes).block(loop.body.block.ops, builder)
    except NoVectorForm:
        # What was made so far uses the function's values: it must not outlive this.
        for op in reversed(ops_in(holder)):
            op.detach()
            op.erase(safe_erase=False)
        loop.properties["kind"] = StringAttr("serial")
        return False
    move_before(holder.ops, loop)
    erase_op(loop)
    return True


def _place(op: Operation, around: LocationAttr) -> LocationAttr:
    """Returns the location of what an op becomes: its own, or `around` where it has none."""
    return around if isinstance(op.location, UnknownLoc) else op.location


def _is_ordered(loop: tir.ForOp, ops: list[Operation]) -> bool:
    """Returns whether vectors would break the order in which a loop accesses memory; it is then reported."""
    conflict = IterationOrder(loop, ops).conflict_of_lanes()
    explain = tracer(explanation("vectorize-loop")) if conflict is not None else None
    if conflict is not None and explain is not None:
        explain(loop, f"loop '{loop.var_name.data}' stays serial: {conflict.reason}", *conflict.notes)
    return conflict is not None


def _is_vector(op: Operation) -> bool:
    return any([is_vector(result.type) for result in op.results])


@dataclass(frozen=True)
class VectorizeLoop(PrimFuncPass):
    """Turns loops of kind `vectorized` into vector expressions.

    Without `enable_vectorize` they become serial loops.
    """

    name = "vectorize-loop"
    enable_vectorize: bool = True

    def apply_to(self, function: tir.PrimFuncOp) -> None:
        """Vectorizes every such loop of the module, inner ones first."""
        loops = [loop for loop in ops_of(function, tir.ForOp) if loop.kind.data == "vectorized"]
        for loop in reversed(loops):
            if self.enable_vectorize:
                vectorize(loop)
            else:
                loop.properties["kind"] = StringAttr("serial")
        if loops:
            erase_dead(function)
