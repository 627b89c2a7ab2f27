"""Statements: assignments, stores, names for values, and calls for their effect."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, NoneType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.tir.buffer import DeclBufferOp
from ...dialects.tir.expr import LetOp, VarOp
from ...dialects.tir.operators import Value
from ...dialects.tir.types import I1, BufferType, HandleType
from ...support.diagnostics import MirError
from ..python.literals import is_string
from ..python.tree import (
    Annotated,
    Assign,
    Augmented,
    Binary,
    Call,
    Captured,
    Expr,
    Expression,
    Index,
    Lambda,
    Return,
    Sequence,
    Stmt,
    Token,
    With,
    called,
)
from .arguments import list_items
from .constructs.buffers import buffer_annotation, make_buffer, masked_store, store
from .constructs.calls import call_op
from .constructs.types import variable
from .expressions import expr, number_of
from .literals import named_type, read_handle
from .reader import Reader, hint
from .registry import construct, reads_statement

RESERVED = frozenset(["T", "tvm", "True", "False", "None", "range"])


def statements(reader: Reader, body: list[Stmt]) -> None:
    """Reads statements into the current region; after an error, the next one."""
    last = len(body) - 1
    for number, statement in enumerate(body):
        mark = len(reader.ops)
        try:
            reader.at_end = number == last
            reads_statement[type(statement)](reader, statement)
        except (MirError, VerifyException) as error:
            reader.context.report(error, reader.location)
            poison(reader, statement)
            del reader.ops[mark:]


def poison(reader: Reader, statement: Stmt) -> None:
    """Names that a failed statement would have defined are not complained about afterwards."""
    targets: list[Expr | None] = []
    match statement:
        case Assign() | Annotated():
            targets = [statement.target]
        case With():
            targets = [target for _, target in statement.items]
        case _:
            pass
    for target in targets:
        for name in list_items(reader, target, "names"):
            if isinstance(name, Token) and name not in reader.names:
                reader.poisoned.add(str(name))


@reads_statement(Expression)
def read_expression(reader: Reader, statement: Expression) -> None:
    """A line that is an expression."""
    expression(reader, statement.value)


@reads_statement(Assign)
def assign(reader: Reader, statement: Assign) -> None:
    """`A[i] = x`, `x = …`, `a, b = …`."""
    target, value = statement.target, statement.value
    if isinstance(target, Index):
        store(reader, target, expr(reader, value), statement.token)
    elif isinstance(target, Sequence):
        values = value.items if isinstance(value, Sequence) else None
        if values is None or len(values) != len(target.items):
            if called(value).startswith("T.axis."):
                reader.fail(value, "axes are bound in a block", 'write them under with T.block("name"):')
            reader.fail(target, f"{len(target.items)} names need as many values", "write them on lines of their own")
        for part, item in zip(target.items, values, strict=True):
            assign(reader, Assign(part, statement.token, item))
    elif isinstance(target, Token) and target.type == "NAME":
        assign_name(reader, target, value)
    else:
        reader.fail(target, "this cannot be assigned to", "assign to a name, or to an element of a buffer, A[i]")


@reads_statement(Annotated)
def annotated(reader: Reader, statement: Annotated) -> None:
    """`x: T.int32 = value`."""
    name = statement.target
    if not isinstance(name, Token) or name.type != "NAME":
        reader.fail(name, "only a name is declared with a type")
    type_ = named_type(reader, statement.annotation)
    if type_ is None:
        reader.fail(statement.annotation, "a type is expected here", "write x: T.int32 = …")
    if statement.value is None:
        reader.location = reader.at(name)
        reader.define(str(name), reader.emit(VarOp(reader.fresh(name), type_)))
        return
    let(reader, name, expr(reader, statement.value), type_)


@reads_statement(Augmented)
def augmented(reader: Reader, statement: Augmented) -> None:
    """`A[i] += x`."""
    if not isinstance(statement.target, Index):
        reader.fail(statement.target, "a name is bound once", "only an element of a buffer is updated: A[i] += x")
    op = Token("OPERATOR", statement.token[:-1], statement.token.start)
    store(reader, statement.target, expr(reader, Binary(op, statement.target, statement.value)), statement.token)


@reads_statement(Return)
def return_statement(reader: Reader, statement: Return) -> None:
    """`return x`: `T.ret(x)`, evaluated."""
    if statement.value is None or statement.value == "None":
        reader.fail(
            statement.token, "'return' gives a value", "a function without a result ends with its last statement"
        )
    value = reader.value(number_of(reader, statement.value))
    reader.location = reader.at(statement.token)
    reader.evaluate(reader.intrinsic("ret", [value]))


def expression(reader: Reader, node: Expr) -> None:
    """A call for its effect; a docstring; a value, evaluated."""
    if is_string(node):
        return
    if isinstance(node, Call) and isinstance(node.function, Token):
        name = node.function
        read = construct.statement.get(name)
        if read is not None:
            read(reader, node)
            return
        if name.endswith(".vstore"):
            masked_store(reader, Token("NAME", name[: -len(".vstore")], name.start), node)
            return
        if not name.startswith("T."):
            value = call_op(reader, node, name)
            if value is not None:
                reader.evaluate(value)
            return
    if isinstance(node, Call) and isinstance(node.function, Captured):
        from .python_values import called_in_python, value_of

        # A function that returns nothing was called for what it does in Python.
        found = called_in_python(reader, node)
        if found is not None:
            reader.evaluate(reader.value(value_of(reader, node, found, f"what '{node.function.token}' returns")))
        return
    if isinstance(node, Binary) and node.op == "==":
        from ..python.errors import refuse_comparison

        refuse_comparison(node, reader.names, reader.fail)
    evaluate_node(reader, node, node)


def evaluate_node(reader: Reader, node: Expr, where: Expr) -> None:
    """A value for its effect, at a place; a void call is an op of its own."""
    value = reader.value(number_of(reader, node))
    reader.location = reader.at(where)
    if isinstance(value.type, NoneType):
        reader.drop_result(value)
    else:
        reader.evaluate(value)


def assign_name(reader: Reader, name: Token, value: Expr) -> None:
    """`x = …`: a buffer, an allocation, a thread, a variable, or a let."""
    if "." in name and not called(value):
        reader.fail(name, f"'{name}' cannot be assigned to")
    if name in RESERVED:
        reader.fail(name, f"'{name}' cannot be defined again")
    if isinstance(value, Call) and isinstance(value.function, Token):
        made = definition(reader, str(name), value)
        if made is not None:
            reader.define(str(name), made)
            return
    if isinstance(value, Index) and value.base in ("T.Buffer", "T.buffer_decl"):
        spec = buffer_annotation(reader, value)
        assert spec is not None
        properties = {"implicit": IntegerAttr(1, I1)}
        reader.define(str(name), make_buffer(reader, DeclBufferOp, str(name), spec, properties=properties))
        return
    if isinstance(value, Lambda | Sequence):
        reader.fail(name, "only scalars, buffers and handles have names", "write the list where it is used")
    entry = expr(reader, value)
    if isinstance(entry, SSAValue) and not is_scalar(entry):
        reader.define(str(name), entry)
        return
    let(reader, name, entry, None)


def is_scalar(value: SSAValue) -> bool:
    """Returns whether a value is a number or handle, and no buffer, reducer or iteration variable."""
    return not isinstance(value.type, BufferType) and not getattr(value.type, "name", "").startswith(
        ("tir.reducer", "tir.token", "tir.region")
    )


def let(reader: Reader, name: Token, value: Value, type_: Attribute | None, var: SSAValue | None = None) -> SSAValue:
    """Names a value for the rest of the region."""
    reader.location = reader.at(name)
    if type_ is not None and value.type != type_:
        handles = isinstance(type_, HandleType) and isinstance(value.type, HandleType)
        if not handles:
            value = reader.convert(value, type_, f"'{name}' is")
    given = reader.value(value)
    text = reader.fresh(name) if var is None else reader.shown.get(var, str(name))
    result = reader.emit(LetOp(text, given, type_, var=var))
    result.name_hint = hint(name)
    reader.shown[result] = text
    reader.define(str(name), result)
    return result


def definition(reader: Reader, name: str, call: Call) -> SSAValue | None:
    """Reads a call that defines something; None for a call that is a plain value."""
    define = construct.definition.get(str(call.function))
    if define is not None:
        return define(reader, name, call)
    if str(call.function).startswith("T.axis."):
        reader.fail(call, "axes are bound in a block", 'write them under with T.block("name"):')
    if not call.arguments:
        type_ = named_type(reader, call.function)
        if type_ is not None:
            return variable(reader, name, call, type_)
    elif call.function == "T.handle":
        return variable(reader, name, call, read_handle(reader, call))
    return None
