"""Dtypes as constructs: `T.float32(x)`, casts, limits, variables `n = T.int32()`."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from ....dialects.tir.expr import CastOp, VarOp
from ....dialects.tir.operators import Const, Value
from ....dialects.tir.types import I32, lanes_of, limit, type_to_dtype, with_lanes
from ...python.tree import Call
from ..arguments import named_arguments
from ..expressions import number_of
from ..literals import read_dtype, typed_literal
from ..reader import Reader, hint
from ..registry import construct


def typed(reader: Reader, node: Call, type_: Attribute) -> Value:
    """`T.float32(x)`: a constant of that dtype, or a cast."""
    if not node.arguments:
        reader.fail(node, f"{node.function}() makes a variable", f"give it a name: n = {node.function}()")
    if len(node.arguments) != 1:
        reader.fail(node, f"{node.function} takes one value")
    const = typed_literal(reader, type_, node.arguments[0])
    if const is not None:
        return const
    value = number_of(reader, node.arguments[0])
    reader.location = reader.at(node)
    return reader.cast(value, type_)


@construct.value("T.Cast")
def read_cast(reader: Reader, node: Call) -> Value:
    """`T.Cast("float32", x)`, never folded."""
    type_node, value_node = named_arguments(reader, node, ("dtype", "value"), 2)
    assert value_node is not None
    type_ = read_dtype(reader, type_node)
    value = reader.value(number_of(reader, value_node))
    reader.location = reader.at(node)
    return reader.emit(CastOp.create(operands=(value,), result_types=(type_,)))


@construct.value("T.cast")
def read_folding_cast(reader: Reader, node: Call) -> Value:
    """`T.cast(x, "float32")`: `x.astype("float32")`."""
    value_node, type_node = named_arguments(reader, node, ("value", "dtype"), 2)
    assert value_node is not None and type_node is not None
    value = number_of(reader, value_node)
    reader.location = reader.at(node)
    return reader.cast(value, with_lanes(read_dtype(reader, type_node), lanes_of(value.type)))


@construct.value("T.max_value", "T.min_value", "T.infinity")
def read_limit(reader: Reader, node: Call) -> Value:
    """`T.max_value("int32")`, `T.min_value("float32")`, `T.infinity("float32")`: constants."""
    (type_node,) = named_arguments(reader, node, ("dtype",), 1)
    type_ = read_dtype(reader, type_node)
    try:
        return Const(limit(str(node.function)[2:], type_), type_)
    except KeyError:
        reader.fail(node, f"{type_to_dtype(type_)} has no {str(node.function)[2:]}")


def variable(reader: Reader, name: str, call: Call, type_: Attribute) -> SSAValue:
    """`n = T.int32()`."""
    size_var = any(k.name == "is_size_var" and k.value == "True" for k in call.keywords)
    reader.location = reader.at(call)
    text = reader.fresh(name)
    result = reader.emit(VarOp(text, type_, size_var=size_var))
    result.name_hint = hint(name)
    reader.shown[result] = text
    return result


@construct.definition("T.var", "T.Var")
def define_var(reader: Reader, name: str, call: Call) -> SSAValue:
    """`n = T.var("int32")`, `n = T.Var("n", "int32")`."""
    type_ = read_dtype(reader, call.arguments[-1]) if call.arguments else I32
    return variable(reader, name, Call(call.function, [], call.keywords), type_)
