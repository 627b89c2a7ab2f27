"""`tir.Schedule`: a module's prim_funcs rewritten by primitives, step by step; shaped as TVM's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....dialects.tir.node.stmt import Block, For, Stmt
from ....dialects.tir.stmt import PrimFuncOp
from ....lowering.driver.entry import functions_of
from ....passes.schedule import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV, ScheduleError, Trace
from ....passes.schedule.analysis.structure import function_of
from ....passes.schedule.engine.errors import program_notes
from ....passes.schedule.engine.primitive import find
from ....passes.schedule.engine.random_variables import Handle
from ....passes.schedule.engine.schedule import Schedule as InPlaceSchedule
from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import Diagnostic, MirError
from ....support.garbage import no_collection
from ....support.notebook import text_html
from ....support.public_names import public_names
from ....support.verify import verify
from ....support.walk import enclosing
from ...ir.module import IRModule
from ...ir.prim_func import PrimFunc
from ...no_attribute import no_attribute
from ...relay.expr import GlobalVar
from ..restore import restore_statements
from .index_map import IndexMap
from .scope import BlockDependenceInfo, BlockScope, Dependency, DepKind, ScheduleState, StmtSRef

_LEVELS = ("detail", "fast", "none")


class Schedule(InPlaceSchedule):
    """A schedule of a copy of `mod`: an IRModule, a PrimFunc (called `main` then), or an xDSL module.

    Primitives are methods: `i, j = sch.get_loops(sch.get_block("C"))`, `sch.split(j, factors=[None, 4])`; `dir(sch)` lists
    them, `help(sch.split)` shows one. Each returns handles that outlast later primitives. `mod` is the scheduled module, `trace`
    its history. A primitive that would change a result raises ScheduleError and leaves all as it was.

    `seed` is that of random draws; `error_render_level` is `detail` (the program with a caret), `fast` or `none` (the rule
    alone); `debug_mask` `all` (or a number but 0) verifies the module after each primitive.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc | ModuleOp | PrimFuncOp,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ):
        if error_render_level not in _LEVELS:
            raise ValueError(f"error_render_level is one of {', '.join(_LEVELS)}, not {error_render_level!r}")
        if debug_mask not in ("none", "all") and not isinstance(debug_mask, int):
            raise ValueError(f"debug_mask is 'none', 'all' or a number, not {debug_mask!r}")
        if not enable_check:
            raise ValueError("enable_check=False is not to be had: what primitives refuse would be wrong")
        super().__init__(_copy(mod), seed=seed)
        self.error_render_level = error_render_level
        self.checks_each = debug_mask not in ("none", 0)
        self._snapshot: IRModule | None = None
        self._nodes: dict[PrimFuncOp, Mapping[Operation, Stmt]] = {}

    def get(self, rand_var_or_sref: Handle | StmtSRef | int) -> Any:
        """Returns the `Block` or `For` node of a handle or reference, or the number or place that was drawn.

            sch.get(sch.get_block("C")).iter_vars; sch.get(loop).extent

        The node is that of the program as it is now: it does not change with it. `sch.resolve` returns the op.
        """
        if isinstance(rand_var_or_sref, StmtSRef):
            return rand_var_or_sref.stmt
        found = self.resolve(rand_var_or_sref)
        if not isinstance(found, Operation):
            return found
        return self._statements(function_of(found))[found]

    def _statements(self, function: PrimFuncOp) -> Mapping[Operation, Stmt]:
        if function not in self._nodes:
            self._nodes[function] = restore_statements(function)
        return self._nodes[function]

    def get_sref(self, rand_var_or_stmt: Handle | Block | For) -> StmtSRef:
        """Returns the reference of a block or loop: of its handle, or of the node that `get` returned."""
        if isinstance(rand_var_or_stmt, Stmt):
            functions = (op for op in functions_of(self.module).values() if isinstance(op, PrimFuncOp))
            nodes = map(self._statements, functions)
            found = (op for table in nodes for op, node in table.items() if node is rand_var_or_stmt)
            place = next(found, None)
            if place is None:
                raise ValueError("the statement is not one of the program as it is now: get returns those")
            op = place
        else:
            op = self.resolve(rand_var_or_stmt)
        table = self._statements(op if isinstance(op, PrimFuncOp) else function_of(op))
        sref: StmtSRef | None = None
        for around in reversed([op, *enclosing(op)]):
            if around in table:
                sref = StmtSRef(cast("Block | For", table[around]), sref)
        assert sref is not None
        return sref

    @property
    def func_working_on(self) -> GlobalVar | None:
        """Returns the function that `work_on` chose, or the only one; None where there are several."""
        names = functions_of(self.module)
        name = self.state.focus or (next(iter(names)) if len(names) == 1 else None)
        return None if name is None else GlobalVar(name)

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Returns whether `decompose_padding` is legal; the program stays as it is."""
        copy = self.copy()
        try:
            copy.decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    def remove_rv(self, rand_var: Handle) -> None:
        """Forgets a handle, which then refers to nothing."""
        self.state.forget(rand_var)

    @property
    def mod(self) -> IRModule:
        """The module as it is now; what is done later does not change it."""
        if self._snapshot is None:
            with no_collection():
                self._snapshot = IRModule.of_op(in_deep_stack(self.module.clone))
        return self._snapshot

    def __repr__(self) -> str:
        return f"Schedule({', '.join(functions_of(self.module))})"

    def _repr_html_(self) -> str:
        return text_html(self.mod.script())

    def apply(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Applies a primitive, and keeps it in the trace. Raises ScheduleError where it is refused."""
        try:
            result = super().apply(name, args, kwargs)
        except MirError as error:
            raise self._told(error) from None
        known = find(name)
        if known is not None and not known.only_looks:
            self._snapshot, self._nodes = None, {}
        if self.checks_each:
            verify(self.module)
        return result

    def _told(self, error: MirError) -> MirError:
        """A refusal with the program as it is now, unless that is not wanted."""
        where = error.where if isinstance(error, ScheduleError) else None
        if self.error_render_level != "detail" or where is None:
            return error
        first, *more = error.diagnostics
        notes = (*first.notes, *program_notes(where))
        return ScheduleError((Diagnostic(first.message, first.location, notes), *more), where)


def _copy(mod: IRModule | PrimFunc | ModuleOp | PrimFuncOp) -> ModuleOp:
    """A module that is free to change."""
    if isinstance(mod, PrimFuncOp):
        mod = PrimFunc(mod)
    if isinstance(mod, PrimFunc):
        return ModuleOp([mod.in_module("main")])
    if isinstance(mod, IRModule):
        return mod.copy_op()
    if not isinstance(mod, ModuleOp):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"tir.Schedule takes an IRModule or a PrimFunc, not {type(mod).__name__}")
    with no_collection():
        return in_deep_stack(mod.clone)


__all__ = [
    "BlockDependenceInfo", "BlockRV", "BlockScope", "DepKind", "Dependency", "ExprRV", "IndexMap", "Instruction", "InstructionKind", "LoopRV",
    "Schedule", "ScheduleError", "ScheduleState", "StmtSRef", "Trace",
]  # fmt: skip


__dir__ = public_names(__name__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Modules of TVM: what they hold is here.
        if name in ("schedule", "trace"):
            return sys.modules[__name__]
        if name == "testing":
            return import_module(f"{__name__}.testing")
        raise no_attribute("tir.schedule", name, __all__)
