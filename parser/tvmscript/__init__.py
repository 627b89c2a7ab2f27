"""TVMScript: `@T.prim_func` and `@I.ir_module` items to the `tir` dialect and back.

`syntax` makes a tree of the text (`parser.python`), `functions` ops of the tree: a `reader.Reader` knows names, places and the ops
that are made; `statements` and `expressions` read the tree's nodes, `constructs` `T.name(…)`, each by a function that
`registry` finds by its name. `printer` writes ops as text again, in the style of TVM 0.16.

A function of a class `@I.ir_module class Module` has the attribute `ir_module = "Module"`; neighbours with the same
one are printed as one class. `I.module_attrs` is kept in the module's attribute `tir.ir_modules`, by class name.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from ...dialects.tir.stmt import PrimFuncOp
from ...support.diagnostics import MirError
from ..items import Item, ParseContext
from ..python.literals import is_string
from ..python.tree import Call, Expression, Function, Module, Stmt, first_token
from ..source import Source
from .functions import read_function
from .literals import named_type, read_dictionary
from .reader import FileNames, KnownFunction, Reader
from .syntax import parse_item

IR_MODULE = "ir_module"
IR_MODULES = "tir.ir_modules"


class TVMScript:
    """The text format (see `parser.items`)."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        """The functions of each item."""
        trees: list[Function | Module | None] = []
        functions = FileNames()
        sources = [Source(item) for item in items]
        for item, source in zip(items, sources, strict=True):
            reader = Reader(item, context, functions, source)
            try:
                tree = parse_item(item)
                if context.captured:
                    from . import python_values as python_values
                    from .closure_variables import with_captured

                    tree = with_captured(tree, context.captured, reader)
            except MirError as error:
                context.report_item(error, item)
                trees.append(None)
                continue
            trees.append(tree)
            for name, function, module in _functions(tree):
                with reader.recovering():
                    functions.callees[name] = _callee(reader, function, module)
        return [
            _read(item, tree, context, functions, source)
            for item, tree, source in zip(items, trees, sources, strict=True)
        ]

    def owns(self, op: Operation) -> bool:
        """Returns whether this format prints the op."""
        return isinstance(op, PrimFuncOp)

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
        """The text of each group."""
        from .printer import print_groups

        return print_groups(groups, module)


def _functions(tree: Function | Module) -> list[tuple[str, Function, str | None]]:
    """(the name it is called by, function, class) of an item's functions."""
    if isinstance(tree, Function):
        return [(str(tree.name), tree, None)]
    members = [m for m in tree.members if isinstance(m, Function)]
    return [(f"{base}.{m.name}", m, str(tree.name)) for m in members for base in (tree.name, "cls")]


def _callee(reader: Reader, function: Function, module: str | None) -> KnownFunction:
    result = function.result
    if result is None or result == "None":
        return KnownFunction(str(function.name), module, None)
    type_ = named_type(reader, result)
    if type_ is None:
        reader.fail(result, "a function returns a scalar", "write -> T.int32, or nothing")
    return KnownFunction(str(function.name), module, type_)


def _read(
    item: Item, tree: Function | Module | None, context: ParseContext, functions: FileNames, source: Source
) -> list[Operation]:
    ops: list[Operation] = []
    if tree is None:
        return ops
    for name, function, module in _functions(tree):
        callee = functions.callees.get(name)
        if callee is None or name.startswith("cls."):
            continue
        op = read_function(Reader(item, context, functions, source), function, callee)
        if module is not None:
            op.attributes[IR_MODULE] = StringAttr(module)
        ops.append(op)
    if isinstance(tree, Module):
        reader = Reader(item, context, functions, source)
        attributes: dict[str, Attribute] = {}
        for member in tree.members:
            if not isinstance(member, Function):
                with reader.recovering():
                    _module_statement(reader, member, attributes)
        if attributes or not ops:
            known = context.module.attributes.get(IR_MODULES)
            before = dict(known.data) if isinstance(known, DictionaryAttr) else {}
            context.module.attributes[IR_MODULES] = DictionaryAttr(
                {**before, str(tree.name): DictionaryAttr(attributes)}
            )
    return ops


def _module_statement(reader: Reader, statement: Stmt, attributes: dict[str, Attribute]) -> None:
    """`I.module_attrs({…})`; a docstring."""
    if isinstance(statement, Expression):
        value = statement.value
        if is_string(value):
            return
        if isinstance(value, Call) and value.function == "I.module_attrs" and len(value.arguments) == 1:
            attributes.update(read_dictionary(reader, value.arguments[0]).data)
            return
        reader.fail(value, "a module holds functions", "write I.module_attrs({…}) for attributes of the module")
    reader.fail(first_token(statement), "a module holds functions", "a constant stands in the function that uses it")


FORMAT = TVMScript()
