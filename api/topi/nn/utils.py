"""`topi.nn.utils`: padding as numbers."""

from ....support.public_names import public_names
from ..padding import get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d, get_pad_tuple_generic

__all__ = ["get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d", "get_pad_tuple_generic"]

__dir__ = public_names(__name__)
