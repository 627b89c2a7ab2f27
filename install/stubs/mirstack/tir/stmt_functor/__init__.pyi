"""`tir.stmt_functor`: visits and rewrites statements and expressions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.tir.stmt_functor import renew_defs as renew_defs
from mirstack.dialects.tir.node.functor import ir_transform as ir_transform
from mirstack.dialects.tir.node.functor import post_order_visit as post_order_visit
from mirstack.dialects.tir.node.functor import pre_order_visit as pre_order_visit
from mirstack.dialects.tir.node.functor import substitute as substitute
