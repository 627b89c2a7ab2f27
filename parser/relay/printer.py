"""Prints ops as Relay text, laid out as TVM 0.16 prints it.

A leaf (a constant, `@f`) with one user is written in that user, wherever its op is: it computes nothing, and reading puts it
right before the user. Any other value is written inline where reading the text again yields the same op at the same place:
right before the `let` that binds it, or at the end of the block that returns it. All others are bound, `%N`.
The numbers are TVM's: in the order in which a walk from each result meets values, bodies of functions before the arguments
of their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.ir import LEAVES
from ...dialects.relay.operator import OperatorOp
from ...dialects.relay.patterns import ConstructorPattern, TuplePattern, VarPattern, WildcardPattern
from ...dialects.relay.text import global_text, is_known, local_text, tuple_text, type_text
from ...support.diagnostics import error_at
from ...support.walk import walk_ops
from .builder import PARAM_ATTRS
from .literals import ConstantTexts, attribute_text
from .scopes import ScopeNames

VERSION = '#[version = "0.0.5"]'
_TYPED = (
    OperatorOp, ir.ConstantOp, ir.CallOp, ir.CallGlobalOp, ir.CallTirOp, ir.ConstructOp, ir.TupleOp, ir.TupleGetItemOp,
    ir.FnOp,
)  # fmt: skip
"""The ops whose types are written."""
_TYPED_BY_ITSELF = (ir.ConstantOp, ir.TupleOp, ir.FnOp)
"""Those that may have a type before any is inferred."""


def print_groups(groups: Sequence[Sequence[Operation]], module: ModuleOp, *, types: bool = True) -> list[str]:
    """Prints one text per group of top-level ops.

    The head of the file is part of the first text, the metadata of the last. With `types`, known types are printed in comments
    as TVM does.
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


def module_text(module: ModuleOp, *, header: bool = True, metadata: bool = True) -> str:
    """Prints the Relay functions and data types of a module, on request without version line and metadata."""
    printer = _ModulePrinter(module, True)
    ops = [op for op in module.ops if isinstance(op, ir.FuncOp | ir.TypeDataOp)]
    for op in ops:
        printer.prepare(op)
    return printer.framed("\n\n".join(printer.item(op) for op in ops), header, metadata)


def expression_text(function: ir.FuncOp, *, is_function: bool, header: bool = False, metadata: bool = False) -> str:
    """A function as an expression, `fn (…) { … }`; or its body, whose free variables are the parameters.

    Types are written where they were inferred, so that of `add(%x, 1f)` as it was made not even the constant's is.
    """
    typed = (op for op in walk_ops(function) if isinstance(op, _TYPED) and not isinstance(op, _TYPED_BY_ITSELF))
    printer = _ModulePrinter(ModuleOp([]), any(is_known(op.results[0].type) for op in typed))
    printer.prepare(function)
    return printer.framed(printer.expression(function, is_function), header, metadata)


def marked_items(module: ModuleOp) -> Iterator[tuple[Operation, str, dict[Operation, int]]]:
    """Yields each function and data type with its text, and the line, from 0, at which each op begins."""
    printer = _ModulePrinter(module, True)
    ops = [op for op in module.ops if isinstance(op, ir.FuncOp | ir.TypeDataOp)]
    for op in ops:
        printer.prepare(op)
    for op in ops:
        yield op, *printer.marked_item(op)


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
        return self.marked_item(op)[0]

    def marked_item(self, op: Operation) -> tuple[str, dict[Operation, int]]:
        """A top-level op's text, and the line, from 0, at which each op begins."""
        self._number()
        if isinstance(op, ir.TypeDataOp):
            return _data_type_text(op), {op: 0}
        assert isinstance(op, ir.FuncOp)
        printer = _FunctionPrinter(self.numbering, self.constants, self.types)
        return printer.function(op), printer.lines_of()

    def expression(self, op: ir.FuncOp, is_function: bool) -> str:
        """A function without a name, or its body alone."""
        self._number()
        printer = _FunctionPrinter(self.numbering, self.constants, self.types)
        return printer.local_function(op) if is_function else printer.body(op)

    def framed(self, text: str, header: bool, metadata: bool) -> str:
        """The text between the head and the metadata, as far as they are wanted."""
        head = f"{self.head()}\n" if header else ""
        if not metadata:
            # TVM leaves a line for the metadata section that is not shown.
            return f"{head}{text}\n" + ("\n" if self.constants.has_metadata else "")
        section = self.constants.metadata()
        return f"{head}{text}\n" + (f"\n{section}\n" if section else "")

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


def inlined(block: Block) -> set[Operation]:
    """Returns the ops of a block, not of its regions, that are written where their value is used."""
    found: set[Operation] = set()
    op = block.first_op
    # The op before, not counting the leaves that are written in place: reading puts those before their users.
    before: Operation | None = None
    while op is not None:
        if _in_place(op):
            found.add(op)
        else:
            if (
                isinstance(op, ir.LetOp | ir.ReturnOp)
                and before is not None
                and op.operands[0].owner is before
                and not isinstance(before, (*LEAVES, ir.LetOp))
                and _has_one_use(before)
            ):
                found.add(before)
            before = op
        op = op.next_op
    return found


def _in_place(op: Operation) -> bool:
    """Returns whether an op is a leaf with one user, which is written in that user's text."""
    return isinstance(op, LEAVES) and _has_one_use(op)


def _has_one_use(op: Operation) -> bool:
    return op.results[0].has_one_use()


class Numbering:
    """Numbers for the values that are bound as `%N`, and the order in which constants are met."""

    def __init__(self, meet_constant: Callable[[ir.ConstantOp], None]):
        self.numbers: dict[SSAValue, int] = {}
        self.inline: set[Operation] = set()
        self._meet_constant = meet_constant
        self._visited: set[Operation] = set()

    def function(self, body: Block) -> None:
        """Numbers a function's values, going on from the function before."""
        self._block(body)

    def _block(self, block: Block) -> None:
        self.inline |= inlined(block)
        # A let's value and the block's value are what TVM prints from; what they do not need (it is there for what it
        # does) comes last.
        op = block.first_op
        while op is not None:
            if isinstance(op, ir.LetOp | ir.ReturnOp):
                self._root(op.operands[0])
            op = op.next_op
        op = block.first_op
        while op is not None:
            if op.results and op not in self._visited and not isinstance(op, ir.LetOp) and not _in_place(op):
                self._expand(op)
                self._number(op.results[0])
            op = op.next_op

    def _root(self, value: SSAValue) -> None:
        if isinstance(value, OpResult) and not isinstance(value.owner, ir.LetOp):
            self._expand(value.owner)
            self._number(value)

    def _expand(self, op: Operation) -> None:
        """Visits what `op` is computed from, then `op`, each once."""
        pending: list[tuple[Operation, bool]] = [(op, False)]
        while pending:
            current, expanded = pending.pop()
            if current in self._visited:
                continue
            if expanded:
                self._visited.add(current)
                self._visit(current)
                continue
            pending.append((current, True))
            # The callee, a call's first operand, is visited first.
            for value in reversed(current.operands):
                if isinstance(value, OpResult) and not isinstance(value.owner, ir.LetOp):
                    pending.append((value.owner, False))

    def _visit(self, op: Operation) -> None:
        if isinstance(op, ir.ConstantOp):
            self._meet_constant(op)
        for operand in _printed_order(op):
            self._number(operand)
        for region in op.regions:
            self._block(region.block)

    def _number(self, value: SSAValue) -> None:
        if isinstance(value, OpResult) and value not in self.numbers:
            owner = value.owner
            if not isinstance(owner, ir.LetOp) and owner not in self.inline:
                self.numbers[value] = len(self.numbers)


def _printed_order(op: Operation) -> Sequence[SSAValue]:
    """In which order an op's operands get numbers: the callee last."""
    operands = op.operands
    return [*operands[1:], operands[0]] if isinstance(op, ir.CallOp) else operands


class _FunctionPrinter:
    """Prints one function, piece by piece to `out`.

    Text is never copied outward, however deep blocks nest.
    """

    def __init__(self, numbering: Numbering, constants: ConstantTexts, types: bool):
        self.numbers = numbering.numbers
        self.inline = numbering.inline
        self.constants = constants
        self.types = types
        self.names = ScopeNames()
        self.texts: dict[SSAValue, str] = {}
        self.out: list[str] = []
        # The ops that were written, each with the number of pieces before it.
        self.marks: list[tuple[Operation, int]] = []

    def lines_of(self) -> dict[Operation, int]:
        """The line, from 0, at which each op that was written begins."""
        found: dict[Operation, int] = {}
        line = piece = 0
        for op, start in self.marks:
            line += sum(self.out[k].count("\n") for k in range(piece, start))
            piece = start
            found.setdefault(op, line)
        return found

    def function(self, op: ir.FuncOp) -> str:
        """A top-level function."""
        self.marks.append((op, 0))
        self._function(f"def {global_text(op.sym_name.data)}", op, 0)
        return "".join(self.out)

    def local_function(self, op: ir.FuncOp) -> str:
        """The function as an expression."""
        self._function("fn ", op, 0)
        return "".join(self.out)

    def body(self, op: ir.FuncOp) -> str:
        """The function's body, after a line for each parameter."""
        self.names.push()
        for value, name in zip(op.params, op.param_names.data, strict=True):
            self.out.append(f"free_var {self._variable(value, name.data)};\n")
        for statement in op.body.block.ops:
            if statement not in self.inline:
                self._statement(statement, 0)
                self.out.append("\n")
        return "".join(self.out).rstrip("\n")

    def _function(self, head: str, op: ir.FuncOp | ir.FnOp, depth: int) -> None:
        self.names.push()
        parts: list[str] = []
        attrs = op.attrs.data
        in_braces = attrs.get(PARAM_ATTRS)
        for value, name in zip(op.params, op.param_names.data, strict=True):
            own = in_braces.data.get(name.data) if isinstance(in_braces, DictionaryAttr) else None
            extra = f" {{{', '.join(_attribute_texts(own.data.items()))}}}" if isinstance(own, DictionaryAttr) else ""
            parts.append(self._variable(value, name.data, extra))
        parts += _attribute_texts((name, attr) for name, attr in attrs.items() if name != PARAM_ATTRS)
        arrow = f"-> {type_text(op.ret_type)} " if is_known(op.ret_type) else ""
        self.out.append(f"{head}{_generics(op.type_params)}({', '.join(parts)}) {arrow}")
        self._block(op.body.block, depth)
        self.names.pop()

    def _variable(self, value: SSAValue, name: str, extra: str = "") -> str:
        """A variable where it is bound."""
        text = self.texts[value] = local_text(self.names.fresh(name))
        if not is_known(value.type):
            return f"{text}{extra}"
        type = type_text(value.type)
        return f"{text}{extra}: {type} /* ty={type} */" if self.types else f"{text}{extra}: {type}"

    def _block(self, block: Block, depth: int) -> None:
        """`{`, the statements each on its line, the block's value, `}`."""
        out = self.out
        out.append("{\n")
        indent = "  " * (depth + 1)
        op = block.first_op
        while op is not None:
            if op not in self.inline:
                out.append(indent)
                self._statement(op, depth + 1)
                out.append("\n")
            op = op.next_op
        out.append(f"{'  ' * depth}}}")

    def _statement(self, op: Operation, depth: int) -> None:
        self.marks.append((op, len(self.out)))
        if isinstance(op, ir.ReturnOp):
            self._value_here(op.value, depth)
            return
        if isinstance(op, ir.LetOp):
            name = self._variable(op.result, op.var_name.data)
            function = op.value.owner
            if isinstance(function, ir.FnOp) and function.self_name is not None and function in self.inline:
                self.texts[function.body.block.args[0]] = self.texts[op.result]
            self.out.append(f"let {name} = ")
            self._value_here(op.value, depth)
        elif isinstance(op, ir.FnOp) and op.self_name is not None:
            # A function that calls itself has a name, with or without a `let`.
            name = local_text(self.names.fresh(op.self_name.data))
            self.texts[op.result] = self.texts[op.body.block.args[0]] = name
            self.out.append(f"let {name} = ")
            self._expression_here(op, depth)
        else:
            name = f"%{self.numbers[op.results[0]]}"
            self.out.append(f"{name} = ")
            self._expression_here(op, depth)
            self.texts[op.results[0]] = name
        self.out.append(";")

    def _value_here(self, value: SSAValue, depth: int) -> None:
        text = self.texts.get(value)
        if text is not None:
            self.out.append(text)
        else:
            assert isinstance(value, OpResult)
            self._expression_here(value.owner, depth)

    def _expression_here(self, op: Operation, depth: int) -> None:
        """Writes an op as an expression; only here may one span lines."""
        self.marks.append((op, len(self.out)))
        match op:
            case ir.FnOp():
                self._function("fn ", op, depth)
                self.out.append(self._comment(op))
            case ir.IfOp():
                self.out.append(f"if ({self._value(op.condition)}) ")
                self._braced(op.then_region, depth)
                self.out.append(" else ")
                self._braced(op.else_region, depth)
            case ir.MatchOp():
                mark = "" if op.complete.value.data else "?"
                indent = "  " * (depth + 1)
                self.out.append(f"match{mark} ({self._value(op.value)}) {{\n")
                for pattern, region in zip(op.patterns.data, op.clauses, strict=True):
                    self.names.push()
                    self.out.append(f"{indent}{self._pattern(pattern, iter(region.block.args))} => ")
                    self._block(region.block, depth + 1)
                    self.out.append(",\n")
                    self.names.pop()
                self.out.append(f"{'  ' * depth}}}")
            case _:
                self.out.append(self._expression(op))

    def _braced(self, region: Region, depth: int) -> None:
        self.names.push()
        self._block(region.block, depth)
        self.names.pop()

    def _comment(self, op: Operation) -> str:
        """Returns the comment with the type of an expression, where TVM writes one."""
        if self.types and isinstance(op, _TYPED):
            type = op.results[0].type
            if is_known(type):
                return f" /* ty={type_text(type)} */"
        return ""

    def _value(self, value: SSAValue) -> str:
        """A value where it is used."""
        text = self.texts.get(value)
        if text is not None:
            return text
        assert isinstance(value, OpResult)
        return self._expression(value.owner)

    def _expression(self, op: Operation) -> str:
        """An op without regions as an expression, with its type."""
        return self._untyped(op) + self._comment(op)

    def _untyped(self, op: Operation) -> str:
        match op:
            case OperatorOp():
                arguments = [self._value(v) for v in op.args]
                if op.attributes:
                    arguments += _operator_attributes(op)
                return f"{op.OPERATOR.name}({', '.join(arguments)})"
            case ir.ConstantOp():
                return self.constants.text(op)
            case ir.TupleOp():
                return tuple_text([self._value(v) for v in op.fields])
            case ir.TupleGetItemOp():
                return f"{self._value(op.tuple_value)}.{op.index.value.data}"
            case ir.CallGlobalOp():
                callee = global_text(op.callee.root_reference.data)
                return f"{callee}{self._call(op.type_args, op.arguments, op.attrs)}"
            case ir.CallOp():
                callee = self._value(op.callee)
                if isinstance(op.callee.owner, ir.GlobalRefOp | ir.ConstructorRefOp):
                    callee = f"({callee})"
                return f"{callee}{self._call(op.type_args, op.arguments, op.attrs)}"
            case ir.CallTirOp():
                arguments = [self._value(v) for v in op.arguments]
                return f"call_tir({', '.join([global_text(op.callee.root_reference.data), *arguments])})"
            case ir.ConstructOp():
                fields = ", ".join([self._value(v) for v in op.arguments])
                return f"{op.constructor.data}({fields})" if fields else op.constructor.data
            case ir.ConstructorRefOp():
                return op.constructor.data
            case ir.GlobalRefOp():
                return global_text(op.symbol.root_reference.data)
            case ir.RefOp():
                return f"ref({self._value(op.value)})"
            case ir.RefReadOp():
                return f"ref_read({self._value(op.ref)})"
            case ir.RefWriteOp():
                return f"ref_write({self._value(op.ref)}, {self._value(op.value)})"
            case _:
                raise error_at(
                    op,
                    f"'{op.name}' has no Relay text",
                    "only ops of the relay dialect can stand in a Relay function; print with '-t mlir'",
                )

    def _call(self, types: ArrayAttr[Attribute], arguments: Iterable[SSAValue], attrs: DictionaryAttr) -> str:
        written = f"[{', '.join(type_text(t) for t in types.data)}]" if types.data else ""
        inner = [*(self._value(v) for v in arguments), *_attribute_texts(attrs.data.items())]
        return f"{written}({', '.join(inner)})"

    def _pattern(self, pattern: Attribute, values: Iterator[SSAValue]) -> str:
        match pattern:
            case VarPattern():
                return self._variable(next(values), pattern.var_name.data)
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
