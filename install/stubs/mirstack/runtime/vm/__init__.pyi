"""`runtime.vm`: the virtual machine that runs what `relay.vm.compile` returns, by TVM's names.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.backend.vm import Executable as Executable
from mirstack.api.runtime.vm import VirtualMachine as VirtualMachine
