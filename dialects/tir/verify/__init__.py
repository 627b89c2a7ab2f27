"""Verifies TIR functions by rules across loops, blocks and buffers, beyond ops' own verifiers.

Only provable violations are reported: an axis whose domain the loops around cannot fill or leave, an access outside a
buffer or outside the regions that its block declares, an init without a reduction, a vectorized loop without a constant extent, one
thread with two extents. If an index is not affine, or a condition guards it, nothing can be proven and nothing is reported.
The walk is linear in the ops of the function.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue

from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import Diagnostic, MirError, Sources
from ...arith import Expr, Kind
from ...arith import expr as x
from ...arith.expr import Function, logical_not
from ..buffer import AllocBufferOp, LoadOp, MatchBufferOp, StoreOp
from ..expr import CallOp, IfThenElseOp, VarOp, only_names
from ..stmt import (
    AttrOp,
    BlockOp,
    ForOp,
    IfOp,
    InitOp,
    IterVarOp,
    LaunchThreadOp,
    PrimFuncOp,
    ReadsOp,
    WhileOp,
    WritesOp,
)
from .accesses import AccessRules, BlockScope, HullEvent
from .axes import AxisRules
from .context import Context

THREADS = tuple(f"{kind}Idx.{axis}" for kind in ("thread", "block") for axis in "xyz")
VIRTUAL_THREADS = ("vthread", "cthread")


@dataclass
class NestFacts:
    """Keeps what was found in a loop nest: broken rules, and its part in rules of the whole function."""

    diagnostics: list[Diagnostic]
    uncovered: list[tuple[BlockOp, Diagnostic]]
    accesses: list[HullEvent]


def verify_prim_func(
    func: PrimFuncOp, *, runs: bool = False, nests: dict[Operation, NestFacts] | None = None
) -> list[Diagnostic]:
    """Returns the rules that the function breaks, in the order of the text.

    A program without a meaning is an error; a program whose meaning its author cannot intend is a warning. With `runs`,
    for a function that is about to become native code, an access out of bounds is an error as well. Loop nests in `nests` are not
    read again; the others are added to it.
    """
    return _Verifier(func, runs).verify(nests)


@dataclass
class _Verifier:
    func: PrimFuncOp
    runs: bool
    context: Context = field(default_factory=Context)
    # Threads in force, with the op that set each extent.
    threads: dict[str, tuple[int, Operation]] = field(default_factory=dict[str, tuple[int, Operation]])

    def verify(self, nests: dict[Operation, NestFacts] | None) -> list[Diagnostic]:
        self.axes = AxisRules(self.context)
        self.accesses = AccessRules(self.context, self.runs)
        if nests is None:
            self.block(self.func.body.block)
        else:
            for op in self.func.body.block.ops:
                # Of what a thread in force means to a nest nothing is kept.
                if isinstance(op, ForOp) and not self.threads:
                    self.nest(op, nests)
                else:
                    self.op(op)
        unwritten = self.accesses.unwritten()
        self.axes.report_uncovered(unwritten)
        self.accesses.report_unwritten(unwritten)
        return self.context.diagnostics

    def nest(self, op: ForOp, nests: dict[Operation, NestFacts]) -> None:
        """Verifies a loop nest of the function, or takes what was found in it before."""
        known = nests.get(op)
        if known is not None:
            self.context.diagnostics += known.diagnostics
            self.axes.uncovered += known.uncovered
            for event in known.accesses:
                self.accesses.happen(event)
            return
        logs: tuple[list[Diagnostic], list[tuple[BlockOp, Diagnostic]], list[HullEvent]] = (
            self.context.diagnostics, self.axes.uncovered, self.accesses.events,
        )  # fmt: skip
        starts = [len(log) for log in logs]
        self.loop(op)
        diagnostics, uncovered, events = logs
        nests[op] = NestFacts(diagnostics[starts[0] :], uncovered[starts[1] :], events[starts[2] :])

    # Walking -----------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        threads = dict(self.threads)
        for op in block.ops:
            self.op(op)
        self.threads = threads

    def op(self, op: Operation) -> None:
        match op:
            case ForOp():
                self.loop(op)
            case BlockOp():
                self.tir_block(op)
            case IfOp() | IfThenElseOp():
                self.branches(op)
            case WhileOp():
                self.guarded(op)
            case InitOp():
                self.init(op)
            case LoadOp() | StoreOp():
                self.accesses.check(op)
            case LaunchThreadOp():
                self.launch(op)
            case AttrOp():
                self.attribute(op)
            case VarOp():
                self.variable(op)
            case AllocBufferOp():
                self.accesses.allocation(op)
            case _:
                for region in op.regions:
                    self.region(region)

    def region(self, region: Region) -> None:
        for block in region.blocks:
            self.block(block)

    def guarded(self, op: Operation) -> None:
        self.context.guards += 1
        for region in op.regions:
            self.region(region)
        self.context.guards -= 1

    def branches(self, op: IfOp | IfThenElseOp) -> None:
        """Verifies each side under the condition."""
        self.context.guards += 1
        condition = (
            self.context.analyzer.expr(op.condition) if not isinstance(op.condition.type, VectorType) else x.TRUE
        )
        for region, known in ((op.then_region, condition), (op.else_region, logical_not(condition))):
            if condition == x.TRUE:
                self.region(region)
            else:
                with self.context.analyzer.constraint(known):
                    self.region(region)
        self.context.guards -= 1

    # Loops and threads ---------------------------------------------------------------------------------------------

    def loop(self, op: ForOp) -> None:
        extent = self.context.analyzer.simplify(op.extent)
        low = self.context.analyzer.simplify(op.min)
        name = op.var_name.data
        if op.kind.data == "vectorized" and extent.value is None and not _mentions_vscale(extent):
            self.context.report(
                op,
                f"vectorized loop '{name}' has the extent {extent!r}, which is not a constant",
                "a vectorized loop becomes one vector: split it by a constant factor and vectorize the inner loop",
            )
        atom = self.context.analyzer.expr(op.loop_var).atom
        assert atom is not None
        may_not_run = extent.value is None or extent.value <= 0
        self.context.guards += may_not_run
        if extent.value is not None and low.value is not None and not may_not_run:
            self.context.exact.add(atom)
        threads = self.threads
        if op.thread is not None:
            self.threads = dict(threads)
            self.thread(op, op.thread.data, extent)
        with self.context.analyzer.bind(op.loop_var, low, extent):
            self.block(op.body.block)
        self.context.exact.discard(atom)
        self.threads = threads
        self.context.guards -= may_not_run

    def launch(self, op: LaunchThreadOp) -> None:
        extent = self.context.analyzer.simplify(op.extent)
        self.thread(op, op.thread.data, extent)
        self.context.analyzer.bind(op.result, 0, extent)
        if op.env is not None:
            self.context.analyzer.bind(op.env, 0, extent)

    def attribute(self, op: AttrOp) -> None:
        node = op.node.owner
        if op.key.data == "thread_extent" and isinstance(node, IterVarOp):
            extent = self.context.analyzer.simplify(op.value)
            self.thread(op, node.thread_tag.data, extent)
            if self.context.analyzer.expr(node.var).atom is not None:
                self.context.analyzer.bind(node.var, 0, extent)

    def thread(self, op: Operation, tag: str, extent: Expr) -> None:
        """Verifies that a thread has one extent within a kernel."""
        if tag not in THREADS and not tag.startswith(VIRTUAL_THREADS):
            self.context.report(
                op, f"unknown thread '{tag}'", f"a thread is {', '.join(THREADS)} or a virtual thread 'vthread'"
            )
            return
        if extent.value is None or tag.startswith(VIRTUAL_THREADS):
            return
        known = self.threads.get(tag)
        if known is not None and known[0] != extent.value:
            self.context.report(
                op,
                f"thread '{tag}' has the extent {extent.value} here, but {known[0]} in the loop around",
                ("the same thread was given its extent here", known[1]),
            )
        self.threads[tag] = (extent.value, op)

    def init(self, op: InitOp) -> None:
        self.axes.check_init(op)
        self.region(op.body)

    # Blocks ---

    def tir_block(self, op: BlockOp) -> None:
        reads, writes = op.find(ReadsOp), op.find(WritesOp)
        scope = BlockScope(op, None, None)
        mark = self.context.analyzer.constraint(x.TRUE)
        with mark:
            if op.predicate is not None:
                self.context.guards += 1
                self.context.analyzer.constraint(op.predicate)
            for number in range(len(op.iter_vars)):
                scope.broken |= not self.axes.check(op, number)
            for var, binding in zip(op.iter_vars, op.bindings, strict=True):
                self.context.analyzer.bind(var, self.context.analyzer.simplify(binding))
            scope.reads = self.accesses.declared(reads)
            scope.writes = self.accesses.declared(writes)
            self.accesses.blocks.append(scope)
            self.block(op.body.block)
            self.accesses.blocks.pop()
            if op.predicate is not None:
                self.context.guards -= 1

    def variable(self, op: VarOp) -> None:
        if any(isinstance(use.operation, MatchBufferOp | IterVarOp | AttrOp) for use in op.result.uses):
            return
        if only_names(op):
            return
        self.context.report(
            op,
            f"variable '{op.var_name.data}' is used, but nothing gives it a value",
            "a symbolic variable is bound by a T.match_buffer that names it, or by a thread",
            severity="warning",
        )


def _mentions_vscale(e: Expr) -> bool:
    pending = [e]
    while pending:
        for atom, _ in pending.pop().terms:
            payload = atom.payload
            if atom.kind is Kind.CALL and isinstance(payload, Function) and payload.name == "T.vscale":
                return True
            if isinstance(payload, SSAValue) and isinstance(payload.owner, CallOp):
                return True
            pending += atom.operands
    return False


def check_module(module: ModuleOp, *, runs: bool = False, nests: dict[Operation, NestFacts] | None = None) -> None:
    """Verifies every prim_func of a module; warnings go to the current sources.

    Loop nests in `nests` are not read again.

    Raises:
        MirError: with every broken rule that is not a warning.
    """
    diagnostics = in_deep_stack(
        lambda: [
            diagnostic
            for op in module.body.block.ops
            if isinstance(op, PrimFuncOp)
            for diagnostic in verify_prim_func(op, runs=runs, nests=nests)
        ]
    )
    Sources.current().warnings.extend(d for d in diagnostics if d.severity == "warning")
    errors = [d for d in diagnostics if d.severity == "error"]
    if errors:
        raise MirError(errors)
