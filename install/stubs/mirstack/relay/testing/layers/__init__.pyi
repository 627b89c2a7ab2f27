"""Layers whose weights are parameters: `layers.conv2d(x, name="conv1", …)` has `%conv1_weight`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.layers import batch_norm_infer as batch_norm_infer
from mirstack.api.relay.testing.layers import conv2d as conv2d
from mirstack.api.relay.testing.layers import conv2d_transpose as conv2d_transpose
from mirstack.api.relay.testing.layers import conv3d as conv3d
from mirstack.api.relay.testing.layers import data as data
from mirstack.api.relay.testing.layers import dense_add_bias as dense_add_bias
