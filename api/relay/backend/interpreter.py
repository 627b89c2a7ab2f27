"""`relay.backend.interpreter`: the executors that interpret, and their values."""

from __future__ import annotations

from ....support.public_names import public_names
from ..executor import Interpreter, RelayExecutor
from ..values import ConstructorValue, RefValue

Executor = RelayExecutor
"""What `relay.create_executor` returns."""

__all__ = ["ConstructorValue", "Executor", "Interpreter", "RefValue"]


__dir__ = public_names(__name__)
