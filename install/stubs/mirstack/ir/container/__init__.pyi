"""Lists and mappings, by the names of `tvm.ir.container`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.ir.container import Array as Array
from mirstack.api.ir.container import Map as Map
