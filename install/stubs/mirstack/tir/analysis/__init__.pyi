"""Analyses of TIR's nodes and functions, by the names of `tvm.tir.analysis`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.tir.analysis import estimate_tir_flops as estimate_tir_flops
from mirstack.api.tir.analysis import expr_deep_equal as expr_deep_equal
from mirstack.api.tir.analysis import undefined_vars as undefined_vars
from mirstack.api.tir.analysis import verify_well_formed as verify_well_formed
from mirstack.api.tir.buffer_analysis import assert_pure_function as assert_pure_function
from mirstack.api.tir.buffer_analysis import calculate_allocated_bytes as calculate_allocated_bytes
from mirstack.api.tir.buffer_analysis import calculate_constant_bytes as calculate_constant_bytes
from mirstack.api.tir.buffer_analysis import calculate_workspace_bytes as calculate_workspace_bytes
from mirstack.api.tir.buffer_analysis import detect_buffer_access_lca as detect_buffer_access_lca
from mirstack.api.tir.buffer_analysis import find_anchor_block as find_anchor_block
from mirstack.api.tir.buffer_analysis import has_if_then_else as has_if_then_else
from mirstack.api.tir.buffer_analysis import is_pure_function as is_pure_function
from mirstack.api.tir.buffer_analysis import verify_ssa as verify_ssa
