"""Defines Relay's structure as SSA ops: functions, calls, control flow, data types, references.

Operators (`relay.nn.dense`, `relay.add`, …) are ops of their own, created from the operator table (`operator.py`).
SSA order is evaluation order; a value that the text binds with `let` passes through a `relay.let`.
Verifiers accept types that are not known yet, and look up names only where there is a module around the op.
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
    TensorType,
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
from xdsl.utils.exceptions import VerifyException

from ...support.memoize import memoized
from ...support.operands import ManyOperands, set_operands
from ...support.text import counted
from ..array import ArrayValueAttr
from ..assembly import FunctionForm
from ..plain_op import PlainOp
from .patterns import ConstructorPattern, TuplePattern, bound_names
from .types import UNKNOWN, AdtType, FuncType, RefType, TypeVarType, tuple_of

NO_ATTRS = DictionaryAttr({})


class StructureOp(PlainOp):
    """Base class of the ops of this file: tuples and calls may have very many operands."""

    @property
    def operands(self) -> OpOperands:
        return ManyOperands(self)

    @operands.setter
    def operands(self, new: Sequence[SSAValue]) -> None:
        set_operands(self, new)


class FunctionOp(FunctionForm, StructureOp):
    """Base class of global and local functions.

    `attrs` are the function's attributes; `ret_type` is the declared result type or unknown. The body ends with
    `relay.return`.
    """

    param_names = prop_def(ArrayAttr[StringAttr])
    type_params = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    ret_type = prop_def(Attribute, default_value=UNKNOWN)
    body = region_def("single_block")

    @property
    def params(self) -> Sequence[SSAValue]:
        """The parameters as values, in order."""
        return self.body.block.args

    def function_type(self) -> FuncType:
        """Returns the type of the function as a value."""
        names = [p.data for p in self.type_params.data]
        return FuncType.get([p.type for p in self.params], self.ret_type, names)

    def verify_function(self, what: str) -> None:
        """Verifies the parameters' names and the result; `what` is the function's name in messages."""
        from .verify import agree, verify_parameters

        verify_parameters(what, self.params, self.param_names, self.type_params)
        agree(f"the result of {what}", self.ret_type, _returned(self.body, what).type)


RESULT_NAMES = "result_names"
"""The attribute of an entry that names its results: `result_names=["logits"]`; without it they are `out0`, `out1`, …"""


@irdl_op_definition
class FuncOp(FunctionOp):
    """`def @main[A](%x: Tensor[(2), float32], Inline=1) -> Tensor[(2), float32] { … }`."""

    name = "relay.func"
    sym_name = prop_def(StringAttr)
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

    def verify_(self) -> None:
        from .text import global_text

        self.verify_function(f"function {global_text(self.sym_name.data)}")


@irdl_op_definition
class FnOp(FunctionOp):
    """`fn (%x: float32, Primitive=1) -> float32 { … }`: a local function, a closure over outer values.

    With `self_name` the function calls itself (`let %f = fn …` whose body uses `%f`): then the region's first argument
    is the function itself, and its parameters follow.
    """

    name = "relay.fn"
    self_name = opt_prop_def(StringAttr)
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

    def verify_(self) -> None:
        from .verify import agree

        if self.self_name is not None and not self.body.block.args:
            raise VerifyException("a local function with a self_name takes itself as its first argument")
        self.verify_function("a local function")
        agree("the type of a local function", self.function_type(), self.result.type)


@irdl_op_definition
class ReturnOp(PlainOp):
    """Ends a function's body, an if's branch or a match's clause with its value."""

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
        """Frees the data, which may be large, at once: it must not wait for the garbage collector."""
        super().drop_all_references()
        self.properties = {}

    def verify_(self) -> None:
        shape, type = self.value.data.shape, self.result.type
        if not isinstance(type, TensorType) or type.get_shape() != shape:
            from .text import type_text

            raise VerifyException(f"a constant of shape {shape} cannot have the type {type_text(type)}")


@irdl_op_definition
class LetOp(StructureOp):
    """`let %x = value;`: the same value under the name that the text binds it to."""

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

    def verify_(self) -> None:
        from .verify import agree

        agree(f"the variable %{self.var_name.data}", self.result.type, self.value.type)


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

    def verify_(self) -> None:
        from .verify import agree

        agree("the tuple", tuple_of([f.type for f in self.fields]), self.result.type)


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

    def verify_(self) -> None:
        type, index = self.tuple_value.type, self.index.value.data
        if isinstance(type, TupleType):
            from .verify import agree

            count = len(type.types.data)
            if not 0 <= index < count:
                raise VerifyException(f"a tuple of {counted(count, 'field')} has no field {index}")
            agree(f"field {index} of the tuple", type.types.data[index], self.result.type)
        elif isinstance(type, TensorType | FuncType | AdtType | RefType):
            from .text import type_text

            raise VerifyException(f"only a tuple has fields: .{index} of {type_text(type)}")


@irdl_op_definition
class GlobalRefOp(StructureOp):
    """`@f` as a value: an argument of a call, or the value of a `let`."""

    name = "relay.global_ref"
    assembly_format = "$symbol attr-dict `:` type($result)"
    symbol = prop_def(SymbolRefAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, symbol: str, type: Attribute = UNKNOWN):
        super().__init__(properties={"symbol": SymbolRefAttr(symbol)}, result_types=[type])

    def verify_(self) -> None:
        name = self.symbol.string_value()
        callee = _callee(self, name)
        if callee is not None:
            from .text import global_text
            from .verify import agree

            agree(f"{global_text(name)}", callee.function_type(), self.result.type)


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

    def verify_(self) -> None:
        type = self.callee.type
        if isinstance(type, FuncType):
            from .verify import verify_call

            verify_call("the function", type, self.type_args.data, self.arguments, self.result.type)
        elif isinstance(type, TensorType | TupleType | AdtType | RefType):
            from .text import type_text

            raise VerifyException(f"only a function can be called, not {type_text(type)}")


class SymbolCallOp(StructureOp):
    """Base class of the calls of a function of the module by its name."""

    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $result)"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    result = result_def()

    def __init__(self, callee: str, arguments: Sequence[SSAValue | Operation], type: Attribute = UNKNOWN):
        super().__init__(operands=[list(arguments)], properties={"callee": SymbolRefAttr(callee)}, result_types=[type])


@irdl_op_definition
class CallGlobalOp(SymbolCallOp):
    """`@f(%x)`: a call of a Relay function of the module."""

    name = "relay.call_global"
    type_args = prop_def(ArrayAttr, default_value=ArrayAttr([]))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def()

    def verify_(self) -> None:
        name = self.callee.string_value()
        callee = _callee(self, name)
        if callee is not None:
            from .text import global_text
            from .verify import verify_call

            verify_call(
                global_text(name), callee.function_type(), self.type_args.data, self.arguments, self.result.type
            )


@irdl_op_definition
class CallTirOp(SymbolCallOp):
    """`call_tir(@f, %x, …)`: destination-passing call of a TIR or TE function of the module.

    The callee's parameters are the inputs, then the outputs; the op's type is that of the outputs (a tuple of several).
    """

    name = "relay.call_tir"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        from .text import global_text
        from .verify import near_names, symbol_around

        name = self.callee.string_value()
        found, known = symbol_around(self, name)
        if not known:
            return
        if found is None:
            raise VerifyException(f"there is no function {global_text(name)}{near_names(self, name)}")
        if found.name not in ("tir.prim_func", "te.func"):
            raise VerifyException(
                f"call_tir calls a TIR or TE function, but {global_text(name)} is a '{found.name}'; write {global_text(name)}(…)"
            )


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

    def verify_(self) -> None:
        from .verify import BOOL, agree

        agree("the condition of 'if'", BOOL, self.condition.type)
        then = _returned(self.then_region, "a branch of 'if'")
        other = _returned(self.else_region, "a branch of 'if'")
        agree("the 'else' branch", then.type, other.type)
        agree("the result of 'if'", then.type, self.result.type)


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
        """Returns the field types by constructor, in order."""
        names = (name.data for name in self.constructor_names.data)
        return dict(zip(names, (fields.data for fields in self.constructor_fields.data), strict=True))

    def fields_of(self, name: str) -> Sequence[Attribute] | None:
        """Returns the field types of the constructor `name`, in constant time; None where there is none."""
        index = _indices(self.constructor_names).get(name)
        return None if index is None else self.constructor_fields.data[index].data

    def constructor_type(self, name: str) -> FuncType:
        """Returns the type of the constructor `name` as a function: `fn [A](A, List[A]) -> List[A]`.

        Raises KeyError where there is none.
        """
        fields = self.fields_of(name)
        if fields is None:
            raise KeyError(name)
        parameters = [p.data for p in self.type_params.data]
        result = AdtType.get(self.sym_name.data, [TypeVarType.get(p) for p in parameters])
        return FuncType.get(fields, result, parameters)

    def verify_(self) -> None:
        names = [name.data for name in self.constructor_names.data]
        if len(names) != len(self.constructor_fields.data):
            raise VerifyException(f"{len(names)} constructors have {len(self.constructor_fields.data)} lists of fields")
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise VerifyException(f"the constructor '{name}' is declared twice")
            seen.add(name)


@memoized
def _indices(names: ArrayAttr[StringAttr]) -> dict[str, int]:
    """Returns the index of each name; the last one of a name that is repeated."""
    return {name.data: index for index, name in enumerate(names.data)}


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

    def verify_(self) -> None:
        type = _constructor(self, self.type_name.data, self.constructor.data)
        if type is not None:
            from .verify import verify_call

            verify_call(self.constructor.data, type, (), self.arguments, self.result.type)


@irdl_op_definition
class ConstructorRefOp(StructureOp):
    """`Cons` without arguments: a constructor as a function.

    `Nil`, of no fields, is a value of its type once called.
    """

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

    def verify_(self) -> None:
        type = _constructor(self, self.type_name.data, self.constructor.data)
        if type is not None:
            from .verify import agree

            agree(self.constructor.data, type, self.result.type)


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

    def verify_(self) -> None:
        from .verify import agree, missing_case

        patterns = self.patterns.data
        if len(patterns) != len(self.clauses):
            raise VerifyException(
                f"a match of {counted(len(self.clauses), 'clause')} has {counted(len(patterns), 'pattern')}"
            )
        if not patterns:
            raise VerifyException("a match needs one clause or more")
        for index, (pattern, region) in enumerate(zip(patterns, self.clauses, strict=True)):
            block = region.first_block
            count = 0 if block is None else len(block.args)
            names = bound_names(pattern)
            if count != len(names):
                raise VerifyException(f"clause {index} binds {len(names)} variables, its block takes {count}")
            value = _returned(region, f"clause {index} of a match")
            agree(f"clause {index} of the match", self.result.type, value.type)
            self._verify_pattern(pattern)
        if self.complete.value.data:
            missing = missing_case(patterns, self._constructors)
            if missing is not None:
                raise VerifyException(
                    f"the match leaves out {missing}; add a clause for it, or write match? where it cannot be"
                )

    def _verify_pattern(self, pattern: Attribute) -> None:
        """Verifies that the constructors in a pattern exist and have as many fields as the pattern."""
        pending = [pattern]
        while pending:
            match pending.pop():
                case ConstructorPattern() as made:
                    type = _constructor(self, made.type_name.data, made.constructor.data)
                    if type is not None and len(type.inputs.data) != len(made.fields.data):
                        raise VerifyException(
                            f"{made.constructor.data} has {counted(len(type.inputs.data), 'field')}, its pattern {len(made.fields.data)}"
                        )
                    pending += made.fields.data
                case TuplePattern() as fields:
                    pending += fields.fields.data
                case _:
                    pass

    def _constructors(self, type_name: str) -> Mapping[str, Sequence[Attribute]] | None:
        """Returns a data type's constructors with their fields; None outside of a module."""
        declared = _data_type(self, type_name)
        return None if declared is None else declared.constructors()


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

    def verify_(self) -> None:
        from .verify import agree

        agree("the reference", RefType(self.value.type), self.result.type)


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

    def verify_(self) -> None:
        from .verify import agree

        agree("the argument of ref_read", RefType(self.result.type), self.ref.type)


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

    def verify_(self) -> None:
        from .verify import agree

        agree("the reference that ref_write changes", RefType(self.value.type), self.ref.type)


LEAVES = (ConstantOp, GlobalRefOp, ConstructorRefOp)
"""Ops that the text writes where their value is used."""


def _returned(region: Region, what: str) -> SSAValue:
    """Returns the value that a block ends with.

    Raises VerifyException where it does not end with `relay.return`.
    """
    block = region.first_block
    last = None if block is None else block.last_op
    if not isinstance(last, ReturnOp):
        raise VerifyException(f"{what} must end with a relay.return")
    return last.value


def _callee(op: Operation, name: str) -> FuncOp | None:
    """Returns the Relay function `name` of the module around `op`; None outside of a module.

    Raises VerifyException where the module has no such function.
    """
    from .text import global_text
    from .verify import near_names, symbol_around

    found, known = symbol_around(op, name)
    if isinstance(found, FuncOp):
        return found
    if not known:
        return None
    if found is None:
        raise VerifyException(f"there is no function {global_text(name)}{near_names(op, name)}")
    raise VerifyException(
        f"{global_text(name)} is not a Relay function but a '{found.name}'; write call_tir({global_text(name)}, …)"
    )


def _data_type(op: Operation, type_name: str) -> TypeDataOp | None:
    """Returns the data type `type_name` of the module around `op`; None outside of a module.

    Raises VerifyException where the module has no such type.
    """
    from .verify import symbol_around

    found, known = symbol_around(op, type_name)
    if isinstance(found, TypeDataOp):
        return found
    if known:
        raise VerifyException(f"there is no data type '{type_name}' in the module")
    return None


def _constructor(op: Operation, type_name: str, name: str) -> FuncType | None:
    """Returns the type of a data type's constructor; None where `op` is outside of a module.

    Raises VerifyException where the module has no such constructor.
    """
    declared = _data_type(op, type_name)
    if declared is None:
        return None
    if declared.fields_of(name) is None:
        raise VerifyException(f"the data type '{type_name}' has no constructor '{name}'")
    return declared.constructor_type(name)
