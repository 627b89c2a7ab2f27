"""The pass `bf16-compute-legalize`: computes bfloat16 arithmetic in float32, as TVM's pass.

    B[i] = A[i] + A[i]     →     B[i] = T.Cast("bfloat16", T.Cast("float32", A[i]) + T.Cast("float32", A[i]))

What is loaded is widened, what is stored is rounded once, at the store. Memory of the function's own becomes float32, where
nothing except loads and stores reaches it: intermediate results are then not rounded at all. Conversions are casts, which the
code generator lowers to shifts; unlike TVM's shifts they keep NaN.

Not rules: a value stays wide as far as all that is computed from it, which a pattern of fixed size does not see.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, FloatAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import tir
from ....dialects.tir.intrinsics import BINARY_MATH, FLOAT_TESTS, UNARY_MATH
from ....dialects.tir.operators import as_const
from ....dialects.tir.types import F32, BufferType, HandleType, element_of, with_lanes_of
from ....support.edit import builder_before, set_type
from ....support.walk import walk_ops
from ..rewriting import PrimFuncPass, erase_dead

BF16 = BFloat16Type()

_MATH = (
    UNARY_MATH | BINARY_MATH | FLOAT_TESTS | {"fma", "likely", "vectorlow", "vectorhigh", "vectorcombine", "infinity"}
)


def _is_bf16(type: Attribute) -> bool:
    return element_of(type) == BF16


def _widened(type: Attribute) -> Attribute:
    return with_lanes_of(F32, type)


class ComputeLegalizer:
    """Rewrites one function."""

    def __init__(self, func: tir.PrimFuncOp):
        self.func = func
        self.wide: set[SSAValue] = set()
        """Values that were bfloat16 and are float32 now."""

    def run(self) -> None:
        """Widens memory, then what is computed, in order."""
        ops = list(walk_ops(self.func))
        for op in ops:
            if isinstance(op, tir.AllocateOp | tir.DeclBufferOp | tir.AllocBufferOp):
                self.memory(op)
        # A reducer's own expressions are of the dtype that it is given.
        of_reducers = {inner for op in ops if isinstance(op, tir.CommReducerOp) for inner in walk_ops(op)}
        for op in ops:
            if op not in of_reducers:
                self.visit(op)
        erase_dead(self.func)

    # Memory

    def memory(self, op: tir.AllocateOp | tir.DeclBufferOp | tir.AllocBufferOp) -> None:
        """Makes memory float32, if all that reaches it are loads and stores of its elements."""
        if isinstance(op, tir.AllocateOp):
            if not _is_bf16(op.dtype) or any(as_const(extent) is None for extent in op.extents):
                return
        elif (
            op.source is not None
            or not _is_bf16(op.result.type.dtype)
            or (isinstance(op, tir.DeclBufferOp) and op.implicit.value.data)
        ):
            return
        values: list[SSAValue] = []
        pending: list[SSAValue] = [op.result]
        while pending:
            value = pending.pop()
            values.append(value)
            for use in value.uses:
                user = use.operation
                match user:
                    case tir.LoadOp():
                        if any(
                            isinstance(u.operation, tir.CallOp) and u.operation.intrinsic.data == "address_of"
                            for u in user.result.uses
                        ):
                            return
                    case tir.StoreOp() if user.buffer is value:
                        pass
                    case tir.DeclBufferOp() if _is_bf16(user.result.type.dtype):
                        pending.append(user.result)
                    case tir.BufferGetOp():
                        if user.field.data == "data":
                            pending.append(user.result)
                    case tir.BufferRegionOp():
                        matches = [u.operation for u in user.result.uses if isinstance(u.operation, tir.MatchBufferOp)]
                        pending += [match.result for match in matches]
                    case _:
                        return
        if isinstance(op, tir.AllocateOp):
            op.dtype = _widened(op.dtype)
        for value in values:
            type_ = value.type
            if isinstance(type_, BufferType):
                set_type(value, BufferType(type_.shape, _widened(type_.dtype), type_.scope))
            elif isinstance(type_, HandleType):
                set_type(value, HandleType(_widened(type_.pointee), type_.scope))

    # Values

    def visit(self, op: Operation) -> None:
        """Visits one op, whose operands were visited."""
        match op:
            case tir.LoadOp():
                if _is_bf16(op.result.type) and not _is_bf16(op.accessed_type()):
                    set_type(op.result, op.accessed_type())
                    self.wide.add(op.result)
            case tir.StoreOp():
                self.store(op)
            case tir.ConstOp():
                if isinstance(op.value, FloatAttr) and _is_bf16(op.result.type):
                    op.value = FloatAttr(op.value.value.data, F32)
                    self.widen(op)
            case tir.CastOp():
                self.compute(op)
                if op.operands[0].type == op.result.type and not self.wide.isdisjoint((op.operands[0], op.result)):
                    self.forward(op)
            case _ if _computes(op):
                self.compute(op)
            case _:
                self.narrow_operands(op)

    def compute(self, op: Operation) -> None:
        """Makes an op that computed in bfloat16 compute in float32."""
        for index, operand in enumerate(op.operands):
            if _is_bf16(operand.type):
                builder = builder_before(op)
                op.operands[index] = builder.insert(tir.CastOp(operand, _widened(operand.type))).result
        self.widen(op)

    def forward(self, op: tir.CastOp) -> None:
        """Replaces a cast by its operand, which is float32 already; rounds it for users that need bfloat16."""
        value = op.operands[0]
        for use in list(op.result.uses):
            user = use.operation
            if op.result in self.wide and not (_computes(user) or isinstance(user, tir.StoreOp)):
                narrow = with_lanes_of(BF16, value.type)
                user.operands[use.index] = builder_before(user).insert(tir.CastOp(value, narrow)).result
        op.result.replace_all_uses_with(value)

    def widen(self, op: Operation) -> None:
        """Changes the type of bfloat16 results to float32."""
        for result in op.results:
            if _is_bf16(result.type):
                set_type(result, _widened(result.type))
                self.wide.add(result)

    def store(self, op: tir.StoreOp) -> None:
        """Rounds what goes to memory of bfloat16, widens what goes to memory that was that."""
        wanted = op.accessed_type()
        if op.value.type != wanted and (_is_bf16(wanted) or _is_bf16(op.value.type)):
            op.operands[len(op.operands) - 1] = builder_before(op).insert(tir.CastOp(op.value, wanted)).result

    def narrow_operands(self, op: Operation) -> None:
        """Rounds the widened operands of an op that needs bfloat16, as a call of another function."""
        for index, operand in enumerate(op.operands):
            if operand in self.wide:
                narrow = with_lanes_of(BF16, operand.type)
                op.operands[index] = builder_before(op).insert(tir.CastOp(operand, narrow)).result


def _computes(op: Operation) -> bool:
    """Returns whether an op can compute in float32 instead of bfloat16; others keep their dtype."""
    if isinstance(op, tir.CallOp):
        return op.intrinsic.data in _MATH
    return isinstance(
        op,
        tir.IfThenElseOp
        | tir.LetOp
        | tir.YieldOp
        | tir.SelectOp
        | tir.BroadcastOp
        | tir.CastOp
        | tir.ShuffleOp
        | tir.BinaryOp,
    )


@dataclass(frozen=True)
class BF16ComputeLegalize(PrimFuncPass):
    """Computes in float32 what is bfloat16, and stores bfloat16 where parameters hold it."""

    name = "bf16-compute-legalize"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Rewrites one prim_func."""
        ComputeLegalizer(func).run()
