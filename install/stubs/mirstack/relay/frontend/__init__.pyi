"""`relay.frontend`: imports models of other frameworks, by TVM's names and arguments.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.frontend import from_onnx as from_onnx
from mirstack.api.relay.frontend import from_pytorch as from_pytorch
