"""`relay.build` and what it returns: a compiled `main`, by the names of `tvm.relay.build_module`.

    lib = relay.build(mod, target="llvm", params=params)
    runtime = lib["default"](mirstack.cpu())

Programs are compiled at the level of the current `transform.PassContext`; its list of disabled passes counts for passes that are run from
Python, not here.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.build_module import BuildModule as BuildModule
from mirstack.api.relay.build_module import GraphExecutorFactoryModule as GraphExecutorFactoryModule
from mirstack.api.relay.build_module import GraphLibrary as GraphLibrary
from mirstack.api.relay.build_module import build as build
from mirstack.api.relay.build_module import build_config as build_config
from mirstack.api.relay.build_module import optimize as optimize
from mirstack.api.relay.executor import create_executor as create_executor
from mirstack.api.relay.program import bind_params_by_name as bind_params_by_name
