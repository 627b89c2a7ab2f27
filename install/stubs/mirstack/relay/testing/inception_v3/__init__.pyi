"""A network whose blocks convolve by several sizes at once.

Source: Szegedy et al., Rethinking the Inception Architecture for Computer Vision (2016).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.inception_v3 import get_net as get_net
from mirstack.api.relay.testing.inception_v3 import get_workload as get_workload
