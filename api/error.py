"""`mirstack.error`: errors by TVM's names.

This project has one class for what is wrong in a program, `MirError`, which carries every message with its place; TVM's names of errors
are names of it, and of the two that are Python's TypeError and ValueError besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..support.diagnostics import MirError, MirTypeError, MirValueError
from ..support.public_names import public_names
from .no_attribute import no_attribute

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


if not TYPE_CHECKING:
    # Checkers of types report such a name themselves.
    def __getattr__(name: str) -> object:
        raise no_attribute("error", name, globals())


__dir__ = public_names(__name__)
