"""`mirstack.script`: TVMScript in Python files, by the decorators `@T.prim_func` and `@I.ir_module`.

The function is never run: its source is parsed by the grammar of `.mir` files, so that errors are located in the Python
file. Variables around it that are numbers, strings, dtypes, or lists of such may be used in it.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.script.source import from_source as from_source
from mirstack.api.script.source import ir_module as ir_module
from mirstack.script import ir as ir
from mirstack.script import tir as tir
