"""Written by `python install/generate_stubs.py`, not by hand."""

from mirstack.api.onnx.backend import *
