"""Passes on quantized operators.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.ir.transform import NamedPass as _NamedPass

def CanonicalizeOps(unsigned: bool = False, upper_halves: bool = False, strict_math: bool = False) -> _NamedPass: ...
def Legalize(known: bool = False) -> _NamedPass: ...
