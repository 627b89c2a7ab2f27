"""Values that hold others, by the names of `tvm.runtime.container`: tuples, data types, strings.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.runtime.container import ADT as ADT
from mirstack.api.runtime.container import String as String
from mirstack.api.runtime.container import convert as convert
from mirstack.api.runtime.container import tuple_object as tuple_object
