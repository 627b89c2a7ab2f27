"""Compiled kernels by structure: what the text of a TE function decides is kept, whatever the function is called.

A kernel's key is the text of its function in MLIR's generic form, without its name and the places where it was written, with all
that `keys.py` adds. Its symbol ends in the key's beginning, so that kernels of several programs do not meet under one name. Kept are the object file, how the program calls the kernel, and its messages; a message's place in the source is kept as the number of the op
that has it, and becomes that op's place in the program that the kernel is used in.

Only kernels of known sizes are kept: functions whose sizes are computed before the call have more to say of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import te, tir
from ...dialects.relay import ir as relay
from ...dialects.tir.types import dtype_to_type
from ...support.diagnostics import source_position
from ...support.walk import walk_ops
from ..build import messages_of
from ..llvm.types import PTR
from ..program import Tensor, Tree, of_tree_json, tree_json, tree_of
from ..relay.prepare import FAILS, KERNEL, PURE
from ..tir.signature import SHAPE
from ..units import STUB, Unit, replace_call
from .kernel_text import KernelText
from .store import Store

KIND = "kernel"
_NAME = "kernel"


@dataclass
class Known:
    """A compiled kernel, in the words of the program that uses it."""

    declarations: list[dict[str, Any]]
    stub: relay.FuncOp
    messages: dict[int, str]
    object: Future[bytes]

    def join(self, unit: Unit, program: ModuleOp) -> None:
        """As `Unit.join`."""
        present = {op.sym_name.data for op in program.ops if isinstance(op, llvm.FuncOp)}
        for facts in self.declarations:
            if facts["symbol"] not in present:
                program.body.block.add_op(_declare(facts))
        for name, calls in unit.calls.items():
            for call in calls:
                replace_call(call, name, self.stub)


class KernelCache:
    """The kernels of one build: those on disk, and those that were made so far. `context` goes into every key."""

    def __init__(self, store: Store | None, context: bytes):
        self.store = store
        self.context = context
        self.made: dict[bytes, tuple[dict[str, Any], Future[bytes]]] = {}
        """What is kept of kernels that this build made or read, by key."""
        self.fresh: list[bytes] = []
        """Keys of those that are not on disk yet."""
        self.text = KernelText()

    def candidate(self, unit: Unit) -> Candidate | None:
        """What to look for; None for a unit that is not kept."""
        functions = [op for op in unit.module.ops if not isinstance(op, relay.FuncOp)]
        if len(functions) != 1 or len(unit.calls) != 1 or not isinstance(functions[0], te.FuncOp):
            return None
        function = functions[0]
        # Where sizes are checked at each call, what is said names the function.
        if SHAPE in function.attrs.data or any(isinstance(op, tir.VarOp) for op in function.body.block.ops):
            return None
        name = function.sym_name.data
        function.sym_name = StringAttr(_NAME)
        text = self.text(function)
        # Tensors may come in tuples, which is how a call shows and the function does not.
        (calls,) = unit.calls.values()
        types = [_type_json(value.type) for value in (*calls[0].arguments, calls[0].result)]
        key = hashlib.sha256(self.context + (text + json.dumps(types)).encode()).digest()
        _rename(unit, f"{name.rstrip('_0123456789')}.{key.hex()[:12]}")
        return Candidate(self, key, [source_position(op.location) for op in walk_ops(function)])

    def write(self) -> None:
        """Puts on disk what is not there yet."""
        if self.store is None:
            return
        for key in self.fresh:
            facts, future = self.made[key]
            head = json.dumps(facts, separators=(",", ":")).encode()
            self.store.write(KIND, key, [len(head).to_bytes(8, "little"), head, future.result()])
        self.fresh.clear()


@dataclass
class Candidate:
    """A kernel that may be known."""

    cache: KernelCache
    key: bytes
    places: list[tuple[str, int, int] | None]
    """Where each of its ops was written."""

    def find(self, messages: Mapping[int, str]) -> Known | None:
        """The kernel, if it is known; its messages must not contradict those that the program has."""
        entry = self.cache.made.get(self.key) or self._read()
        if entry is None:
            return None
        facts, future = entry
        try:
            own = {int(code): self._text(text, place) for code, text, place in facts["messages"]}
            if any(messages.get(code, text) != text for code, text in own.items()):
                return None
            return Known(facts["functions"], _stub_of(facts["stub"]), own, future)
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    def _read(self) -> tuple[dict[str, Any], Future[bytes]] | None:
        store = self.cache.store
        payload = None if store is None else store.read(KIND, self.key)
        if payload is None:
            return None
        length = int.from_bytes(payload[:8], "little")
        try:
            facts = json.loads(bytes(payload[8 : 8 + length]))
        except ValueError:
            return None
        future: Future[bytes] = Future()
        future.set_result(bytes(payload[8 + length :]))
        self.cache.made[self.key] = facts, future
        return facts, future

    def _text(self, text: str, place: int) -> str:
        if place < 0:
            return text
        position = self.places[place]
        return text if position is None else f"{position[0]}:{position[1]}:{position[2]}: error: {text}"

    def keep(self, unit: Unit, stubs: Mapping[str, relay.FuncOp], program: ModuleOp, future: Future[bytes]) -> None:
        """Notes a kernel that is being compiled."""
        names = {op.sym_name.data for op in unit.module.ops if isinstance(op, llvm.FuncOp)}
        functions = [_facts(op) for op in program.ops if isinstance(op, llvm.FuncOp) and op.sym_name.data in names]
        (stub,) = stubs.values()
        messages = [self._placed(code, text) for code, text in messages_of(unit.module).items()]
        steps = _steps(stub)
        if steps is None or None in functions or None in messages:
            return
        self.cache.made[self.key] = {"functions": functions, "stub": steps, "messages": messages}, future
        self.cache.fresh.append(self.key)

    def _placed(self, code: int, text: str) -> list[Any] | None:
        """A message with the number of the op that it speaks of; None where no op of the kernel was written there."""
        for number, position in enumerate(self.places):
            start = None if position is None else f"{position[0]}:{position[1]}:{position[2]}: error: "
            if start is not None and text.startswith(start):
                return [code, text[len(start) :], number]
        return [code, text, -1] if ": error: " not in text else None


def _rename(unit: Unit, symbol: str) -> None:
    """Gives the unit's only function another name, in its stub too."""
    (calls,) = unit.calls.values()
    unit.calls = {symbol: calls}
    for op in unit.module.ops:
        if isinstance(op, te.FuncOp):
            op.sym_name = StringAttr(symbol)
        for call in walk_ops(op):
            if isinstance(call, relay.CallTirOp):
                call.callee = SymbolRefAttr(symbol)


def _facts(kernel: llvm.FuncOp) -> dict[str, Any] | None:
    """A declaration as plain data; None for a function that takes more than addresses."""
    known = kernel.attributes[KERNEL]
    assert isinstance(known, DictionaryAttr)
    if any(input != PTR for input in kernel.function_type.inputs):
        return None
    return {
        "symbol": kernel.sym_name.data,
        "arguments": len(kernel.function_type.inputs),
        "status": kernel.function_type.output == i32,
        **{key: key in known.data for key in (PURE, FAILS)},
    }


def _declare(facts: Mapping[str, Any]) -> llvm.FuncOp:
    output = i32 if facts["status"] else None
    result = llvm.FuncOp(
        str(facts["symbol"]),
        llvm.LLVMFunctionType([PTR] * int(facts["arguments"]), output),
        llvm.LinkageAttr("external"),
    )
    result.attributes[KERNEL] = DictionaryAttr({key: UnitAttr() for key in (PURE, FAILS) if facts[key]})
    return result


# Stubs as plain data: the values are the parameters, then the results of the steps; a step names those that it takes.


def _steps(stub: relay.FuncOp) -> dict[str, Any] | None:
    values: dict[SSAValue, int] = {arg: place for place, arg in enumerate(stub.body.block.args)}
    params = [_type_json(arg.type) for arg in stub.body.block.args]
    steps: list[list[Any]] = []
    for op in stub.body.block.ops:
        taken = [values[operand] for operand in op.operands]
        match op:
            case relay.CallTirOp():
                steps.append(["call", op.callee.root_reference.data, taken, _type_json(op.result.type)])
            case relay.TupleGetItemOp():
                steps.append(["item", op.index.value.data, taken, _type_json(op.result.type)])
            case relay.TupleOp():
                steps.append(["tuple", 0, taken, _type_json(op.result.type)])
            case relay.ReturnOp():
                known = None not in params and all(step[-1] is not None for step in steps)
                return {"params": params, "steps": steps, "result": taken[0]} if known else None
            case _:
                return None
        values[op.results[0]] = len(values)
    return None


def _stub_of(data: Mapping[str, Any]) -> relay.FuncOp:
    block = Block(arg_types=[_type_of_json(type) for type in data["params"]])
    values: list[SSAValue] = list(block.args)
    ops: list[Operation] = []
    for what, which, taken, type in data["steps"]:
        operands, result_type = [values[int(place)] for place in taken], _type_of_json(type)
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


def _type_json(type: Attribute) -> Any:
    tree = tree_of(type)
    return None if tree is None else tree_json(tree)


def _type_of_json(data: Any) -> Attribute:
    return _type_of(of_tree_json(data))


def _type_of(tree: Tree) -> Attribute:
    if isinstance(tree, Tensor):
        return TensorType(dtype_to_type(tree.dtype), tree.shape)
    return TupleType(ArrayAttr([_type_of(field) for field in tree]))  # type: ignore[type-var]
