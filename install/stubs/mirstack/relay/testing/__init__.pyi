"""`relay.testing`: types and passes of expressions, networks, naturals, checks of gradients.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing import check_grad as check_grad
from mirstack.api.relay.testing import rand as rand
from mirstack.api.relay.testing import run_infer_type as run_infer_type
from mirstack.api.relay.testing import run_opt_pass as run_opt_pass
from mirstack.api.relay.testing.init import Xavier as Xavier
from mirstack.api.relay.testing.init import create_workload as create_workload
from mirstack.api.relay.testing.nat import add_nat_definitions as add_nat_definitions
from mirstack.api.relay.testing.nat import count as count
from mirstack.api.relay.testing.nat import make_nat_expr as make_nat_expr
from mirstack.api.relay.testing.nat import make_nat_value as make_nat_value
from mirstack.relay.testing import init as init
from mirstack.relay.testing import layers as layers
from mirstack.relay.testing import mlp as mlp
from mirstack.relay.testing import nat as nat
