"""Analyses of expressions, with TVM's names: variables, operators, walks, types.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.analysis import all_constants as all_constants
from mirstack.api.relay.analysis import all_dtypes as all_dtypes
from mirstack.api.relay.analysis import all_ops as all_ops
from mirstack.api.relay.analysis import all_type_vars as all_type_vars
from mirstack.api.relay.analysis import all_vars as all_vars
from mirstack.api.relay.analysis import alpha_equal as alpha_equal
from mirstack.api.relay.analysis import bound_type_vars as bound_type_vars
from mirstack.api.relay.analysis import bound_vars as bound_vars
from mirstack.api.relay.analysis import check_constant as check_constant
from mirstack.api.relay.analysis import check_kind as check_kind
from mirstack.api.relay.analysis import count_layers as count_layers
from mirstack.api.relay.analysis import explain as explain
from mirstack.api.relay.analysis import extract_fake_quantized_ops as extract_fake_quantized_ops
from mirstack.api.relay.analysis import extract_fused_functions as extract_fused_functions
from mirstack.api.relay.analysis import extract_intermdeiate_expr as extract_intermdeiate_expr
from mirstack.api.relay.analysis import extract_intermediate_expr as extract_intermediate_expr
from mirstack.api.relay.analysis import free_type_vars as free_type_vars
from mirstack.api.relay.analysis import get_total_mac_number as get_total_mac_number
from mirstack.api.relay.analysis import list_fake_quantized_op_freqs as list_fake_quantized_op_freqs
from mirstack.api.relay.analysis import list_op_freqs as list_op_freqs
from mirstack.api.relay.analysis import post_order_visit as post_order_visit
from mirstack.api.relay.analysis import search_fc_transpose as search_fc_transpose
from mirstack.api.relay.analysis import well_formed as well_formed
from mirstack.api.relay.call_graph import CallGraph as CallGraph
from mirstack.api.relay.feature import Feature as Feature
from mirstack.api.relay.feature import detect_feature as detect_feature
from mirstack.api.relay.graph import free_vars as free_vars
from mirstack.api.relay.match_cases import unmatched_cases as unmatched_cases
from mirstack.api.relay.normal_forms import check_basic_block_normal_form as check_basic_block_normal_form
