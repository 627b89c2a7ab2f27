"""What watches a pipeline: printing after passes, timing, verifying and interpreting in between."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..support.walk import walk_ops

PrintModule = Callable[[ModuleOp], str]


class Instrument:
    """Is told of each pass before and after it runs. An instrument may raise `MirError` to end the run."""

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """The pass is about to run on `module`."""

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """The pass has run on `module`."""


@dataclass
class PrintAfterAll(Instrument):
    """`--print-ir-after-all`: the whole module after each pass."""

    show: PrintModule
    stream: TextIO = field(default_factory=lambda: sys.stderr)

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        print(f"// ----- IR after {module_pass} -----", file=self.stream)
        print(self.show(module).rstrip("\n"), file=self.stream)


@dataclass
class PrintAfterChange(Instrument):
    """`--print-ir-after-change`: what each pass changed, as a unified diff."""

    show: PrintModule
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    before: list[str] = field(default_factory=list[str])

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        self.before = self.show(module).splitlines()

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        after = self.show(module).splitlines()
        diff = difflib.unified_diff(self.before, after, f"before {module_pass}", f"after {module_pass}", lineterm="")
        lines = list(diff)
        if not lines:
            lines = [f"// ----- {module_pass} changed nothing -----"]
        print("\n".join(lines), file=self.stream)


@dataclass
class Stage:
    """A line of `--timing`. `ops` and `bytes` are the module's after the stage."""

    name: str
    seconds: float
    ops: int | None = None
    bytes: int | None = None


@dataclass
class Timing(Instrument):
    """`--timing`: seconds, ops and printed bytes of each stage. What the measuring itself takes is left out."""

    show: PrintModule
    stages: list[Stage] = field(default_factory=list[Stage])
    started: float = 0.0
    measured: float = 0.0  # Seconds that measuring sizes took.

    @contextmanager
    def stage(self, name: str) -> Generator[Stage]:
        """Times the block, without the stages inside it, which come before it in the table."""
        stage = Stage(name, 0.0)
        inside, measured, start = len(self.stages), self.measured, time.perf_counter()
        try:
            yield stage
        finally:
            elsewhere = sum(inner.seconds for inner in self.stages[inside:]) + self.measured - measured
            stage.seconds = time.perf_counter() - start - elsewhere
            self.stages.append(stage)

    def measure(self, stage: Stage, module: ModuleOp) -> None:
        """Sets the size of the module that a stage ended with."""
        start = time.perf_counter()
        stage.ops = sum(1 for _ in walk_ops(module))
        stage.bytes = len(self.show(module).encode())
        self.measured += time.perf_counter() - start

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        self.started = time.perf_counter()

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        stage = Stage(str(module_pass), time.perf_counter() - self.started)
        self.stages.append(stage)
        self.measure(stage, module)

    def watch(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """As `after_pass`, for passes that run one right after the other; `started` is when the first began."""
        self.after_pass(module_pass, module)
        self.started = time.perf_counter()

    def report(self) -> str:
        """The table, one line a stage, then the sum of the seconds."""
        width = max((len(stage.name) for stage in self.stages), default=5)
        lines = [f"{'stage':<{width}}  {'seconds':>9}  {'ops':>9}  {'bytes':>11}"]
        for stage in self.stages:
            ops = "" if stage.ops is None else str(stage.ops)
            size = "" if stage.bytes is None else str(stage.bytes)
            lines.append(f"{stage.name:<{width}}  {stage.seconds:>9.4f}  {ops:>9}  {size:>11}".rstrip())
        lines.append(f"{'total':<{width}}  {sum(stage.seconds for stage in self.stages):>9.4f}")
        return "\n".join(lines)
