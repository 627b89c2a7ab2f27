"""`relay.backend.vm`: the names of `relay.vm`."""

from __future__ import annotations

from ..vm import Executable, VMCompiler, VMExecutor, compile

__all__ = ["Executable", "VMCompiler", "VMExecutor", "compile"]
