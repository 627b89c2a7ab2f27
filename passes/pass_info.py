"""Properties of passes: TVM's name, the level from which they run by default, the passes they require.

The names and levels are TVM's: `fuse-ops` is `FuseOps`, which runs at every optimization level, after `InferType`.
"""

from __future__ import annotations

from dataclasses import dataclass

# Names whose capitals do not follow from the words.
_EXCEPTIONS = {
    "cse": "CommonSubexpressionElimination",
    "dce": "DeadOpElimination",
    "combine-parallel-conv2d": "CombineParallelConv2D",
    "lower-relay-to-llvm": "LowerRelayToLLVM",
    "lower-relay-to-te": "LowerRelayToTE",
    "lower-std-to-llvm": "LowerStdToLLVM",
    "lower-te-to-tir": "LowerTEToTIR",
    "lower-tir-to-scf": "LowerTIRToSCF",
    "convert-rules-to-pdl": "ConvertRulesToPDL",
    "verify-tir": "VerifyTIR",
    "common-subexpr-elim-tir": "CommonSubexprElimTIR",
    "convert-ssa": "ConvertSSA",
}

# The optimization level from which a `Sequential` runs a pass, where it is not 0, and what has to run before it. As in TVM.
_LEVELS: dict[str, int] = {
    "legalize": 1,
    "qnn-canonicalize-ops": 1,
    "qnn-legalize": 1,
    "dead-code-elimination": 1,
    "to-a-normal-form": 1,
    "to-graph-normal-form": 1,
    "to-basic-block-normal-form": 1,
    "partial-evaluate": 1,
    "inline": 1,
    "lambda-lift": 1,
    "remove-unused-functions": 1,
    "defunctionalization": 1,
    "eta-expand": 1,
    "split-args": 1,
    "fold-constant": 2,
    "dynamic-to-static": 2,
    "fuse-attention": 2,
    "group-batch-matmul": 2,
    "narrow-weights": 2,
    "eliminate-common-subexpr": 3,
    "canonicalize-ops": 3,
    "canonicalize-cast": 3,
    "forward-fold-scale-axis": 3,
    "backward-fold-scale-axis": 3,
    "alter-op-layout": 3,
    "conv2d-to-winograd": 3,
    "loop-invariant-code-motion": 3,
    "convert-layout": 3,
    "quantized-channels-last": 3,
    "defuse-ops": 3,
    "combine-parallel-conv2d": 4,
    "combine-parallel-dense": 4,
    "combine-parallel-batch-matmul": 4,
    "fast-math": 4,
}
_REQUIRED: dict[str, tuple[str, ...]] = {
    name: ("infer-type",)
    for name in (
        "fuse-attention", "group-batch-matmul", "fuse-ops", "defuse-ops", "eliminate-common-subexpr", "simplify-inference", "simplify-expr", "fast-math",
        "canonicalize-ops", "canonicalize-cast", "combine-parallel-conv2d", "combine-parallel-dense",
        "combine-parallel-batch-matmul", "forward-fold-scale-axis", "backward-fold-scale-axis", "flatten-atrous-conv",
        "fold-explicit-padding", "alter-op-layout", "conv2d-to-winograd", "loop-invariant-code-motion", "convert-layout", "quantized-channels-last", "legalize", "qnn-canonicalize-ops", "qnn-legalize",
        "dead-code-elimination", "split-args", "monomorphize", "lower-relay-to-te",
    )
} | {
    "div-to-mul": ("infer-type", "fold-constant"),
    "fake-quantization-to-integer": ("infer-type", "div-to-mul"),
}  # fmt: skip


_ADDS_RESULTS = frozenset(["first-order-gradient"])
_HALVES = frozenset(["to-mixed-precision", "bf16-compute-legalize"])


@dataclass(frozen=True)
class PassInfo:
    """The properties of a pass.

    `name` is as in TVM, `required` the names of passes that a `Sequential` runs before, `label` the pass with its options
    as it is written after `-p`. It may change results by intention: `adds_results` after the others, or compute in `halves`, floats of
    16 bits.
    """

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    label: str = ""
    adds_results: bool = False
    halves: bool = False

    def __str__(self) -> str:
        """Returns the name for a person: with the options, where there are any."""
        return self.label or self.name


_ACRONYMS = frozenset(["bf16", "ssa", "tir"])
"""Words that TVM writes in capitals."""


def camel_case(name: str) -> str:
    """Returns TVM's name of a pass: `fuse-ops` is `FuseOps`, `to-a-normal-form` is `ToANormalForm`."""
    return _EXCEPTIONS.get(name) or "".join(
        word.upper() if word in _ACRONYMS else word[:1].upper() + word[1:] for word in name.split("-")
    )


def pass_info(name: str, label: str = "") -> PassInfo:
    """Returns the properties of the pass that `-p` calls `name`; of xDSL's passes only the name."""
    required = tuple(camel_case(needed) for needed in _REQUIRED.get(name, ()))
    return PassInfo(
        _LEVELS.get(name, 0), camel_case(name), required, label or name, name in _ADDS_RESULTS, name in _HALVES
    )


EXPLAINED: tuple[str, ...] = ("fuse-ops", "fuse-tir", "default-schedule", "vectorize-loop", "check-parallel-loops")
"""Passes that tell what they did not do and why, under `explanation(name)`."""


def explanation(name: str) -> str:
    """Returns the topic under which a pass explains what it left alone."""
    return f"{name} left alone"
