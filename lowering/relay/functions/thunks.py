"""Emits the code of closures that call a global function or construct a value of a data type.

Each is a function of its own, made once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from ....dialects.relay import ir as relay
from ....dialects.relay.types import FuncType
from ..memory import heap
from .emitter import PTR, RelayEmitter, function
from .flat_values import leaves_of

if TYPE_CHECKING:
    from .function_lowering import LoweredModule


def global_thunk(unit: LoweredModule, callee: str, type: Attribute) -> str:
    """The name of the code of a closure that calls a global function: it drops its own box."""
    name = unit.thunks.get((callee,))
    if name is None:
        name = unit.thunks[callee,] = f"{callee}.thunk"
        assert isinstance(type, FuncType)
        count = sum(len(leaves_of(t)) for t in (*type.inputs.data, type.output))
        thunk = function(name, [PTR] * (2 + count))
        emit = RelayEmitter(thunk.body)
        context, _, *rest = emit.block.args
        emit.give(emit.call(callee, [context, *rest], i32).results[0])
        unit.functions.append(thunk)
    return name


def constructor_thunk(unit: LoweredModule, op: relay.ConstructorRefOp) -> str:
    """The name of the code of a closure that makes a value of a data type."""
    type = op.result.type
    assert isinstance(type, FuncType)
    key = (op.type_name.data, op.constructor.data, str(type))
    name = unit.thunks.get(key)
    if name is None:
        name = unit.thunks[key] = f"{op.constructor.data}.thunk{len(unit.thunks)}"
        count = sum(len(leaves_of(t)) for t in type.inputs.data)
        thunk = function(name, [PTR] * (3 + count))
        emit = RelayEmitter(thunk.body)
        context, _, *fields, target = emit.block.args
        out = emit.new_block()
        box = heap.take(emit, context, 8 * (1 + count), out)
        emit.store(emit.int(unit.data_types.tag(op.type_name.data, op.constructor.data)), box)
        for k, field_leaf in enumerate(fields):
            emit.store(field_leaf, box, 8 + 8 * k)
        emit.store(box, target)
        emit.give(emit.int(0, i32))
        emit.block = out
        emit.give(emit.int(unit.status_of("out of memory", op), i32))
        unit.functions.append(thunk)
    return name
