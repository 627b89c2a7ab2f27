"""Algebraic data types of a module: constructors' tags, and their fields for given type arguments."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from ....dialects.relay.ir import TypeDataOp
from ....dialects.relay.types import AdtType, substitute


class DataTypes:
    """The data types that a module declares."""

    def __init__(self, module: ModuleOp):
        self._types = {op.sym_name.data: op for op in module.ops if isinstance(op, TypeDataOp)}
        self._tags = {
            (name, constructor): tag
            for name, op in self._types.items()
            for tag, constructor in enumerate(op.constructors())
        }

    def tag(self, type_name: str, constructor: str) -> int:
        """Returns the constructor's number among those of its type."""
        return self._tags[type_name, constructor]

    def fields(self, type: AdtType, constructor: str) -> Sequence[Attribute]:
        """Returns the types of the constructor's fields in a value of this type."""
        declaration = self._types[type.type_name.data]
        names = [p.data for p in declaration.type_params.data]
        arguments = dict(zip(names, type.arguments.data, strict=True))
        fields = declaration.fields_of(constructor)
        assert fields is not None
        return [substitute(field, arguments) for field in fields]
