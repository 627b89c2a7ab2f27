"""A perceptron of three dense layers.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.mlp import get_net as get_net
from mirstack.api.relay.testing.mlp import get_workload as get_workload
