"""Converts what a program needs to know of a compiled kernel to plain data and back.

That is how the kernel is declared, how it is called, and what its statuses mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import Builtin, DictionaryAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from ....dialects.relay import ir as relay
from ....passes.tir.buffers.param_strides import strides_attr
from ...llvm.convert.types import PTR
from ...relay.functions.prepare_constants import FAILS, KERNEL, PURE, STRIDES, strides_of
from ...tir.signature import SHAPE, SIGNATURE
from ..lowered_unit import LoweredUnit
from ..units import STUB
from .kernel_types import Facts, Places, type_json, type_of_json


def facts_of(lowered: LoweredUnit, places: Places) -> Facts | None:
    """Returns the facts of a kernel whose ops were written at `places`, or None if data cannot hold them."""
    functions = [_declared(op) for op in lowered.declarations]
    (stub,) = lowered.stubs.values()
    messages = [_placed(code, text, places) for code, text in lowered.messages.items()]
    steps = _steps(stub)
    if steps is None or None in functions or None in messages:
        return None
    return {"functions": functions, "stub": steps, "messages": messages}


def declarations_of(facts: Facts) -> list[llvm.FuncOp]:
    """Returns a program's declarations. Raises KeyError, TypeError or ValueError for data of another form."""
    return [_declaration(each) for each in facts["functions"]]


def messages_at(facts: Facts, places: Places) -> dict[int, str]:
    """Returns the messages of statuses at `places`. Raises as `declarations_of`, and IndexError."""
    return {int(code): _at(text, place, places) for code, text, place in facts["messages"]}


def _at(text: str, place: int, places: Places) -> str:
    position = None if place < 0 else places[place]
    return text if position is None else f"{position[0]}:{position[1]}:{position[2]}: error: {text}"


def _placed(code: int, text: str, places: Places) -> list[Any] | None:
    """Returns a message with the number of its op; None where no op was written at its place."""
    for number, position in enumerate(places):
        start = None if position is None else f"{position[0]}:{position[1]}:{position[2]}: error: "
        if start is not None and text.startswith(start):
            return [code, text[len(start) :], number]
    return [code, text, -1] if ": error: " not in text else None


def _declared(kernel: llvm.FuncOp) -> dict[str, Any] | None:
    """Returns a declaration as plain data; None for a function that takes more than addresses and sizes."""
    known = kernel.attributes[KERNEL]
    assert isinstance(known, DictionaryAttr)
    inputs = kernel.function_type.inputs.data
    sizes = sum(input == i64 for input in inputs)
    # Sizes come last.
    if any(input != PTR for input in inputs[: len(inputs) - sizes]):
        return None
    signature, shape = kernel.attributes.get(SIGNATURE), kernel.attributes.get(SHAPE)
    return {
        "symbol": kernel.sym_name.data,
        "arguments": len(inputs) - sizes,
        "sizes": sizes,
        # Only a call with sizes asks for these.
        "signature": str(signature) if sizes or shape is not None else None,
        "shape": None if shape is None else str(shape),
        "status": kernel.function_type.output == i32,
        **{key: key in known.data for key in (PURE, FAILS)},
        STRIDES: strides_of(kernel),
    }


def _declaration(facts: Mapping[str, Any]) -> llvm.FuncOp:
    output = i32 if facts["status"] else None
    result = llvm.FuncOp(
        str(facts["symbol"]),
        llvm.LLVMFunctionType([*[PTR] * int(facts["arguments"]), *[i64] * int(facts["sizes"])], output),
        llvm.LinkageAttr("external"),
    )
    known: dict[str, Attribute] = {key: UnitAttr() for key in (PURE, FAILS) if facts[key]}
    if facts[STRIDES]:
        known[STRIDES] = strides_attr([[int(step) for step in steps] for steps in facts[STRIDES]])
    result.attributes[KERNEL] = DictionaryAttr(known)
    for key, name in ((SIGNATURE, "signature"), (SHAPE, "shape")):
        if facts[name] is not None:
            result.attributes[key] = _parsed(str(facts[name]))
    return result


def _parsed(text: str) -> Attribute:
    """Returns the builtin attribute of a text. Raises ValueError for another text."""
    try:
        return Parser(_builtin(), text).parse_attribute()
    except ParseError as error:
        raise ValueError(str(error)) from None


@cache
def _builtin() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    return context


# Stubs as plain data: the values are the parameters, then the results of the steps; a step names those that it takes.


def _steps(stub: relay.FuncOp) -> dict[str, Any] | None:
    values: dict[SSAValue, int] = {arg: place for place, arg in enumerate(stub.body.block.args)}
    params = [type_json(arg.type) for arg in stub.body.block.args]
    steps: list[list[Any]] = []
    for op in stub.body.block.ops:
        taken = [values[operand] for operand in op.operands]
        match op:
            case relay.CallTirOp():
                steps.append(["call", op.callee.root_reference.data, taken, type_json(op.result.type)])
            case relay.TupleGetItemOp():
                steps.append(["item", op.index.value.data, taken, type_json(op.result.type)])
            case relay.TupleOp():
                steps.append(["tuple", 0, taken, type_json(op.result.type)])
            case relay.ReturnOp():
                known = None not in params and all(step[-1] is not None for step in steps)
                return {"params": params, "steps": steps, "result": taken[0]} if known else None
            case _:
                return None
        values[op.results[0]] = len(values)
    return None


def stub_of(facts: Facts) -> relay.FuncOp:
    """Returns a Relay function that calls the kernel. Raises as `declarations_of`, and IndexError."""
    data = facts["stub"]
    block = Block(arg_types=[type_of_json(type) for type in data["params"]])
    values: list[SSAValue] = list(block.args)
    ops: list[Operation] = []
    for what, which, taken, type in data["steps"]:
        operands, result_type = [values[int(place)] for place in taken], type_of_json(type)
        match what:
            case "call":
                op: Operation = relay.CallTirOp(str(which), operands, result_type)
            case "item":
                op = relay.TupleGetItemOp(operands[0], int(which), result_type)
            case _:
                op = relay.TupleOp(operands, result_type)
        ops.append(op)
        values.append(op.results[0])
    block.add_ops([*ops, relay.ReturnOp(values[int(data["result"])])])
    types = [arg.type for arg in block.args]
    return relay.FuncOp(
        STUB, [f"p{k}" for k in range(len(types))], types, ret_type=ops[-1].results[0].type, body=Region(block)
    )
