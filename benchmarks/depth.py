"""Compile time against depth: ResNets of bottleneck units, by stage, as the units double.

Units of a stage have the same shapes, so that their kernels are compiled once however many units there are: what grows is
the text, its typing, fusion, and the function that calls the kernels. Each of these should at most double. CPU seconds.
"""

from __future__ import annotations

import gc
import tempfile
import time
from pathlib import Path

import mirstack
from mirstack.examples.models.builder import Model
from mirstack.examples.models.resnet import ResNet
from mirstack.lowering.driver.build import lower_module
from mirstack.lowering.llvm.jit.load import emit_object
from mirstack.lowering.llvm.text.translation import translate
from mirstack.lowering.pipeline import Options
from mirstack.support.deep_stack import in_deep_stack
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

UNITS = (4, 8, 16, 32, 64)
"""Units in each of four stages."""
SHOWN_SECONDS = 0.02
"""Stages that never take longer are added up."""


def written(units: int, folder: Path, stages: int = 4) -> Path:
    """Returns a ResNet of `units` narrow units in each stage, as a file."""
    model = Model()
    ResNet(image=32, width=1 / 8, classes=10, units=(units,) * stages, bottleneck=True).build(model)
    return model.write(folder, f"resnet_{units}")


def stages(path: Path) -> dict[str, float]:
    """CPU seconds of each stage from the file to an object file in memory, in order."""
    seconds: dict[str, float] = {}
    gc.collect()  # What an earlier run left is not this one's.
    clock = time.process_time
    started = clock()

    def lap(name: str) -> None:
        nonlocal started
        seconds[name] = seconds.get(name, 0.0) + clock() - started
        started = clock()

    def watch(step: ModulePass, module: ModuleOp) -> None:
        lap(step.name)

    module = mirstack.load(path)
    lap("parse and type")
    lower_module(module, Options(), (watch,))
    text = translate(module)
    lap("translate")
    emit_object(text)
    lap("LLVM")
    return seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        paths = {units: written(units, Path(temporary)) for units in UNITS}
        # What is imported on first use does not count.
        in_deep_stack(lambda: stages(paths[UNITS[0]]))
        found = {units: in_deep_stack(lambda path=path: stages(path)) for units, path in paths.items()}
    names = [name for name in found[UNITS[0]] if max(run[name] for run in found.values()) > SHOWN_SECONDS]
    print(f"  {'units':<28}" + "".join(f"{4 * units:>16}" for units in UNITS))
    rows = {name: [run[name] for run in found.values()] for name in names}
    rows["other stages"] = [sum(s for name, s in run.items() if name not in names) for run in found.values()]
    rows["total"] = [sum(run.values()) for run in found.values()]
    for name, times in rows.items():
        before = [None, *times[:-1]]
        cells = (f"{t:.2f} s" + ("" if b is None else f" (x{t / b:.1f})") for t, b in zip(times, before, strict=True))
        print(f"  {name:<28}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
