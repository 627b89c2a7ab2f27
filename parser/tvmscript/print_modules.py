"""Functions as items of a file: `@T.prim_func`s, and classes of them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from ...dialects.tir.stmt import PrimFuncOp
from ...support.diagnostics import error_at
from .print_expressions import dictionary_text
from .printer import FunctionPrinter

_TAB = "    "
_IMPORT_IR = "# from tvm.script import ir as I"
_IMPORT_TIR = "# from tvm.script import tir as T"


def print_groups(groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
    """Prints each group of functions; the import lines precede the first."""
    callees: dict[str, str] = {}
    for op in module.ops:
        if isinstance(op, PrimFuncOp) and (name := module_of(op)) is not None:
            callees[op.sym_name.data] = f"{name}.{op.sym_name.data}"
    texts = [_print_group(group, module, callees) for group in groups]
    empty = _empty_modules(module, callees)
    classes = bool(callees or empty)
    header = f"{_IMPORT_IR}\n{_IMPORT_TIR}\n" if classes else f"{_IMPORT_TIR}\n"
    return [f"{header}\n{''.join(f'{e}' for e in empty)}{texts[0]}", *texts[1:]] if texts else []


def module_of(op: Operation) -> str | None:
    """The class that a function is printed in."""
    name = op.attributes.get("ir_module")
    return name.data if isinstance(name, StringAttr) else None


def _module_attributes(module: ModuleOp) -> dict[str, Attribute]:
    known = module.attributes.get("tir.ir_modules")
    return dict(known.data) if isinstance(known, DictionaryAttr) else {}


def _empty_modules(module: ModuleOp, callees: dict[str, str]) -> list[str]:
    """Classes that have attributes or nothing, but no function."""
    used = {name.partition(".")[0] for name in callees.values()}
    return [
        f"@I.ir_module\nclass {name}:\n{_module_head(attributes) or _TAB + 'pass'}\n\n"
        for name, attributes in _module_attributes(module).items()
        if name not in used
    ]


def _module_head(attributes: Attribute | None) -> str:
    if isinstance(attributes, DictionaryAttr) and attributes.data:
        return f"{_TAB}I.module_attrs({dictionary_text(attributes)})\n"
    return ""


def _print_group(group: Sequence[Operation], module: ModuleOp, callees: dict[str, str]) -> str:
    """Functions; neighbours of one class together."""
    parts: list[str] = []
    attributes = _module_attributes(module)
    current: str | None = None
    for op in group:
        if not isinstance(op, PrimFuncOp):
            raise error_at(op, f"'{op.name}' is no prim_func")
        name = module_of(op)
        text = FunctionPrinter(op, callees).print(_TAB if name else "")
        if name is not None and name != current:
            head = _module_head(attributes.get(name))
            parts.append(f"@I.ir_module\nclass {name}:\n{head}{text}")
        else:
            parts.append(text)
        current = name
    return "\n\n".join(parts)
