"""Represents bf16 in registers as the i16 of the same bits, once functions are in the `llvm` dialect.

LLVM's code generator ends the process on many vectors of bf16. Where a processor has AVX512-BF16, vectors of 8, 16 or 32 are
types of its registers and a single bf16 is none, and of the steps that split a vector of another length some make a vector
of a single lane (`scalar_to_vector`), for which nothing is known to do ("Do not know how to soft promote this operator's
operand!"): a shuffle that takes all but the first of 17 lanes is enough. Other processors pass single bf16 on as f32, which rounds
them again at each block.

Nothing is computed in bf16 (`in_f32` in `arith_to_llvm`), so that its bits can be moved as those of integers are. An op that needs
the type, such as an instruction for dot products, gets it by a bitcast on the spot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, BFloat16Type, DenseIntOrFPElementsAttr, FloatAttr, bf16, i16
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import llvm_ext
from ....dialects.interned import integer, vector_type
from ....support.edit import erase_op, set_type
from ....support.walk import walk_ops
from ...emitter import wrap
from ..text.ir_text import bf16_bits
from .types import element_of, is_vector, lanes

MOVES: frozenset[type[Operation]] = frozenset(
    [
        *(llvm.FuncOp, llvm.GlobalOp, llvm.ReturnOp, llvm.CallOp, llvm.BrOp, llvm.CondBrOp, llvm_ext.SwitchOp),
        *(llvm.LoadOp, llvm.StoreOp, llvm.AllocaOp, llvm.GEPOp, llvm_ext.LaneAddressesOp, llvm.BitcastOp),
        *(llvm.ConstantOp, llvm.UndefOp, llvm.ZeroOp, llvm_ext.PoisonOp, llvm_ext.FreezeOp),
        *(llvm.SelectOp, llvm_ext.SelectOp, llvm.InsertValueOp, llvm.ExtractValueOp),
        *(llvm.InsertElementOp, llvm_ext.ExtractElementOp, llvm.ShuffleVectorOp),
    ]
)
"""Ops that take values as they are, whatever the type."""

MOVING_INTRINSICS = ("llvm.masked.",)
"""How the names of intrinsics begin that do so."""


def bf16_as_i16(functions: Iterable[Operation]) -> None:
    """Replaces bf16 by i16 in these LLVM functions: values, signatures, memory and constants."""
    ops = [op for function in functions for op in walk_ops(function)]
    types = _Types()
    # Which operands were bf16 can be seen only as long as none has another type.
    others = [(op, _bf16_operands(op)) for op in ops if not _moves(op)]
    for op in ops:
        if _moves(op):
            _retype(op, types)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    types.change(argument)
    for op, operands in others:
        for index in operands:
            cast = llvm.BitcastOp.create(operands=[op.operands[index]], result_types=[operands[index]])
            _insert(cast, op, before=True)
            op.operands[index] = cast.results[0]
        for result in op.results:
            if (type_ := types(result.type)) != result.type:
                cast = llvm.BitcastOp.create(operands=[result], result_types=[type_])
                _insert(cast, op, before=False)
                result.replace_uses_with_if(cast.results[0], lambda use, cast=cast: use.operation is not cast)
    for op in ops:
        if isinstance(op, llvm.BitcastOp) and op.arg.type == op.result.type:
            op.result.replace_all_uses_with(op.arg)
            erase_op(op)


def _moves(op: Operation) -> bool:
    if isinstance(op, llvm.CallIntrinsicOp):
        return op.intrin.data.startswith(MOVING_INTRINSICS)
    return type(op) in MOVES


def _bf16_operands(op: Operation) -> dict[int, Attribute]:
    """Returns the types of those operands that are bf16, by their number."""
    return {i: value.type for i, value in enumerate(op.operands) if element_of(value.type) == bf16}


def _insert(cast: Operation, op: Operation, *, before: bool) -> None:
    cast.location = op.location
    assert op.parent is not None
    (op.parent.insert_op_before if before else op.parent.insert_op_after)(cast, op)


def _retype(op: Operation, types: _Types) -> None:
    """Changes an op's results, and the types that are among its properties."""
    for result in op.results:
        types.change(result)
    for name, value in op.properties.items():
        if (changed := types(value)) is not value:
            op.properties[name] = changed


@dataclass
class _Types:
    """Types, and constants, with i16 for bf16."""

    known: dict[Attribute, Attribute] = field(default_factory=dict[Attribute, Attribute])

    def __call__(self, attribute: Attribute) -> Attribute:
        """Returns the attribute with i16 for bf16; the attribute itself where it contains no bf16."""
        changed = self.known.get(attribute)
        if changed is None:
            changed = self._change(attribute)
            self.known[attribute] = changed = attribute if changed == attribute else changed
        return changed

    def change(self, value: SSAValue) -> None:
        """Gives a value its type."""
        type_ = self(value.type)
        if type_ is not value.type:
            set_type(value, type_)

    def _change(self, attribute: Attribute) -> Attribute:
        match attribute:
            case BFloat16Type():
                return i16
            case FloatAttr() if attribute.type == bf16:
                return integer(wrap(bf16_bits(attribute.value.data), i16), i16)
            case DenseIntOrFPElementsAttr() if is_vector(attribute.type) and element_of(attribute.type) == bf16:
                return DenseIntOrFPElementsAttr(vector_type(i16, lanes(attribute.type)), attribute.data)
            case llvm.LLVMArrayType():
                return llvm.LLVMArrayType(attribute.size, self(attribute.type))
            case llvm.LLVMStructType():
                return llvm.LLVMStructType(attribute.struct_name, ArrayAttr([self(part) for part in attribute.types]))
            case llvm.LLVMFunctionType():
                inputs = [self(part) for part in attribute.inputs]
                return llvm.LLVMFunctionType(inputs, self(attribute.output), attribute.is_variadic)
            case _ if is_vector(attribute):
                return vector_type(self(attribute.element_type), lanes(attribute))
            case _:
                return attribute
