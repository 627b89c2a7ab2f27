"""`relay.backend.interpreter`: the executors that interpret, and their values.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.backend.interpreter import Executor as Executor
from mirstack.api.relay.executor import Interpreter as Interpreter
from mirstack.api.relay.values import ConstructorValue as ConstructorValue
from mirstack.api.relay.values import RefValue as RefValue
