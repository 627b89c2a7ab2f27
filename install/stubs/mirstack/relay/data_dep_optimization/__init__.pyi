"""`relay.data_dep_optimization`: rewrites of a function together with its weights.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.relay.data_dep_optimization import simplify_fc_transpose as simplify_fc_transpose
