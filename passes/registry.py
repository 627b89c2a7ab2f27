"""Every pass that `mir-opt -p` knows, by name: where its class is and what it does, in one line.

Nothing is imported until a pass is asked for, so that start-up does not grow with the number of passes. A pass is a frozen
dataclass deriving from xDSL's `ModulePass`, its fields are its options, and its `name` is its name here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import get_type_hints

from xdsl.passes import ModulePass

_ROOT = __name__.partition(".")[0]


@dataclass(frozen=True)
class Entry:
    """A registered pass: `where` is "module:Class", the module's name relative to the package's root.

    A pass that is a file of rules has that file there, relative to `passes/`.
    """

    name: str
    where: str
    doc: str

    def load(self) -> type[ModulePass]:
        """The pass's class; imports its module."""
        if self.where.endswith(".mir"):
            from .rules.rule_pass import rule_pass

            return rule_pass(self.name, self.where)
        module, _, class_name = self.where.partition(":")
        found: type[ModulePass] = getattr(import_module(f"{_ROOT}.{module}"), class_name)
        return found


# One line each. A pass file is named as its pass, with underscores, and so is its test under filecheck/.
PASSES: tuple[Entry, ...] = (
    # Any dialect.
    Entry("cse", "passes.common.cse:CommonSubexpressionElimination", "merge ops that compute the same"),
    Entry("dce", "passes.common.dce:Dce", "erase what nothing observable depends on"),
    Entry("apply-rules", "passes.rules.apply_rules:ApplyRules", "rewrite by declared rules"),
    Entry(
        "convert-rules-to-pdl",
        "passes.rules.annex.pdl.convert_rules_to_pdl:ConvertRulesToPDL",
        "rules as patterns of MLIR's PDL dialect",
    ),
    # Relay.
    Entry("fast-math", "relay/algebra/fast_math.mir", "exp, tanh, erf and softmax by their fast approximations"),
    Entry("div-to-mul", "relay/algebra/div_to_mul.mir", "division by a constant to multiplication by its inverse"),
    Entry(
        "simplify-inference",
        "relay/algebra/simplify_inference.mir",
        "normalizations and dropout to what inference computes",
    ),
    Entry(
        "simplify-expr",
        "relay/algebra/simplify_expr.mir",
        "algebra: identities, constants, reshapes, transposes, casts",
    ),
    Entry("canonicalize-ops", "relay/algebra/canonicalize_ops.mir", "bias_add to expand_dims and a broadcasting add"),
    Entry(
        "canonicalize-cast",
        "passes.relay.algebra.canonicalize_cast:CanonicalizeCast",
        "a widening cast of several users once for each, to be fused with it",
    ),
    Entry(
        "combine-parallel-conv2d",
        "passes.relay.algebra.combine_parallel_conv2d:CombineParallelConv2D",
        "convolutions of one input as one of all their channels",
    ),
    Entry(
        "combine-parallel-dense",
        "passes.relay.algebra.combine_parallel_dense:CombineParallelDense",
        "dense layers of one input as one batched product or one layer",
    ),
    Entry(
        "combine-parallel-batch-matmul",
        "passes.relay.algebra.combine_parallel_batch_matmul:CombineParallelBatchMatmul",
        "batched products of one left side as one",
    ),
    Entry(
        "alter-op-layout", "passes.relay.layout.alter_op_layout:AlterOpLayout", "blocks as wide as the target's vectors"
    ),
    Entry(
        "conv2d-to-winograd",
        "passes.relay.algebra.conv2d_to_winograd:Conv2DToWinograd",
        "3x3 convolutions by Winograd's algorithm where that pays",
    ),
    Entry(
        "legalize", "relay/algebra/legalize.mir", "operators in the one form that the target's kernels are written for"
    ),
    Entry(
        "quantized-channels-last",
        "passes.relay.layout.quantized_channels_last:QuantizedChannelsLast",
        "convolutions of bytes from NCHW to NHWC",
    ),
    Entry(
        "convert-layout",
        "passes.relay.layout.convert_layout:ConvertLayout",
        "operators in the layouts that are asked for",
    ),
    Entry(
        "flatten-atrous-conv",
        "relay/algebra/flatten_atrous_conv.mir",
        "space_to_batch, conv, batch_to_space to one dilated conv",
    ),
    Entry(
        "forward-fold-scale-axis",
        "passes.relay.algebra.forward_fold_scale_axis:ForwardFoldScaleAxis",
        "scales of channels into the weights of the layers behind them",
    ),
    Entry(
        "backward-fold-scale-axis",
        "passes.relay.algebra.backward_fold_scale_axis:BackwardFoldScaleAxis",
        "scales of channels into the weights of the layers in front of them",
    ),
    Entry(
        "fold-explicit-padding",
        "relay/algebra/fold_explicit_padding.mir",
        "padding by zeros into convolutions and pooling",
    ),
    Entry("infer-type", "passes.relay.functional.infer_type:InferType", "find the type of every Relay value"),
    Entry(
        "monomorphize",
        "passes.relay.functional.monomorphize:Monomorphize",
        "copy generic functions for each set of types in use",
    ),
    Entry(
        "dynamic-to-static",
        "passes.relay.algebra.dynamic_to_static:DynamicToStatic",
        "give operators of computed shape their shape where it is known",
    ),
    Entry(
        "fold-constant", "passes.relay.algebra.fold_constant:FoldConstant", "compute what depends on constants alone"
    ),
    Entry(
        "merge-composite",
        "passes.relay.fusion.merge_composite:MergeComposite",
        "what the left sides of rules match as functions, one kernel each",
    ),
    Entry(
        "loop-invariant-code-motion",
        "passes.relay.algebra.loop_invariant_code_motion:LoopInvariantCodeMotion",
        "products with slices for all turns of a loop written as recursion",
    ),
    Entry(
        "fuse-attention",
        "passes.relay.fusion.fuse_attention:FuseAttention",
        "softmax(Q·Kᵀ)·V as one Primitive function",
    ),
    Entry(
        "group-batch-matmul",
        "passes.relay.algebra.group_batch_matmul:GroupBatchMatmul",
        "products with matrices that repeat along the batch take each once",
    ),
    Entry(
        "narrow-weights",
        "passes.relay.quantize.narrow_weights:NarrowWeights",
        "constant weights of few rows stay as narrow as they are stored",
    ),
    Entry(
        "fuse-ops", "passes.relay.fusion.fuse_ops:FuseOps", "group operators into Primitive functions, one kernel each"
    ),
    Entry(
        "remove-unused-functions",
        "passes.relay.functional.remove_unused_functions:RemoveUnusedFunctions",
        "drop functions that no entry function reaches",
    ),
    Entry(
        "eliminate-common-subexpr",
        "passes.relay.algebra.eliminate_common_subexpr:EliminateCommonSubexpr",
        "merge operators with equal attributes and the same arguments",
    ),
    Entry(
        "dead-code-elimination",
        "passes.relay.functional.dead_code_elimination:DeadCodeElimination",
        "erase what nothing needs, calls of pure functions included",
    ),
    Entry("to-a-normal-form", "passes.relay.functional.to_a_normal_form:ToANormalForm", "bind every value by a let"),
    Entry(
        "to-graph-normal-form",
        "passes.relay.functional.to_graph_normal_form:ToGraphNormalForm",
        "take the lets away, leaving the graph of values",
    ),
    Entry(
        "to-basic-block-normal-form",
        "passes.relay.functional.to_basic_block_normal_form:ToBasicBlockNormalForm",
        "bind by a let what more than one block uses",
    ),
    Entry(
        "inline", "passes.relay.functional.inline:Inline", "put functions marked Inline=1 in the place of their calls"
    ),
    Entry(
        "lambda-lift",
        "passes.relay.functional.lambda_lift:LambdaLift",
        "make local functions global, with what they capture",
    ),
    Entry(
        "eta-expand",
        "passes.relay.functional.eta_expand:EtaExpand",
        "make local functions of constructors and global functions that are values",
    ),
    Entry(
        "split-args",
        "passes.relay.fusion.split_args:SplitArgs",
        "split concatenations of more tensors than a kernel takes arguments",
    ),
    Entry("defuse-ops", "passes.relay.fusion.defuse_ops:DefuseOps", "put the operators of Primitive functions back"),
    Entry(
        "first-order-gradient",
        "passes.relay.training.first_order_gradient:FirstOrderGradient",
        "make each function give the gradients of its parameters, too",
    ),
    Entry(
        "partial-evaluate",
        "passes.relay.functional.partial_evaluate:PartialEvaluate",
        "compute what is known of values, and follow calls of known functions",
    ),
    Entry(
        "defunctionalization",
        "passes.relay.functional.defunctionalization:Defunctionalization",
        "make data of functions that are values",
    ),
    Entry(
        "to-mixed-precision",
        "passes.relay.quantize.to_mixed_precision:ToMixedPrecision",
        "compute in float16 or bfloat16 where that is fast and safe",
    ),
    Entry(
        "fake-quantization-to-integer",
        "passes.relay.quantize.fake_quantization_to_integer:FakeQuantizationToInteger",
        "do what is between dequantization and quantization in integers",
    ),
    Entry(
        "qnn-canonicalize-ops",
        "passes.relay.quantize.qnn_canonicalize_ops:QnnCanonicalizeOps",
        "quantized operators to plain ones on the integers",
    ),
    Entry(
        "qnn-legalize",
        "passes.relay.quantize.qnn_legalize:QnnLegalize",
        "quantized convolutions and dense layers to plain ones on 16 bits",
    ),
    # TIR.
    Entry("verify-tir", "passes.tir.verify_tir:VerifyTIR", "check the rules that span a whole prim_func"),
    Entry(
        "lower-init-block",
        "passes.tir.blocks.lower_init_block:LowerInitBlock",
        "T.init to a branch on the reduction axes",
    ),
    Entry(
        "plan-and-update-buffer-allocation-location",
        "passes.tir.blocks.plan_and_update_buffer_allocation_location:PlanAndUpdateBufferAllocationLocation",
        "move each T.alloc_buffer into the innermost scope that holds its uses",
    ),
    Entry(
        "allocate-in-output",
        "passes.tir.buffers.allocate_in_output:AllocateInOutput",
        "temporary buffers into the outputs that their elements become",
    ),
    Entry(
        "convert-blocks-to-opaque",
        "passes.tir.blocks.convert_blocks_to_opaque:ConvertBlocksToOpaque",
        "substitute the bindings of blocks for their iteration variables",
    ),
    Entry(
        "fuse-tir",
        "passes.tir.blocks.fuse_tir:FuseTIR",
        "the prim_funcs that a Primitive Relay function calls as one prim_func",
    ),
    Entry(
        "lower-match-buffer",
        "passes.tir.blocks.lower_match_buffer:LowerMatchBuffer",
        "buffers matched to regions to views",
    ),
    Entry(
        "compact-buffer-allocation",
        "passes.tir.buffers.compact_buffer_allocation:CompactBufferAllocation",
        "shrink allocations to the region that is accessed",
    ),
    Entry(
        "lower-opaque-block", "passes.tir.blocks.lower_opaque_block:LowerOpaqueBlock", "blocks to loops and branches"
    ),
    Entry(
        "apply-schedule",
        "passes.schedule.apply_schedule:ApplySchedule",
        "the schedule scripts of the module to its prim_funcs",
    ),
    Entry(
        "default-schedule",
        "passes.autoschedule.default_schedule:DefaultSchedule",
        "tile, vectorize, fuse and parallelize by rules on shape and target",
    ),
    Entry(
        "decompose-open-reductions",
        "passes.tir.blocks.decompose_open_reductions:DecomposeOpenReductions",
        "reductions over what may be no elements store their first value apart",
    ),
    Entry(
        "check-open-bounds",
        "passes.tir.buffers.check_open_bounds:CheckOpenBounds",
        "accesses that are not provably inside of a buffer are checked at run time",
    ),
    Entry(
        "check-parallel-loops",
        "passes.tir.loops.check_parallel_loops:CheckParallelLoops",
        "parallel loops whose iterations depend on each other are refused, doubtful ones serial",
    ),
    Entry(
        "mark-open-bounds",
        "lowering.te.mark_open_bounds:MarkOpenBounds",
        "functions with accesses that are not provably inside are marked to be checked",
    ),
    Entry(
        "simplify",
        "passes.tir.scalars.simplify:Simplify",
        "arithmetic to canonical form, branches of known condition dropped",
    ),
    Entry("remove-no-op", "passes.tir.scalars.remove_no_op:RemoveNoOp", "take statements away that do nothing"),
    Entry("unroll-loop", "passes.tir.loops.unroll_loop:UnrollLoop", "the turns of a loop one after the other"),
    Entry(
        "loop-partition",
        "passes.tir.loops.loop_partition:LoopPartition",
        "split loops where a likely condition changes",
    ),
    Entry(
        "hoist-if-then-else",
        "passes.tir.loops.hoist_if_then_else:HoistIfThenElse",
        "branches that do not change in a loop around it",
    ),
    Entry(
        "common-subexpr-elim-tir",
        "passes.tir.scalars.common_subexpr_elim_tir:CommonSubexprElimTIR",
        "a let for what is computed several times",
    ),
    Entry("convert-ssa", "passes.tir.scalars.convert_ssa:ConvertSSA", "a variable of its own for each loop and let"),
    Entry("narrow-data-type", "passes.tir.scalars.narrow_data_type:NarrowDataType", "index arithmetic in fewer bits"),
    Entry(
        "force-narrow-index-to-int32",
        "passes.tir.scalars.force_narrow_index_to_int32:ForceNarrowIndexToInt32",
        "sizes and indices of 64 bits in 32",
    ),
    Entry(
        "inject-software-pipeline",
        "passes.tir.pipelining.inject_software_pipeline:InjectSoftwarePipeline",
        "annotated loops to prologue, body and epilogue of a pipeline",
    ),
    Entry(
        "inject-double-buffer",
        "passes.tir.pipelining.inject_double_buffer:InjectDoubleBuffer",
        "memory that a loop fills for its next turn, in halves",
    ),
    Entry(
        "inject-virtual-thread",
        "passes.tir.threads.inject_virtual_thread:InjectVirtualThread",
        "what virtual threads do, one after the other",
    ),
    Entry(
        "bf16-compute-legalize",
        "passes.tir.scalars.bf16_compute_legalize:BF16ComputeLegalize",
        "arithmetic on bfloat16 in float32, rounded at stores",
    ),
    Entry(
        "storage-rewrite",
        "passes.tir.buffers.storage_rewrite:StorageRewrite",
        "allocations share memory, one after the other",
    ),
    Entry(
        "rewrite-unsafe-select",
        "passes.tir.scalars.rewrite_unsafe_select:RewriteUnsafeSelect",
        "T.Select of loads to T.if_then_else",
    ),
    Entry(
        "renormalize-split-pattern",
        "tir/scalars/renormalize_split_pattern.mir",
        "quotients before remainders in index arithmetic",
    ),
    Entry(
        "unify-thread-binding",
        "passes.tir.threads.unify_thread_binding:UnifyThreadBinding",
        "one loop for each thread axis of a kernel",
    ),
    Entry("flatten-buffer", "passes.tir.buffers.flatten_buffer:FlattenBuffer", "buffers of one dimension"),
    Entry(
        "limit-loops",
        "passes.tir.loops.limit_loops:LimitLoops",
        "annotated loops end before the turns that nothing needs",
    ),
    Entry(
        "lower-lane-reduction",
        "passes.tir.vectors.lower_lane_reduction:LowerLaneReduction",
        "annotated reductions to partial results in the lanes of vectors",
    ),
    Entry(
        "lower-transposed-loads",
        "passes.tir.vectors.lower_transposed_loads:LowerTransposedLoads",
        "annotated tiles to transposes in registers",
    ),
    Entry("vectorize-loop", "passes.tir.vectors.vectorize_loop:VectorizeLoop", "vectorized loops to ramps and vectors"),
    Entry(
        "unroll-choices",
        "passes.tir.loops.unroll_choices:UnrollChoices",
        "loops whose variable chooses between values to their turns",
    ),
    # From level to level.
    Entry(
        "static-memory-plan",
        "lowering.relay.memory.static_memory_plan:StaticMemoryPlan",
        "report how each function's tensors share memory",
    ),
    Entry(
        "lower-relay-to-te",
        "lowering.relay.kernels.lower_relay_to_te:LowerRelayToTE",
        "Primitive functions to TE functions",
    ),
    Entry(
        "lower-te-to-tir", "lowering.te.lower_te_to_tir:LowerTEToTIR", "TE functions to TIR, a block for each tensor"
    ),
    Entry(
        "lift-transform-params",
        "lowering.relay.kernels.lift_transform_params:LiftTransformParams",
        "what kernels compute from constants alone to functions of their own",
    ),
    Entry(
        "lower-relay-to-llvm",
        "lowering.relay.functions.lower_relay_to_llvm:LowerRelayToLLVM",
        "main to an LLVM function over one arena",
    ),
    Entry(
        "mangle-symbols", "lowering.mangle_symbols:MangleSymbols", "functions called as the C library's get other names"
    ),
    Entry(
        "lower-tir-to-scf", "lowering.tir.lower_to_scf:LowerTIRToSCF", "TIR without blocks to func, scf, memref, vector"
    ),
    Entry(
        "lower-std-to-llvm",
        "lowering.llvm.convert.lower_std_to_llvm:LowerStdToLLVM",
        "func, cf, scf, arith, math, memref, vector to llvm",
    ),
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
    """Every pass by name: mirstack's own, before xDSL's of the same name."""
    from xdsl.transforms import get_all_passes

    return {**get_all_passes(), **{entry.name: entry.load for entry in PASSES}}


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
    """The options of a pass, from the fields of its dataclass."""
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
    yield "From xDSL (its other passes can be named as well, see xdsl-opt --help):"
    factories = pass_factories()
    for name, doc in sorted(XDSL_PASSES.items()):
        yield from _describe(name, factories[name](), doc)


def _describe(name: str, pass_class: type[ModulePass], doc: str) -> Iterator[str]:
    yield f"  {name:<42}  {doc}"
    for option in pass_options(pass_class):
        yield f"      {option}"
