"""Integers of fewer bits for what indices are made of.

A variable (of a loop, axis or thread) becomes narrow where all the index arithmetic that it takes part in stays in range, by
the bounds that the analyzer knows. What else uses it gets it cast back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.buffer import AccessOp, BufferOp
from ....dialects.tir.operators import as_const
from ....dialects.tir.scalar_ops import ARITHMETIC
from ....dialects.tir.types import element_of, with_lanes_of
from ....support.diagnostics import error_at
from ....support.edit import builder_before
from ....support.walk import walk_ops
from ..analyzed_walk import AnalyzedWalk, Visit
from ..rewriting import erase_dead

_TREE = (*ARITHMETIC, tir.SelectOp, tir.RampOp, tir.BroadcastOp, tir.LetOp)


@dataclass
class Root:
    """Operands of an op that become narrow together: whether they fit, and the variables in them."""

    op: Operation
    places: tuple[int, ...]
    fits: bool
    variables: set[SSAValue]


@dataclass
class Binder:
    """A variable that an op binds, and the operands that are its range."""

    op: tir.ForOp | tir.BlockOp | tir.LaunchThreadOp
    index: int
    variable: SSAValue
    places: tuple[int, ...]


class Narrower(AnalyzedWalk):
    """Narrows the indices of one function to `bits`; with `force`, whatever their bounds are.

        for i in range(T.int64(4)): A[i] = 1        for i in range(4): A[i] = 1        (bits = 32)

    `widen` makes them wider instead.
    """

    def __init__(self, bits: int, force: bool = False, widen: bool = False):
        super().__init__(Analyzer())
        self.bits = bits
        self.force = force
        self.widen = widen
        self.type = IntegerType(bits)
        self.roots: list[Root] = []
        self.binders: list[Binder] = []
        self.blocked: set[SSAValue] = set()
        self.memo: dict[SSAValue, SSAValue] = {}

    def narrow(self, func: tir.PrimFuncOp) -> None:
        """Narrows the function's variables and indices; with `force`, also its parameters and buffer sizes."""
        self.run(func)
        for root in self.roots:
            if not root.fits:
                self.blocked |= root.variables
        if self.force:
            self.parameters(func)
        for binder in self.binders:
            self.rebind(binder)
        for root in self.roots:
            if root.fits and not root.variables & self.blocked:
                self.replace(root.op, root.places)
        if self.force:
            self.sizes(func)
        erase_dead(func)

    # What fits ---------------------------------------------------------------------------------------------------

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """Takes down what may become narrow, under what is known there."""
        match op:
            case AccessOp():
                for place in range(1, 1 + len(op.indices)):
                    self.root(op, (place,))
            case tir.BufferRegionOp():
                # A constant range is written as the sizes of its buffer are.
                for low, extent in zip(
                    range(1, 1 + len(op.mins)), range(1 + len(op.mins), len(op.operands)), strict=True
                ):
                    if self.force or as_const(op.operands[low]) is None:
                        self.root(op, (low, extent))
            case tir.CompareOp():
                self.root(op, (0, 1))
            case tir.CastOp():
                self.root(op, (0,))
            case BufferOp() | tir.AllocateOp() if self.force:
                for place in range(len(op.operands)):
                    self.root(op, (place,))
            case tir.ForOp() if op.var is None:
                self.binder(Binder(op, 0, op.loop_var, (0, 1)))
            case tir.BlockOp():
                count = len(op.iter_vars)
                for index, variable in enumerate(op.iter_vars):
                    self.binder(Binder(op, index, variable, (index, count + index, 2 * count + index)))
            case tir.LaunchThreadOp() if op.env is None:
                self.binder(Binder(op, 0, op.result, (0,)))
            case _:
                pass
        yield from self.inside(op)
        return None

    def binder(self, binder: Binder) -> None:
        """Notes a variable, if it is too wide and its range fits."""
        if not self.is_wide(binder.variable.type):
            return
        limits = [binder.op.operands[place] for place in binder.places]
        if all([self.fits(limit, set()) for limit in limits]):
            self.binders.append(binder)
        else:
            self.blocked.add(binder.variable)

    def root(self, op: Operation, places: tuple[int, ...]) -> None:
        """Notes operands, if they are too wide."""
        if not all(self.is_wide(op.operands[place].type) for place in places):
            return
        variables: set[SSAValue] = set()
        fits = all([self.fits(op.operands[place], variables) for place in places])
        if self.widen and not variables and isinstance(op, tir.CompareOp | tir.CastOp):
            return  # Of what tensors hold.
        self.roots.append(Root(op, places, fits, variables))

    def is_wide(self, type: Attribute) -> bool:
        """Returns whether a type is of signed integers of more bits than `bits` (of fewer, to widen them)."""
        element = element_of(type)
        if not is_index_type(element) or not isinstance(element, IntegerType):
            return False
        width = element.width.data
        return 32 <= width < self.bits if self.widen else width > self.bits

    def fits(self, value: SSAValue, variables: set[SSAValue]) -> bool:
        """Returns whether all values that the tree of `value` computes are in range; collects its variables."""
        pending, result, seen = [value], True, set[SSAValue]()
        while pending:
            current = pending.pop()
            if current in seen or not self.is_wide(current.type):
                continue
            seen.add(current)
            owner = current.owner
            result = result and self.is_in_range(current)
            if isinstance(owner, _TREE):
                pending += owner.operands
            elif isinstance(owner, (Block, tir.LaunchThreadOp)):
                variables.add(current)
        return result

    def is_in_range(self, value: SSAValue) -> bool:
        """Returns whether a value surely fits."""
        if self.force or not is_index_type(value.type):
            return True  # The lanes of a vector are what its parts are.
        bound = self.analyzer.const_int_bound(value)
        return -(1 << (self.bits - 1)) <= bound.min_value and bound.max_value < 1 << (self.bits - 1)

    # Rewriting ---------------------------------------------------------------------------------------------------

    def parameters(self, func: tir.PrimFuncOp) -> None:
        """Parameters that are integers, and symbolic sizes, become narrow."""
        for op in list(walk_ops(func)):
            if isinstance(op, tir.VarOp) and self.is_wide(op.result.type):
                wide = op.result.type
                new = Rewriter.replace_value_with_new_type(op.result, self.type)
                self.cast_back(new, wide, Builder(InsertPoint.after(op)))
        for index, param in enumerate(list(func.body.block.args)):
            if self.is_wide(param.type):
                self.rebind_argument(func.body.block, index)

    def rebind(self, binder: Binder) -> None:
        """Narrows a variable, where all index arithmetic with it fits."""
        if binder.variable in self.blocked:
            return
        self.replace(binder.op, binder.places)
        if isinstance(binder.op, tir.LaunchThreadOp):
            wide = binder.variable.type
            new = Rewriter.replace_value_with_new_type(binder.op.result, self.type)
            self.cast_back(new, wide, Builder(InsertPoint.after(binder.op)))
        else:
            self.rebind_argument(binder.op.body.block, binder.index)

    def rebind_argument(self, block: Block, index: int) -> None:
        """Makes a block's argument narrow; its uses get it cast back."""
        old = block.args[index]
        new = block.insert_arg(self.type, index)
        new.name_hint = old.name_hint
        self.cast_back(new, old.type, Builder(InsertPoint.at_start(block)), old)
        block.erase_arg(old)

    def cast_back(self, new: SSAValue, type: Attribute, builder: Builder, old: SSAValue | None = None) -> None:
        """Replaces the uses of `old` (of `new` itself, by default) by a cast of `new` to the wide type."""
        cast = tir.CastOp(new, type)
        builder.insert(cast)
        if old is None:
            new.replace_uses_with_if(cast.result, lambda use: use.operation is not cast)
        else:
            old.replace_all_uses_with(cast.result)
        cast.result.name_hint = None
        self.memo[cast.result] = new

    def replace(self, op: Operation, places: Iterable[int]) -> None:
        """Makes operands narrow."""
        for place in places:
            if self.is_wide(op.operands[place].type):
                op.operands[place] = self.narrowed(op.operands[place])
        if isinstance(op, tir.CastOp) and op.value.type == op.result.type:
            op.result.replace_all_uses_with(op.value)

    def narrowed(self, value: SSAValue) -> SSAValue:
        """Returns the narrow value of a tree that fits.

        A leaf is cast for each use, so that each cast is part of an expression.
        """
        known = self.memo.get(value)
        if known is not None:
            return known
        owner = value.owner
        type_ = with_lanes_of(self.type, value.type)
        if isinstance(owner, Block):
            return Builder(InsertPoint.at_start(owner)).insert(tir.CastOp(value, type_)).result
        if isinstance(owner, tir.CastOp) and owner.value.type == type_:
            return owner.value
        if not isinstance(owner, (*_TREE, tir.ConstOp)):
            cast = tir.CastOp(value, type_)
            cast.location = owner.location
            return Builder(InsertPoint.after(owner)).insert(cast).result
        new = self.memo[value] = self._rebuilt(value, owner, type_)
        return new

    def _rebuilt(self, value: SSAValue, owner: Operation, type_: Attribute) -> SSAValue:
        builder = builder_before(owner)
        number = as_const(value)
        if number is not None:
            return builder.insert(tir.ConstOp.int(self.checked(int(number.value), owner), self.type)).result
        if isinstance(owner, tir.LetOp):
            return builder.insert(tir.LetOp(owner.var_name.data, self.narrowed(owner.value))).result
        operands = [self.narrowed(o) if self.is_wide(o.type) else o for o in owner.operands]
        made = type(owner).create(
            operands=operands, result_types=[type_], properties=dict(owner.properties), location=owner.location
        )
        return builder_before(owner).insert(made).results[0]

    def checked(self, number: int, op: Operation) -> int:
        """Returns the number if the narrow type holds it; otherwise raises MirError."""
        if -(1 << (self.bits - 1)) <= number < 1 << (self.bits - 1):
            return number
        raise error_at(
            op,
            f"{number} does not fit into int{self.bits}",
            "only a function whose indices and sizes all fit can be narrowed by force",
        )

    def sizes(self, func: tir.PrimFuncOp) -> None:
        """Narrows the constant extents and strides of buffers."""
        for arg in list(func.body.block.args):
            if isinstance(arg.type, tir.BufferType):
                Rewriter.replace_value_with_new_type(arg, self.narrow_buffer(arg.type, func))
        for op in list(walk_ops(func)):
            if isinstance(op, BufferOp):
                op.stride_dims = self.narrow_dims(op.stride_dims, op)
                Rewriter.replace_value_with_new_type(op.result, self.narrow_buffer(op.result.type, op))

    def narrow_buffer(self, type: tir.BufferType, op: Operation) -> tir.BufferType:
        """Returns the type with narrow extents."""
        return tir.BufferType(self.narrow_dims(type.shape, op), type.dtype, type.scope)

    def narrow_dims(self, dims: ArrayAttr[Attribute], op: Operation) -> ArrayAttr[Attribute]:
        """Returns constant extents of the narrow type."""
        return ArrayAttr([self.narrow_dim(dim, op) for dim in dims.data])

    def narrow_dim(self, dim: Attribute, op: Operation) -> Attribute:
        """Returns a constant extent of the narrow type."""
        if not isinstance(dim, IntegerAttr) or not self.is_wide(dim.get_type()):
            return dim
        return IntegerAttr(self.checked(dim.value.data, op), self.type)
