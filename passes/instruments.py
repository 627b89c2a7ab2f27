"""Instruments that observe a pipeline of passes: their interface, timing, verifying in between.

The same instruments serve `mir-opt` and `mirstack.transform.PassContext(instruments=[…])`; `print_ir` holds those that print,
`check_each` the interpreting one. Their methods have the names of TVM's PassInstrument.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from ..support.diagnostics import MirError
from ..support.garbage import no_collection
from ..support.source_text import text_bytes
from ..support.stopwatch import timed
from ..support.verify import find_errors
from ..support.walk import walk_ops
from .pass_info import PassInfo

PrintModule = Callable[[ModuleOp], str]


class Instrument:
    """Is told of each pass before and after it runs. An instrument may raise `MirError` to end the run."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def enter_pass_ctx(self) -> None:
        """Begins to observe the passes that follow."""

    def exit_pass_ctx(self) -> None:
        """Ends the observation of passes."""

    def should_run(self, mod: ModuleOp, info: PassInfo) -> bool:
        """Returns whether the pass is to run; one instrument that returns False is enough to skip it."""
        return True

    def run_before_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        """Observes a pass that is about to run on `mod`."""

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        """Observes a pass that has run on `mod`."""


def run_watched(info: PassInfo, module: ModuleOp, instruments: Sequence[Instrument], apply: Callable[[], None]) -> bool:
    """Runs a pass by `apply()` on `module`, with instruments around it; returns False if one skipped it."""
    if not all([instrument.should_run(module, info) for instrument in instruments]):
        return False
    for instrument in instruments:
        instrument.run_before_pass(module, info)
    with no_collection():
        apply()
    for instrument in instruments:
        instrument.run_after_pass(module, info)
    return True


def print_module(module: ModuleOp) -> str:
    """Returns the module as `.mir` text, of which instruments show what they show unless told otherwise."""
    from ..parser import print_mir

    return print_mir(module)


class VerifyEach(Instrument):
    """`--verify-each`: names the pass that left the module in breach of a rule."""

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        errors = find_errors(mod)
        if errors:
            raise MirError(error.with_note(f"pass '{info}' left this behind") for error in errors)


@dataclass
class Stage:
    """A line of `--timing`. `ops` and `bytes` are the module's after the stage."""

    name: str
    seconds: float
    ops: int | None = None
    bytes: int | None = None


@dataclass
class Timing(Instrument):
    """Prints seconds, ops and printed bytes of each stage (`--timing`), without the time of measuring."""

    show: PrintModule = field(default=print_module, repr=False)
    stages: list[Stage] = field(default_factory=list[Stage])
    measured: float = 0.0  # Seconds that measuring sizes took.
    _running: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    @contextmanager
    def stage(self, name: str) -> Generator[Stage]:
        """Times the block, without the stages inside it, which come before it in the table."""
        stage = Stage(name, 0.0)
        inside, measured, start = len(self.stages), self.measured, time.perf_counter()
        try:
            with timed(name):
                yield stage
        finally:
            elsewhere = sum(inner.seconds for inner in self.stages[inside:]) + self.measured - measured
            stage.seconds = time.perf_counter() - start - elsewhere
            self.stages.append(stage)

    def measure(self, stage: Stage, module: ModuleOp) -> None:
        """Sets the size of the module that a stage ended with."""
        start = time.perf_counter()
        stage.ops = sum(1 for _ in walk_ops(module))
        stage.bytes = len(text_bytes(self.show(module)))
        self.measured += time.perf_counter() - start

    def run_before_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        self._running.append((time.perf_counter(), self._elsewhere()))

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        started, elsewhere = self._running.pop()
        inner = self._elsewhere() - elsewhere
        stage = Stage(str(info), time.perf_counter() - started - inner)
        self.stages.append(stage)
        self.measure(stage, mod)

    def _elsewhere(self) -> float:
        """Seconds that are counted already or not to be counted."""
        return sum(stage.seconds for stage in self.stages) + self.measured

    def report(self) -> str:
        """Returns the table, one line a stage, then the sum of the seconds."""
        width = max((len(stage.name) for stage in self.stages), default=5)
        lines = [f"{'stage':<{width}}  {'seconds':>9}  {'ops':>9}  {'bytes':>11}"]
        for stage in self.stages:
            ops = "" if stage.ops is None else str(stage.ops)
            size = "" if stage.bytes is None else str(stage.bytes)
            lines.append(f"{stage.name:<{width}}  {stage.seconds:>9.4f}  {ops:>9}  {size:>11}".rstrip())
        lines.append(f"{'total':<{width}}  {sum(stage.seconds for stage in self.stages):>9.4f}")
        return "\n".join(lines)
