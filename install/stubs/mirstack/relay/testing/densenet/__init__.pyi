"""Networks in which each layer takes the results of all before it.

Source: Huang et al., Densely Connected Convolutional Networks (2017).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.densenet import get_net as get_net
from mirstack.api.relay.testing.densenet import get_workload as get_workload
