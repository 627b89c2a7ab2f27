"""Creates functions of the `llvm` dialect and appends ops to their blocks, folding arithmetic.

Constants are made once per function; arithmetic is folded where both sides are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects import llvm_ext
from ....dialects.interned import i32_array, integer, string, vector_type
from ....support.edit import add_op, create_op
from ...emitter import Emitter
from .types import FLOAT_TYPES, PTR, element_of, lanes, with_element

C_CONVENTION = llvm.CallingConventionAttr("ccc")


@cache
def linkage_attr(name: str) -> llvm.LinkageAttr:
    """Returns a linkage: `external`, `internal`, …"""
    return llvm.LinkageAttr(name)


OPAQUE_TO_LLVM = frozenset({"fmod", "fmodf"})
"""C functions that LLVM may not replace: of the remainder of what is not infinite it believes that it is a number, also where that is NaN."""


def make_function(
    name: str,
    type_: llvm.LLVMFunctionType,
    linkage: str,
    body: Region | None = None,
    properties: dict[str, Attribute] | None = None,
) -> llvm.FuncOp:
    """Returns a function, declared where it has no body; `properties` are those that others have not."""
    known: dict[str, Attribute] = {
        **(properties or {}),
        "sym_name": string(name),
        "function_type": type_,
        "CConv": C_CONVENTION,
        "linkage": linkage_attr(linkage),
        "visibility_": integer(0, i64),
    }
    if body is None and name in OPAQUE_TO_LLVM:
        known["passthrough"] = ArrayAttr([string("nobuiltin")])
    function = create_op(llvm.FuncOp, (), (), known, UNKNOWN_LOC)
    function.add_region(Region() if body is None else body)
    return function


Index = int | SSAValue
"""A number that is known when compiling, or an i64 value."""

NO_FASTMATH = llvm.FastMathAttr(None)
CALL: dict[str, Attribute] = {
    "fastmathFlags": NO_FASTMATH,
    "CConv": C_CONVENTION,
    "TailCallKind": llvm.TailCallKindAttr(llvm.TailCallKind.NONE),
    "op_bundle_sizes": i32_array(),
}
NO_WRAP_SIGNED: dict[str, Attribute] = {"overflowFlags": IntegerAttr(1, 32)}
WRAPS: dict[str, Attribute] = {"overflowFlags": IntegerAttr(0, 32)}
FASTMATH_NONE: dict[str, Attribute] = {"fastmathFlags": NO_FASTMATH}
GEP_ANYWHERE: dict[str, Attribute] = {"noWrapFlags": IntegerAttr(0, 32)}
GEP_INBOUNDS: dict[str, Attribute] = {"inbounds": UnitAttr(), **GEP_ANYWHERE}
NOT_ATOMIC = IntegerAttr(0, i64)
SSA_INDEX = DenseArrayBase.from_list(i32, [llvm.GEP_USE_SSA_VAL])
ICMP = {name: IntegerAttr(number, i64) for number, name in enumerate(llvm.ALL_ICMP_FLAGS)}


def gep_index(offset: int) -> tuple[DenseArrayBase, tuple[int, ...]]:
    """Returns `rawConstantIndices` of a getelementptr, and the operand that it needs for a wide offset.

    64 → [64], ();  2147483648 → [GEP_USE_SSA_VAL], (2147483648,)
    """
    if -(2**31) < offset < 2**31:
        return i32_array(offset), ()
    return SSA_INDEX, (offset,)


class Builder(Emitter):
    """Appends ops of the `llvm` dialect: arithmetic that folds, single instructions, vectors put together."""

    CONSTANT = llvm.ConstantOp

    # Constants

    def _new_constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        if isinstance(value, DenseIntOrFPElementsAttr) and not prints_exactly(value):
            return self._vector_by_lanes(value, type_)
        return super()._new_constant(value, type_)

    def _vector_by_lanes(self, value: DenseIntOrFPElementsAttr, type_: Attribute) -> SSAValue:
        """Returns a vector constant put together from scalars, on entry to the function."""
        element = element_of(type_)
        vector = self.hoist(llvm_ext.PoisonOp(type_))
        numbers = value.get_values()
        splat = all(_same_float(number, numbers[0]) for number in numbers)
        for lane, number in enumerate(numbers[:1] if splat else numbers):
            assert isinstance(number, float)
            operands = (vector, self.constant(number, element), self.constant(lane, i64))
            vector = self.hoist(create_op(llvm.InsertElementOp, operands, (type_,), {}, UNKNOWN_LOC))
        if splat:
            properties: dict[str, Attribute] = {"mask": i32_array(*[0] * len(numbers))}
            vector = self.hoist(create_op(llvm.ShuffleVectorOp, (vector, vector), (type_,), properties, UNKNOWN_LOC))
        return vector

    def i64(self, value: Index) -> SSAValue:
        """Returns `value` as an i64."""
        return self.constant(value, i64) if isinstance(value, int) else value

    def poison(self, type_: Attribute) -> SSAValue:
        """Returns a poison value."""
        return self.emit(llvm_ext.PoisonOp, (), type_)

    # i64 arithmetic that folds

    def add(self, lhs: Index, rhs: Index) -> Index:
        """Emits lhs + rhs, without signed overflow."""
        if isinstance(lhs, int):
            if isinstance(rhs, int):
                return lhs + rhs
            lhs, rhs = rhs, lhs
        if rhs == 0:
            return lhs
        return self.emit(llvm.AddOp, (lhs, self.i64(rhs)), i64, NO_WRAP_SIGNED)

    def mul(self, lhs: Index, rhs: Index) -> Index:
        """Emits lhs * rhs, without signed overflow."""
        if isinstance(lhs, int):
            if isinstance(rhs, int):
                return lhs * rhs
            lhs, rhs = rhs, lhs
        if rhs == 0:
            return 0
        if rhs == 1:
            return lhs
        return self.emit(llvm.MulOp, (lhs, self.i64(rhs)), i64, NO_WRAP_SIGNED)

    # Single instructions

    def gep(self, base: SSAValue, offset: Index, element: Attribute) -> SSAValue:
        """Returns the pointer `offset` elements after `base`, inside the same object."""
        if offset == 0:
            return base
        indices, operands = gep_index(offset) if isinstance(offset, int) else (SSA_INDEX, (offset,))
        properties = {**GEP_INBOUNDS, "rawConstantIndices": indices, "elem_type": element}
        return self.emit(llvm.GEPOp, (base, *map(self.i64, operands)), base.type, properties)

    def field(self, base: SSAValue, struct: Attribute, place: int) -> SSAValue:
        """Returns the pointer to a field of the struct at `base`."""
        properties = {**GEP_INBOUNDS, "rawConstantIndices": i32_array(0, place), "elem_type": struct}
        return self.emit(llvm.GEPOp, (base,), base.type, properties)

    def load(self, ptr: SSAValue, type_: Attribute, alignment: int) -> SSAValue:
        """Emits a load of `type_` from an address that `alignment` divides."""
        return self.emit(llvm.LoadOp, (ptr,), type_, {"ordering": NOT_ATOMIC, "alignment": integer(alignment, i64)})

    def store(self, value: SSAValue, ptr: SSAValue, alignment: int, nontemporal: bool = False) -> None:
        """Emits a store to an address that `alignment` divides."""
        properties: dict[str, Attribute] = {"ordering": NOT_ATOMIC, "alignment": integer(alignment, i64)}
        if nontemporal:
            properties["nontemporal"] = UnitAttr()
        add_op(self.block, create_op(llvm.StoreOp, (value, ptr), (), properties, self.location))

    def icmp(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits an integer or pointer compare."""
        properties: dict[str, Attribute] = {"predicate": ICMP[llvm.ICmpPredicateFlag(predicate)]}
        return self.emit(llvm.ICmpOp, (lhs, rhs), with_element(lhs.type, i1), properties)

    def fcmp(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits a float compare, by LLVM's predicate name."""
        properties: dict[str, Attribute] = {"predicate": string(predicate)}
        return self.emit(llvm_ext.FCmpOp, (lhs, rhs), with_element(lhs.type, i1), properties)

    def select(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits cond ? lhs : rhs, lane by lane when `cond` is a vector."""
        if lanes(cond.type):
            return self.emit(llvm_ext.SelectOp, (cond, lhs, rhs), lhs.type)
        return self.emit(llvm.SelectOp, (cond, lhs, rhs), lhs.type, FASTMATH_NONE)

    def intrinsic(
        self,
        name: str,
        operands: Sequence[SSAValue],
        type_: Attribute | None,
        fastmath: llvm.FastMathAttr = NO_FASTMATH,
    ) -> SSAValue | None:
        """Emits a call of the LLVM intrinsic `llvm.<name>`, whose overload the translator names by types."""
        properties: dict[str, Attribute] = {
            "intrin": string(f"llvm.{name}"),
            "fastmathFlags": fastmath,
            "op_bundle_sizes": i32_array(),
            "operandSegmentSizes": i32_array(len(operands), 0),
        }
        results = () if type_ is None else (type_,)
        op = self.append(create_op(llvm.CallIntrinsicOp, operands, results, properties, self.location))
        return op.results[0] if type_ is not None else None

    def compute(
        self, name: str, operands: Sequence[SSAValue], type_: Attribute, fastmath: llvm.FastMathAttr = NO_FASTMATH
    ) -> SSAValue:
        """Returns the result of an intrinsic that has one."""
        result = self.intrinsic(name, operands, type_, fastmath)
        assert result is not None
        return result

    def call(self, callee: str | SSAValue, operands: Sequence[SSAValue], type_: Attribute | None) -> SSAValue | None:
        """Returns a call of the function named, or pointed to."""
        operands = operands if isinstance(callee, str) else (callee, *operands)
        properties = {**CALL, "operandSegmentSizes": i32_array(len(operands), 0)}
        if isinstance(callee, str):
            properties["callee"] = SymbolRefAttr(callee)
        results = () if type_ is None else (type_,)
        op = self.append(create_op(llvm.CallOp, operands, results, properties, self.location))
        return op.results[0] if type_ is not None else None

    def broadcast(self, value: SSAValue, type_: VectorType) -> SSAValue:
        """Emits `value` in every lane of `type_`."""
        if type(owner := value.owner) is llvm.ConstantOp:
            number = owner.properties["value"]
            if isinstance(number, IntegerAttr | FloatAttr):
                return self.constant(number.value.data, type_)
        lane = self.emit(llvm.InsertElementOp, (self.poison(type_), value, self.i64(0)), type_)
        return self.shuffle(lane, lane, [0] * lanes(type_))

    def shuffle(self, lhs: SSAValue, rhs: SSAValue, mask: Sequence[int]) -> SSAValue:
        """Lanes `mask` of lhs followed by rhs; -1 is a lane of no meaning."""
        type_ = vector_type(element_of(lhs.type), len(mask))
        return self.emit(llvm.ShuffleVectorOp, (lhs, rhs), type_, {"mask": i32_array(*mask)})

    def concatenate(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Returns vectors of one length, one after the other, joined two by two."""
        total = len(parts) * lanes(parts[0].type)
        level = list(parts)
        while len(level) > 1:
            width = lanes(level[0].type)
            if len(level) % 2:
                level.append(self.poison(level[0].type))
            level = [self.shuffle(a, b, range(2 * width)) for a, b in zip(level[::2], level[1::2], strict=True)]
        joined = level[0]
        return joined if lanes(joined.type) == total else self.shuffle(joined, joined, range(total))

    def by_parts(
        self, whole: Sequence[SSAValue], width: int, compute: Callable[[Sequence[SSAValue]], SSAValue]
    ) -> SSAValue:
        """Computes vectors of `width` lanes of the result, each of parts of the operands, and joins them."""
        count = lanes(whole[0].type) // width
        if count == 1:
            return compute(whole)
        results: list[SSAValue] = []
        for number in range(count):
            sizes = [lanes(v.type) // count for v in whole]
            parts = [self.shuffle(v, v, range(number * n, (number + 1) * n)) for v, n in zip(whole, sizes, strict=True)]
            results.append(compute(parts))
        return self.concatenate(results)

    def pack_struct(self, type_: Attribute, parts: Sequence[SSAValue]) -> SSAValue:
        """Returns the struct of `parts`."""
        struct = self.poison(type_)
        for position, part in enumerate(parts):
            properties: dict[str, Attribute] = {"position": DenseArrayBase.from_list(i64, [position])}
            struct = self.emit(llvm.InsertValueOp, (struct, part), type_, properties)
        return struct

    def branch(self, target: Block, operands: Sequence[SSAValue] = ()) -> llvm.BrOp:
        """Ends the block with a jump."""
        return self.append(create_op(llvm.BrOp, operands, (), {}, self.location, (target,)))

    def cond_branch(
        self,
        cond: SSAValue,
        then: Block,
        then_operands: Sequence[SSAValue],
        otherwise: Block,
        else_operands: Sequence[SSAValue],
    ) -> llvm.CondBrOp:
        """Ends the block with a jump to `then` or `otherwise`."""
        operands = [cond, *then_operands, *else_operands]
        segments: dict[str, Attribute] = {"operandSegmentSizes": i32_array(1, len(then_operands), len(else_operands))}
        return self.append(create_op(llvm.CondBrOp, operands, (), segments, self.location, (then, otherwise)))

    def alloca(self, element: Attribute, count: int, alignment: int) -> SSAValue:
        """Allocates `count` elements on the stack, once, on entry to the function."""
        size = self.constant(count, i64)
        properties: dict[str, Attribute] = {"elem_type": element, "alignment": integer(alignment, i64)}
        return self.hoist(create_op(llvm.AllocaOp, (size,), (PTR,), properties, UNKNOWN_LOC))

    def pointer_slot(self, alignment: int) -> tuple[SSAValue, SSAValue]:
        """Allocates a pointer on the stack, null on entry to the function; returns it, and null."""
        room = self.alloca(PTR, 1, alignment)
        null = self.hoist(create_op(llvm.ZeroOp, (), (PTR,), {}, UNKNOWN_LOC))
        store = llvm.StoreOp(null, room, alignment)
        store.location = self.location
        assert self._last_hoisted is not None
        self.entry.insert_op_after(store, self._last_hoisted)
        self._last_hoisted = store
        return room, null


_DECIMAL_DIGITS: dict[type[Attribute], str] = {Float32Type: ".9g", Float64Type: ".17g"}


def prints_exactly(value: DenseIntOrFPElementsAttr) -> bool:
    """Tells whether xDSL prints all numbers in decimal: it misreads hexadecimal floats of a dense<…>."""
    element = value.get_element_type()
    if not isinstance(element, FLOAT_TYPES):
        return True
    digits = _DECIMAL_DIGITS.get(type(element))
    for number in set(value.get_values()):
        assert isinstance(number, float)
        if not math.isfinite(number):
            return False
        if digits is not None and float(f"{number:.5e}") != number and "." not in f"{number:{digits}}":
            return False
    return True


def _same_float(lhs: object, rhs: object) -> bool:
    """Compares floats; NaN equals NaN and the zeros differ."""
    return repr(lhs) == repr(rhs)
