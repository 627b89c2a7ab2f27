"""`mirstack.error`: errors by TVM's names.

This project has one class for what is wrong in a program, `MirError`, which carries every message with its place; TVM's names of errors
are names of it, and of the two that are Python's TypeError and ValueError besides.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.error import DiagnosticError as DiagnosticError
from mirstack.api.error import InternalError as InternalError
from mirstack.api.error import MirError as MirError
from mirstack.api.error import MirTypeError as MirTypeError
from mirstack.api.error import MirValueError as MirValueError
from mirstack.api.error import OpAttributeInvalid as OpAttributeInvalid
from mirstack.api.error import OpAttributeRequired as OpAttributeRequired
from mirstack.api.error import OpAttributeUnImplemented as OpAttributeUnImplemented
from mirstack.api.error import OpError as OpError
from mirstack.api.error import OpNotImplemented as OpNotImplemented
from mirstack.api.error import TVMError as TVMError
