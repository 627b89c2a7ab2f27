"""The state that primitives work on: the module, the op of each handle, blocks by name."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....support.edit import add_op, erase_op, insert_op_after, insert_op_before
from ....support.op_kinds import Kinds
from ....support.walk import all_ops, ops_in
from ..analysis.structure import Scope, body_of, child_blocks, function_of
from .errors import refuse
from .random_variables import BlockRV, Handle, LoopRV
from .tensor_intrinsics import is_half

Names: TypeAlias = "dict[str, list[tir.BlockOp]]"
"""The blocks of a function by name."""


class State:
    """The state of a schedule: handles, names, allocations of the module that it edits."""

    def __init__(self, module: ModuleOp, generator: random.Random | None = None):
        self.module = module
        self.random = generator or random.Random()
        """Where primitives that draw take their numbers from."""
        self.decision: Any = None
        """What the primitive that is being applied drew, for the trace; None for one that draws nothing."""
        self.focus: str | None = None
        """The function that names refer to; None: the only one, or `main`."""
        self._ops: dict[Handle, Operation] = {}
        self._handles: dict[Operation, Handle] = {}
        self._gone: dict[Handle, str] = {}
        self._functions: dict[str, tir.PrimFuncOp] = {}
        self._named: dict[tir.PrimFuncOp, Names] = {}
        self._buffers: dict[tir.PrimFuncOp, dict[str, Operation]] = {}
        self._allocated: dict[Scope, Operation] = {}
        # For each block in one of the tables, that table and the name that it has there.
        self._entries: dict[tir.BlockOp, tuple[Names, str]] = {}

    def __repr__(self) -> str:
        names = [op.sym_name.data for op in self.module.ops if isinstance(op, tir.PrimFuncOp)]
        return f"State({', '.join(names)})"

    # Functions and names

    def function(self, name: str | None = None) -> tir.PrimFuncOp:
        """Returns the function of that name, or the one in focus."""
        wanted = name or self.focus
        found = self._functions.get(wanted or "")
        if found is not None and found.parent is self.module.body.block:
            return found
        functions = [op for op in self.module.body.block.ops if isinstance(op, tir.PrimFuncOp)]
        self._functions = {op.sym_name.data: op for op in functions}
        own = [op for op in functions if not is_half(op)]
        if wanted is None and len(own) == 1:
            self._functions[""] = own[0]
            return own[0]
        wanted = wanted or "main"
        if wanted in self._functions:
            return self._functions[wanted]
        known = ", ".join(f"'{op.sym_name.data}'" for op in functions) or "none"
        raise refuse(self.module, f"the module has no prim_func '{wanted}'", f"it has {known}")

    def named(self, function: tir.PrimFuncOp) -> Names:
        """Returns the blocks of a function by name; kept up to date by `added` and `erase`."""
        table = self._named.get(function)
        if table is None:
            table = self._named[function] = {}
            pending: list[Operation] = [function]
            for place in pending:
                blocks = child_blocks(place)
                for block in blocks:
                    self._enter(block, table)
                pending += blocks
        return table

    def _enter(self, block: tir.BlockOp, table: Names) -> None:
        name = block.block_name.data
        table.setdefault(name, []).append(block)
        self._entries[block] = table, name

    def named_block(self, scope: Scope, name: str, primitive: str) -> tir.BlockOp:
        """Returns the one block of that name in the function of `scope`."""
        table = self.named(function_of(scope))
        found = table.get(name, [])
        if len(found) != 1:
            known = ", ".join(f"'{n}'" for n, blocks in table.items() if blocks)
            raise refuse(
                scope, f"{primitive}: the function has {len(found)} blocks named '{name}'", f"its blocks are {known}"
            )
        return found[0]

    def fresh_block_name(self, where: Operation, wanted: str) -> str:
        """Returns `wanted`, or `wanted_N` when the function has a block of that name."""
        table = self.named(function_of(where))
        name, number = wanted, 0
        while table.get(name):
            number += 1
            name = f"{wanted}_{number}"
        return name

    def rename(self, block: tir.BlockOp, name: str) -> None:
        """Gives a block another name."""
        self._unname(block)
        block.properties["block_name"] = StringAttr(name)
        self.added(block)

    def added(self, block: tir.BlockOp) -> None:
        """Notes a new block, now that it is in the module."""
        table = self.named(function_of(block))
        if block not in self._entries:
            self._enter(block, table)

    # Handles

    def handle(self, op: Operation) -> Handle:
        """Returns the handle of an op, made when there is none."""
        handle = self._handles.get(op)
        if handle is None:
            handle = LoopRV() if isinstance(op, tir.ForOp) else BlockRV()
            self._handles[op] = handle
            self._ops[handle] = op
        return handle

    def op(self, handle: Handle) -> Operation:
        """Returns the op of a handle; raises when the op is gone."""
        op = self._ops.get(handle)
        if op is None:
            reason = self._gone.get(handle, "it was made by another schedule")
            raise refuse(None, f"the handle {handle!r} stands for nothing any more: {reason}")
        return op

    def stands(self, handle: Handle) -> bool:
        """Returns whether the op of a handle still exists."""
        return handle in self._ops

    def live(self) -> list[Operation]:
        """Returns the ops that have handles."""
        return list(self._handles)

    def forward(self, old: Operation, new: Operation) -> None:
        """Moves the handles of `old` to `new`."""
        handle = self._handles.pop(old, None)
        if handle is not None:
            self._ops[handle] = new
            self._handles[new] = handle
        if isinstance(old, tir.BlockOp) and isinstance(new, tir.BlockOp):
            self._unname(old)
            self.added(new)

    def gone(self, op: Operation, why: str) -> None:
        """Records why handles of `op`, which is about to leave the module, are invalid."""
        handle = self._handles.pop(op, None)
        if handle is not None:
            del self._ops[handle]
            self._gone[handle] = why
        if isinstance(op, tir.BlockOp):
            self._unname(op)

    def forget(self, handle: Handle) -> None:
        """Makes a handle refer to nothing."""
        op = self._ops.pop(handle, None)
        if op is not None:
            del self._handles[op]
            self._gone[handle] = "remove_rv removed it"

    def _unname(self, block: tir.BlockOp) -> None:
        table, name = self._entries.pop(block, (None, ""))
        if table is not None:
            table[name].remove(block)

    def erase(self, op: Operation, why: str) -> None:
        """Takes an op out of the module; handles of it, and of blocks and loops in it, say why."""
        for inner in all_ops(op):
            if type(inner) is tir.BlockOp or type(inner) is tir.ForOp:
                self.gone(inner, why)
        erase_op(op)

    def copy_to(self, module: ModuleOp, places: Mapping[Operation, Operation]) -> State:
        """Returns the state of a copy of the module, with the same handles; `places` maps each op to its copy."""
        new = State(module)
        new.random.setstate(self.random.getstate())
        new.focus = self.focus
        new._ops = {handle: places[op] for handle, op in self._ops.items()}
        new._handles = {op: handle for handle, op in new._ops.items()}
        new._gone = dict(self._gone)
        return new

    # Places

    def allocate(self, scope: Scope, buffer: tir.AllocBufferOp) -> SSAValue:
        """Inserts an allocation after those at the beginning of the scope."""
        block = body_of(scope)
        # What was put here last is the place to go on from.
        last = self._allocated.get(scope)
        following = block.first_op if last is None or last.parent is not block else last.next_op
        if following is block.first_op:
            last = None
        while following is not None and not _STATEMENTS[type(following)]:
            last, following = following, following.next_op
        buffer.location = scope.location
        self._allocated[scope] = buffer
        self._buffer_names(function_of(scope))[buffer.var_name.data] = buffer
        if last is not None:
            insert_op_after(buffer, last)
        elif block.first_op is not None:
            insert_op_before(buffer, block.first_op)
        else:
            add_op(block, buffer)
        return buffer.result

    def named_buffer(self, buffer: tir.BufferOp) -> None:
        """Notes the name of a buffer that was put into the function other than by `allocate`."""
        self._buffer_names(function_of(buffer))[buffer.var_name.data] = buffer

    def fresh_buffer_name(self, where: Operation, wanted: str) -> str:
        """Returns `wanted`, or `wanted_N` when a parameter or a buffer of the function has that name."""
        function = function_of(where)
        taken = self._buffer_names(function)
        name, number = wanted, 0
        while (holder := taken.get(name)) is not None:
            if holder.parent is None:
                # It is gone, or another op has taken its place.
                del self._buffers[function]
                taken = self._buffer_names(function)
                continue
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _buffer_names(self, function: tir.PrimFuncOp) -> dict[str, Operation]:
        """Returns the names of the function's parameters and of the buffers at the beginning of its scopes."""
        known = self._buffers.get(function)
        if known is None:
            known = self._buffers[function] = dict.fromkeys((n.data for n in function.param_names.data), function)
            blocks = (block for entries in self.named(function).values() for block in entries)
            for scope in (function, *blocks):
                for op in ops_in(body_of(scope)):
                    if type(op) is tir.ForOp or type(op) is tir.BlockOp:
                        break
                    if _BUFFERS[type(op)]:
                        known[cast("tir.BufferOp", op).var_name.data] = op
        return known


_STATEMENTS = Kinds(tir.ForOp, tir.BlockOp, tir.InitOp, tir.IfOp, tir.StoreOp, tir.WhileOp)
"""The ops that may follow the allocations of a scope."""
_BUFFERS = Kinds(tir.BufferOp)
