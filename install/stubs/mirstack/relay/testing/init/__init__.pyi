"""Weights for networks of tests, drawn by their parameters' names and shapes.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.init import Initializer as Initializer
from mirstack.api.relay.testing.init import Xavier as Xavier
from mirstack.api.relay.testing.init import create_workload as create_workload
