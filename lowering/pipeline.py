"""Lists every pass from any level to the LLVM dialect, in order.

    graph_passes      Relay → Relay's functions that call kernels, which are TE and TIR functions
    kernel_passes     kernels → LLVM functions, in the module or each in a module of its own
    program_passes    Relay's functions → LLVM functions that call the kernels

`mir-opt -p` could run the same passes step by step. `lower` in `driver/build.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..passes.registry import PASSES
from ..support.target import named
from .mangle_symbols import linked_name
from .options import DEFAULT, Options, target_of

__all__ = [
    "DEFAULT",
    "Observer",
    "Options",
    "graph_passes",
    "kernel_passes",
    "lowering_passes",
    "make",
    "program_passes",
    "target_of",
]

Observer = Callable[[ModulePass, ModuleOp], None]
"""Called after each pass, with the module as it is then: for timing, printing, checking."""


def lowering_passes(options: Options) -> Iterator[ModulePass]:
    """Yields every pass to the LLVM dialect, in order; each ignores functions of other levels.

    At level 0 nothing is fused and nothing scheduled: every operator is a plain loop nest.
    """
    yield from graph_passes(options)
    yield from kernel_passes(options)
    yield from program_passes(options)


def graph_passes(options: Options) -> Iterator[ModulePass]:
    """Yields the passes from Relay to functions that call kernels, which are TE and TIR functions."""
    strict = options.strict_math
    # Mark written functions that may access elements outside of their buffers, for check-open-bounds.
    yield make("mark-open-bounds")
    # Specialize generic functions, and operators whose shape operands are known.
    yield make("monomorphize")
    yield make("dynamic-to-static")
    # Call the TIR functions that compute operators of one's own.
    yield make("call-operator-functions")
    if options.opt_level >= 3:
        # Convolutions of bytes get their channels last.
        yield make("quantized-channels-last")
    if options.opt_level >= 2:
        # Quantized operators become plain integer ones, whose sums of weights are constants.
        target = named(options.cpu or "")
        if target.arch == "x86_64" and not target.has_int8_dot:
            # The processor multiplies and adds pairs of 16 bits: bytes would be widened at each use.
            yield make("qnn-legalize", known=True)
        unsigned = target.has_int8_dot and target.arch == "x86_64"
        yield make("qnn-canonicalize-ops", unsigned=unsigned, upper_halves=True, strict_math=strict)
        # Drop what inference does not need, fold constants, share equal expressions.
        yield make("simplify-inference", strict_math=strict)
        # Upsampling by transposed convolutions becomes 1×1 convolutions, whose weights are constants.
        yield make("conv2d-transpose-to-depth-to-space")
        # Weights that are read once for a few rows stay in bytes, before constants are folded.
        yield make("narrow-weights", cpu=options.cpu or "", caches=options.caches)
        yield make("fold-constant")
        yield make("simplify-expr", strict_math=strict)
        yield make("eliminate-common-subexpr")
    if options.opt_level >= 3 and not strict:
        # Multiply constant scales of channels into constant weights.
        yield make("backward-fold-scale-axis", constants_only=True)
        yield make("forward-fold-scale-axis", constants_only=True)
        yield make("fold-constant")
        # Weights are final now: 3×3 convolutions get fewer multiplications.
        yield make("conv2d-to-winograd")
    if options.opt_level >= 3:
        # Loops written as recursion multiply all their inputs with weights at once, before the loop.
        yield make("loop-invariant-code-motion")
    if options.opt_level >= 2:
        if not strict:
            # Two products and the softmax between them become one kernel.
            yield make("fuse-attention")
        # A matrix that several others are multiplied with is not copied for each.
        yield make("group-batch-matmul")
    # Group operators into kernels.
    yield make("fuse-ops", fuse_opt_level=2 if options.opt_level > 0 else 0)
    # Written schedule rules are for kernels that their patterns match.
    yield make("match-schedule-rules", cpu=options.cpu or "", threads=options.threads or 0, caches=options.caches)
    # Lower kernels to TE; the functions around them stay Relay until their kernels are LLVM functions.
    yield make("lower-relay-to-te", in_place=options.opt_level > 0)


def kernel_passes(options: Options) -> Iterator[ModulePass]:
    """Yields the passes from TE and TIR functions to LLVM functions.

    Each function is lowered by itself, except that `lift-transform-params` changes its calls in Relay's functions.
    """
    # Refuse parallel loops whose iterations depend on each other.
    yield make("check-parallel-loops")
    # Lower TE to TIR, and schedule it by the scripts of the module, otherwise by rules on shape and target.
    yield make("lower-te-to-tir")
    yield make("apply-schedule", mark=True)
    if options.opt_level > 0:
        yield make(
            "default-schedule",
            cpu=options.cpu or "",
            threads=options.threads or 0,
            caches=options.caches,
            strict_math=options.strict_math,
        )
        # Stages that depend on constants only, such as packed weights, are computed once, at load time.
        yield make("lift-transform-params")
    # Reductions that may be empty store their init in any case.
    yield make("decompose-open-reductions")
    # Check accesses of functions of symbolic sizes, and of marked ones, against their buffers.
    yield make("check-open-bounds")
    # Lower blocks to loops and branches, shrink buffers to the parts in use, lower vectorized loops to vectors.
    yield make("lower-init-block")
    yield make("plan-and-update-buffer-allocation-location")
    yield make("allocate-in-output")
    yield make("convert-blocks-to-opaque", strict_math=options.strict_math)
    yield make("lower-match-buffer")
    yield make("compact-buffer-allocation")
    yield make("lower-opaque-block")
    yield make("limit-loops")
    yield make("lower-lane-reduction")
    yield make("lower-transposed-loads")
    yield make("vectorize-loop")
    # Unroll loops that choose rows of constant matrices.
    yield make("unroll-choices")
    # Rename functions that have a name of the C library or of the runtime.
    yield make("mangle-symbols")
    # Lower TIR's loops and buffers to scf, memref, vector and arith.
    yield make("lower-tir-to-scf", strict_math=options.strict_math, entry=linked_name(options.entry))
    # Lower these to the LLVM dialect.
    yield make("lower-std-to-llvm", cpu=options.cpu or "", strict_math=options.strict_math)


def program_passes(options: Options) -> Iterator[ModulePass]:
    """Yields the pass from Relay's functions to LLVM functions that call the kernels over one arena."""
    yield make("lower-relay-to-llvm", entry=linked_name(options.entry), profile=options.profile)


def make(name: str, **options: object) -> ModulePass:
    """Returns the pass called `name` with these options."""
    return _PASSES[name].load()(**options)


_PASSES = {entry.name: entry for entry in PASSES}
