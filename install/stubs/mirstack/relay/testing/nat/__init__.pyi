"""Natural numbers as values of a data type, `S(S(Z))`: what tests of recursion count with.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.nat import add_nat_definitions as add_nat_definitions
from mirstack.api.relay.testing.nat import count as count
from mirstack.api.relay.testing.nat import make_nat_expr as make_nat_expr
from mirstack.api.relay.testing.nat import make_nat_value as make_nat_value
