"""Compiles a function's ops to closures, once; running these is running the function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ....support.diagnostics import error_at
from ..arithmetic import BINARY_OPS, NotOp
from ..buffer import BufferRegionOp, LoadOp, MatchBufferOp
from ..expr import BroadcastOp, CallOp, CastOp, CommReducerOp, ConstOp, IfThenElseOp, LetOp, RampOp, SelectOp, ShuffleOp
from ..open_reductions import with_first_values
from ..stmt import EnvThreadOp, IterVarOp, PrefetchOp, PrimFuncOp, ReadsOp, RealizeOp, TargetOp, WritesOp
from .frame import Step
from .intrinsics import EXTERN_NAMES
from .plan import Plan, make_plan
from .scalar import compile_scalar, constant
from .values import Value

# Ops that need not run when nothing that runs uses their results.
_PURE = (
    *BINARY_OPS, NotOp, SelectOp, CastOp, RampOp, BroadcastOp, ShuffleOp, ConstOp, LetOp, LoadOp, BufferRegionOp, IfThenElseOp,
)  # fmt: skip
# Ops that say something about the program and do nothing.
_SILENT = (ReadsOp, WritesOp, PrefetchOp, RealizeOp, IterVarOp, TargetOp, EnvThreadOp, CommReducerOp)

Compile = Callable[["Compiler", Any], Step | None]
HANDLERS: dict[type[Operation], Compile] = {}
"""Registers the closure of each op that is not a scalar op; the modules of this package fill the table."""


def handles(*kinds: type[Operation]) -> Callable[[Compile], Compile]:
    """Registers a function for op classes."""

    def register(function: Compile) -> Compile:
        for kind in kinds:
            HANDLERS[kind] = function
        return function

    return register


@dataclass
class CompiledFunction:
    """A function ready to run: fill the parameters' slots of a fresh frame, then run the steps."""

    func: PrimFuncOp
    plan: Plan
    template: list[Value]
    params: list[int]
    steps: tuple[Step, ...]


class Compiler:
    """Compiles one function. `functions` holds its callees, compiled at their first call."""

    def __init__(self, func: PrimFuncOp, functions: Functions):
        self.func = func
        self.functions = functions
        self.plan = make_plan(func, EXTERN_NAMES)
        self.template: list[Value] = []
        self._slots: dict[SSAValue, int] = {}
        self._needed: dict[Operation, bool] = {}
        # Ops that another op's closure does the work of.
        self.merged: set[Operation] = set()
        # Ops that took in all that follows them in their block.
        self.closers: set[Operation] = set()
        for update in self.plan.updates.values():
            self.merged |= {update.load, update.combine}

    def compile(self) -> CompiledFunction:
        params = [self.slot(p) for p in self.func.params]
        steps = self.block(self.func.body.block)
        return CompiledFunction(self.func, self.plan, self.template, params, steps)

    def slot(self, value: SSAValue) -> int:
        """Returns the index of the value's slot in frames."""
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self.template)
            self.template.append(None)
        return slot

    def alias(self, value: SSAValue, other: SSAValue) -> None:
        """Stores `value` in the slot of `other`."""
        self._slots[value] = self.slot(other)

    def region(self, region: Region) -> tuple[Step, ...]:
        """Returns the steps of a region of one block; none for an empty region."""
        return self.block(region.block) if region.blocks else ()

    def block(self, block: Block, after: Operation | None = None) -> tuple[Step, ...]:
        """Returns the steps of the ops in a block, or of those after `after`."""
        ops: list[Operation] = []
        op = block.first_op if after is None else after.next_op
        while op is not None:
            ops.append(op)
            op = op.next_op
        for op in reversed(ops):
            self._needed[op] = self._is_needed(op)
        steps: list[Step] = []
        for op in ops:
            if not self._needed[op] or op in self.merged or _is_only_addressed(op):
                continue
            step = self.op(op)
            if step is not None:
                steps.append(step)
            if op in self.closers:
                break
        return tuple(steps)

    def _is_needed(self, op: Operation) -> bool:
        if isinstance(op, _SILENT):
            return False
        if isinstance(op, CallOp):
            return True
        if not isinstance(op, _PURE):
            return True
        for result in op.results:
            for use in result.uses:
                user = use.operation
                if isinstance(op, BufferRegionOp):
                    if isinstance(user, MatchBufferOp):
                        return True
                elif self._needed.get(user, not isinstance(user, _SILENT)):
                    return True
        return False

    def op(self, op: Operation) -> Step | None:
        """Returns the step of one op; None if it does nothing at run time."""
        match op:
            case ConstOp():
                self.template[self.slot(op.result)] = constant(op)
                return None
            case LetOp():
                self.alias(op.result, op.value)
                return None
            case _:
                pass
        step = compile_scalar(self, op)
        if step is not None:
            return step
        handler = HANDLERS.get(type(op))
        if handler is None:
            raise error_at(op, f"the interpreter does not run '{op.name}'")
        return handler(self, op)


def _is_only_addressed(op: Operation) -> bool:
    """Returns True for a load that only represents the address of its element."""
    return isinstance(op, LoadOp) and all(
        isinstance(use.operation, CallOp) and use.operation.intrinsic.data == "address_of" for use in op.result.uses
    )


class Functions:
    """The functions of a module by name, compiled at first use."""

    def __init__(self, module: ModuleOp | None):
        self.module = module
        self._by_name: dict[str, PrimFuncOp] | None = None
        self._compiled: dict[PrimFuncOp, CompiledFunction] = {}

    def named(self, name: str) -> PrimFuncOp | None:
        """Returns the function of this name."""
        if self._by_name is None:
            ops = () if self.module is None else self.module.body.block.ops
            self._by_name = {op.sym_name.data: op for op in ops if isinstance(op, PrimFuncOp)}
        return self._by_name.get(name)

    def compiled(self, func: PrimFuncOp) -> CompiledFunction:
        """Returns the function, ready to run."""
        found = self._compiled.get(func)
        if found is None:
            found = self._compiled[func] = Compiler(with_first_values(func), self).compile()
        return found
