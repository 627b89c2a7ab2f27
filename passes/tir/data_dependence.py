"""Finds what depends on a variable: values, and memory written with them or under their conditions."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from ...dialects import tir
from ...dialects.tir.operators import as_const
from ...support.walk import walk_ops


class Touched:
    """The values and the memory among `ops` that depend on a variable.

    As TVM's `VarTouchedAnalysis`, and by control flow too.
    """

    def __init__(self, variable: Iterable[SSAValue], ops: Iterable[Operation]):
        self.inside = set(ops)
        self.values: set[SSAValue] = set()
        self.memory: set[SSAValue] = set()
        self.controlled: set[Operation] = set()
        self.roots: dict[SSAValue, SSAValue] = {}
        self.readers: dict[SSAValue, list[SSAValue]] = {}
        self.pending = list(variable)
        for op in self.inside:
            if isinstance(op, tir.LoadOp):
                self.readers.setdefault(self.root(op.buffer), []).append(op.result)
            elif isinstance(op, tir.CallOp) and op.intrinsic.data == "tvm_access_ptr" and op.result is not None:
                self.readers.setdefault(self.root(op.arguments[1]), []).append(op.result)

    def settle(self) -> Touched:
        """Follows all uses."""
        while self.pending:
            value = self.pending.pop()
            if value in self.values:
                continue
            self.values.add(value)
            for use in value.uses:
                if use.operation in self.inside:
                    self.use(use.operation)
        return self

    def touch_memory(self, root: SSAValue) -> None:
        """Marks memory, and all that is loaded from it, as dependent on the variable."""
        if root not in self.memory:
            self.memory.add(root)
            self.pending += self.readers.get(root, [])

    def root(self, value: SSAValue) -> SSAValue:
        """Returns the memory of a buffer or pointer: the first value that refers to it."""
        chain: list[SSAValue] = []
        while value not in self.roots:
            chain.append(value)
            owner = value.owner
            if isinstance(owner, tir.DeclBufferOp) and owner.source is not None:
                value = owner.source
            elif isinstance(owner, tir.BufferGetOp) and owner.field.data == "data":
                value = owner.buffer
            else:
                break
        found = self.roots.get(value, value)
        self.roots.update(dict.fromkeys(chain, found))
        return found

    def use(self, op: Operation) -> None:
        """Marks what an op with an operand that depends on the variable passes on."""
        match op:
            case tir.StoreOp():
                self.touch_memory(self.root(op.buffer))
            case tir.ForOp():
                self.pending.append(op.loop_var)
                self.control(op)
            case tir.IfOp() | tir.WhileOp():
                self.control(op)
            case tir.YieldOp():
                parent = op.parent_op()
                if isinstance(parent, tir.IfThenElseOp):
                    self.pending += parent.results
                elif parent is not None:
                    self.control(parent)
            case tir.AllocateOp():
                self.touch_memory(op.result)
            case tir.DeclBufferOp():
                if op.source is None:
                    self.touch_memory(op.result)
            case _:
                if isinstance(op, tir.CallOp):
                    self.writes_of(op)
                self.pending += op.results

    def control(self, op: Operation) -> None:
        """Marks all memory that is written under a condition that depends on the variable."""
        if op in self.controlled:
            return
        for inner in walk_ops(op):
            self.controlled.add(inner)
            if isinstance(inner, tir.StoreOp):
                self.touch_memory(self.root(inner.buffer))
            elif isinstance(inner, tir.CallOp):
                self.writes_of(inner)

    def writes_of(self, call: tir.CallOp) -> None:
        """Marks the memory that a call writes through access pointers."""
        for argument in call.arguments:
            pointer = argument.owner
            if isinstance(pointer, tir.CallOp) and pointer.intrinsic.data == "tvm_access_ptr":
                mask = as_const(pointer.arguments[-1])
                if mask is None or int(mask.value) & 2:
                    self.touch_memory(self.root(pointer.arguments[1]))

    def touches(self, op: Operation) -> bool:
        """Returns whether a statement, without its regions, depends on the variable."""
        if any(operand in self.values for operand in op.operands):
            return True
        return isinstance(op, tir.StoreOp) and self.root(op.buffer) in self.memory
