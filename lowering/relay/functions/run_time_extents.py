"""Emits sizes at run time: arithmetic, checks, and the descriptors of tensors of dynamic shape.

A size is a Python number where it is known at compile time, otherwise an i64 value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.extents import MOST_EXTENT
from ....dialects.relay.operators.common.result_sizes import fits
from ....dialects.tir.scalar_ops import SCALAR_OPS
from ...tir.signature import Size
from ..kernels.shape_function import Check, Rule
from ..memory import heap
from ..memory.alignment import ALIGNMENT
from ..memory.frame import Place
from .emitter import PTR
from .flat_values import WORD, DynamicTensorLeaf, TensorLeaf

if TYPE_CHECKING:
    from .function_lowering import RelayFunctionLowering

Extent: TypeAlias = "int | SSAValue"

MOST_BYTES = 1 << 46
"""A tensor larger than any machine's memory: its size in bytes is not computed further, so that it cannot overflow."""

Predicate = llvm.ICmpPredicateFlag

PREDICATES = {"tir.eq": "eq", "tir.ne": "ne", "tir.lt": "slt", "tir.le": "sle", "tir.gt": "sgt", "tir.ge": "sge"}
"""LLVM's predicates of comparisons."""
SYMBOLS = {"+": "tir.add", "-": "tir.sub", "*": "tir.mul", "min": "tir.min", "max": "tir.max"}
"""The operators of signatures that are those of numbers, too."""


class Sizing:
    """Emits into one function."""

    def __init__(self, lowering: RelayFunctionLowering):
        self.lowering = lowering
        self.emit = lowering.emit

    def value(self, extent: Extent) -> SSAValue:
        """Returns the size as an i64."""
        return self.emit.int(extent) if isinstance(extent, int) else extent

    # Checks

    def check(self, check: Check, left: Extent, right: Extent, where: Operation) -> None:
        """Leaves the function with the check's message, and both sizes, unless they fit."""
        if isinstance(left, int) and isinstance(right, int) and fits(check.rule, left, right):
            return
        a, b = self.value(left), self.value(right)
        good = self.emit.new_block()
        for one, other, predicate in self._tests(check.rule, a, b):
            following = self.emit.new_block()
            self.emit.branch_if(self.emit.compare(one, other, Predicate(predicate)), good, following)
            self.emit.block = following
        self.refuse(check.message, where, a, b)
        self.emit.block = good

    def _tests(self, rule: Rule, a: SSAValue, b: SSAValue) -> Iterator[tuple[SSAValue, SSAValue, str]]:
        """Comparisons of which one must hold."""
        match rule:
            case "equal":
                yield a, b, "eq"
            case "stretch":
                yield a, b, "eq"
                yield a, self.emit.int(1), "eq"
                yield b, self.emit.int(1), "eq"
            case "expand":
                yield a, b, "eq"
                yield a, self.emit.int(1), "eq"
            case "within":
                yield a, b, "sle"

    def refuse(self, message: str, where: Operation, *sizes: SSAValue) -> None:
        """Leaves the function; each `{size}` of the message is one of the sizes."""
        context, emit = self.lowering.context, self.emit
        for number, size in enumerate(sizes):
            emit.store(size, context, heap.SIZES + WORD * number)
        emit.branch(self.lowering.fail, emit.int(self.lowering.unit.status_of(message, where), i32))

    def check_extent(self, extent: SSAValue, message: str, where: Operation) -> None:
        """Leaves the function where an extent is negative or larger than kernels can count."""
        good, bad = self.emit.new_block(), self.emit.new_block()
        self.emit.branch_if(self.emit.compare(extent, self.emit.int(MOST_EXTENT), Predicate("ule")), good, bad)
        self.emit.block = bad
        self.refuse(message, where, extent)
        self.emit.block = good

    # Arithmetic

    def evaluate(self, size: Size, symbols: Mapping[str, Extent]) -> Extent:
        """Returns a size of a kernel's signature, given the values of its symbols."""
        if isinstance(size, int):
            return size
        if isinstance(size, str):
            return symbols[size]
        operator, left, right = size[0], *(self.evaluate(part, symbols) for part in size[1:])
        if operator in SYMBOLS:
            return self._apply(SYMBOLS[operator], (left, right))
        return self._divide(operator, self.value(left), self.value(right))

    def number(self, size: Attribute, symbols: Mapping[str, Extent]) -> Extent:
        """Returns a number of a kernel's `mirstack.shape`, given the sizes of the inputs."""
        match size:
            case IntegerAttr():
                return size.value.data
            case StringAttr():
                return symbols[size.data]
            case ArrayAttr(data=[StringAttr(data=operator), *parts]):
                return self._apply(operator, [self.number(part, symbols) for part in parts])
            case _:
                raise AssertionError(f"{size} is not a size")

    def _apply(self, operator: str, parts: Sequence[Extent]) -> Extent:
        """Emits an operator of numbers, of which those that are known are folded."""
        row = SCALAR_OPS.get(operator)
        if row is not None and row.integers is not None and all(isinstance(part, int) for part in parts):
            return int(row.integers(*parts))
        emit = self.emit
        left, right = (self.value(part) for part in parts[-2:])
        match operator:
            case "tir.add":
                return emit.value(llvm.AddOp(left, right))
            case "tir.sub":
                return emit.value(llvm.SubOp(left, right))
            case "tir.mul":
                return emit.value(llvm.MulOp(left, right))
            case "tir.min" | "tir.max":
                predicate = Predicate("slt" if operator == "tir.min" else "sgt")
                return emit.value(llvm.SelectOp(emit.compare(left, right, predicate), left, right))
            case "tir.select":
                condition = parts[0]
                if isinstance(condition, int):
                    return parts[1] if condition else parts[2]
                return emit.value(llvm.SelectOp(condition, left, right))
            case "tir.floordiv" | "tir.floormod":
                # The divisor is a positive constant. Rounded to 0, the quotient of a negative number is one too large, unless it is exact.
                rest = emit.value(llvm.SRemOp(left, right))
                negative = emit.compare(rest, emit.int(0), Predicate("slt"))
                if operator == "tir.floormod":
                    return emit.value(llvm.SelectOp(negative, emit.value(llvm.AddOp(rest, right)), rest))
                quotient = emit.value(llvm.SDivOp(left, right))
                return emit.value(llvm.SelectOp(negative, emit.value(llvm.SubOp(quotient, emit.int(1))), quotient))
            case _:
                return emit.compare(left, right, Predicate(PREDICATES[operator]))

    def _divide(self, operator: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """Floor division, or what it leaves, of sizes, which are not negative; 0 is divided by as by 1."""
        emit = self.emit
        zero = emit.compare(right, emit.int(0), Predicate("eq"))
        divisor = emit.value(llvm.SelectOp(zero, emit.int(1), right))
        return emit.value(llvm.SDivOp(left, divisor) if operator == "//" else llvm.SRemOp(left, divisor))

    def bytes_of(self, shape: Sequence[Extent], item_bytes: int) -> SSAValue:
        """Returns the aligned bytes of a tensor; leaves the function where no memory could hold them."""
        emit = self.emit
        known, factors = item_bytes, [e for e in shape if not isinstance(e, int)]
        for extent in shape:
            known *= extent if isinstance(extent, int) else 1
        total = emit.int(min(known, MOST_BYTES))
        for extent in factors:
            least = emit.value(llvm.SelectOp(emit.compare(extent, emit.int(0), Predicate("eq")), emit.int(1), extent))
            most = emit.value(llvm.UDivOp(emit.int(MOST_BYTES), least))
            good = emit.new_block()
            emit.branch_if(emit.compare(total, most, Predicate("ule")), good, self.lowering.no_memory)
            emit.block = good
            total = emit.value(llvm.MulOp(total, extent))
        padded = emit.value(llvm.AddOp(total, emit.int(ALIGNMENT - 1)))
        return emit.value(llvm.AndOp(padded, emit.int(-ALIGNMENT)))

    # Descriptors

    def shape(self, leaf: TensorLeaf | DynamicTensorLeaf, pointer: SSAValue) -> list[Extent]:
        """Returns the extents of a tensor."""
        at = 0
        result: list[Extent] = []
        for extent in leaf.shape:
            if extent == DYNAMIC_INDEX:
                at += WORD
                result.append(self.emit.load(pointer, i64, at))
            else:
                result.append(extent)
        return result

    def data(self, leaf: TensorLeaf | DynamicTensorLeaf, pointer: SSAValue) -> SSAValue:
        """Returns the address of a tensor's first element."""
        return pointer if isinstance(leaf, TensorLeaf) else self.emit.load(pointer, PTR)

    def descriptor(self, leaf: DynamicTensorLeaf, data: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        """Allocates a descriptor of the data, which has this shape."""
        extents = [e for e, declared in zip(shape, leaf.shape, strict=True) if declared == DYNAMIC_INDEX]
        return self.lowering.new_box([data, *map(self.value, extents)])

    def allocate(self, leaf: DynamicTensorLeaf, shape: Sequence[Extent], place: Place | None = None) -> SSAValue:
        """Allocates memory for a tensor of this shape: leaf `place` of a kernel's result, or another one."""
        return self.lowering.take_bytes(self.bytes_of(shape, leaf.item_bytes), place)

    def cast(
        self, pointer: SSAValue, own: TensorLeaf | DynamicTensorLeaf, wanted: TensorLeaf | DynamicTensorLeaf, what: str,
        where: Operation,
    ) -> SSAValue:  # fmt: skip
        """Converts a tensor to the form of another type.

        The emitted code leaves the function where a dimension differs from that type. Data of static shape is copied: its place may be
        used again while the descriptor lives.
        """
        if own.shape == wanted.shape:
            return pointer
        shape, data = self.shape(own, pointer), self.data(own, pointer)
        for axis, (extent, declared) in enumerate(zip(shape, wanted.shape, strict=True)):
            if declared != DYNAMIC_INDEX:
                message = f"dimension {axis} of {what} is {{size}}, but must be {{size}}"
                self.check(Check("equal", message), extent, declared, where)
        if isinstance(wanted, TensorLeaf):
            return data
        if isinstance(own, TensorLeaf):
            copied = self.allocate(wanted, shape)
            self.emit.copy(copied, data, own.bytes)
            data = copied
        return self.descriptor(wanted, data, shape)
