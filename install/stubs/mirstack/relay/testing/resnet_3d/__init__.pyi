"""Residual networks on volumes or films, `resnet` with one axis more.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.resnet_3d import get_net as get_net
from mirstack.api.relay.testing.resnet_3d import get_workload as get_workload
