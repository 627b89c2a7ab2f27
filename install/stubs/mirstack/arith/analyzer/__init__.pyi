"""`Analyzer`: simplifies and proves expressions of TIR from what is known about their variables.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.arith.analyzer import Analyzer as Analyzer
from mirstack.api.arith.analyzer import ConstIntBound as ConstIntBound
from mirstack.api.arith.analyzer import Extension as Extension
from mirstack.api.arith.analyzer import ModularSet as ModularSet
from mirstack.api.arith.analyzer import ProofStrength as ProofStrength
