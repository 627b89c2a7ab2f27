"""`topi.utils`: sizes as numbers, and other small helpers of TOPI.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.topi.padding import get_pad_tuple as get_pad_tuple
from mirstack.api.topi.utils import ceil_div as ceil_div
from mirstack.api.topi.utils import equal_const_int as equal_const_int
from mirstack.api.topi.utils import get_const_float as get_const_float
from mirstack.api.topi.utils import get_const_int as get_const_int
from mirstack.api.topi.utils import get_const_tuple as get_const_tuple
from mirstack.api.topi.utils import get_max_power2_factor as get_max_power2_factor
from mirstack.api.topi.utils import is_empty_shape as is_empty_shape
from mirstack.api.topi.utils import make_idx as make_idx
from mirstack.api.topi.utils import prod as prod
from mirstack.api.topi.utils import simplify as simplify
from mirstack.api.topi.utils import swap as swap
from mirstack.api.topi.utils import traverse_inline as traverse_inline
from mirstack.api.topi.utils import within_index as within_index
