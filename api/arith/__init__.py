"""`mirstack.arith`: what is known about integer expressions of TIR, shaped as `tvm.arith`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..no_attribute import no_attribute

if TYPE_CHECKING:
    from . import int_set as int_set
    from .analyzer import Analyzer, ConstIntBound, ModularSet, ProofStrength
    from .int_set import (
        IntervalSet,
        IntSet,
        estimate_region_lower_bound,
        estimate_region_strict_bound,
        estimate_region_upper_bound,
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
    )
    from .pattern import detect_clip_bound, detect_linear_equation

_PUBLIC = {
    **dict.fromkeys(("Analyzer", "ConstIntBound", "ModularSet", "ProofStrength"), "analyzer"),
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
        ),
        "iter_affine_map",
    ),
    **dict.fromkeys(("detect_clip_bound", "detect_linear_equation"), "pattern"),
}

_MODULES = ("analyzer", "int_set", "iter_affine_map", "pattern")

__all__ = [
    "Analyzer",
    "ConstIntBound",
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
    "detect_clip_bound",
    "detect_iter_map",
    "detect_linear_equation",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "int_set",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
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
