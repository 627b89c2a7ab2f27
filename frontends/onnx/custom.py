"""Converts nodes by TE and TIR functions that are given along with a model: operators of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.infer.tir_calls import call_tir_type, tir_parameters
from ...dialects.tir.types import type_to_dtype

if TYPE_CHECKING:
    from ...dialects.relay.operator import Operator
    from .node import Node

LEVELS = ("te.func", "tir.prim_func")


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    """Returns the TE and TIR functions of a module by name."""
    found: dict[str, Operation] = {}
    for op in module.ops:
        name = op.properties.get("sym_name")
        if op.name in LEVELS and isinstance(name, StringAttr):
            found[name.data] = op
    return found


def operators_of(module: ModuleOp | None) -> dict[str, Operator]:
    """Returns the operators of a module and of extensions by the ONNX operator that each converts."""
    from ...dialects.relay.operator import definitions_in, own_operators

    found = own_operators()
    if module is not None:
        found += [definition.entry() for definition in definitions_in(module)]
    return {operator.onnx: operator for operator in found}


def call_operator(node: Node, operator: Operator) -> list[SSAValue]:
    """Converts a node to a use of an operator of one's own."""
    from ...dialects.relay.operator import operator_class

    arguments = node.tensors()
    problem = operator.problem(node.attributes, len(arguments))
    if problem is not None:
        raise node.refuse(problem)
    b = node.builder
    value = b.add(operator_class(operator)(arguments, node.attributes))
    return b.tuple_parts(value) if isinstance(value.type, TupleType) else [value]


def call_custom(node: Node, name: str, function: Operation) -> list[SSAValue]:
    """Converts a node to a call of a function, whose open sizes follow from the inputs.

    Inputs come first; a parameter after them that is called like an attribute of the node takes its value:

        Shrink(x, bias=0.25)   →   call_tir(@Shrink, %x, 0.25f)          @te.func def Shrink(x: …, bias: …)
    """
    b = node.builder
    arguments = node.tensors()
    op = ir.CallTirOp.create(operands=arguments, properties={"callee": SymbolRefAttr(name)}, result_types=[ir.UNKNOWN])
    op.location = b.location
    for parameter in tir_parameters(op, f"@{name}", function)[len(arguments) :]:
        if parameter.name not in node.attributes:
            break
        arguments.append(b.constant(np.asarray(node.attributes[parameter.name]), type_to_dtype(parameter.element)))
    types = [cast("TensorType[Attribute]", each.type) for each in arguments]
    result = call_tir_type(op, function, types)
    op.drop_all_references()
    call = ir.CallTirOp.create(operands=arguments, properties={"callee": SymbolRefAttr(name)}, result_types=[result])
    value = b.insert(call)
    return b.tuple_parts(value) if isinstance(result, TupleType) else [value]
