"""`topi.tag`: what kind of operator a compute is, as its `tag` says.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.topi.tag import BROADCAST as BROADCAST
from mirstack.api.topi.tag import COMM_REDUCE as COMM_REDUCE
from mirstack.api.topi.tag import COMM_REDUCE_IDX as COMM_REDUCE_IDX
from mirstack.api.topi.tag import CONV2D_NCHW as CONV2D_NCHW
from mirstack.api.topi.tag import ELEMWISE as ELEMWISE
from mirstack.api.topi.tag import INJECTIVE as INJECTIVE
from mirstack.api.topi.tag import is_broadcast as is_broadcast
from mirstack.api.topi.tag import is_injective as is_injective
