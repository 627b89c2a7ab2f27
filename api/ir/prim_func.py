"""`tir.PrimFunc`: one function of loops and buffers, as a value of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from ...dialects.tir.attribute_values import attribute_of, value_of
from ...dialects.tir.stmt import PrimFuncOp
from ...support.deep_stack import in_deep_stack
from ...support.source_text import characters

CLASS = "ir_module"
"""The attribute of a function that holds the class it is printed in."""

CLASS_NAME = "Module"
"""How the class of an IRModule's functions is called in text, as in TVM."""


class PrimFunc:
    """An immutable function of the `tir` dialect; `op` is the IR, which must not be changed either.

    An `IRModule` takes it under a name, `tir.Schedule` rewrites it, `mirstack.build` compiles it.
    """

    __slots__ = ("_module", "op")

    def __init__(self, op: PrimFuncOp):
        """Copies `op` into a module of its own. A `global_symbol` among its attributes is its name."""
        self.op = in_deep_stack(op.clone)
        self.op.attributes.pop(CLASS, None)
        attrs = dict(self.op.attrs.data)
        if isinstance(symbol := attrs.pop("global_symbol", None), StringAttr):
            self.op.properties.update(sym_name=symbol, attrs=DictionaryAttr(attrs))
        self._module = ModuleOp([self.op])

    @property
    def name(self) -> str:
        """The function's symbol."""
        return self.op.sym_name.data

    @property
    def attrs(self) -> dict[str, Any]:
        """The function's attributes; `global_symbol` is its name unless it is private."""
        named = {} if self.op.sym_visibility is not None else {"global_symbol": self.name}
        return {**named, **{key: value_of(attr) for key, attr in self.op.attrs.data.items()}}

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> PrimFunc:
        """Returns the function with one more attribute, or with those of a dictionary.

        `global_symbol` renames it. Raises TypeError for a value other than a number, a string, or a list or dictionary of such.
        """
        given: Mapping[str, Any] = (
            {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else attr_key_or_dict
        )
        result = PrimFunc(self.op)
        attrs: dict[str, Attribute] = dict(result.op.attrs.data)
        for key, value in given.items():
            if key == "global_symbol":
                result.op.properties["sym_name"] = StringAttr(characters(str(value)))
                result.op.properties.pop("sym_visibility", None)
            else:
                attrs[key] = attribute_of(value)
        result.op.properties["attrs"] = DictionaryAttr(attrs)
        return result

    def without_attr(self, attr_key: str) -> PrimFunc:
        """The function without an attribute."""
        result = PrimFunc(self.op)
        if attr_key == "global_symbol":
            result.op.properties["sym_visibility"] = StringAttr("private")
        attrs = {key: value for key, value in result.op.attrs.data.items() if key != attr_key}
        result.op.properties["attrs"] = DictionaryAttr(attrs)
        return result

    def in_module(self, name: str | None = None) -> PrimFuncOp:
        """A copy of the IR for a module, under `name`."""
        copy = in_deep_stack(self.op.clone)
        copy.attributes[CLASS] = StringAttr(CLASS_NAME)
        if name is not None:
            copy.properties["sym_name"] = StringAttr(name)
        return copy

    def script(self) -> str:
        """The function in TVMScript."""
        from ...parser import print_mir

        return print_mir(self._module).rstrip("\n")

    def show(self) -> None:
        """Prints `script()`."""
        print(self.script())

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        return f"PrimFunc({self.name})"


__all__ = ["PrimFunc"]
