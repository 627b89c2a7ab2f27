"""Lists every pass from any level to the LLVM dialect, in order.

    graph_passes      Relay → Relay's functions that call kernels, which are TE and TIR functions
    kernel_passes     kernels → LLVM functions, in the module or each in a module of its own
    program_passes    Relay's functions → LLVM functions that call the kernels

`mir-opt -p` could run the same passes step by step. `lower` in `driver/build.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..passes.registry import PASSES
from ..support.target import foreign_triple, named
from .mangle_symbols import linked_name

if TYPE_CHECKING:
    from .llvm.jit.load import Target

Observer = Callable[[ModulePass, ModuleOp], None]
"""Called after each pass, with the module as it is then: for timing, printing, checking."""


@dataclass(frozen=True)
class Options:
    """The options of compilation.

    `cpu` is LLVM's `-mcpu`, None for this machine; `triple` likewise. `caches` are the sizes of the data caches where they differ from
    the known ones (`support.target.named`). `allow_extern` are C functions that the program may call besides those that every program
    may (`externs.py`). With `strict_math` floats are computed as the interpreter computes them, except for the order of sums
    (docs/rules.md).
    """

    entry: str = "main"
    opt_level: int = 3
    cpu: str | None = None
    triple: str | None = None
    threads: int | None = None
    caches: str = ""
    allow_extern: tuple[str, ...] = ()
    strict_math: bool = False


DEFAULT = Options()


def lowering_passes(options: Options) -> Iterator[ModulePass]:
    """Every pass from Relay to the LLVM dialect, in order. Each leaves alone what is not of its level.

    At level 0 nothing is fused and nothing scheduled: every operator is a plain loop nest.
    """
    yield from graph_passes(options)
    yield from kernel_passes(options)
    yield from program_passes(options)


def graph_passes(options: Options) -> Iterator[ModulePass]:
    """From Relay to Relay's functions that call kernels, which are TE and TIR functions."""
    strict = options.strict_math
    # Written functions that may access elements outside of their buffers.
    yield make("mark-open-bounds")
    # Relay: one function for each type, shapes where they are known.
    yield make("monomorphize")
    yield make("dynamic-to-static")
    if options.opt_level >= 3:
        # Convolutions of bytes have their channels last.
        yield make("quantized-channels-last")
    if options.opt_level >= 2:
        # Quantized operators by plain ones, whose sums of weights are constants.
        target = named(options.cpu or "")
        if target.arch == "x86_64" and not target.has_int8_dot:
            # Pairs of 16 bits are multiplied and added, to which bytes would be brought again and again.
            yield make("qnn-legalize", known=True)
        unsigned = target.has_int8_dot and target.arch == "x86_64"
        yield make("qnn-canonicalize-ops", unsigned=unsigned, upper_halves=True, strict_math=strict)
        # What inference does not need goes, what is constant is computed, what is computed twice is computed once.
        yield make("simplify-inference", strict_math=strict)
        # But for weights that are read once for a few rows.
        yield make("narrow-weights", cpu=options.cpu or "", caches=options.caches)
        yield make("fold-constant")
        yield make("simplify-expr", strict_math=strict)
        yield make("eliminate-common-subexpr")
    if options.opt_level >= 3 and not strict:
        # Constant scales of channels go into constant weights.
        yield make("backward-fold-scale-axis", constants_only=True)
        yield make("forward-fold-scale-axis", constants_only=True)
        yield make("fold-constant")
        # Of weights that are final now: 3×3 convolutions with fewer multiplications.
        yield make("conv2d-to-winograd")
    if options.opt_level >= 3:
        # Loops written as recursion multiply their inputs with weights at once.
        yield make("loop-invariant-code-motion")
    if options.opt_level >= 2:
        if not strict:
            # Two products and the softmax between them as one kernel.
            yield make("fuse-attention")
        # Matrices that the rows of several others meet are not copied for each.
        yield make("group-batch-matmul")
    # Operators grouped into kernels.
    yield make("fuse-ops", fuse_opt_level=2 if options.opt_level > 0 else 0)
    # Kernels to TE; the functions around them stay Relay until their kernels are LLVM functions.
    yield make("lower-relay-to-te", in_place=options.opt_level > 0)


def kernel_passes(options: Options) -> Iterator[ModulePass]:
    """Yields the passes from TE and TIR functions to LLVM functions.

    Each function is lowered by itself, except that `lift-transform-params` changes its calls in Relay's functions.
    """
    # Loops that are written as parallel compute what they compute serially.
    yield make("check-parallel-loops")
    # TE to TIR, scheduled by the scripts of the module, otherwise by rules on shape and target.
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
        # What schedules do to constants alone, such as packing weights, is done once, when the code is loaded.
        yield make("lift-transform-params")
    # Reductions of which it is not known that there is something to reduce.
    yield make("decompose-open-reductions")
    # Functions of symbolic sizes, and marked ones, touch nothing outside of their buffers.
    yield make("check-open-bounds")
    # Blocks to loops and branches, buffers to what is needed of them, vectorized loops to vectors.
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
    # Rows of constant matrices, each in an iteration of its own.
    yield make("unroll-choices")
    # Functions called as one of the C library or of the runtime, by another name.
    yield make("mangle-symbols")
    # TIR's loops and buffers to scf, memref, vector and arith.
    yield make("lower-tir-to-scf", strict_math=options.strict_math, entry=linked_name(options.entry))
    # All of it to the LLVM dialect.
    yield make("lower-std-to-llvm", cpu=options.cpu or "", strict_math=options.strict_math)


def program_passes(options: Options) -> Iterator[ModulePass]:
    """Relay's functions to LLVM functions that call the kernels over one arena."""
    yield make("lower-relay-to-llvm", entry=linked_name(options.entry))


def make(name: str, **options: object) -> ModulePass:
    """The pass called `name` with these options."""
    return _PASSES[name].load()(**options)


_PASSES = {entry.name: entry for entry in PASSES}


def target_of(options: Options) -> Target:
    """The options as the code generator takes them."""
    from .llvm.jit.load import Target

    triple = options.triple or foreign_triple(options.cpu)
    return Target(triple=triple, cpu=options.cpu, opt_level=options.opt_level)
