"""Iteration maps: indices as sums of the digits of loops, detected, simplified, inverted.

Written by `python install/generate_stubs.py`, not by hand.
"""

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
