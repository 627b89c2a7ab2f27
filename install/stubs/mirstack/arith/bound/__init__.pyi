"""Deduces the range of a variable from a condition, as `tvm.arith.deduce_bound`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.arith.bound import deduce_bound as deduce_bound
