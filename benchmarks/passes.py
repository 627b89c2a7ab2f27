"""Every Relay pass on growing programs, in seconds of processor time; each doubling of the ops should double the time.

A chain in which each op uses the one before, a wide graph whose ops all use the inputs, and many functions.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir
from mirstack.passes.registry import PASSES, pass_factories
from mirstack.support.deep import in_deep_stack
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

SIZES = (25_000, 50_000, 100_000)
"""Ops of chains and wide graphs."""

FUNCTIONS_PER_OP = 0.1
"""How many functions the program of functions has for each op that the others have."""

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
    if entry.where.startswith(("relay/", "passes.relay.")) and entry.name != "merge-composite"
)  # fmt: skip

_CHAIN = (
    "{v} = exp({p});", "{v} = add({p}, 1f);", "{v} = multiply({p}, %c);", "{v} = reshape({p}, newshape=[2, 2]);",
    "{v} = reshape({p}, newshape=[4]);", '{v} = cast({p}, dtype="float64");', '{v} = cast({p}, dtype="float32");',
    "{v} = divide({p}, 2f);", "{v} = add({p}, {p});", "let {v} = tanh({p});",
)  # fmt: skip
_WIDE = (
    "%{k} = exp(%x);", "%{k} = add(%x, {k}f);", "%{k} = nn.dense(%m, %w, units=2);", "%{k} = multiply(%x, %c);",
    "%{k} = nn.batch_matmul(%b, %b, transpose_b=True);", "%{k} = nn.conv2d(%i, %f, channels=2, kernel_size=[1, 1]);",
    '%{k} = cast(%x, dtype="float64");', "%{k} = nn.softmax(%x);",
)  # fmt: skip


def chain(count: int) -> str:
    """Every op uses the one before; rules apply to some."""
    lines: list[str] = []
    before = "%x"
    for k in range(count):
        name = f"%v{k}" if k % len(_CHAIN) == len(_CHAIN) - 1 else f"%{k}"
        lines.append(_CHAIN[k % len(_CHAIN)].format(v=name, p=before))
        before = name
    return f"def @main(%x: Tensor[(4), float32], %c: float32) {{\n{chr(10).join(lines)}\n{before}\n}}\n"


def wide(count: int) -> str:
    """Every op uses inputs; a tuple takes them all."""
    lines = "\n".join(_WIDE[k % len(_WIDE)].format(k=k) for k in range(count))
    inputs = (
        "%x: Tensor[(4), float32], %c: float32, %m: Tensor[(2, 3), float32], %w: Tensor[(2, 3), float32], "
        "%b: Tensor[(1, 2, 2), float32], %i: Tensor[(1, 2, 2, 2), float32], %f: Tensor[(2, 2, 1, 1), float32]"
    )
    return f"def @main({inputs}) {{\n{lines}\n({', '.join(f'%{k}' for k in range(count))})\n}}\n"


def functions(count: int) -> str:
    """Global functions of which each calls the one before, and local ones that capture what the one before gave."""
    x = "%x: Tensor[(2), float32]"
    count = max(2, int(count * FUNCTIONS_PER_OP))
    first = f"def @f0({x}, Inline=1) -> Tensor[(2), float32] {{ exp(%x) }}\n"
    rest = (f"def @f{k}({x}, Inline=1) -> Tensor[(2), float32] {{ exp(@f{k - 1}(%x)) }}\n" for k in range(1, count))
    local = "\n".join(
        f"let %g{k} = fn (%y: Tensor[(2), float32]) {{ add(%y, %v{k - 1}) }}; let %v{k} = %g{k}(%v{k - 1});"
        for k in range(1, count)
    )
    return first + "".join(rest) + f"def @main({x}) {{ let %v0 = @f{count - 1}(%x);\n{local}\n%v{count - 1} }}\n"


SHAPES: dict[str, Callable[[int], str]] = {"chain": chain, "wide": wide, "functions": functions}


def seconds(pipeline: str, module: ModuleOp) -> float:
    """Processor time of the passes on a copy of the module."""
    passes = list(read_pipeline(pipeline, pass_factories()))
    copy = in_deep_stack(module.clone)
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for module_pass in passes:
            module_pass.apply(Context(), copy)
        return time.process_time() - start
    finally:
        gc.enable()


def by_size(pipeline: str, modules: Sequence[ModuleOp], runs: int = 1) -> list[float]:
    """The least of some runs' times on each module."""
    return [min(seconds(pipeline, module) for _ in range(runs)) for module in modules]


def refused(shape: str, pipeline: str) -> bool:
    """Whether the pass takes no such programs: gradients are of operators alone."""
    return shape == "functions" and pipeline == "first-order-gradient"


def main() -> None:
    for shape, make in SHAPES.items():
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
