"""A network of convolutions of each channel alone, and of one place across channels.

Source: Howard et al., MobileNets (2017).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.mobilenet import get_workload as get_workload
from mirstack.api.relay.testing.mobilenet import mobile_net as mobile_net
