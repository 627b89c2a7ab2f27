"""`mirstack.arith`: what is known about integer expressions of TIR, shaped as `tvm.arith`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..no_attribute import no_attribute

if TYPE_CHECKING:
    from . import int_set as int_set
    from .analyzer import Analyzer, ConstIntBound, Extension, ModularSet, ProofStrength
    from .bound import deduce_bound
    from .common_subexpr import detect_common_subexpr
    from .int_set import (
        IntervalSet,
        IntSet,
        estimate_region_lower_bound,
        estimate_region_strict_bound,
        estimate_region_upper_bound,
    )
    from .int_solver import (
        IntConstraints,
        IntConstraintsTransform,
        IntGroupBounds,
        solve_linear_equations,
        solve_linear_inequalities,
    )
    from .iter_affine_map import (
        IterMapExpr,
        IterMapLevel,
        IterMapResult,
        IterMark,
        IterSplitExpr,
        IterSumExpr,
        detect_iter_map,
        inverse_affine_iter_map,
        iter_map_simplify,
        normalize_iter_map_to_expr,
        normalize_to_iter_sum,
        subspace_divide,
    )
    from .pattern import detect_clip_bound, detect_linear_equation

_PUBLIC = {
    **dict.fromkeys(("Analyzer", "ConstIntBound", "Extension", "ModularSet", "ProofStrength"), "analyzer"),
    **dict.fromkeys(
        (
            "IntSet",
            "IntervalSet",
            "estimate_region_lower_bound",
            "estimate_region_strict_bound",
            "estimate_region_upper_bound",
        ),
        "int_set",
    ),
    **dict.fromkeys(
        (
            "IterMapExpr",
            "IterMapLevel",
            "IterMapResult",
            "IterMark",
            "IterSplitExpr",
            "IterSumExpr",
            "detect_iter_map",
            "inverse_affine_iter_map",
            "iter_map_simplify",
            "normalize_iter_map_to_expr",
            "normalize_to_iter_sum",
            "subspace_divide",
        ),
        "iter_affine_map",
    ),
    "deduce_bound": "bound",
    "detect_common_subexpr": "common_subexpr",
    **dict.fromkeys(
        (
            "IntConstraints",
            "IntConstraintsTransform",
            "IntGroupBounds",
            "solve_linear_equations",
            "solve_linear_inequalities",
        ),
        "int_solver",
    ),
    **dict.fromkeys(("detect_clip_bound", "detect_linear_equation"), "pattern"),
}

_MODULES = ("analyzer", "bound", "int_set", "int_solver", "iter_affine_map", "pattern")

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "Extension",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "IntervalSet",
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "ProofStrength",
    "deduce_bound",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_iter_map",
    "detect_linear_equation",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "int_set",
    "int_solver",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "subspace_divide",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    module = _PUBLIC.get(name)
    if module is None:
        raise no_attribute("arith", name, _PUBLIC)
    found: object = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_MODULES, *_PUBLIC})
