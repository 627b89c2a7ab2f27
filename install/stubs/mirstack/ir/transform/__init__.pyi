"""Passes in Python, as TVM has them: contexts, passes of the registry, passes made of functions.

A pass takes a module and returns a new one. The passes of the registry are made by `named_passes`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.ir.sequential import Sequential as Sequential
from mirstack.api.ir.transform import ApplyPassToFunction as ApplyPassToFunction
from mirstack.api.ir.transform import ForeignPass as ForeignPass
from mirstack.api.ir.transform import FunctionPass as FunctionPass
from mirstack.api.ir.transform import ModulePass as ModulePass
from mirstack.api.ir.transform import NamedPass as NamedPass
from mirstack.api.ir.transform import Pass as Pass
from mirstack.api.ir.transform import PassContext as PassContext
from mirstack.api.ir.transform import PrintIR as PrintIR
from mirstack.api.ir.transform import as_pass as as_pass
from mirstack.api.ir.transform import decorate_pass as decorate_pass
from mirstack.api.ir.transform import function_pass as function_pass
from mirstack.api.ir.transform import infer_types as infer_types
from mirstack.api.ir.transform import module_pass as module_pass
