"""Defines TIR's other scalar ops: constants, variables, choices, casts, vectors, calls of intrinsics.

Every op here except `tir.call` and `tir.var` is pure. Operands are vectors where a loop was vectorized; then results are
vectors of as many lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    ConstantLike,
    EffectInstance,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    Pure,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from ...support.edit import create_op, init_op
from ...support.text import counted
from ..assembly import ShortForm, parse_attributes, print_attributes
from ..interned import int_attr, integer, string, vector_type
from ..plain_op import PlainOp, value_of
from .intrinsics import Effect, intrinsic_effect
from .types import I1, I32, BufferType, StringType, element_of, lanes_of, type_to_dtype, with_lanes, with_lanes_of

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


@irdl_op_definition
class ConstOp(PlainOp):
    """An immediate: a number of any scalar type, or a string among a call's arguments."""

    name = "tir.const"
    value = prop_def(IntegerAttr | FloatAttr | StringAttr)
    result = result_def()
    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: IntegerAttr | FloatAttr | StringAttr, type: Attribute | None = None):
        if type is None:
            type = StringType() if isinstance(value, StringAttr) else value.type
        super().__init__(properties={"value": value}, result_types=[type])

    @staticmethod
    def int(value: int, type: Attribute = I32) -> ConstOp:
        assert isinstance(type, IntegerType)
        # Lowering creates thousands, most of them of few values: without the checks of a constructor.
        return create_op(ConstOp, (), (type,), {"value": integer(int(value), type)}, UNKNOWN_LOC)

    @staticmethod
    def float(value: float, type: Attribute) -> ConstOp:
        assert isinstance(type, AnyFloat)
        return ConstOp(FloatAttr(value, type))

    @classmethod
    def parse(cls, parser: Parser) -> ConstOp:
        value = parser.parse_attribute()
        _, attributes = parse_attributes(parser, cls)
        if parser.parse_optional_punctuation("->") is not None:
            result = parser.parse_type()
        elif isinstance(value, IntegerAttr | FloatAttr):
            result = value.type
        else:
            result = StringType()
        return cls.create(result_types=[result], properties={"value": value}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints `tir.const 1 : i32`; the result's type only where it is another than the value's."""
        value = self.value
        printer.print_string(" ")
        printer.print_attribute(value)
        print_attributes(printer, self, ("value",))
        if self.result.type != (StringType() if isinstance(value, StringAttr) else value.type):
            printer.print_string(" -> ")
            printer.print_attribute(self.result.type)


@irdl_op_definition
class VarOp(PlainOp):
    """A symbolic variable, `n = T.int32()`, bound by the first buffer match that names it.

    With `size_var` (`T.int32(is_size_var=True)`) it is known not to be negative.
    """

    name = "tir.var"
    assembly_format = "$var_name (`size` $size_var^)? attr-dict `:` type($result)"
    var_name = prop_def(StringAttr)
    size_var = opt_prop_def(UnitAttr)
    result = result_def()
    # Not pure: two variables of the same name and type are still two.
    traits = traits_def()

    def __init__(self, name: str, type: Attribute = I32, *, size_var: bool = False):
        properties: dict[str, Attribute] = {"var_name": string(name)}
        if size_var:
            properties["size_var"] = UnitAttr()
        super().__init__(properties=properties, result_types=[type])


@irdl_op_definition
class LetOp(PlainOp):
    """Names a value for the rest of the block: `x: T.int32 = i * 4` or `with T.LetStmt(…) as x`.

    With `var` (`with T.LetStmt(10, var=n)`) the result is the variable, which is bound outside.
    """

    name = "tir.let"
    assembly_format = "$var_name `=` $value (`of` $var^ `:` type($var))? attr-dict `:` type($value) `->` type($result)"
    var_name = prop_def(StringAttr)
    value = operand_def()
    var = opt_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        name: str,
        value: SSAValue | Operation,
        type: Attribute | None = None,
        *,
        var: SSAValue | Operation | None = None,
    ):
        value = value_of(value)
        super().__init__(
            operands=[value, [] if var is None else [var]],
            properties={"var_name": string(name)},
            result_types=[type or value.type],
        )

    def verify_(self) -> None:
        # A handle may be bound to a call that returns an untyped one.
        if self.value.type != self.result.type and "handle" not in (
            type_to_dtype(self.value.type),
            type_to_dtype(self.result.type),
        ):
            raise VerifyException(
                f"'{self.var_name.data}' has type {type_to_dtype(self.result.type)}, but its value is {type_to_dtype(self.value.type)}"
            )


def only_names(variable: VarOp) -> bool:
    """Returns True if only `with T.LetStmt(value, var=variable)` use a variable.

    Later ops use the let's value.
    """
    return all(
        isinstance(use.operation, LetOp) and use.operation.value is not variable.result for use in variable.result.uses
    )


@irdl_op_definition
class SelectOp(ShortForm):
    """`T.Select(condition, true_value, false_value)`: both values are evaluated."""

    name = "tir.select"
    condition = operand_def()
    true_value = operand_def()
    false_value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self, condition: SSAValue | Operation, true_value: SSAValue | Operation, false_value: SSAValue | Operation
    ):
        true_value = value_of(true_value)
        super().__init__(operands=[condition, true_value, false_value], result_types=[true_value.type])

    @classmethod
    def types_of(cls, type: Attribute) -> tuple[Sequence[Attribute], Attribute]:
        return (with_lanes_of(I1, type), type, type), type

    def verify_(self) -> None:
        if element_of(self.condition.type) != I1:
            raise VerifyException(f"the condition of T.Select must be bool, not {type_to_dtype(self.condition.type)}")
        if self.true_value.type != self.false_value.type or self.result.type != self.true_value.type:
            raise VerifyException(
                f"the values of T.Select have different dtypes: {type_to_dtype(self.true_value.type)} and {type_to_dtype(self.false_value.type)}"
            )


@irdl_op_definition
class IfThenElseOp(PlainOp):
    """`T.if_then_else(condition, a, b)`: evaluates only the chosen side; the other may load out of bounds.

    Each region ends with `tir.yield` of its value. With a vector condition the choice is made lane by lane.
    """

    name = "tir.if_then_else"
    assembly_format = (
        "$condition `:` type($condition) `->` type($result) $then_region `else` $else_region attr-dict-with-keyword"
    )
    condition = operand_def()
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    result = result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, condition: SSAValue | Operation, then_region: Region, else_region: Region, type: Attribute):
        super().__init__(operands=[condition], regions=[then_region, else_region], result_types=[type])

    def verify_(self) -> None:
        if element_of(self.condition.type) != I1:
            raise VerifyException(
                f"the condition of T.if_then_else must be bool, not {type_to_dtype(self.condition.type)}"
            )
        for region in (self.then_region, self.else_region):
            last = region.block.last_op
            if not isinstance(last, YieldOp) or len(last.values) != 1 or last.values[0].type != self.result.type:
                raise VerifyException("both sides of T.if_then_else must yield one value of its dtype")


@irdl_op_definition
class YieldOp(PlainOp):
    """Ends an expression's region with its value(s)."""

    name = "tir.yield"
    assembly_format = "attr-dict ($values^ `:` type($values))?"
    values = var_operand_def()
    traits = traits_def(Pure(), IsTerminator())

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[list(values)])


@irdl_op_definition
class CastOp(PlainOp):
    """`T.Cast("float32", x)` or `T.float32(x)`: conversion by value; float to integer truncates."""

    name = "tir.cast"
    assembly_format = "$value attr-dict `:` type($value) `to` type($result)"
    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue | Operation, type: Attribute):
        super().__init__(operands=[value], result_types=[type])

    def verify_(self) -> None:
        if isinstance(self.value.type, BufferType) or isinstance(self.result.type, BufferType):
            raise VerifyException("a cast is of a number, not of a buffer")
        if lanes_of(self.value.type) != lanes_of(self.result.type):
            raise VerifyException(
                f"a cast keeps the number of lanes: {type_to_dtype(self.value.type)} to {type_to_dtype(self.result.type)}"
            )


@irdl_op_definition
class RampOp(PlainOp):
    """`T.Ramp(base, stride, lanes)`: the vector base, base + stride, …, of `lanes` elements."""

    name = "tir.ramp"
    assembly_format = "$base `,` $stride attr-dict `:` functional-type(operands, results)"
    base = operand_def()
    stride = operand_def()
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, base: SSAValue | Operation, stride: SSAValue | Operation, lanes: int, scalable: bool = False):
        base = value_of(base)
        result = vector_type(base.type, lanes, scalable)
        init_op(self, (base, value_of(stride)), (result,), {}, UNKNOWN_LOC)

    def verify_(self) -> None:
        if self.base.type != self.stride.type or self.base.type != element_of(self.result.type):
            raise VerifyException(
                f"base and stride of T.Ramp have different dtypes: {type_to_dtype(self.base.type)} and {type_to_dtype(self.stride.type)}"
            )


@irdl_op_definition
class BroadcastOp(PlainOp):
    """`T.Broadcast(value, lanes)`: a vector of `lanes` copies."""

    name = "tir.broadcast"
    assembly_format = "$value attr-dict `:` type($value) `to` type($result)"
    value = operand_def()
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue | Operation, lanes: int, scalable: bool = False):
        value = value_of(value)
        init_op(self, (value,), (vector_type(value.type, lanes, scalable),), {}, UNKNOWN_LOC)

    def verify_(self) -> None:
        if self.value.type != element_of(self.result.type):
            raise VerifyException("T.Broadcast keeps the element dtype")


@irdl_op_definition
class ShuffleOp(PlainOp):
    """`T.Shuffle([vectors], [indices])`: elements of the concatenated vectors; a scalar for one index."""

    name = "tir.shuffle"
    assembly_format = "$vectors $indices attr-dict `:` functional-type($vectors, $result)"
    vectors = var_operand_def()
    indices = prop_def(ArrayAttr[IntAttr])
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, vectors: Sequence[SSAValue | Operation], indices: Sequence[int]):
        element = element_of(value_of(vectors[0]).type)
        super().__init__(
            operands=[list(vectors)],
            properties={"indices": ArrayAttr([int_attr(i) for i in indices])},
            result_types=[with_lanes(element, len(indices))],
        )

    def verify_(self) -> None:
        total = sum(lanes_of(v.type) for v in self.vectors)
        for index in self.indices.data:
            if not 0 <= index.data < total:
                raise VerifyException(f"index {index.data} of T.Shuffle is outside its {counted(total, 'element')}")


class CallEffect(MemoryEffect):
    """The effect of a call on memory: that of its intrinsic in the table."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance] | None:
        assert isinstance(op, CallOp)
        match Effect.OPAQUE if op.callee is not None else intrinsic_effect(op.intrinsic.data):
            case Effect.PURE:
                return set()
            case Effect.READ:
                return {EffectInstance(MemoryEffectKind.READ)}
            case _:
                return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}


@irdl_op_definition
class CallOp(PlainOp):
    """A call of an intrinsic (`T.exp(x)`, `T.call_extern("float32", "f", x)`) or of a function.

    `intrinsic` is the name after `T.`; with `callee` set it is "call" and the callee is a `tir.prim_func` of the module.
    `extra` holds arguments that are not values, in the text's keyword form. A void call has no result.
    """

    name = "tir.call"
    assembly_format = (
        "$intrinsic (`of` $callee^)? `(` $arguments `)` attr-dict `:` functional-type($arguments, $result)"
    )
    intrinsic = prop_def(StringAttr)
    callee = opt_prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    result = opt_result_def()
    traits = traits_def(CallEffect())

    def __init__(
        self,
        intrinsic: str,
        arguments: Sequence[SSAValue | Operation],
        type: Attribute | None,
        callee: str | None = None,
    ):
        properties: dict[str, Attribute] = {"intrinsic": string(intrinsic)}
        if callee is not None:
            properties["callee"] = SymbolRefAttr(callee)
        super().__init__(
            operands=[list(arguments)], properties=properties, result_types=[[] if type is None else [type]]
        )


@irdl_op_definition
class CommReducerOp(PlainOp):
    """`T.comm_reducer(lambda x, y: x + y, [identity])`: a commutative reducer of one or several values.

    The region's arguments, named `arg_names`, are the left values, then the right ones; it yields the combined values.
    """

    name = "tir.comm_reducer"
    assembly_format = (
        "$identities `:` functional-type($identities, $result) (`names` $arg_names^)? $combiner attr-dict-with-keyword"
    )
    identities = var_operand_def()
    arg_names = opt_prop_def(ArrayAttr[StringAttr])
    combiner = region_def("single_block")
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        identities: Sequence[SSAValue | Operation],
        combiner: Region,
        type: Attribute,
        arg_names: Sequence[str] = (),
    ):
        properties: dict[str, Attribute] = {}
        if arg_names:
            properties["arg_names"] = ArrayAttr([StringAttr(n) for n in arg_names])
        super().__init__(operands=[list(identities)], properties=properties, regions=[combiner], result_types=[type])


def single_block(*args: Attribute) -> Region:
    """Creates a region of one empty block with arguments of the given types."""
    return Region(Block(arg_types=args))
