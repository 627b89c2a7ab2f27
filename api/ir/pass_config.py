"""The settings of a pass context, by TVM's names: those with an effect, without one, and refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...support.arguments import check, integer
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.text import did_you_mean

CONFIG: dict[str, tuple[str, str]] = {
    "relay.FuseOps.max_depth": ("int", "the most operators that FuseOps puts into one function"),
    "relay.ToMixedPrecision.keep_orig_output_dtype": (
        "bool",
        "whether ToMixedPrecision casts results back to what they were",
    ),
    "tir.HoistIfThenElse": ("dict[str, Any]", "options of HoistIfThenElse: support_block_scope_hosting, variant"),
    "tir.InjectDoubleBuffer": ("dict[str, Any]", "options of InjectDoubleBuffer: split_loop"),
    "tir.LoopPartition": (
        "dict[str, Any]",
        "options of LoopPartition: partition_const_loop, no_unroll_loop_with_extent_one",
    ),
    "tir.RemoveNoOp": ("dict[str, Any]", "options of RemoveNoOp: use_dataflow_analysis, max_simplification_steps"),
    "tir.Simplify": (
        "dict[str, Any]",
        "options of Simplify: transitively_prove_inequalities, convert_boolean_to_and_of_ors, "
        "apply_constraints_to_boolean_branches, propagate_knowns_to_prove_conditional, "
        "propagate_knowns_to_simplify_expressions",
    ),
    "tir.UnrollLoop": (
        "dict[str, Any]",
        "options of UnrollLoop: auto_max_step, auto_max_depth, auto_max_extent, explicit_unroll",
    ),
    "tir.add_lower_pass": (
        "list[tuple[int, Pass]]",
        "passes that mirstack.lower runs besides its own: first (0), before loops are partitioned (1), after they are unrolled (2), last (3)",
    ),
    "tir.disable_cse_tir": ("bool", "whether CommonSubexprElimTIR does nothing"),
    "tir.disable_storage_rewrite": ("bool", "whether mirstack.lower leaves out StorageRewrite"),
    "tir.disable_vectorize": ("bool", "whether mirstack.lower makes vectorized loops serial"),
    "tir.enable_equiv_terms_in_cse_tir": ("bool", "whether CommonSubexprElimTIR takes equal sums as the same"),
    "tir.noalias": (
        "bool",
        "whether functions of mirstack.lower say that their buffers do not overlap; they do by default",
    ),
    "mirstack.trace": ("list[str]", "names of passes that tell what they do, to standard error: ['FoldConstant']"),
    "mirstack.explain": ("list[str]", "names of passes that tell what they left alone and why: ['FuseOps']"),
}
"""What a context can be told, with its type and what it means."""

WITHOUT_EFFECT: dict[str, tuple[str, str]] = {
    "ir.enable_si_builder": ("bool", "places are kept in any case"),
    "relay.FuseOps.link_params": ("bool", "constants are part of the compiled program in any case"),
    "relay.backend.disable_memory_plan": ("bool", "memory is planned in any case"),
    "relay.backend.tir_converter": ("str", "kernels become TIR in one way"),
    "relay.fallback_device_type": ("int", "programs run on the CPU"),
    "relay.frontend.fill_span": ("bool", "imported operators keep their places in any case"),
    "relay.remove_standalone_reshapes.enable": ("bool", "a reshape is a view, for which no code is made"),
    "te.keep_schedule_record": ("bool", "schedules keep their primitives in any case"),
    "tir.detect_global_barrier": ("bool", "barriers belong to GPUs"),
    "tir.enable_debug": ("bool", "places are kept in any case"),
    "tir.instrument_bound_checkers": ("bool", "accesses that are not proved to stay inside are checked in any case"),
}
"""TVM's settings that change nothing here, with their type and the reason."""

_GPU = "it belongs to GPUs; programs run on the CPU"
_TUNED = "there is no tuning; default-schedule schedules by shape and target"
_DEVICE = "no code is made for that device"
REFUSED: dict[str, str] = {
    "relay.backend.use_auto_scheduler": _TUNED,
    "relay.backend.use_meta_schedule": _TUNED,
    "relay.backend.use_meta_schedule_dispatch": _TUNED,
    "tir.HoistExpression": "pass transform.HoistIfThenElse() to a Sequential, with tir.HoistIfThenElse",
    "tir.ReduceBranchingThroughOvercompute": "transform.Simplify() with tir.Simplify proves conditions",
    "tir.debug_keep_trivial_loop": "te.create_prim_func keeps loops of one iteration",
    "tir.disable_assert": "remove assertions by tir.transform.SkipAssert()",
    "tir.experimental_dma_bypass_cache": _DEVICE,
    "tir.instrument_lwp": "mir-run --profile measures each kernel",
    "tir.merge_static_smem": _GPU,
    "tir.ptx_ldg32": _GPU,
    "tir.use_async_copy": _GPU,
    "tir.usmp.enable": "memory is planned by the compiler, in one arena",
    "tir.vtcm_capacity": _DEVICE,
}
"""TVM's settings that cannot be had here, with what to do instead; False is accepted."""


def check_config(config: Mapping[str, Any]) -> None:
    """Raises MirValueError for an unknown or refused setting, TypeError for a wrong value."""
    known = {**CONFIG, **WITHOUT_EFFECT}
    for key, value in config.items():
        check(key, "a key of config", "the name of a setting", str)
        if key in REFUSED:
            if value:
                message = f"the setting '{key}' has no meaning here"
                raise MirValueError(Diagnostic(message).with_note(REFUSED[key]))
        elif key not in known:
            hint = did_you_mean(key, known, 0.6)
            raise MirValueError(Diagnostic(f"a pass context has no setting '{key}'{hint}"))
        elif known[key][0] == "int":
            integer(value, key, 0)
        elif known[key][0] == "bool":
            check(value, key, "True or False", int)


__all__ = ["CONFIG", "REFUSED", "WITHOUT_EFFECT", "check_config"]
