"""Analyses of TIR's nodes and functions, by the names of `tvm.tir.analysis`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...dialects.tir.node.buffer import BufferField, BufferLoad, Let
from ...dialects.tir.node.expr import Expr, Var
from ...dialects.tir.node.functor import post_order_visit
from ...dialects.tir.node.stmt import Allocate, AllocateConst, Block, BufferStore, For, LetStmt, Stmt
from ...dialects.tir.stmt import PrimFuncOp
from ...dialects.tir.verify import verify_prim_func
from ...passes.tir.estimate_flops import estimate_flops
from ...support.arguments import check
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.public_names import public_names
from ..ir.module import IRModule
from ..ir.prim_func import PrimFunc
from ..ir.structural import structural_equal
from ..no_attribute import no_attribute
from .buffer_analysis import (
    assert_pure_function,
    calculate_allocated_bytes,
    calculate_constant_bytes,
    calculate_workspace_bytes,
    detect_buffer_access_lca,
    find_anchor_block,
    has_if_then_else,
    is_pure_function,
    verify_ssa,
)


def expr_deep_equal(lhs: Expr, rhs: Expr) -> bool:
    """Returns whether two expressions are built alike of the same variables."""
    check(lhs, "lhs", "an expression", Expr)
    check(rhs, "rhs", "an expression", Expr)
    return structural_equal(lhs, rhs)


def undefined_vars(node: Stmt | Expr, defs: Sequence[Var] = ()) -> list[Var]:
    """Returns the variables that a node uses and does not define, in order of use, without `defs`."""
    used: dict[int, Var] = {}
    defined = {id(variable) for variable in defs}

    def visit(part: object) -> None:
        match part:
            case For():
                defined.add(id(part.loop_var))
            case Let() | LetStmt():
                defined.add(id(part.var))
            case Allocate() | AllocateConst():
                defined.add(id(part.buffer_var))
            case Block():
                defined.update(id(axis) for axis in part.iter_vars)
                defined.update(id(buffer.data) for buffer in part.alloc_buffers)
            case BufferLoad() | BufferStore():
                used.setdefault(id(part.buffer.data), part.buffer.data)
            case Var() if not isinstance(part, BufferField):
                used.setdefault(id(part), part)
            case _:
                pass

    post_order_visit(node, visit)
    return [variable for key, variable in used.items() if key not in defined]


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Returns whether functions keep TIR's rules.

    Raises MirError (a ValueError) with all that are broken, in `assert_mode`.
    """
    broken = [d for op in _functions(obj) for d in verify_prim_func(op) if d.severity == "error"]
    if broken and assert_mode:
        raise MirValueError(*broken)
    return not broken


def estimate_tir_flops(stmt_or_mod: PrimFunc | IRModule) -> float:
    """Returns the number of operations that the functions of a module do, all dtypes together.

    Raises MirError (a ValueError) where sizes or data decide it.
    """
    total = 0
    for op in _functions(stmt_or_mod):
        work = estimate_flops(op)
        counts = [] if work is None else list(work.operations.values())
        if work is None or any(extents for terms in counts for extents in terms):
            raise MirValueError(
                Diagnostic(
                    f"the operations of @{op.sym_name.data} are not a number: sizes or data decide it"
                ).with_note("bind its sizes by PrimFunc.specialize")
            )
        total += sum(number for terms in counts for number in terms.values())
    return float(total)


def _functions(obj: PrimFunc | IRModule) -> list[PrimFuncOp]:
    """Returns the ops of the functions of TIR."""
    check(obj, "the argument", "a PrimFunc or an IRModule", PrimFunc, IRModule)
    if isinstance(obj, PrimFunc):
        return [obj.op]
    return [op for op in obj.op.ops if isinstance(op, PrimFuncOp)]


__all__ = [
    "assert_pure_function",
    "calculate_allocated_bytes",
    "calculate_constant_bytes",
    "calculate_workspace_bytes",
    "detect_buffer_access_lca",
    "estimate_tir_flops",
    "expr_deep_equal",
    "find_anchor_block",
    "has_if_then_else",
    "is_pure_function",
    "undefined_vars",
    "verify_ssa",
    "verify_well_formed",
]


if not TYPE_CHECKING:
    # Checkers of types report such a name themselves.
    def __getattr__(name: str) -> object:
        raise no_attribute("tir.analysis", name, globals())


__dir__ = public_names(__name__)
