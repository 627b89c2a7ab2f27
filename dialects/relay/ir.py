"""Relay's structure as SSA ops: functions, calls, control flow, data types, references.

Operators (`relay.nn.dense`, `relay.add`, …) are ops of their own, made from the operator table. Here is the rest.
SSA order is evaluation order; a value that the text bound with `let` passes through a `relay.let`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TupleType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, OpOperands, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
)
from xdsl.traits import (
    ConstantLike,
    IsolatedFromAbove,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from ...support.memoize import memoized
from ...support.operands import ManyOperands, set_operands
from ..array import ArrayValueAttr
from ..assembly import FunctionForm
from ..plain_op import PlainOp
from .types import UNKNOWN, AdtType, FuncType, RefType, TypeVarType, tuple_of

NO_ATTRS = DictionaryAttr({})


class StructureOp(PlainOp):
    """An op of this file; the rules that it must keep stand in `verify`. Tuples and calls may have very many operands."""

    @property
    def operands(self) -> OpOperands:
        return ManyOperands(self)

    @operands.setter
    def operands(self, new: Sequence[SSAValue]) -> None:
        set_operands(self, new)

    def verify_(self) -> None:
        from .verify import verify_structure

        verify_structure(self)


@irdl_op_definition
class FuncOp(FunctionForm, StructureOp):
    """`def @main[A](%x: Tensor[(2), float32], Inline=1) -> Tensor[(2), float32] { … }`.

    `attrs` are the function's attributes; `ret_type` is the declared result type or unknown. The body ends with
    `relay.return`.
    """

    name = "relay.func"
    sym_name = prop_def(StringAttr)
    param_names = prop_def(ArrayAttr[StringAttr])
    type_params = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    ret_type = prop_def(Attribute, default_value=UNKNOWN)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        param_names: Sequence[str],
        param_types: Sequence[Attribute],
        *,
        ret_type: Attribute = UNKNOWN,
        type_params: Sequence[str] = (),
        attrs: Mapping[str, Attribute] | None = None,
        body: Region | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "param_names": ArrayAttr([StringAttr(n) for n in param_names]),
                "type_params": ArrayAttr([StringAttr(n) for n in type_params]),
                "attrs": DictionaryAttr(dict(attrs or {})),
                "ret_type": ret_type,
            },
            regions=[body or Region(Block(arg_types=param_types))],
        )

    @property
    def params(self) -> Sequence[SSAValue]:
        """The parameters as values, in order."""
        return self.body.block.args

    def function_type(self) -> FuncType:
        """The function's type as a value."""
        names = [p.data for p in self.type_params.data]
        return FuncType.get([p.type for p in self.params], self.ret_type, names)


@irdl_op_definition
class FnOp(FunctionForm, StructureOp):
    """`fn (%x: float32, Primitive=1) -> float32 { … }`: a local function, closing over the values around it.

    With `self_name` the function calls itself (`let %f = fn …` whose body uses `%f`): then the region's first argument
    is the function itself, and its parameters follow.
    """

    name = "relay.fn"
    param_names = prop_def(ArrayAttr[StringAttr])
    type_params = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    ret_type = prop_def(Attribute, default_value=UNKNOWN)
    self_name = opt_prop_def(StringAttr)
    body = region_def("single_block")
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        param_names: Sequence[str],
        body: Region,
        type: Attribute = UNKNOWN,
        *,
        ret_type: Attribute = UNKNOWN,
        type_params: Sequence[str] = (),
        attrs: Mapping[str, Attribute] | None = None,
        self_name: str | None = None,
    ):
        properties: dict[str, Attribute] = {
            "param_names": ArrayAttr([StringAttr(n) for n in param_names]),
            "type_params": ArrayAttr([StringAttr(n) for n in type_params]),
            "attrs": DictionaryAttr(dict(attrs or {})),
            "ret_type": ret_type,
        }
        if self_name is not None:
            properties["self_name"] = StringAttr(self_name)
        super().__init__(properties=properties, result_types=[type], regions=[body])

    @property
    def params(self) -> Sequence[SSAValue]:
        """The parameters as values, without the function itself."""
        return self.body.block.args[1 if self.self_name is not None else 0 :]


@irdl_op_definition
class ReturnOp(PlainOp):
    """The value of a function's body, of an if's branch or of a match's clause."""

    name = "relay.return"
    assembly_format = "$value attr-dict `:` type($value)"
    value = operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])


@irdl_op_definition
class ConstantOp(StructureOp):
    """A constant tensor: `2f`, `True`, `meta[relay.Constant][0]`."""

    name = "relay.constant"
    assembly_format = "qualified($value) attr-dict `:` type($result)"
    value = prop_def(ArrayValueAttr)
    result = result_def()
    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: ArrayValueAttr, type: Attribute):
        super().__init__(properties={"value": value}, result_types=[type])

    def drop_all_references(self) -> None:
        """As for any op that is erased; the data, which may be large, does not wait for the collector."""
        super().drop_all_references()
        self.properties = {}


@irdl_op_definition
class LetOp(StructureOp):
    """`let %x = value;`: the same value under the name that the text gives it."""

    name = "relay.let"
    assembly_format = "$var_name `=` $value attr-dict `:` type($value) `->` type($result)"
    var_name = prop_def(StringAttr)
    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, name: str, value: SSAValue | Operation, type: Attribute | None = None):
        value = SSAValue.get(value)
        super().__init__(
            operands=[value],
            properties={"var_name": StringAttr(name)},
            result_types=[value.type if type is None else type],
        )


@irdl_op_definition
class TupleOp(StructureOp):
    """`(%a, %b)`."""

    name = "relay.tuple"
    assembly_format = "$fields attr-dict `:` functional-type($fields, $result)"
    fields = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, fields: Sequence[SSAValue | Operation], type: Attribute | None = None):
        values = [SSAValue.get(f) for f in fields]
        super().__init__(
            operands=[values],
            result_types=[tuple_of([v.type for v in values]) if type is None else type],  # type: ignore[arg-type]
        )


@irdl_op_definition
class TupleGetItemOp(StructureOp):
    """`%t.0`."""

    name = "relay.tuple_get_item"
    assembly_format = "$tuple_value attr-dict `:` type($tuple_value) `->` type($result)"
    tuple_value = operand_def()
    index = prop_def(IntegerAttr)
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue | Operation, index: int, type: Attribute = UNKNOWN):
        value = SSAValue.get(value)
        if type == UNKNOWN and isinstance(value.type, TupleType) and index < len(value.type.types.data):
            type = value.type.types.data[index]
        super().__init__(operands=[value], properties={"index": IntegerAttr(index, 64)}, result_types=[type])


@irdl_op_definition
class GlobalRefOp(StructureOp):
    """`@f` as a value: an argument of a call, or what a `let` binds."""

    name = "relay.global_ref"
    assembly_format = "$symbol attr-dict `:` type($result)"
    symbol = prop_def(SymbolRefAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, symbol: str, type: Attribute = UNKNOWN):
        super().__init__(properties={"symbol": SymbolRefAttr(symbol)}, result_types=[type])


@irdl_op_definition
class CallOp(StructureOp):
    """`%f(%x)`: a call of a function that is a value. `type_args` are written ones."""

    name = "relay.call"
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` type($callee) `,` functional-type($arguments, $result)"
    callee = operand_def()
    arguments = var_operand_def()
    type_args = prop_def(ArrayAttr, default_value=ArrayAttr([]))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    result = result_def()
    # No effect trait: what the callee does is not known here, so neither CSE nor DCE may touch it.
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def()

    def __init__(
        self, callee: SSAValue | Operation, arguments: Sequence[SSAValue | Operation], type: Attribute = UNKNOWN
    ):
        super().__init__(operands=[callee, list(arguments)], result_types=[type])


@irdl_op_definition
class CallGlobalOp(StructureOp):
    """`@f(%x)`: a call of a Relay function of the module."""

    name = "relay.call_global"
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $result)"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    type_args = prop_def(ArrayAttr, default_value=ArrayAttr([]))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def()

    def __init__(self, callee: str, arguments: Sequence[SSAValue | Operation], type: Attribute = UNKNOWN):
        super().__init__(operands=[list(arguments)], properties={"callee": SymbolRefAttr(callee)}, result_types=[type])


@irdl_op_definition
class CallTirOp(StructureOp):
    """`call_tir(@f, %x, …)`: destination-passing call of a TIR or TE function of the module.

    The callee's parameters are the inputs, then the outputs; the op's type is that of the outputs (a tuple of several).
    """

    name = "relay.call_tir"
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $result)"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, callee: str, arguments: Sequence[SSAValue | Operation], type: Attribute = UNKNOWN):
        super().__init__(operands=[list(arguments)], properties={"callee": SymbolRefAttr(callee)}, result_types=[type])


@irdl_op_definition
class IfOp(StructureOp):
    """`if (%c) { … } else { … }`: both branches end with `relay.return` of the if's value."""

    name = "relay.if"
    assembly_format = (
        "$condition `:` type($condition) `->` type($result) $then_region `else` $else_region attr-dict-with-keyword"
    )
    condition = operand_def()
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    result = result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self, condition: SSAValue | Operation, then_region: Region, else_region: Region, type: Attribute = UNKNOWN
    ):
        super().__init__(operands=[condition], regions=[then_region, else_region], result_types=[type])


@irdl_op_definition
class TypeDataOp(StructureOp):
    """`type List[A] { Cons(A, List[A]), Nil, }`: an algebraic data type.

    `constructors` maps each constructor's name, in order, to the array of its field types. `extern` ones have none.
    """

    name = "relay.type_data"
    assembly_format = "$sym_name attr-dict"
    sym_name = prop_def(SymbolNameConstraint())
    type_params = prop_def(ArrayAttr[StringAttr])
    constructor_names = prop_def(ArrayAttr[StringAttr])
    constructor_fields = prop_def(ArrayAttr[ArrayAttr])
    extern = opt_prop_def(UnitAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        type_params: Sequence[str],
        constructors: Mapping[str, Sequence[Attribute]],
        *,
        extern: bool = False,
    ):
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "type_params": ArrayAttr([StringAttr(p) for p in type_params]),
            "constructor_names": ArrayAttr([StringAttr(c) for c in constructors]),
            "constructor_fields": ArrayAttr([ArrayAttr(list(fields)) for fields in constructors.values()]),
        }
        if extern:
            properties["extern"] = UnitAttr()
        super().__init__(properties=properties)

    def constructors(self) -> dict[str, Sequence[Attribute]]:
        """Field types by constructor, in order."""
        names = (name.data for name in self.constructor_names.data)
        return dict(zip(names, (fields.data for fields in self.constructor_fields.data), strict=True))

    def fields_of(self, name: str) -> Sequence[Attribute] | None:
        """The field types of the constructor called so, None where there is none; in a time that does not depend on how many there are."""
        place = _places(self.constructor_names).get(name)
        return None if place is None else self.constructor_fields.data[place].data

    def constructor_type(self, name: str) -> FuncType:
        """The type of a constructor of this data type as a function: `fn [A](A, List[A]) -> List[A]`. Raises KeyError where there is none."""
        fields = self.fields_of(name)
        if fields is None:
            raise KeyError(name)
        parameters = [p.data for p in self.type_params.data]
        result = AdtType.get(self.sym_name.data, [TypeVarType.get(p) for p in parameters])
        return FuncType.get(fields, result, parameters)


@memoized
def _places(names: ArrayAttr[StringAttr]) -> dict[str, int]:
    """Where each name stands; where one is given twice, the last."""
    return {name.data: place for place, name in enumerate(names.data)}


@irdl_op_definition
class ConstructOp(StructureOp):
    """`Cons(%x, %rest)`: a value of a data type, by its constructor `type_name`::`constructor`."""

    name = "relay.construct"
    assembly_format = (
        "$type_name `,` $constructor `(` $arguments `)` attr-dict `:` functional-type($arguments, $result)"
    )
    type_name = prop_def(StringAttr)
    constructor = prop_def(StringAttr)
    arguments = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self, type_name: str, constructor: str, arguments: Sequence[SSAValue | Operation], type: Attribute = UNKNOWN
    ):
        super().__init__(
            operands=[list(arguments)],
            properties={"type_name": StringAttr(type_name), "constructor": StringAttr(constructor)},
            result_types=[type],
        )


@irdl_op_definition
class ConstructorRefOp(StructureOp):
    """A constructor as a value, `Cons` without arguments where a function is wanted (`Nil` with no fields is a value of its own type once called)."""

    name = "relay.constructor_ref"
    assembly_format = "$type_name `,` $constructor attr-dict `:` type($result)"
    type_name = prop_def(StringAttr)
    constructor = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, type_name: str, constructor: str, type: Attribute = UNKNOWN):
        super().__init__(
            properties={"type_name": StringAttr(type_name), "constructor": StringAttr(constructor)}, result_types=[type]
        )


@irdl_op_definition
class MatchOp(StructureOp):
    """`match (%v) { Cons(%x, _) => { … }, Nil => { … }, }`; `match?` (not `complete`) may miss a case.

    Clause k has pattern `patterns[k]` and region k, whose arguments are the pattern's variables, left to right. A
    pattern is a `relay.pattern` attribute.
    """

    name = "relay.match"
    assembly_format = "$value `:` type($value) `->` type($result) $patterns $complete $clauses attr-dict-with-keyword"
    value = operand_def()
    patterns = prop_def(ArrayAttr)
    complete = prop_def(IntegerAttr)
    clauses = var_region_def("single_block")
    result = result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        value: SSAValue | Operation,
        patterns: Sequence[Attribute],
        clauses: Sequence[Region],
        type: Attribute = UNKNOWN,
        *,
        complete: bool = True,
    ):
        super().__init__(
            operands=[value],
            properties={
                "patterns": ArrayAttr(list(patterns)),
                "complete": IntegerAttr(int(complete), 1),
            },
            regions=list(clauses),
            result_types=[type],
        )


@irdl_op_definition
class RefOp(StructureOp):
    """`ref(%x)`: a new cell holding the value."""

    name = "relay.ref"
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"
    value = operand_def()
    result = result_def()
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, value: SSAValue | Operation):
        value = SSAValue.get(value)
        super().__init__(operands=[value], result_types=[RefType(value.type)])


@irdl_op_definition
class RefReadOp(StructureOp):
    """`ref_read(%r)`."""

    name = "relay.ref_read"
    assembly_format = "$ref attr-dict `:` type($ref) `->` type($result)"
    ref = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(self, ref: SSAValue | Operation, type: Attribute = UNKNOWN):
        super().__init__(operands=[ref], result_types=[type])


@irdl_op_definition
class RefWriteOp(StructureOp):
    """`ref_write(%r, %x)`; its value is the empty tuple."""

    name = "relay.ref_write"
    assembly_format = "$ref `,` $value attr-dict `:` functional-type(operands, results)"
    ref = operand_def()
    value = operand_def()
    result = result_def()
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, ref: SSAValue | Operation, value: SSAValue | Operation):
        super().__init__(operands=[ref, value], result_types=[TupleType(())])


LEAVES = (ConstantOp, GlobalRefOp, ConstructorRefOp)
"""Ops that the text writes where their value is used."""
