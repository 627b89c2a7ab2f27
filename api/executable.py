"""`mirstack.Executable`: something to call with arrays, whatever level it came from and wherever it runs."""

from ..lowering.driver.loading.executable import Executable, Param

__all__ = ["Executable", "Param"]
