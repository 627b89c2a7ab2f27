"""`topi.nn.utils`: padding as numbers.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.topi.padding import get_pad_tuple as get_pad_tuple
from mirstack.api.topi.padding import get_pad_tuple1d as get_pad_tuple1d
from mirstack.api.topi.padding import get_pad_tuple3d as get_pad_tuple3d
from mirstack.api.topi.padding import get_pad_tuple_generic as get_pad_tuple_generic
