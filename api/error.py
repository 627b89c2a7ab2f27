"""`mirstack.error`: errors by TVM's names.

This project has one class for what is wrong in a program, `MirError`, which carries every message with its place; TVM's names of errors
are names of it, and of the two that are Python's TypeError and ValueError besides.
"""

from __future__ import annotations

from ..support.diagnostics import MirError, MirTypeError, MirValueError
from ..support.public_names import public_names

TVMError = MirError
DiagnosticError = MirError
InternalError = MirError
OpError = MirError
OpAttributeInvalid = MirError
OpAttributeRequired = MirError
OpAttributeUnImplemented = MirError
OpNotImplemented = MirError

__all__ = [
    "DiagnosticError", "InternalError", "MirError", "MirTypeError", "MirValueError", "OpAttributeInvalid", "OpAttributeRequired", "OpAttributeUnImplemented",
    "OpError", "OpNotImplemented", "TVMError",
]  # fmt: skip


__dir__ = public_names(__name__)
