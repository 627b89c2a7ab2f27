"""`I`: the decorator of a class of functions."""

from ...support.public_names import public_names
from .source import ir_module
from .words import Word

module_attrs = Word("I.module_attrs")

__all__ = ["ir_module", "module_attrs"]


__dir__ = public_names(__name__)
