"""Lists and mappings, by the names of `tvm.ir.container`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from __future__ import _Feature as __Feature
from builtins import type as _type
from mirstack.api.ir.container import Array as Array
from mirstack.api.ir.container import K as K
from mirstack.api.ir.container import Map as Map
from mirstack.api.ir.container import V as V

TypeVar: _type
annotations: __Feature
