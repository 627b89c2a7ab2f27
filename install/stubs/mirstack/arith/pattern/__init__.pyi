"""Reads expressions that are linear in variables, and conditions that bound variables.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.arith.pattern import detect_clip_bound as detect_clip_bound
from mirstack.api.arith.pattern import detect_linear_equation as detect_linear_equation
