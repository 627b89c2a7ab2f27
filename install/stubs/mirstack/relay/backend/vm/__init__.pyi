"""`relay.vm`: compiles modules for the virtual machine `runtime.vm.VirtualMachine`, by TVM's names.

exe = relay.vm.compile(mod, "llvm", params=params)
VirtualMachine(exe, mirstack.cpu()).run(x)

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.backend.vm import Executable as Executable
from mirstack.api.relay.backend.vm import VMCompiler as VMCompiler
from mirstack.api.relay.backend.vm import compile as compile
from mirstack.api.relay.executor import VMExecutor as VMExecutor
