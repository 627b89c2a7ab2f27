"""`mirstack.Executable`: a compiled or interpreted program of any level, called with arrays."""

from ..lowering.driver.loading.executable import Executable, Param

__all__ = ["Executable", "Param"]
