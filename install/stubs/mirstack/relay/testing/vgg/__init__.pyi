"""Networks of small convolutions, one after the other.

Source: Simonyan and Zisserman, Very Deep Convolutional Networks (2014).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.vgg import get_net as get_net
from mirstack.api.relay.testing.vgg import get_workload as get_workload
