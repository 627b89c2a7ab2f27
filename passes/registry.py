"""The table of passes that `mir-opt -p` knows: the package of each and, in one line, its summary.

Nothing is imported until a pass is asked for, so that start-up does not grow with the number of passes. A pass is a frozen
dataclass deriving from xDSL's `ModulePass`, its fields are its options, and its `name` is its name here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import cast, get_type_hints

from xdsl.passes import ModulePass

from ..support import extensions

_ROOT = __name__.partition(".")[0]


@dataclass(frozen=True)
class Entry:
    """A registered pass: a class, or a file of rules, in the file of its name in the package `where`."""

    name: str
    where: str
    doc: str
    is_rules: bool

    @property
    def module(self) -> str:
        """Returns the file, without suffix, from the package's root: `passes.relay.algebra.fast_math`."""
        return f"{self.where}.{self.name.replace('-', '_')}"

    def load(self) -> type[ModulePass]:
        """Returns the pass's class; imports its module."""
        return self._class

    @cached_property
    def _class(self) -> type[ModulePass]:
        if self.is_rules:
            from .rules.rule_pass import rule_pass

            return rule_pass(self.name, f"{self.module.removeprefix('passes.').replace('.', '/')}.mir")
        members = vars(import_module(f"{_ROOT}.{self.module}")).values()
        classes = (each for each in members if isinstance(each, type) and issubclass(each, ModulePass))
        return next(each for each in classes if getattr(each, "name", None) == self.name)


_TABLE: dict[str, dict[str, str]] = {
    "passes.common": {
        "cse": "merge ops that compute the same",
        "dce": "erase what nothing observable depends on",
    },
    "passes.rules": {
        "apply-rules": "rewrite by declared rules",
    },
    "passes.rules.annex.pdl": {
        "convert-rules-to-pdl": "rules as patterns of MLIR's PDL dialect",
    },
    "passes.relay.algebra": {
        "canonicalize-cast": "a widening cast of several users once for each, to be fused with it",
        "combine-parallel-conv2d": "convolutions of one input as one of all their channels",
        "combine-parallel-dense": "dense layers of one input as one batched product or one layer",
        "combine-parallel-batch-matmul": "batched products of one left side as one",
        "conv2d-transpose-to-depth-to-space.mir": "transposed convolutions whose windows do not overlap to 1x1 ones",
        "conv2d-to-winograd": "3x3 convolutions by Winograd's algorithm where that pays",
        "forward-fold-scale-axis": "scales of channels into the weights of the layers after them",
        "backward-fold-scale-axis": "scales of channels into the weights of the layers in front of them",
        "dynamic-to-static": "give operators of computed shape their shape where it is known",
        "fold-constant": "compute what depends on constants alone",
        "loop-invariant-code-motion": "products with slices for all iterations of a loop written as recursion",
        "group-batch-matmul": "products with matrices that repeat along the batch take each once",
        "eliminate-common-subexpr": "merge operators with equal attributes and the same arguments",
        "fast-math.mir": "exp, tanh, erf and softmax by their fast approximations",
        "div-to-mul.mir": "division by a constant to multiplication by its inverse",
        "simplify-inference.mir": "normalizations and dropout to what inference computes",
        "simplify-expr.mir": "algebra: identities, constants, reshapes, transposes, casts",
        "canonicalize-ops.mir": "bias_add to expand_dims and a broadcasting add",
        "legalize.mir": "operators in the one form that the target's kernels are written for",
        "flatten-atrous-conv.mir": "space_to_batch, conv, batch_to_space to one dilated conv",
        "fold-explicit-padding.mir": "padding by zeros into convolutions and pooling",
    },
    "passes.relay.layout": {
        "alter-op-layout": "blocks as wide as the target's vectors",
        "quantized-channels-last": "convolutions of bytes from NCHW to NHWC",
        "convert-layout": "operators in the layouts that are asked for",
    },
    "passes.relay.functional": {
        "infer-type": "find the type of every Relay value",
        "monomorphize": "copy generic functions for each set of types in use",
        "remove-unused-functions": "drop functions that no entry function reaches",
        "dead-code-elimination": "erase what nothing needs, calls of pure functions included",
        "to-a-normal-form": "bind every value by a let",
        "to-graph-normal-form": "take the lets away, leaving the graph of values",
        "to-basic-block-normal-form": "bind by a let what more than one block uses",
        "inline": "put functions marked Inline=1 in the place of their calls",
        "lambda-lift": "make local functions global, with what they capture",
        "eta-expand": "make local functions of constructors and global functions that are values",
        "partial-evaluate": "compute what is known of values, and follow calls of known functions",
        "defunctionalization": "make data of functions that are values",
    },
    "passes.relay.fusion": {
        "merge-composite": "what the left sides of rules match as functions, one kernel each",
        "fuse-attention": "softmax(Q·Kᵀ)·V as one Primitive function",
        "fuse-ops": "group operators into Primitive functions, one kernel each",
        "split-args": "split concatenations of more tensors than a kernel takes arguments",
        "defuse-ops": "put the operators of Primitive functions back",
    },
    "passes.relay.quantize": {
        "narrow-weights": "constant weights of few rows stay as narrow as they are stored",
        "quantize-weights": "constant weights of dense layers in 4 or 8 bits, with a scale for each group",
        "to-mixed-precision": "compute in float16 or bfloat16 where that is fast and safe",
        "fake-quantization-to-integer": "do what is between dequantization and quantization in integers",
        "qnn-canonicalize-ops": "quantized operators to plain ones on the integers",
        "qnn-legalize": "quantized convolutions and dense layers to plain ones on 16 bits",
    },
    "passes.relay.training": {
        "first-order-gradient": "make each function give the gradients of its parameters, too",
    },
    "passes.tir": {
        "verify-tir": "check the rules that span a whole prim_func",
    },
    "passes.tir.blocks": {
        "lower-init-block": "T.init to a branch on the reduction axes",
        "plan-and-update-buffer-allocation-location": "move each T.alloc_buffer into the innermost scope that holds its uses",
        "convert-blocks-to-opaque": "substitute the bindings of blocks for their iteration variables",
        "fuse-tir": "the prim_funcs that a Primitive Relay function calls as one prim_func",
        "lower-match-buffer": "buffers matched to regions to views",
        "lower-opaque-block": "blocks to loops and branches",
        "decompose-open-reductions": "reductions over what may be no elements store their first value apart",
    },
    "passes.tir.buffers": {
        "allocate-in-output": "temporary buffers into the outputs that their elements become",
        "compact-buffer-allocation": "shrink allocations to the region that is accessed",
        "check-open-bounds": "accesses that are not provably inside of a buffer are checked at run time",
        "storage-rewrite": "allocations share memory, one after the other",
        "flatten-buffer": "buffers of one dimension",
    },
    "passes.schedule": {
        "apply-schedule": "the schedule scripts of the module to its prim_funcs",
    },
    "passes.autoschedule": {
        "match-schedule-rules": "name the written schedule rules that are for a kernel",
        "default-schedule": "tile, vectorize, fuse and parallelize by rules on shape and target",
    },
    "passes.tir.loops": {
        "check-parallel-loops": "parallel loops whose iterations depend on each other are refused, doubtful ones serial",
        "unroll-loop": "the iterations of a loop one after the other",
        "loop-partition": "split loops where a likely condition changes",
        "hoist-if-then-else": "branches that do not change in a loop around it",
        "limit-loops": "annotated loops end before the iterations that nothing needs",
        "unroll-choices": "loops whose variable chooses between values to their iterations",
    },
    "lowering.te": {
        "mark-open-bounds": "functions with accesses that are not provably inside are marked to be checked",
        "lower-te-to-tir": "TE functions to TIR, a block for each tensor",
    },
    "passes.tir.scalars": {
        "simplify": "arithmetic to canonical form, branches of known condition dropped",
        "remove-no-op": "take statements away that do nothing",
        "common-subexpr-elim-tir": "a let for what is computed several times",
        "convert-ssa": "a variable of its own for each loop and let",
        "narrow-data-type": "index arithmetic in fewer bits",
        "force-narrow-index-to-int32": "sizes and indices of 64 bits in 32",
        "bf16-compute-legalize": "arithmetic on bfloat16 in float32, rounded at stores",
        "rewrite-unsafe-select": "T.Select of loads to T.if_then_else",
        "renormalize-split-pattern.mir": "quotients before remainders in index arithmetic",
    },
    "passes.tir.pipelining": {
        "inject-software-pipeline": "annotated loops to prologue, body and epilogue of a pipeline",
        "inject-double-buffer": "memory that a loop fills for its next iteration, in halves",
    },
    "passes.tir.threads": {
        "inject-virtual-thread": "what virtual threads do, one after the other",
        "unify-thread-binding": "one loop for each thread axis of a kernel",
    },
    "passes.tir.vectors": {
        "lower-lane-reduction": "annotated reductions to partial results in the lanes of vectors",
        "lower-transposed-loads": "annotated tiles to transposes in registers",
        "vectorize-loop": "vectorized loops to ramps and vectors",
    },
    "lowering.relay.memory": {
        "static-memory-plan": "report how each function's tensors share memory",
    },
    "lowering.relay.kernels": {
        "call-operator-functions": "operators that TIR functions compute to calls of these",
        "lower-relay-to-te": "Primitive functions to TE functions",
        "lift-transform-params": "what kernels compute from constants alone to functions of their own",
    },
    "lowering.relay.functions": {
        "lower-relay-to-llvm": "main to an LLVM function over one arena",
    },
    "lowering": {
        "mangle-symbols": "functions called as the C library's get other names",
    },
    "lowering.tir": {
        "lower-tir-to-scf": "TIR without blocks to func, scf, memref, vector",
    },
    "lowering.llvm.convert": {
        "lower-std-to-llvm": "func, cf, scf, arith, math, memref, vector to llvm",
    },
}
"""The passes of each package, in the file of their names, with underscores; those with a suffix are files of rules."""

PASSES = tuple(
    Entry(name.removesuffix(".mir"), where, doc, name.endswith(".mir"))
    for where, passes in _TABLE.items()
    for name, doc in passes.items()
)

# xDSL's passes that are of use here, with what they do; every other pass of xDSL can be named too.
XDSL_PASSES: dict[str, str] = {
    "apply-pdl": "rewrite by the pdl.pattern ops of the module",
    "apply-pdl-interp": "rewrite by the pdl_interp matcher of the module",
    "canonicalize": "fold constants and apply each op's canonicalization patterns",
    "constant-fold-interp": "fold pure ops of constant operands through their interpreter",
    "control-flow-hoist": "hoist pure ops out of branches",
    "convert-pdl-to-pdl-interp": "compile pdl patterns into one pdl_interp matcher",
    "convert-scf-to-cf": "structured control flow to branches",
    "expand-math-to-polynomials": "math functions as polynomials",
    "licm": "hoist loop-invariant ops out of loops",
    "lower-affine": "affine loops and maps to scf and arith",
    "reconcile-unrealized-casts": "erase pairs of casts that cancel",
    "scf-for-loop-flatten": "merge perfectly nested scf.for loops",
    "scf-for-loop-range-folding": "fold offsets and strides into loop bounds",
    "scf-for-loop-unroll": "unroll scf.for loops of constant bounds",
}

Factory = Callable[[], type[ModulePass]]


def pass_factories() -> dict[str, Factory]:
    """Returns every pass by name: mirstack's, then those of extensions, then xDSL's."""
    from xdsl.transforms import get_all_passes

    return {**get_all_passes(), **loaded_passes(), **{entry.name: entry.load for entry in PASSES}}


def loaded_passes() -> dict[str, Factory]:
    """Returns the passes that extensions have defined, by name."""
    return {each.name: cast("Factory", each.value) for each in extensions.loaded("pass")}


def universe_passes() -> dict[str, Factory]:
    """Returns mirstack's passes for `xdsl-opt`; one with an xDSL pass's name is called `mirstack-NAME`."""
    from xdsl.transforms import get_all_passes

    taken = get_all_passes()
    return dict(_renamed(entry) if entry.name in taken else (entry.name, entry.load) for entry in PASSES)


def _renamed(entry: Entry) -> tuple[str, Factory]:
    name = f"mirstack-{entry.name}"

    def load() -> type[ModulePass]:
        original = entry.load()
        return type(original.__name__, (original,), {"name": name, "__doc__": original.__doc__})

    return name, load


@dataclass(frozen=True)
class PassOption:
    """An option as it is written after a pass's name: `name=value`."""

    name: str
    type: str
    default: str | None  # None: it must be given.

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.default is None else f" = {self.default}")


def pass_options(pass_class: type[ModulePass]) -> tuple[PassOption, ...]:
    """Returns the options of a pass, from the fields of its dataclass."""
    hints = get_type_hints(pass_class)
    return tuple(
        PassOption(field.name.replace("_", "-"), _type_name(hints[field.name]), _default(field))
        for field in dataclasses.fields(pass_class)
        if field.init and field.name != "name"
    )


def _type_name(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _default(field: dataclasses.Field[object]) -> str | None:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return None
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def list_passes() -> Iterator[str]:
    """Yields the lines of `--list-passes`: each pass with options and summary. Imports every pass listed."""
    yield "Passes, with their options as in -p 'NAME{option=value other=1,2}':"
    for entry in sorted(PASSES, key=lambda entry: entry.name):
        yield from _describe(entry.name, entry.load(), entry.doc)
    yield ""
    own = extensions.loaded("pass")
    if own:
        yield "From extensions:"
        for each in sorted(own, key=lambda each: each.name):
            found = cast("Factory", each.value)()
            yield from _describe(each.name, found, f"{_summary(found)} ({each.origin})")
        yield ""
    yield "From xDSL (its other passes can be named as well, see xdsl-opt --help):"
    factories = pass_factories()
    for name, doc in sorted(XDSL_PASSES.items()):
        yield from _describe(name, factories[name](), doc)


def _summary(pass_class: type[ModulePass]) -> str:
    """Returns the first line of a pass's documentation."""
    lines = (pass_class.__doc__ or "").strip().splitlines()
    # A dataclass without documentation has its signature.
    return lines[0] if lines and not lines[0].startswith(f"{pass_class.__name__}(") else pass_class.__name__


def _describe(name: str, pass_class: type[ModulePass], doc: str) -> Iterator[str]:
    yield f"  {name:<42}  {doc}"
    for option in pass_options(pass_class):
        yield f"      {option}"
