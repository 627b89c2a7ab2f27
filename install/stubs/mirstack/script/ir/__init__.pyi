"""`I`: the decorator of a class of functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.script.ir import module_attrs as module_attrs
from mirstack.api.script.source import ir_module as ir_module
