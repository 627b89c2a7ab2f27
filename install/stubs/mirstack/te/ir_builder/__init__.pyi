"""Written by `python install/generate_stubs.py`, not by hand."""

from mirstack.dialects.tir.node.ir_builder import *
