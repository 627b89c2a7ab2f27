"""Lists the intrinsics of `tir.call`: effect on memory, dtype, and form in the text.

The names are those that TVMScript 0.16 prints after `T.`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, NoneType
from xdsl.ir import Attribute, Operation, SSAValue

from ...support.diagnostics import error_at
from ..c_mathematics import why_not_called
from .scalar_ops import INTRINSICS, Effect, Operands, Result
from .types import I1, I32, HandleType, StringType, dtype_to_type, element_of, type_to_dtype, with_lanes_of

_PURE_ROWS = [row for row in INTRINSICS.values() if row.effect is Effect.PURE]


def _names(operands: tuple[Operands, ...], arity: int, result: Result = Result.SAME) -> frozenset[str]:
    return frozenset(
        row.name for row in _PURE_ROWS if row.operands in operands and row.arity == arity and row.result is result
    )


_ON_FLOATS = (Operands.FLOATS, Operands.NUMBERS)
UNARY_MATH = _names(_ON_FLOATS, 1)
"""Mathematics on one value: floats to floats of the same dtype."""
BINARY_MATH = _names(_ON_FLOATS, 2)
"""Mathematics on two values of the same dtype."""
OF_FLOATS = frozenset(row.name for row in _PURE_ROWS if row.operands is Operands.FLOATS)
"""Of these, the ones computed in floats only, not on integers."""
HORIZONTAL = _names((Operands.ANY,), 1, Result.ELEMENT)
BITWISE = _names((Operands.INTEGERS,), 2)
OF_INTEGERS = frozenset(row.name for row in _PURE_ROWS if row.operands is Operands.INTEGERS)
FLOAT_TESTS = _names((Operands.ANY,), 1, Result.BOOL)
"""Tests of one float, giving bool."""
OTHER_PURE = (
    frozenset(row.name for row in _PURE_ROWS)
    - UNARY_MATH - BINARY_MATH - BITWISE - FLOAT_TESTS - HORIZONTAL
    | frozenset(["reinterpret", "large_uint_imm", "isnullptr", "call_pure_extern", "call_llvm_pure_intrin", "type_annotation", "vscale", "min_value", "max_value", "infinity", "undef", "vectorlow", "vectorhigh", "vectorcombine", "address_of", "tvm_access_ptr", "tvm_thread_invariant", "target"])
)  # fmt: skip
READING = frozenset(["tvm_struct_get", "lookup_param"])

# Intrinsics whose dtype is an argument of the text, the first or the last.
DTYPE_FIRST = frozenset(
    ["call_extern", "call_intrin", "call_llvm_intrin", "call_llvm_pure_intrin", "call_pure_extern", "call_spirv_pure_glsl450", "get_active_lane_mask", "masked_load", "mma_fill", "mma_store", "ptx_cp_async", "ptx_cp_async_bulk", "ptx_ldmatrix", "ptx_mma", "ptx_mma_sp", "reinterpret", "type_annotation", "vectorcombine", "vectorhigh", "vectorlow"]
)  # fmt: skip
DTYPE_LAST = frozenset(["tvm_struct_get"])
# Intrinsics that return bool.
BOOLEAN = FLOAT_TESTS | frozenset(["isnullptr", "assume"])
# Intrinsics that return a handle.
HANDLES = frozenset(
    ["TVMBackendAllocWorkspace", "address_of", "anylist_getitem", "end_profile_intrinsic", "lookup_param", "simdgroup_load", "simdgroup_multiply_accumulate", "simdgroup_store", "start_profile_intrinsic", "tvm_access_ptr", "tvm_bmma_sync", "tvm_fill_fragment", "tvm_load_matrix_sync", "tvm_mma_sync", "tvm_stack_alloca", "tvm_stack_make_array", "tvm_stack_make_shape", "tvm_store_matrix_sync", "tvm_thread_allreduce", "tvm_throw_last_error", "tvm_tuple", "make_filled_simdgroup_matrix"]
)  # fmt: skip
# Those of the dtype of their first number.
SAME_DTYPE = frozenset(row.name for row in _PURE_ROWS if row.result is Result.SAME) | frozenset(
    ("ret", "tvm_thread_context", "tvm_thread_invariant")
)
# Those of the dtype of their second argument.
SECOND_DTYPE = frozenset(["tvm_warp_shuffle", "tvm_warp_shuffle_down", "tvm_warp_shuffle_up"])
# Intrinsics of other dtypes; all others return int32, as in TVM's Python.
OWN_DTYPE = {"tvm_warp_activemask": "uint32", "anylist_setitem_call_packed": "void", "anylist_resetitem": "int32"}
INT32 = frozenset(
    ["TVMBackendFreeWorkspace", "anylist_setitem_call_cpacked", "call_cpacked", "call_cpacked_lowered", "call_packed", "call_packed_lowered", "call_trace_packed", "clz", "create_barriers", "dma_copy", "dma_end_group", "dma_start_group", "dma_wait", "ignore_loop_partition", "mem_copy", "prefetch", "ptx_arrive_barrier", "ptx_arrive_barrier_expect_tx", "ptx_commit_group", "ptx_cp_async_barrier", "ptx_init_barrier_thread_count", "ptx_wait_barrier", "ptx_wait_group", "q_multiply_shift", "q_multiply_shift_per_axis", "texture2d_load", "texture2d_store", "thread_return", "tvm_check_return", "tvm_context_id", "tvm_global_barrier_kinit", "tvm_storage_sync", "tvm_struct_set", "undef", "vscale"]
)  # fmt: skip
KNOWN = (
    DTYPE_FIRST | DTYPE_LAST | BOOLEAN | HANDLES | SAME_DTYPE | SECOND_DTYPE | frozenset(OWN_DTYPE) | INT32 | HORIZONTAL
)
"""Every intrinsic that the text may name after `T.` without its dtype (`T.tir.…` names any other)."""


def intrinsic_arity(name: str) -> int | None:
    """Returns the number of arguments of `T.name(…)` without a named dtype; None if it is not fixed."""
    row = INTRINSICS.get(name)
    return row.arity if row is not None else 1 if name in ("reinterpret", "isnullptr") else None


def intrinsic_type(name: str, arguments: Sequence[Attribute]) -> Attribute:
    """Returns the dtype of `T.name(…)` on arguments of these types, if not named; NoneType for void."""
    if name in HANDLES:
        return HandleType.get()
    if name in BOOLEAN:
        return with_lanes_of(I1, arguments[0]) if arguments else I1
    if name in SAME_DTYPE:
        return next((type for type in arguments if not isinstance(type, StringType)), I32)
    if name in HORIZONTAL and arguments:
        return element_of(arguments[0])
    if name in SECOND_DTYPE and len(arguments) > 1:
        return arguments[1]
    return dtype_to_type(OWN_DTYPE[name]) if name in OWN_DTYPE else I32


PURE = frozenset(row.name for row in _PURE_ROWS) | OTHER_PURE


def check_call(name: str, arguments: Sequence[SSAValue], result: Attribute | None, where: Operation) -> None:
    """Refuses a call of an intrinsic on values that it has no meaning for. Raises MirError.

    `T.sqrt(x)` of an int32 `x`, which would be rounded one knows not how (`T.abs(x)` is fine); `x & y` of floats;
    `T.call_extern("float32", "sinf", x)` of a float64 `x`.
    """
    if name in ("call_extern", "call_pure_extern"):
        reason = _why_no_extern(arguments, result)
        if reason is not None:
            raise error_at(where, reason)
    elif result is None:
        return
    elif name in OF_FLOATS and isinstance(element_of(result), IntegerType):
        raise error_at(
            where,
            f"'T.{name}' takes floats, not {type_to_dtype(result)}",
            "cast it to floats first: T.Cast in TIR, cast in Relay",
        )
    elif name in OF_INTEGERS:
        for argument in arguments:
            if not isinstance(element_of(argument.type), IntegerType):
                raise error_at(
                    where,
                    f"'T.{name}' takes integers and bool, not {type_to_dtype(argument.type)}",
                    "cast it to an integer first, with T.Cast; T.reinterpret takes its bits as one",
                )


def _why_no_extern(arguments: Sequence[SSAValue], result: Attribute | None) -> str | None:
    name = getattr(getattr(arguments[0].owner, "value", None), "data", None) if arguments else None
    if not isinstance(name, str):
        return None
    result_type = NoneType() if result is None else result
    # The sign of an integer does not change how it is passed.
    own, *rest = (type_to_dtype(type).removeprefix("u") for type in (result_type, *(a.type for a in arguments[1:])))
    return why_not_called(name, own, rest)


def intrinsic_effect(name: str) -> Effect:
    """Returns the effect of `T.name` on memory; unknown intrinsics are opaque."""
    if name in PURE:
        return Effect.PURE
    return Effect.READ if name in READING else Effect.OPAQUE
