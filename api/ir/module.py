"""`IRModule`: the functions and data types of a program; an xDSL module with a face of Python nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn, Unpack

from xdsl.dialects.builtin import ModuleOp

from ...dialects.relay import ir
from ...dialects.relay.text import is_known
from ...dialects.tir.stmt import PrimFuncOp
from ...lowering.driver.source import SourceText
from ...parser.items import symbol_of
from ...support.arguments import check, integer, items, shown
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.edit import erase_op
from ...support.garbage import no_collection
from ...support.notebook import text_html
from ...support.source_text import characters
from ..relay import adt
from ..relay.export import export_function, export_type
from ..relay.expr import Function, GlobalVar, RelayExpr, as_expr
from ..relay.graph import free_vars
from ..relay.restore import Symbols, restore_function, restore_type
from ..relay.ty import GlobalTypeVar
from .attrs import DictAttrs
from .global_info import GlobalInfo
from .prim_func import PrimFunc
from .script_options import ScriptOptions, with_options


class IRModule:
    """Functions by name.

    `op` is the module as IR, which passes run on; `mod["main"]` is a function as nodes.
    A pass returns a new module; `mod[name] = function` changes this one.
    """

    def __init__(
        self,
        functions: Mapping[Any, Function | PrimFunc] | None = None,
        type_definitions: Mapping[Any, adt.TypeData] | None = None,
        attrs: Mapping[str, Any] | None = None,
        global_infos: Mapping[str, Sequence[GlobalInfo]] | None = None,
    ):
        if isinstance(functions, ModuleOp):
            raise TypeError("IRModule takes functions by name; a module of xDSL becomes one by IRModule.of_op(module)")
        check(functions, "functions", "a dictionary of functions by name", Mapping, NoneType)
        check(type_definitions, "type_definitions", "a dictionary of data types", Mapping, NoneType)
        check(attrs, "attrs", "a dictionary of attributes by name", Mapping, NoneType)
        self._attrs: dict[str, Any] = dict(attrs or {})
        self._global_infos: dict[str, list[GlobalInfo]] = {}
        for kind, infos in (global_infos or {}).items():
            self.update_global_info(kind, infos)
        self._op = ModuleOp([])
        self._symbols = Symbols()
        self._functions: dict[str, Function] = {}
        self._prim_funcs: dict[str, tuple[PrimFuncOp, PrimFunc]] = {}
        for data in (type_definitions or {}).values():
            self._symbols.types[data.header.name_hint] = data
            self._op.body.block.add_op(export_type(data))
        for name, function in (functions or {}).items():
            self.update_func(name, function)

    @staticmethod
    def of_op(op: ModuleOp, after: IRModule | None = None) -> IRModule:
        """A module that owns `op`, which nobody else may change from now on.

        `after`: the module that `op` was made of, whose functions' parameters stay the variables that they are, as do its names of
        functions and its data types.
        """
        check(op, "op", "a module of xDSL, such as mirstack.parse returns", ModuleOp)
        module = IRModule()
        module._op = op
        known: dict[str, adt.TypeData] = {}
        if after is not None:
            module._symbols.params.update(after._symbols.params)
            module._symbols.functions.update((var.name_hint, var) for var in after.get_global_vars())
            known = after._symbols.types
            module._attrs.update(after._attrs)
            module._global_infos.update(after._global_infos)
        for item in op.ops:
            if isinstance(item, ir.TypeDataOp):
                name = item.sym_name.data
                same = name in known and export_type(known[name]).properties == item.properties
                module._symbols.types[name] = known[name] if same else restore_type(item)
        return module

    def __copy__(self) -> IRModule:
        return IRModule.of_op(self.copy_op(), self)

    def __deepcopy__(self, memo: object) -> IRModule:
        return IRModule.of_op(self.copy_op())

    def __reduce__(self) -> NoReturn:
        raise TypeError("an IRModule is not pickled: keep its text, mod.astext() or mod.script(), and read that")

    @staticmethod
    def from_expr(
        expr: RelayExpr | PrimFunc,
        functions: Mapping[Any, Function | PrimFunc] | None = None,
        type_defs: Mapping[Any, adt.TypeData] | None = None,
    ) -> IRModule:
        """Returns a module whose `main` is the function, or a function of the expression's free variables.

        A function with a `global_symbol` is called so.
        """
        module = IRModule(functions, type_defs)
        if isinstance(expr, PrimFunc):
            module.update_func(expr.attrs.get("global_symbol", "main"), expr)
            return module
        body = as_expr(expr)
        function = body if isinstance(body, Function) else Function(free_vars(body), body, span=body.span)
        name = function.attrs.get("global_symbol", "main")
        module.update_func(str(name), function)
        return module

    @property
    def op(self) -> ModuleOp:
        """The module as IR. Passes work on copies of it; do not change it."""
        return self._op

    def copy_op(self) -> ModuleOp:
        """A copy of the module as IR, free to change."""
        with no_collection():
            return in_deep_stack(self._op.clone)

    # Attributes ----------------------------------------------------------------------------------------------------

    @property
    def attrs(self) -> DictAttrs | None:
        """The module's own attributes; None where it has none."""
        return DictAttrs(self._attrs) if self._attrs else None

    def get_attrs(self) -> DictAttrs | None:
        """Returns the module's own attributes, as `attrs`."""
        return self.attrs

    def get_attr(self, attr_key: str) -> Any:
        """Returns an attribute of the module; None where there is none of that name."""
        return self._attrs.get(attr_key)

    def with_attr(self, attr_key: str, attr_value: Any) -> IRModule:
        """Returns a copy of the module with one more attribute."""
        return self.with_attrs({attr_key: attr_value})

    def with_attrs(self, attr_map: Mapping[str, Any] | DictAttrs) -> IRModule:
        """Returns a copy of the module with more attributes."""
        check(attr_map, "attr_map", "a dictionary of attributes by name", Mapping)
        copy = self.__copy__()
        copy._attrs.update(attr_map)
        return copy

    def without_attr(self, attr_key: str) -> IRModule:
        """Returns a copy of the module without an attribute."""
        copy = self.__copy__()
        copy._attrs.pop(attr_key, None)
        return copy

    @property
    def global_infos(self) -> dict[str, list[GlobalInfo]]:
        """The module's further objects by kind."""
        return self._global_infos

    def update_global_info(self, name: str, global_info: Sequence[GlobalInfo]) -> None:
        """Puts objects of the kind `name` in place of those that were there."""
        check(name, "name", "a kind of global infos", str)
        self._global_infos[name] = items(global_info, "global_info", "objects such as ir.DummyGlobalInfo()", GlobalInfo)

    # Functions -----------------------------------------------------------------------------------------------------

    def __getitem__(self, var: GlobalVar | GlobalTypeVar | str) -> Any:
        """Returns the `relay.Function` or `tir.PrimFunc` of a name, the data type of a `GlobalTypeVar`.

        Raises MirError if there is none.
        """
        if isinstance(var, GlobalTypeVar):
            return self._type_data(var.name_hint)
        check(var, "the name of a function", "a str, a GlobalVar or a GlobalTypeVar", str, GlobalVar)
        name = characters(var) if isinstance(var, str) else var.name_hint
        found = self._prim_func_ops().get(name)
        return self.relay_function(name) if found is None else self._prim_func(name, found)

    def _prim_func(self, name: str, op: PrimFuncOp) -> PrimFunc:
        """Returns a function of TIR: the same, with the same nodes, until the module changes."""
        kept = self._prim_funcs.get(name)
        if kept is None or kept[0] is not op:
            kept = self._prim_funcs[name] = (op, PrimFunc(op))
        return kept[1]

    def relay_function(self, name: str) -> Function:
        """The Relay function of that name. Raises MirError where there is none."""
        found = self._functions.get(name)
        if found is None:
            op = self._relay_ops().get(name)
            if op is None:
                known = ", ".join(f"@{other}" for other in self._function_ops()) or "none"
                raise MirValueError(Diagnostic(f"the module has no function @{name}; it has {known}"))
            found = self._functions[name] = restore_function(op, self._symbols)
        return found

    def __setitem__(
        self, var: GlobalVar | GlobalTypeVar | str, func: Function | PrimFunc | RelayExpr | adt.TypeData
    ) -> None:
        """Puts a function or a data type under a name.

        An expression becomes a function of its free variables. Raises MirValueError for a data type of another name.
        """
        if isinstance(func, adt.TypeData):
            check(var, "the name of a data type", "a str or a GlobalTypeVar", str, GlobalTypeVar)
            name = var if isinstance(var, str) else var.name_hint
            if name != func.header.name_hint:
                message = f"the data type {func.header.name_hint} cannot be put under the name {name}"
                raise MirValueError(Diagnostic(message).with_note("its constructors make values of its own name"))
            self.add_type_def(func)
            return
        if isinstance(var, GlobalTypeVar):
            raise TypeError(f"the type {var} is declared by a relay.TypeData, not by {shown(func)}")
        if isinstance(func, RelayExpr) and not isinstance(func, Function):
            func = Function(free_vars(func), func, span=func.span)
        self.update_func(var, func)

    def __contains__(self, var: GlobalVar | GlobalTypeVar | str) -> bool:
        if isinstance(var, GlobalTypeVar):
            return var.name_hint in self._symbols.types
        return (var if isinstance(var, str) else var.name_hint) in self._function_ops()

    def update_func(self, var: GlobalVar | str, func: Function | PrimFunc) -> None:
        """Puts a function under a name, instead of what was there."""
        check(var, "the name of a function", "a str or a GlobalVar", str, GlobalVar)
        check(func, f"function '{var}'", "a relay.Function or a tir.PrimFunc", Function, PrimFunc)
        name = characters(var) if isinstance(var, str) else var.name_hint
        if isinstance(var, GlobalVar):
            self._symbols.functions[name] = var
        new = func.in_module(name) if isinstance(func, PrimFunc) else export_function(name, func)
        if isinstance(func, PrimFunc) and isinstance(new, PrimFuncOp):
            self._prim_funcs[name] = (new, func.renamed(name))
        old = self._function_ops().get(name)
        if old is None:
            self._op.body.block.add_op(new)
        else:
            self._op.body.block.insert_op_before(new, old)
            erase_op(old)
        self._functions.pop(name, None)
        if isinstance(func, Function):
            self._functions[name] = func
            self._symbols.params[name] = func.params

    def update(self, other: IRModule | Mapping[Any, Function | PrimFunc]) -> None:
        """Takes over the functions and data types of another module."""
        if isinstance(other, IRModule):
            for name, data in other._symbols.types.items():
                if name not in self._symbols.types:
                    self.add_type_def(data)
            self.update({var: other[var] for var in other.get_global_vars()})
            return
        for var, function in other.items():
            self.update_func(var, function)

    def import_(self, file_to_import: str) -> None:
        """Takes over the functions and data types of a `.rly` or `.mir` file.

        Raises MirError for one that is wrong.
        """
        self._take(SourceText.of_file(file_to_import).parse())

    def import_from_std(self, file_to_import: str) -> None:
        """Takes over a file of the standard library: `prelude.rly`, `nat.rly`, `gradient.rly` or `core.rly`.

        Raises MirValueError for another name.
        """
        check(file_to_import, "file_to_import", "the name of a file of the standard library", str)
        folder = Path(__file__).parents[1] / "relay" / "std"
        known = sorted(path.name for path in folder.glob("*.rly"))
        if file_to_import not in known:
            message = f"the standard library has no file '{file_to_import}'"
            raise MirValueError(Diagnostic(message).with_note(f"it has {', '.join(known)}"))
        self._take(SourceText.of_file(folder / file_to_import).parse())

    def _take(self, other: ModuleOp) -> None:
        """Moves the items of a module in; data types that are declared already stay as they are."""
        found = self._function_ops()
        for item in list(other.ops):
            name = symbol_of(item)
            if name is None or name in self._symbols.types:
                continue
            old = found.get(name)
            if old is not None:
                erase_op(old)
                self._functions.pop(name, None)
                self._symbols.params.pop(name, None)
            item.detach()
            self._op.body.block.add_op(item)
            if isinstance(item, ir.TypeDataOp):
                self._symbols.types[name] = restore_type(item)

    def add_type_def(self, data: adt.TypeData) -> None:
        """Declares a data type."""
        if data.header.name_hint in self._symbols.types:
            raise MirValueError(Diagnostic(f"the module declares the type {data.header.name_hint} already"))
        self._symbols.types[data.header.name_hint] = data
        first = self._op.body.block.first_op
        op = export_type(data)
        if first is None:
            self._op.body.block.add_op(op)
        else:
            self._op.body.block.insert_op_before(op, first)

    def _function_ops(self) -> dict[str, ir.FuncOp | PrimFuncOp]:
        return {op.sym_name.data: op for op in self._op.ops if isinstance(op, ir.FuncOp | PrimFuncOp)}

    def _relay_ops(self) -> dict[str, ir.FuncOp]:
        return {op.sym_name.data: op for op in self._op.ops if isinstance(op, ir.FuncOp)}

    def _prim_func_ops(self) -> dict[str, PrimFuncOp]:
        return {op.sym_name.data: op for op in self._op.ops if isinstance(op, PrimFuncOp)}

    @property
    def functions(self) -> dict[GlobalVar, Function | PrimFunc]:
        """The functions of Relay and TIR by global variable."""
        return {self._symbols.function(name): self[name] for name in self._function_ops()}

    @property
    def relay_functions(self) -> dict[GlobalVar, Function]:
        """The Relay functions by global variable."""
        return {self._symbols.function(name): self.relay_function(name) for name in self._relay_ops()}

    def items(self) -> list[tuple[GlobalVar, Function | PrimFunc]]:
        """The functions with their names, as of a dictionary."""
        return self.functions_items()

    def functions_items(self) -> list[tuple[GlobalVar, Function | PrimFunc]]:
        """The functions with their names."""
        return list(self.functions.items())

    def get_global_vars(self) -> list[GlobalVar]:
        """The names of the functions."""
        return [self._symbols.function(name) for name in self._function_ops()]

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of a function. Raises MirError where there is none of that name."""
        if name not in self._function_ops():
            raise MirValueError(Diagnostic(f"the module has no function @{name}"))
        variable = self._symbols.function(name)
        op = self._relay_ops().get(name)
        if op is not None and is_known(type := op.function_type()):
            variable.known_type = type
        return variable

    # Data types ----------------------------------------------------------------------------------------------------

    @property
    def type_definitions(self) -> dict[GlobalTypeVar, adt.TypeData]:
        """The data types by name."""
        return {data.header: data for data in self._symbols.types.values()}

    def get_type(self, name: str) -> tuple[GlobalTypeVar | adt.Constructor, ...]:
        """A data type's name, then its constructors. Raises MirError where there is none."""
        data = self._type_data(name)
        return (data.header, *data.constructors)

    def _type_data(self, name: str) -> adt.TypeData:
        data = self._symbols.types.get(name)
        if data is None:
            known = ", ".join(self._symbols.types) or "none"
            raise MirValueError(Diagnostic(f"the module has no data type {name}; it has {known}"))
        return data

    def get_constructor(self, tag: int) -> adt.Constructor:
        """The constructor of that number, `Constructor.tag`. Raises MirValueError where there is none."""
        number = integer(tag, "tag", 0)
        for data in self._symbols.types.values():
            for constructor in data.constructors:
                if constructor.tag == number:
                    return constructor
        raise MirValueError(Diagnostic(f"the module has no constructor of the tag {number}"))

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The variable of a data type's name."""
        header = self.get_type(name)[0]
        assert isinstance(header, GlobalTypeVar)
        return header

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """The names of the data types."""
        return [data.header for data in self._symbols.types.values()]

    # Text ----------------------------------------------------------------------------------------------------------

    def astext(self, show_meta_data: bool = True) -> str:
        """Returns the module as text that reads back, with its constants unless `show_meta_data` is False."""
        return self._text(header=True, metadata=show_meta_data)

    def script(self, **options: Unpack[ScriptOptions]) -> str:
        """Returns the module as text, all its levels; `tir_prefix=`, `indent_spaces=`, … are TVM's."""
        from ...parser import print_mir

        text = print_mir(self._op).rstrip("\n")
        return with_options(text, options) if options else text

    def show(
        self, style: str | None = None, black_format: bool | None = None, **options: Unpack[ScriptOptions]
    ) -> None:
        """Prints the module: Relay's functions first, without the numbers of their constants.

        There are no colors: `style` and `black_format` are TVM's.
        """
        relay = [op for op in self._op.ops if isinstance(op, ir.FuncOp | ir.TypeDataOp)]
        rest = ModuleOp([op.clone() for op in self._op.ops if op not in set(relay)], dict(self._op.attributes))
        parts = [self._relay_text(header=False, metadata=False)] if relay else []
        if rest.body.block.first_op is not None or not relay:
            parts.append(IRModule.of_op(rest).script(**options))
        print("\n\n".join(part.rstrip("\n") for part in parts))

    def __str__(self) -> str:
        return self._text(header=False, metadata=False)

    def __repr__(self) -> str:
        names = [f"@{name}" for name in self._function_ops()]
        return f"IRModule({', '.join(names)})"

    def _repr_html_(self) -> str:
        return text_html(self.script())

    def _text(self, *, header: bool, metadata: bool) -> str:
        if not all(isinstance(op, ir.FuncOp | ir.TypeDataOp) for op in self._op.ops):
            return self.script()
        return self._relay_text(header=header, metadata=metadata)

    def _relay_text(self, *, header: bool, metadata: bool) -> str:
        from ...parser.relay.printer import module_text

        return in_deep_stack(lambda: module_text(self._op, header=header, metadata=metadata))
