"""Ops to Relay text, laid out as TVM 0.16 prints it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.operator import OperatorOp
from ...dialects.relay.patterns import ConstructorPattern, TuplePattern, VarPattern, WildcardPattern
from ...dialects.relay.text import global_text, is_known, local_text, tuple_text, type_text
from ...dialects.relay.types import UNKNOWN
from ...support.diagnostics import error_at
from ...support.walk import walk_ops
from .builder import PARAM_ATTRS
from .layout import Numbering
from .literals import ConstantTexts, attribute_text
from .scopes import Names

VERSION = '#[version = "0.0.5"]'
_TYPED = (OperatorOp, ir.CallOp, ir.CallGlobalOp, ir.CallTirOp, ir.ConstructOp, ir.TupleOp, ir.TupleGetItemOp, ir.FnOp)


def print_groups(groups: Sequence[Sequence[Operation]], module: ModuleOp, *, types: bool = True) -> list[str]:
    """One text per group of top-level ops. The head of the file goes to the first one, the metadata to the last.

    With `types`, known types stand in comments as TVM writes them.
    """
    printer = _ModulePrinter(module, types)
    for group in groups:
        for op in group:
            printer.prepare(op)
    texts = ["\n\n".join(printer.item(op) for op in group) for group in groups]
    if texts:
        texts[0] = f"{printer.head()}\n{texts[0]}"
        metadata = printer.constants.metadata()
        if metadata:
            texts[-1] += f"\n\n{metadata}"
    return texts


class _ModulePrinter:
    def __init__(self, module: ModuleOp, types: bool):
        self.constants = ConstantTexts(module, types)
        self.numbering = Numbering(self.constants.meet)
        self.types = types
        self._functions: list[ir.FuncOp] = []
        self._is_numbered = False

    def prepare(self, op: Operation) -> None:
        """To be called for each op before the first is printed."""
        if isinstance(op, ir.FuncOp):
            self._functions.append(op)

    def head(self) -> str:
        """The lines before the first item."""
        self._number()
        side_file = self.constants.side_file
        return VERSION if side_file is None else f'{VERSION}\n#[constants = "{side_file}"]'

    def item(self, op: Operation) -> str:
        """A top-level op's text."""
        self._number()
        if isinstance(op, ir.TypeDataOp):
            return _data_type_text(op)
        assert isinstance(op, ir.FuncOp)
        return _FunctionPrinter(self.numbering, self.constants, self.types).function(op)

    def _number(self) -> None:
        if self._is_numbered:
            return
        self._is_numbered = True
        for function in self._functions:
            for op in walk_ops(function):
                if isinstance(op, ir.ConstantOp):
                    self.constants.count(op)
        self.constants.choose_side_file()
        for function in self._functions:
            self.numbering.function(function.body.block)


def _data_type_text(op: ir.TypeDataOp) -> str:
    generics = _generics(op.type_params)
    if op.extern is not None:
        return f"extern type {op.sym_name.data}{generics}"
    lines = [f"type {op.sym_name.data}{generics} {{"]
    for name, fields in op.constructors().items():
        inner = f"({', '.join(type_text(f) for f in fields)})" if fields else ""
        lines.append(f"  {name}{inner},")
    if len(lines) == 1:
        lines.append("  ")
    return "\n".join([*lines, "}"])


def _generics(names: ArrayAttr[StringAttr]) -> str:
    return f"[{', '.join(name.data for name in names.data)}]" if names.data else ""


class _FunctionPrinter:
    """One function. Lines are appended to `self.lines`; expressions are strings, multi-line ones with their indentation."""

    def __init__(self, numbering: Numbering, constants: ConstantTexts, types: bool):
        self.numbers = numbering.numbers
        self.inline = numbering.inline
        self.constants = constants
        self.types = types
        self.names = Names()
        self.texts: dict[SSAValue, str] = {}

    def function(self, op: ir.FuncOp) -> str:
        head = f"def {global_text(op.sym_name.data)}{_generics(op.type_params)}"
        return self._function(head, op.params, op.param_names, op.attrs, op.ret_type, op.body.block, 0)

    def _function(
        self,
        head: str,
        params: Iterable[SSAValue],
        names: ArrayAttr[StringAttr],
        attrs: DictionaryAttr,
        result: Attribute,
        body: Block,
        depth: int,
    ) -> str:
        self.names.push()
        parts: list[str] = []
        in_braces = attrs.data.get(PARAM_ATTRS)
        for value, name in zip(params, names.data, strict=True):
            own = in_braces.data.get(name.data) if isinstance(in_braces, DictionaryAttr) else None
            extra = f" {{{', '.join(_attribute_texts(own.data.items()))}}}" if isinstance(own, DictionaryAttr) else ""
            parts.append(self._variable(value, name.data, value.type, extra))
        parts += _attribute_texts((name, attr) for name, attr in attrs.data.items() if name != PARAM_ATTRS)
        arrow = f"-> {type_text(result)} " if is_known(result) else ""
        text = f"{head}({', '.join(parts)}) {arrow}{{\n{self._body(body, depth + 1)}{'  ' * depth}}}"
        self.names.pop()
        return text

    def _variable(self, value: SSAValue, name: str, annotation: Attribute, extra: str = "") -> str:
        """A variable where it is bound."""
        text = self.texts[value] = local_text(self.names.fresh(name))
        known = is_known(annotation)
        written = f": {type_text(annotation)}" if known else ""
        comment = f" /* ty={type_text(value.type)} */" if self.types and known and is_known(value.type) else ""
        return f"{text}{extra}{written}{comment}"

    def _body(self, block: Block, depth: int) -> str:
        """The statements of a block, each on its line, and its value."""
        indent = "  " * depth
        lines: list[str] = []
        op = block.first_op
        while op is not None:
            if op not in self.inline:
                lines.append(indent + self._statement(op, depth))
            op = op.next_op
        lines.append("")
        return "\n".join(lines)

    def _statement(self, op: Operation, depth: int) -> str:
        if isinstance(op, ir.ReturnOp):
            return self._value(op.value, depth)
        if isinstance(op, ir.LetOp):
            name = self._variable(op.result, op.var_name.data, op.result.type)
            value = op.value
            if isinstance(value.owner, ir.FnOp) and value.owner.self_name is not None and value.owner in self.inline:
                self.texts[value.owner.body.block.args[0]] = self.texts[op.result]
            return f"let {name} = {self._value(value, depth)};"
        if isinstance(op, ir.FnOp) and op.self_name is not None:
            # A function that calls itself has a name, whether or not a `let` gives it one.
            name = local_text(self.names.fresh(op.self_name.data))
            self.texts[op.result] = self.texts[op.body.block.args[0]] = name
            return f"let {name} = {self._expression(op, depth)};"
        text = self._expression(op, depth)
        name = self.texts[op.results[0]] = f"%{self.numbers[op.results[0]]}"
        return f"{name} = {text};"

    def _value(self, value: SSAValue, depth: int) -> str:
        """A value where it is used."""
        text = self.texts.get(value)
        if text is not None:
            return text
        assert isinstance(value, OpResult)
        return self._expression(value.owner, depth)

    def _values(self, values: Iterable[SSAValue], depth: int) -> str:
        return ", ".join([self._value(v, depth) for v in values])

    def _expression(self, op: Operation, depth: int) -> str:
        """An op as an expression, with its type where TVM writes one."""
        text = self._untyped(op, depth)
        if self.types and isinstance(op, (*_TYPED, ir.ConstantOp)):
            type = op.results[0].type
            if type is not UNKNOWN and is_known(type):
                return f"{text} /* ty={type_text(type)} */"
        return text

    def _untyped(self, op: Operation, depth: int) -> str:
        match op:
            case OperatorOp():
                arguments = [self._value(v, depth) for v in op.args]
                if op.attributes:
                    arguments += _operator_attributes(op)
                return f"{op.OPERATOR.name}({', '.join(arguments)})"
            case ir.ConstantOp():
                return self.constants.text(op)
            case ir.TupleOp():
                return tuple_text([self._value(v, depth) for v in op.fields])
            case ir.TupleGetItemOp():
                return f"{self._value(op.tuple_value, depth)}.{op.index.value.data}"
            case ir.CallGlobalOp():
                callee = global_text(op.callee.root_reference.data)
                return f"{callee}{self._call(op.type_args, op.arguments, op.attrs, depth)}"
            case ir.CallOp():
                callee = self._value(op.callee, depth)
                if isinstance(op.callee.owner, ir.GlobalRefOp):
                    callee = f"({callee})"
                return f"{callee}{self._call(op.type_args, op.arguments, op.attrs, depth)}"
            case ir.CallTirOp():
                arguments = [self._value(v, depth) for v in op.arguments]
                return f"call_tir({', '.join([global_text(op.callee.root_reference.data), *arguments])})"
            case ir.ConstructOp():
                return op.constructor.data + (f"({self._values(op.arguments, depth)})" if op.arguments else "")
            case ir.ConstructorRefOp():
                return op.constructor.data
            case ir.GlobalRefOp():
                return global_text(op.symbol.root_reference.data)
            case ir.RefOp():
                return f"ref({self._value(op.value, depth)})"
            case ir.RefReadOp():
                return f"ref_read({self._value(op.ref, depth)})"
            case ir.RefWriteOp():
                return f"ref_write({self._value(op.ref, depth)}, {self._value(op.value, depth)})"
            case _:
                return self._with_regions(op, depth)

    def _call(
        self, types: ArrayAttr[Attribute], arguments: Iterable[SSAValue], attrs: DictionaryAttr, depth: int
    ) -> str:
        written = f"[{', '.join(type_text(t) for t in types.data)}]" if types.data else ""
        inner = [*(self._value(v, depth) for v in arguments), *_attribute_texts(attrs.data.items())]
        return f"{written}({', '.join(inner)})"

    def _with_regions(self, op: Operation, depth: int) -> str:
        match op:
            case ir.FnOp():
                head = f"fn {_generics(op.type_params)}"
                return self._function(head, op.params, op.param_names, op.attrs, op.ret_type, op.body.block, depth)
            case ir.IfOp():
                condition = self._value(op.condition, depth)
                then = self._braced(op.then_region, depth)
                return f"if ({condition}) {then} else {self._braced(op.else_region, depth)}"
            case ir.MatchOp():
                mark = "" if op.complete.value.data else "?"
                indent = "  " * (depth + 1)
                lines = [f"match{mark} ({self._value(op.value, depth)}) {{"]
                for pattern, region in zip(op.patterns.data, op.clauses, strict=True):
                    lines.append(f"{indent}{self._clause(pattern, region, depth + 1)},")
                return "\n".join([*lines, "  " * depth + "}"])
            case _:
                raise error_at(
                    op,
                    f"'{op.name}' has no Relay text",
                    "only ops of the relay dialect can stand in a Relay function; print with '-t mlir'",
                )

    def _braced(self, region: Region, depth: int) -> str:
        self.names.push()
        text = f"{{\n{self._body(region.block, depth + 1)}{'  ' * depth}}}"
        self.names.pop()
        return text

    def _clause(self, pattern: Attribute, region: Region, depth: int) -> str:
        self.names.push()
        values = iter(region.block.args)
        head = self._pattern(pattern, values)
        text = f"{head} => {{\n{self._body(region.block, depth + 1)}{'  ' * depth}}}"
        self.names.pop()
        return text

    def _pattern(self, pattern: Attribute, values: Iterable[SSAValue]) -> str:
        match pattern:
            case VarPattern():
                value = next(iter(values))
                return self._variable(value, pattern.var_name.data, value.type)
            case ConstructorPattern():
                fields = [self._pattern(f, values) for f in pattern.fields.data]
                return pattern.constructor.data + (f"({', '.join(fields)})" if fields else "")
            case TuplePattern():
                return f"({', '.join(self._pattern(f, values) for f in pattern.fields.data)})"
            case WildcardPattern():
                return "_"
            case _:
                return str(pattern)


def _attribute_texts(attributes: Iterable[tuple[str, Attribute]]) -> list[str]:
    return [f"{name}={attribute_text(value)}" for name, value in attributes]


def _operator_attributes(op: OperatorOp) -> list[str]:
    """The attributes in the order in which the operator declares them."""
    given = op.attributes
    declared = [name for name in op.OPERATOR.specs if name in given]
    return _attribute_texts((name, given[name]) for name in [*declared, *(n for n in given if n not in declared)])
