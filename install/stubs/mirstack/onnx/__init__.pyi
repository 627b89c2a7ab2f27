"""`mirstack.onnx`: ONNX' own interface to runtimes, in `mirstack.onnx.backend`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.onnx import backend as backend
