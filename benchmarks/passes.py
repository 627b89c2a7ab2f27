"""Times every Relay pass on growing programs; each doubling of the ops should double the CPU time.

The programs are those of `programs.py`. Names on the command line choose among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir
from mirstack.passes.registry import PASSES, pass_factories
from mirstack.support.deep_stack import in_deep_stack
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from .programs import PROGRAMS
from .timing import cpu_seconds

SIZES = (25_000, 50_000, 100_000)
"""Ops of each program, about."""

OPTIONS = {
    "convert-layout": '{layouts="nn.conv2d:NHWC,default"}',
    "dead-code-elimination": "{inline-once=true}",
    "eta-expand": "{expand-constructor=true expand-global-var=true}",
    "split-args": "{max-function-args=3}",
}
"""What a pass is given, if anything."""

PIPELINES = tuple(
    entry.name + OPTIONS.get(entry.name, "")
    for entry in PASSES
    if entry.module.startswith("passes.relay.") and entry.name != "merge-composite"
)  # fmt: skip

WITHOUT_GRADIENT = ("functions", "closures", "branches", "layers", "quantized", "constants")
"""Programs that `first-order-gradient` refuses: of more than operators, or of operators that have no gradient."""


def seconds(pipeline: str, module: ModuleOp) -> float:
    """Returns the processor time of the passes on a copy of the module."""
    passes = list(read_pipeline(pipeline, pass_factories()))
    copy = in_deep_stack(module.clone)

    def run() -> None:
        for module_pass in passes:
            module_pass.apply(Context(), copy)

    return cpu_seconds(run)


def by_size(pipeline: str, modules: Sequence[ModuleOp]) -> list[float]:
    """Returns the time on each module."""
    return [seconds(pipeline, module) for module in modules]


def refused(shape: str, pipeline: str) -> bool:
    """Tells whether a pass refuses programs of this shape."""
    return shape in WITHOUT_GRADIENT and pipeline == "first-order-gradient"


def main() -> None:
    for shape, make in PROGRAMS.items():
        modules = [parse_mir(make(size)) for size in SIZES]
        print(f"  {shape} of {', '.join(f'{size:,}' for size in SIZES)} ops")
        for pipeline in PIPELINES:
            if refused(shape, pipeline):
                continue
            times = by_size(pipeline, modules)
            ratios = ", ".join(f"x{b / a:.2f}" for a, b in pairwise(times))
            print(f"    {pipeline:<60}{'  '.join(f'{t:7.2f} s' for t in times)}  {ratios}", flush=True)


if __name__ == "__main__":
    main()
