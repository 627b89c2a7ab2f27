"""`relay.backend`: TVM's executors and runtimes by name with their options; modules of executors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.backend import Executor as Executor
from mirstack.api.relay.backend import Runtime as Runtime
from mirstack.relay.backend import interpreter as interpreter
from mirstack.relay.backend import vm as vm
