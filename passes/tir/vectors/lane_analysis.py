"""Analyzes a loop whose iterations become lanes: which values differ between lanes, and how.

A value that is linear in the loop variable becomes a ramp. Whether it is linear is read off the analyzer's form of an index or of a bound;
whatever else depends on the loop variable becomes some other vector.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import Expr
from ....dialects.arith.expr import Atom, Kind, conjuncts, free_vars, logical_and, substitute
from ....dialects.tir.buffer import AccessOp
from ....dialects.tir.types import lanes_of
from ....support.edit import PlacedBuilder, builder_before
from ....support.operands import operands_of
from ....support.walk import all_ops
from ..analyzed_walk import analyzer_at
from .lane_permutation import LaneWindow, flat_index, window_of


class NoVectorForm(Exception):
    """This loop has no vector form."""


class LoopLanes:
    """The lanes of one loop, and what has been rebuilt of its body so far."""

    def __init__(self, loop: tir.ForOp, lanes: int):
        self.loop = loop
        self.lanes = lanes
        self.analyzer = analyzer_at(loop)
        self.loop_var = loop.loop_var
        self.inside: set[Operation] = set()
        self.inputs: dict[SSAValue, tuple[SSAValue, ...]] = {}
        """What each value of the loop is computed from, by ops of its regions too."""
        for op in all_ops(loop):
            if op is not loop:
                self.inside.add(op)
                if op.results:
                    inputs = operands_of(op)
                    for region in op.regions:
                        inputs = (*inputs, *(o for each in region.block.ops for o in operands_of(each)))
                    for result in op.results:
                        self.inputs[result] = inputs
        self.mapped: dict[SSAValue, SSAValue] = {}
        self.masks: list[SSAValue] = []
        self.conditions: list[SSAValue] = []
        """What holds in every lane that is not masked."""
        self.views: dict[SSAValue, SSAValue] = {}
        self.choosing = False
        """Whether a side of a lane-by-lane choice is being rebuilt: its loads are for the lanes of the mask only."""
        self.shared_loads = False
        """Whether the region rebuilt last, under a mask, loads what all lanes share."""
        self.analyzer.bind(loop.loop_var, loop.min, loop.extent)
        self.variable = self.analyzer.expr(loop.loop_var)
        atom = self.variable.atom
        assert atom is not None
        self.atom = atom

    def is_varying(self, value: SSAValue) -> bool:
        """Returns whether the value may differ between lanes, judged by what it is computed from."""
        pending, seen, mapped, inputs = [value], set[SSAValue](), self.mapped, self.inputs
        while pending:
            current = pending.pop()
            if current is self.loop_var:
                return True
            if current in seen:
                continue
            seen.add(current)
            new = mapped.get(current)
            if new is not None:
                if lanes_of(new.type) > 1:
                    return True
            elif current in inputs:
                pending += inputs[current]
        return False

    def is_linear(self, e: Expr) -> bool:
        """Returns whether an expression is linear in the lane, or the same in all."""
        return self.atom not in free_vars(e - self.variable.scaled(e.coefficient(self.atom)))

    def hidden(self, e: Expr) -> bool:
        """Returns whether `e` contains a variable that is a vector, or not rebuilt."""
        for atom in free_vars(e):
            value = atom.payload
            if not isinstance(value, SSAValue) or atom is self.atom:
                continue
            new = self.mapped.get(value)
            if new is not None and lanes_of(new.type) > 1:
                return True
            if new is None and isinstance(value, OpResult) and value.op in self.inside:
                return True
        return False

    def reads_back(self, op: tir.StoreOp) -> bool:
        """Returns whether the loop also reads the buffer."""
        return any(isinstance(u.operation, tir.LoadOp) and u.operation in self.inside for u in op.buffer.uses)

    def rebuilt(self, e: Expr) -> dict[Atom, SSAValue]:
        """Returns the values that replace the variables of `e` in the new body, as those of inner loops."""
        return {
            atom: self.mapped[value]
            for atom in free_vars(e)
            if isinstance(value := atom.payload, SSAValue) and value in self.mapped
        }

    def operand(self, value: SSAValue, builder: PlacedBuilder) -> SSAValue:
        """Returns a value that is not a number: as rebuilt, or from outside."""
        if value in self.mapped:
            return self.mapped[value]
        if isinstance(value, OpResult) and value.op in self.inside:
            raise NoVectorForm
        return value

    def spread(self, value: SSAValue, builder: PlacedBuilder) -> SSAValue:
        """Broadcasts a scalar to a vector."""
        if lanes_of(value.type) > 1:
            return value
        return builder.insert(tir.BroadcastOp(value, self.lanes)).result

    def linear(self, e: Expr, type_: object, builder: PlacedBuilder) -> SSAValue:
        """Builds base + factor * variable as a ramp (or the base alone)."""
        factor = e.coefficient(self.atom)
        rest = e - self.variable.scaled(factor)
        if self.atom in free_vars(rest) or self.hidden(rest):
            raise NoVectorForm
        assert isinstance(type_, IntegerType)
        base = rest + self.analyzer.expr(self.loop.min).scaled(factor)
        start = self.analyzer.to_ssa(base, builder, type_, self.rebuilt(base))
        if factor == 0:
            return start
        step = builder.insert(tir.ConstOp.int(factor, type_)).result
        return builder.insert(tir.RampOp(start, step, self.lanes)).result

    def flat_access(self, op: AccessOp, builder: PlacedBuilder) -> tuple[SSAValue, list[SSAValue]]:
        """Returns an access whose lanes are in several rows through a one-dimensional view of the buffer."""
        total = self.flat_place(op)
        if total is None:
            raise NoVectorForm
        view = self.flat_view(op, builder)
        return view, [self.linear(self.analyzer.simplify(total), op.indices[-1].type, builder)]

    def divides_in_vain(self, op: AccessOp) -> bool:
        """Returns whether indices have quotients and remainders that cancel in the flat index.

        As those of a fused axis: A[f // 8, f % 8] of 8 columns is at f.
        """
        if not any(_divides(self.analyzer.expr(index)) for index in op.indices):
            return False
        place = self.flat_place(op)
        place = None if place is None else self.analyzer.simplify(place)
        return place is not None and self.is_linear(place) and not _divides(place)

    def flat_place(self, op: AccessOp) -> Expr | None:
        """Returns the flat index of an access to a compact buffer of known extents; None for others."""
        owner = op.buffer.owner
        if isinstance(owner, tir.BufferOp) and (owner.stride_dims.data or owner.elem_offset is not None):
            return None
        return flat_index(buffer_type(op.buffer), tuple(self.analyzer.expr(index) for index in op.indices))

    def flat_view(self, op: AccessOp, builder: PlacedBuilder) -> SSAValue:
        """Returns a view of the buffer of an access as one row."""
        old = buffer_type(op.buffer)
        assert old.static_shape is not None
        buffer = self.operand(op.buffer, builder)
        view = self.views.get(buffer)
        if view is None:
            outside = builder_before(self.loop)
            data = outside.insert(tir.BufferGetOp(buffer, "data", tir.HandleType.get(old.dtype)))
            name = f"{tir.buffer_name(op.buffer)}_flat"
            type_ = tir.BufferType.get([prod(old.static_shape)], old.dtype, old.scope.data)
            view = self.views[buffer] = outside.insert(tir.DeclBufferOp(name, type_, source=data.result)).result
            view.name_hint = name
        return view

    def window(self, op: tir.LoadOp) -> LaneWindow | None:
        """Returns the window of a load whose lanes are close together but not a ramp; None for other loads."""
        if not any([self.is_varying(index) for index in op.indices]):
            return None
        place = self.flat_place(op)
        if place is None or self.atom not in free_vars(place):
            return None
        place = self.analyzer.simplify(place)
        factor = place.coefficient(self.atom)
        if self.hidden(place) or (factor >= 0 and self.atom not in free_vars(place - self.variable.scaled(factor))):
            return None
        return window_of(place, self.atom, self.analyzer.expr(self.loop.min), self.lanes, self.analyzer)

    def ends(self, conditions: list[SSAValue]) -> tuple[Expr, Expr] | None:
        """Returns when a conjunction of linear bounds holds in all lanes, and (at least) when in any lane.

        None for any other condition.
        """
        low = self.analyzer.expr(self.loop.min)
        high = low + (self.lanes - 1)
        everywhere: list[Expr] = []
        somewhere: list[Expr] = []
        for condition in conditions:
            for part in conjuncts(self.analyzer.simplify(condition)):
                atom = part.atom
                if part.value is not None:
                    everywhere.append(part)
                    somewhere.append(part)
                    continue
                if atom is None or atom.kind is not Kind.GE or self.hidden(part):
                    return None
                factor = atom.operands[0].coefficient(self.atom)
                if self.atom in free_vars(atom.operands[0] - self.variable.scaled(factor)):
                    return None
                worst, best = (low, high) if factor >= 0 else (high, low)
                everywhere.append(substitute(part, {self.atom: worst}))
                somewhere.append(substitute(part, {self.atom: best}))
        return (
            self.analyzer.simplify(logical_and(*everywhere)),
            self.analyzer.simplify(logical_and(*somewhere)),
        )


def conjuncts_of(condition: SSAValue) -> list[SSAValue]:
    """Returns the conditions that `and` joins in `condition`."""
    owner = condition.owner
    if isinstance(owner, tir.AndOp):
        return [*conjuncts_of(owner.lhs), *conjuncts_of(owner.rhs)]
    return [condition]


def buffer_type(buffer: SSAValue) -> tir.BufferType:
    """Returns the type of a buffer."""
    assert isinstance(buffer.type, tir.BufferType)
    return buffer.type


def _divides(e: Expr) -> bool:
    return any(atom.kind in (Kind.FLOORDIV, Kind.FLOORMOD) or any(map(_divides, atom.operands)) for atom, _ in e.terms)
