"""A network of few weights: modules that squeeze channels, then expand them.

Source: Iandola et al., SqueezeNet (2016).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.squeezenet import get_net as get_net
from mirstack.api.relay.testing.squeezenet import get_workload as get_workload
