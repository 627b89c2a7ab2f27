"""Residual networks with activations before the convolutions.

Source: He et al., Identity Mappings in Deep Residual Networks (2016).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.resnet import get_net as get_net
from mirstack.api.relay.testing.resnet import get_workload as get_workload
