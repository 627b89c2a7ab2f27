"""Solves linear equations and inequalities of integers, as `tvm.arith.int_solver`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.arith.int_solver import IntConstraints as IntConstraints
from mirstack.api.arith.int_solver import IntConstraintsTransform as IntConstraintsTransform
from mirstack.api.arith.int_solver import IntGroupBounds as IntGroupBounds
from mirstack.api.arith.int_solver import solve_linear_equations as solve_linear_equations
from mirstack.api.arith.int_solver import solve_linear_inequalities as solve_linear_inequalities
