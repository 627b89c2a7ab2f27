"""Stores weights transposed that dense layers transpose.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.data_dep_optimization.simplify_fc_transpose import convert as convert
