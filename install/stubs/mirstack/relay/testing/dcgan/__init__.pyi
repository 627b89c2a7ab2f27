"""A generator of images by transposed convolutions.

Source: Radford et al., Unsupervised Representation Learning with DCGANs (2015).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.dcgan import get_net as get_net
from mirstack.api.relay.testing.dcgan import get_workload as get_workload
