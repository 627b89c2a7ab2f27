"""Loops as functions that call themselves, by the names of `tvm.relay.loops`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.loops import foreach as foreach
from mirstack.api.relay.loops import while_loop as while_loop
