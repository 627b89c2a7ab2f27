"""`I`: the decorator of a class of functions."""

from .source import ir_module
from .words import Word

module_attrs = Word("I.module_attrs")

__all__ = ["ir_module", "module_attrs"]
