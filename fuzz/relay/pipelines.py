"""Every Relay pass with the options that it is tested with, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...driver.pipeline import read_pipeline
from ...passes.registry import PASSES, pass_factories
from .rounding import Rounding

RELAY = [entry.name for entry in PASSES if entry.module.startswith("passes.relay.")]

OTHERS = ("cse", "dce", "static-memory-plan")
"""Passes on any dialect, and one that only reports."""

COMPOSITES = Path(__file__).with_name("composites.mir")
"""Patterns for `merge-composite`."""

ROUNDED = Rounding()
"""Sums in another order, and formulas that are equal to each other in the reals."""

ROUNDINGS: dict[str, Rounding] = {
    **dict.fromkeys(
        (
            "alter-op-layout", "backward-fold-scale-axis", "combine-parallel-batch-matmul", "combine-parallel-conv2d",
            "combine-parallel-dense", "convert-layout", "div-to-mul", "flatten-atrous-conv", "fold-explicit-padding",
            "fake-quantization-to-integer", "forward-fold-scale-axis", "group-batch-matmul", "legalize", "loop-invariant-code-motion", "qnn-canonicalize-ops", "qnn-legalize", "simplify-expr", "simplify-inference",
        ),
        ROUNDED,
    ),
    # Transforms with sums and differences of several elements, before and after the products.
    "conv2d-to-winograd": Rounding(unit=2.0**-20),
    # The approximations are off by some 1e-5 of the value (tanh and erf by as much absolutely).
    "fast-math": Rounding(unit=3e-5, absolute=1e-6),
    # Half a step: a part in 255 of the largest weight of a group, for small weights of it, too.
    "quantize-weights": Rounding(unit=2.0**-7, absolute=2.0**-5),
    # Half an ulp of float16 and, below its normal numbers, half its smallest one; it overflows beyond 65504.
    "to-mixed-precision": Rounding(unit=2.0**-11, absolute=2.0**-25, largest=30_000.0, narrow=np.float16),
}  # fmt: skip
"""The changes that a pass may make to floats. Every other pass keeps every bit."""

OPTIONS: dict[str, tuple[str, ...]] = {
    "combine-parallel-batch-matmul": ("{min-num-branches=2}",),
    "combine-parallel-conv2d": ("{min-num-branches=2}",),
    "combine-parallel-dense": ("{min-num-branches=2}", "{min-num-branches=2 to-batch=false}"),
    "convert-layout": ('{layouts="nn.conv2d:NHWC,default"}', '{layouts="nn.conv2d:NCHW2c,default;nn.max_pool2d:NHWC"}'),
    "conv2d-to-winograd": ("{tile-size=2}", "{tile-size=4}"),
    "dead-code-elimination": ("", "{inline-once=true}"),
    "eta-expand": ("{expand-constructor=true expand-global-var=true}",),
    "fold-constant": ("", "{fold-qnn=true}"),
    "fuse-ops": ("", "{fuse-opt-level=0}", "{fuse-opt-level=1}", "{max-depth=3}"),
    "infer-type": ("", "{fresh=true}"),
    "merge-composite": (f'{{file="{COMPOSITES}"}}',),
    "quantize-weights": ("{bits=8}",),
    "split-args": ("{max-function-args=3}",),
    "to-mixed-precision": ("{keep-orig-output-dtype=true}",),
}
"""The options that a pass is run with, one pipeline for each; by default none."""

NOT_IDEMPOTENT = {
    "first-order-gradient": "differentiates what it gave, gradients included",
    "fuse-ops,defuse-ops": "two passes: what is independent may come to stand in another order",
}
"""Passes of which twice is more than once, with the reason."""


@dataclass(frozen=True)
class Pipeline:
    """An argument of `-p`, and the changes that it may make to floats."""

    text: str
    rounding: Rounding | None

    def __str__(self) -> str:
        """As `text`, without folders."""
        return self.text.replace(f"{COMPOSITES.parent}/", "")

    @property
    def name(self) -> str:
        """The name of the pass, of one that stands alone."""
        return self.text.partition("{")[0]

    def run(self, module: ModuleOp) -> None:
        for module_pass in read_pipeline(self.text, pass_factories()):
            module_pass.apply(Context(), module)


PIPELINES = [
    *(
        Pipeline(name + options, ROUNDINGS.get(name))
        for name in (*RELAY, *OTHERS)
        for options in OPTIONS.get(name, ("",))
    ),
    Pipeline("fuse-ops,defuse-ops", None),
]
