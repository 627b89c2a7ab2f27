"""Lowers a program to machine code and keeps what each step made of it, function by function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects import relay
from ...dialects.schedule import PrimitiveOp
from ...lowering.driver.build import Passes, lower
from ...lowering.driver.compile_program import make_callable
from ...lowering.driver.entry import entry_kind, find_entry, name_of
from ...lowering.driver.lowered_unit import LoweredUnit, unit_passes
from ...lowering.driver.reachable import apply_ready_schedules, only_reachable
from ...lowering.driver.source import check_functions
from ...lowering.driver.units import STUB, Unit
from ...lowering.pipeline import Options, kernel_passes, target_of
from ...passes.pass_info import EXPLAINED, explanation
from ...passes.registry import PASSES
from ...passes.relay.functional.bind_shapes import Shapes, bind_shapes
from ...passes.schedule.engine.script import watching_calls
from ...support.diagnostics import Diagnostic, Sources, source_position
from ...support.garbage import no_collection
from ...support.parallel import in_threads
from ...support.trace import listening
from .native import assembly, llvm_ir, with_set_numbers
from .tables import Tables
from .texts import texts_of


@dataclass(frozen=True)
class Step:
    """The program after a pass: the numbers of its texts."""

    name: str
    summary: str
    parts: tuple[int, ...]


@dataclass
class Recording:
    """Keeps what a compilation did."""

    entry: str
    options: Options
    tables: Tables = field(default_factory=Tables)
    steps: list[Step] = field(default_factory=list[Step])
    remarks: list[Diagnostic] = field(default_factory=list[Diagnostic])
    """What passes left alone, and why."""
    watches: dict[str, list[Watch]] = field(default_factory=dict[str, list["Watch"]])
    """Who sees the module after a pass, by the pass's name."""

    def add(self, name: str, parts: Sequence[int], summary: str = "") -> None:
        """Adds a step, whose texts have these numbers."""
        self.steps.append(Step(name, summary or _SUMMARIES.get(name, ""), tuple(parts)))

    def parts_of(self, module: ModuleOp) -> list[int]:
        """Returns the numbers of the texts of what a module defines: not of declarations, nor of stubs."""
        return [self.tables.part(text) for text in texts_of(module, _is_shown)]


Watch = Callable[[ModuleOp], None]

_SUMMARIES = {entry.name: entry.doc for entry in PASSES}


def _is_shown(op: Operation) -> bool:
    if isinstance(op, relay.FuncOp):
        return not op.sym_name.data.startswith(STUB)
    return not (isinstance(op, llvm.FuncOp) and not op.body.blocks)


def record(recording: Recording, module: ModuleOp, entry: str | None, shapes: Shapes) -> None:
    """Compiles the entry of a module, which is used up. Raises MirError for what cannot be compiled."""
    topics = map(explanation, EXPLAINED)
    with no_collection(), listening(topics, recording.remarks.append), watching_calls(_ScriptCalls(recording)):
        recording.add("input", recording.parts_of(module), "the program as it was read")
        apply_ready_schedules(module)
        _add_if_changed(recording, "apply-schedule", module)
        function = find_entry(module, entry)
        if shapes:
            bind_shapes(module, function, shapes)
            _add_if_changed(recording, "--shape", module)
        recording.entry = name_of(function)
        recording.options = replace(recording.options, entry=recording.entry)
        module = only_reachable(module, recording.entry)
        check_functions(module, runs=True)
        make_callable(function, entry_kind(function))
        _Lowering(recording).run(module)


MOST_CALLS = 100
"""Calls of schedule scripts that are steps of their own; more are one step together."""


@dataclass
class _ScriptCalls:
    """Adds a step for each call of a schedule script, which shows the functions that it works on."""

    recording: Recording
    count: int = 0

    def __call__(self, call: PrimitiveOp, module: ModuleOp) -> None:
        self.count += 1
        position = source_position(call.location)
        if self.count <= MOST_CALLS:
            line = None if position is None else Sources.current().line(*position[:2])
            parts = self.recording.parts_of(module)
            self.recording.add(f"sch.{call.SIGNATURE.name}", parts, "" if line is None else line.strip())


def _add_if_changed(recording: Recording, name: str, module: ModuleOp) -> None:
    parts = recording.parts_of(module)
    if set(parts) != set(recording.steps[-1].parts):
        recording.add(name, parts)


@dataclass
class _Lowering:
    """A compilation under way."""

    recording: Recording
    program: list[int] = field(default_factory=list[int])
    """The texts of the program, without its kernels where these are lowered apart."""
    units: list[tuple[str, ModuleOp]] = field(default_factory=list[tuple[str, ModuleOp]])
    """Kernels in the LLVM dialect."""
    declared: set[str] = field(default_factory=set[str])

    def run(self, module: ModuleOp) -> None:
        """Lowers the module, kernels apart, as `build` does, to assembly."""
        recording, options = self.recording, self.recording.options
        kernels: list[int] = []

        def saw(step: ModulePass, module: ModuleOp) -> None:
            for watch in recording.watches.get(step.name, ()):
                watch(module)
            recording.add(step.name, [*recording.parts_of(module), *kernels])

        def lower_kernels(units: Sequence[Unit] | None) -> None:
            if units is None:
                passes.run(kernel_passes(options), module)
            else:
                self.program = recording.parts_of(module)
                kernels.extend(self._lower_apart(units, module))

        passes = Passes([saw])
        lower(module, options, passes, lower_kernels)
        allowed = {*options.allow_extern, *self.declared}
        parts = [*self.units, (f"@{recording.entry}", module)]
        texts = [llvm_ir(name, each, allowed) for name, each in parts]
        recording.add("LLVM IR", list(map(recording.tables.part, texts)), "what LLVM is given")
        numbered = [with_set_numbers(each, allowed, recording.tables) for _, each in parts]
        compiled = in_threads(partial(assembly, target=target_of(options)), numbered)
        recording.add(
            "assembly",
            [
                recording.tables.placed(name, "asm", lines, sets)
                for (name, _), (lines, sets) in zip(parts, compiled, strict=True)
            ],
            "machine code, after LLVM's optimizations",
        )

    def _lower_apart(self, units: Sequence[Unit], program: ModuleOp) -> list[int]:
        """Lowers kernels apart and joins them to the program; returns the numbers of their last texts."""
        recording, options = self.recording, self.recording.options
        names = [step.name for step in unit_passes(options)]
        texts: list[list[int]] = [[] for _ in names]

        for unit in units:
            count = 0

            def saw(step: ModulePass, module: ModuleOp) -> None:
                nonlocal count
                for watch in recording.watches.get(step.name, ()):
                    watch(module)
                texts[count] += recording.parts_of(module)
                count += 1

            name = next(iter(unit.calls), "kernel")
            unit.add_stubs()
            Passes([saw]).run(unit_passes(options), unit.module)
            lowered = LoweredUnit.of(unit)
            self.units.append((name, lowered.module))
            unit.join(program, lowered.stubs, lowered.declarations)
            self.declared.update(op.sym_name.data for op in lowered.declarations)
        for name, parts in zip(names, texts, strict=True):
            recording.add(name, [*self.program, *parts])
        return texts[-1]
