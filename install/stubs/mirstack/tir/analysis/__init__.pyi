"""Analyses of TIR's nodes and functions, by the names of `tvm.tir.analysis`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.tir.analysis import estimate_tir_flops as estimate_tir_flops
from mirstack.api.tir.analysis import expr_deep_equal as expr_deep_equal
from mirstack.api.tir.analysis import undefined_vars as undefined_vars
from mirstack.api.tir.analysis import verify_well_formed as verify_well_formed
