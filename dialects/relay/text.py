"""Formats types and names as Relay text, for the printer and for messages that show a type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute

from ...support.text import nearest, quoted
from ..tir.types import type_to_dtype
from .types import AdtType, FuncType, RefType, TypeVarType, UnknownType

_PLAIN_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_GLOBAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def type_text(type: Attribute) -> str:
    """Returns the type in TVM's words; `_` for an unknown one."""
    match type:
        case TensorType():
            dtype = type_to_dtype(type.element_type)
            if not type.get_num_dims():
                return dtype
            dims = ", ".join("?" if dim == DYNAMIC_INDEX else str(dim) for dim in type.get_shape())
            return f"Tensor[({dims}), {dtype}]"
        case TupleType():
            return tuple_text([type_text(field) for field in type.types.data])
        case FuncType():
            generics = f"[{', '.join(p.data for p in type.type_params.data)}]" if type.type_params.data else ""
            inputs = ", ".join(type_text(i) for i in type.inputs.data)
            return f"fn {generics}({inputs}) -> {type_text(type.output)}"
        case TypeVarType():
            return type.var_name.data
        case AdtType():
            return f"{type.type_name.data}[{', '.join(type_text(a) for a in type.arguments.data)}]"
        case RefType():
            return f"ref({type_text(type.value_type)})"
        case UnknownType():
            return "_"
        case _:
            return str(type)


def tuple_text(fields: Sequence[str]) -> str:
    """Formats a tuple: `()`, `(a,)`, `(a, b)`."""
    return f"({fields[0]},)" if len(fields) == 1 else f"({', '.join(fields)})"


def is_known(type: Attribute) -> bool:
    """Returns whether the type has no unknown part."""
    pending = [type]
    while pending:
        match pending.pop():
            case UnknownType():
                return False
            case TupleType() as tuple_type:
                pending += tuple_type.types.data
            case FuncType() as function:
                pending += [*function.inputs.data, function.output]
            case AdtType() as adt:
                pending += adt.arguments.data
            case RefType() as ref:
                pending.append(ref.value_type)
            case _:
                pass
    return True


def local_text(name: str) -> str:
    """Formats a local name: `%x`, or `%"a name"` for one that is not an identifier."""
    return f"%{name}" if _PLAIN_LOCAL.fullmatch(name) else f"%{quoted(name)}"


def global_text(name: str) -> str:
    """Formats a global name: `@f`, or `@"a name"` for one that is not a dotted identifier."""
    return f"@{name}" if _PLAIN_GLOBAL.fullmatch(name) else f"@{quoted(name)}"


def near_global(name: str, known: Iterable[str]) -> str:
    """Returns "; did you mean @f?" for the known function nearest to `name`, or "" if none is near."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {global_text(near)}?"
