"""`mirstack.arith`: what is known about integer expressions of TIR, shaped as `tvm.arith`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.arith.analyzer import Analyzer as Analyzer
from mirstack.api.arith.analyzer import ConstIntBound as ConstIntBound
from mirstack.api.arith.analyzer import Extension as Extension
from mirstack.api.arith.analyzer import ModularSet as ModularSet
from mirstack.api.arith.analyzer import ProofStrength as ProofStrength
from mirstack.api.arith.bound import deduce_bound as deduce_bound
from mirstack.api.arith.common_subexpr import detect_common_subexpr as detect_common_subexpr
from mirstack.api.arith.int_set import IntSet as IntSet
from mirstack.api.arith.int_set import IntervalSet as IntervalSet
from mirstack.api.arith.int_set import estimate_region_lower_bound as estimate_region_lower_bound
from mirstack.api.arith.int_set import estimate_region_strict_bound as estimate_region_strict_bound
from mirstack.api.arith.int_set import estimate_region_upper_bound as estimate_region_upper_bound
from mirstack.api.arith.int_solver import IntConstraints as IntConstraints
from mirstack.api.arith.int_solver import IntConstraintsTransform as IntConstraintsTransform
from mirstack.api.arith.int_solver import IntGroupBounds as IntGroupBounds
from mirstack.api.arith.int_solver import solve_linear_equations as solve_linear_equations
from mirstack.api.arith.int_solver import solve_linear_inequalities as solve_linear_inequalities
from mirstack.api.arith.iter_affine_map import IterMapExpr as IterMapExpr
from mirstack.api.arith.iter_affine_map import IterMapLevel as IterMapLevel
from mirstack.api.arith.iter_affine_map import IterMapResult as IterMapResult
from mirstack.api.arith.iter_affine_map import IterMark as IterMark
from mirstack.api.arith.iter_affine_map import IterSplitExpr as IterSplitExpr
from mirstack.api.arith.iter_affine_map import IterSumExpr as IterSumExpr
from mirstack.api.arith.iter_affine_map import detect_iter_map as detect_iter_map
from mirstack.api.arith.iter_affine_map import inverse_affine_iter_map as inverse_affine_iter_map
from mirstack.api.arith.iter_affine_map import iter_map_simplify as iter_map_simplify
from mirstack.api.arith.iter_affine_map import normalize_iter_map_to_expr as normalize_iter_map_to_expr
from mirstack.api.arith.iter_affine_map import normalize_to_iter_sum as normalize_to_iter_sum
from mirstack.api.arith.iter_affine_map import subspace_divide as subspace_divide
from mirstack.api.arith.pattern import detect_clip_bound as detect_clip_bound
from mirstack.api.arith.pattern import detect_linear_equation as detect_linear_equation
from mirstack.arith import analyzer as analyzer
from mirstack.arith import bound as bound
from mirstack.arith import int_set as int_set
from mirstack.arith import int_solver as int_solver
from mirstack.arith import iter_affine_map as iter_affine_map
from mirstack.arith import pattern as pattern
