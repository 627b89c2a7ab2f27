"""Loops, branches, scopes, threads and attributes."""

from __future__ import annotations

from collections.abc import Generator
from collections.abc import Sequence as AnySequence
from contextlib import contextmanager

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.tir.buffer import NO_ATTRS
from ....dialects.tir.expr import VarOp, YieldOp
from ....dialects.tir.operators import Const
from ....dialects.tir.stmt import AssertOp, AttrOp, EnvThreadOp, ForOp, IfOp, LaunchThreadOp, ScopeOp, WhileOp
from ....dialects.tir.types import I1, I32, element_of
from ....support.diagnostics import MirError
from ....support.text import counted
from ...python.literals import is_string
from ...python.tree import Assert, Call, Expr, For, If, Sequence, Stmt, Token, While, With, called
from ..arguments import named_arguments, read_annotations
from ..expressions import expr, range_of, read_condition, scalar
from ..literals import named_type, read_dictionary, read_dtype, read_string
from ..reader import Reader, describe, hint
from ..registry import construct, reads_statement
from ..slice_extent import literal_int
from ..statements import definition, evaluate_node, expression, let, statements
from .calls import string_or_scalar

_LOOPS = {
    "range": "serial", "T.serial": "serial", "T.parallel": "parallel", "T.vectorized": "vectorized", "T.unroll": "unrolled",
    "T.unrolled": "unrolled", "T.thread_binding": "thread_binding",
}  # fmt: skip


@reads_statement(For)
def for_loop(reader: Reader, statement: For) -> None:
    """`for i in range(n):` and its kinds; `for i, j in T.grid(m, n):`."""
    call = statement.iterable
    targets = statement.target.items if isinstance(statement.target, Sequence) else [statement.target]
    names = [t for t in targets if isinstance(t, Token) and t.type == "NAME" and "." not in t]
    with reader.recovering():
        if len(names) != len(targets):
            reader.fail(statement.target, "a loop variable is a name")
        read = construct.loop.get(called(call))
        if not isinstance(call, Call) or read is None:
            reader.fail(
                call,
                "this is not a loop",
                "a loop is over range(n), T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid(m, n)",
            )
        read(reader, statement, names, call)
        return
    # The header is wrong: its body is still read, for its errors.
    read_in_vain(reader, statement.body, names)


def read_in_vain(reader: Reader, body: list[Stmt], names: AnySequence[Token] = ()) -> None:
    """Reads statements whose header is wrong, for the errors in them; the names are of loop variables."""
    block = Block(arg_types=[I32] * len(names))
    with reader.inside(block):
        for name, arg in zip(names, block.args, strict=True):
            reader.bind(name, arg)
        statements(reader, body)


@construct.loop("T.grid")
def read_grid(reader: Reader, statement: For, names: list[Token], call: Call) -> None:
    """Nested serial loops."""
    if call.keywords or len(call.arguments) != len(names):
        reader.fail(
            call, f"T.grid has {counted(len(call.arguments), 'extent')} for {counted(len(names), 'loop variable')}"
        )
    outer = reader.ops
    try:
        loops: list[tuple[ForOp, list[Operation]]] = []
        for name, node in zip(names, call.arguments, strict=True):
            # As in loops written one by one, an extent is evaluated in the loop around; it cannot name its variable.
            if isinstance(node, Sequence) and len(node.items) == 2:
                low, extent = range_of(reader, node.items[0], node.items[1])
            else:
                extent = scalar(reader, node)
                low = reader.value(Const(0, extent.type))
            loop = make_loop(reader, statement.token, name, low, extent, "serial", None, NO_ATTRS)
            reader.ops = []
            loops.append((loop, reader.ops))
        with reader.local():
            for name, (loop, _) in zip(names, loops, strict=True):
                bind_loop(reader, name, loop)
            statements(reader, statement.body)
        for loop, ops in loops:
            loop.body.block.add_ops(ops)
    finally:
        reader.ops = outer


@construct.loop(*_LOOPS)
def simple_loop(reader: Reader, statement: For, names: list[Token], call: Call) -> None:
    """A single loop of any kind."""
    if len(names) != 1:
        reader.fail(statement.target, f"{called(call)} gives one loop variable", "several come from T.grid(m, n)")
    name, kind = names[0], _LOOPS[called(call)]
    arguments = list(call.arguments)
    thread: str | None = None
    annotations = NO_ATTRS
    for keyword in call.keywords:
        if keyword.name == "annotations":
            annotations = read_annotations(reader, keyword.value)
        elif keyword.name == "thread" and kind == "thread_binding":
            thread = read_string(reader, keyword.value, "a thread")
        elif keyword.name == "stop":
            arguments.append(keyword.value)
        elif keyword.name == "start":
            arguments.insert(0, keyword.value)
        else:
            reader.fail(keyword.name, f"{call.function} has no argument '{keyword.name}'")
    if kind == "thread_binding":
        if thread is None and arguments and is_string(arguments[-1]):
            thread = read_string(reader, arguments.pop(), "a thread")
        if thread is None:
            reader.fail(call, "T.thread_binding needs a thread", 'write T.thread_binding(32, thread="threadIdx.x")')
    if len(arguments) == 3 and literal_int(arguments[2]) == 1:
        arguments.pop()
    if not 1 <= len(arguments) <= 2:
        reader.fail(
            call,
            f"{call.function} takes an extent, or a start and a stop",
            "a step other than 1 is written in the body: i * step",
        )
    if len(arguments) == 2:
        low, extent = range_of(reader, arguments[0], arguments[1])
    else:
        extent = scalar(reader, arguments[0])
        reader.location = reader.at(call)
        low = reader.value(Const(0, extent.type))
    loop = make_loop(reader, statement.token, name, low, extent, kind, thread, annotations)
    with reader.inside(loop.body.block):
        bind_loop(reader, name, loop)
        statements(reader, statement.body)


def make_loop(
    reader: Reader,
    token: Token,
    name: Token,
    low: SSAValue,
    extent: SSAValue,
    kind: str,
    thread: str | None,
    annotations: DictionaryAttr,
) -> ForOp:
    """Emits a loop with an empty body."""
    if not isinstance(element_of(extent.type), type(I32)) or extent.type == I1:
        reader.fail(name, f"loop '{name}' runs over integers, not {describe(extent)}")
    block = Block(arg_types=(extent.type,))
    properties: dict[str, Attribute] = {
        "var_name": StringAttr(str(name)),
        "kind": StringAttr(kind),
        "annotations": annotations,
    }
    if thread is not None:
        properties["thread"] = StringAttr(thread)
    # A loop over a variable that is declared outside, to which an attribute there refers.
    var = reader.names.get(name)
    operands = (low, extent)
    if isinstance(var, SSAValue) and isinstance(var.owner, VarOp) and var.type == extent.type:
        operands = (low, extent, var)
    op = ForOp.create(operands=operands, properties=properties, regions=[Region(block)], location=reader.at(token))
    reader.ops.append(op)
    return op


def bind_loop(reader: Reader, name: Token, op: ForOp) -> None:
    """Makes a loop's variable visible."""
    arg = op.body.block.args[0]
    if op.var is None:
        op.properties["var_name"] = StringAttr(reader.bind(name, arg))
        return
    arg.name_hint = hint(name)
    reader.define(name, arg)
    reader.shown[arg] = reader.shown.get(op.var, str(name))
    op.properties["var_name"] = StringAttr(reader.shown[arg])


@reads_statement(If)
def if_statement(reader: Reader, statement: If) -> None:
    """`if condition: … else: …`."""
    try:
        condition = read_condition(reader, statement.condition, "the condition of 'if'")
    except MirError:
        read_in_vain(reader, statement.body)
        read_in_vain(reader, statement.orelse)
        raise
    op = IfOp.create(
        operands=(condition,),
        regions=[Region(Block()), Region(Block()) if statement.orelse else Region()],
        location=reader.at(statement.token),
    )
    reader.ops.append(op)
    with reader.inside(op.then_region.block):
        statements(reader, statement.body)
    if statement.orelse:
        with reader.inside(op.else_region.block):
            statements(reader, statement.orelse)


@reads_statement(While)
def while_loop(reader: Reader, statement: While) -> None:
    """`while condition: …`."""
    condition, body = Block(), Block()
    with reader.inside(condition):
        try:
            value = read_condition(reader, statement.condition, "the condition of 'while'")
        except MirError:
            read_in_vain(reader, statement.body)
            raise
        reader.ops.append(YieldOp.create(operands=(value,), location=reader.at(statement.token)))
    op = WhileOp.create(regions=[Region(condition), Region(body)], location=reader.at(statement.token))
    reader.ops.append(op)
    with reader.inside(body):
        statements(reader, statement.body)


@reads_statement(Assert)
def assert_statement(reader: Reader, statement: Assert) -> None:
    """`assert condition, "message"`."""
    assertion(reader, statement.token, statement.condition, statement.message)


def assertion(reader: Reader, at: Expr, condition: Expr, message: Expr | None) -> None:
    """`assert condition, "message"`."""
    value = read_condition(reader, condition, "the condition of 'assert'")
    text = "" if message is None else read_string(reader, message, "the message of 'assert'")
    reader.ops.append(
        AssertOp.create(operands=(value,), properties={"message": StringAttr(text)}, location=reader.at(at))
    )


@reads_statement(With)
def with_statement(reader: Reader, statement: With) -> None:
    """`with T.block(…):`, `with T.init():`, and scopes: `with T.allocate(…) as p:`, `with T.attr(…):`."""
    last, first = reader.at_end, statement.items[0][0]
    read = construct.region.get(called(first))
    if read is not None:
        target = statement.items[0][1]
        if len(statement.items) > 1 or target is not None:
            reader.fail(
                target or first,
                f"{called(first)} stands alone and has no 'as'",
                "axes are bound inside: vi = T.axis.spatial(8, i)",
            )
        assert isinstance(first, Call)
        read(reader, first, statement)
        return
    with open_scope(reader, statement.token, last):
        for item, target in statement.items:
            with reader.recovering():
                scope_item(reader, item, target)
                continue
            if isinstance(target, Token):
                reader.poisoned.add(str(target))
        statements(reader, statement.body)


@contextmanager
def open_scope(reader: Reader, token: Token, last: bool) -> Generator[None]:
    """A scope; one that ends with the region around it needs no op."""
    if last:
        with reader.local():
            yield
        return
    block = Block()
    op = ScopeOp.create(regions=[Region(block)], location=reader.at(token))
    reader.ops.append(op)
    with reader.inside(block):
        yield


def scope_item(reader: Reader, item: Expr, target: Expr | None) -> None:
    """One of a with's items."""
    if not isinstance(item, Call) or not isinstance(item.function, Token):
        reader.fail(
            item,
            "this opens no scope",
            "with is for T.block, T.init, T.attr, T.allocate, T.decl_buffer, T.launch_thread, T.LetStmt, T.realize",
        )
    read = construct.scope.get(item.function)
    if target is not None and read is not let_statement:
        if not isinstance(target, Token) or target.type != "NAME":
            reader.fail(target, "'as' gives one name")
        made = definition(reader, str(target), item)
        if made is None:
            reader.fail(item, f"{item.function} gives nothing to name")
        reader.define(str(target), made)
    elif read is None:
        reader.fail(item, f"{item.function} opens no scope")
    else:
        read(reader, item, target)


@construct.scope("T.attr", "T.realize", "T.ProducerRealize", "T.prefetch", "T.launch_thread")
def scope_of_statement(reader: Reader, call: Call, target: Expr | None) -> None:
    """`with T.attr(…):`: the statement, whose effect ends with the scope."""
    expression(reader, call)


@construct.scope("T.Assert")
def scope_of_assert(reader: Reader, call: Call, target: Expr | None) -> None:
    """`with T.Assert(condition, "message"):`."""
    condition, message = named_arguments(reader, call, ("condition", "message"), 2)
    assert condition is not None
    assertion(reader, call, condition, message)


@construct.scope("T.LetStmt")
def let_statement(reader: Reader, call: Call, target: Expr | None) -> None:
    """`with T.LetStmt(value, type) as x:`, `with T.LetStmt(value, var=x):`."""
    value_node, type_node, var_node = named_arguments(reader, call, ("value", "type_annotation", "var"), 1)
    assert value_node is not None
    value = expr(reader, value_node)
    type_ = None if type_node is None else named_type(reader, type_node)
    name = target if target is not None else var_node
    if not isinstance(name, Token) or name.type != "NAME":
        reader.fail(call, "T.LetStmt names its value", "write with T.LetStmt(value) as x:")
    var = None
    if var_node is not None:
        var = scalar(reader, var_node)
        type_ = var.type
    let(reader, name, value, type_, var)


@construct.definition("T.env_thread")
def define_env_thread(reader: Reader, name: str, call: Call) -> SSAValue:
    """`tx = T.env_thread("threadIdx.x")`."""
    tag, dtype = named_arguments(reader, call, ("thread_tag", "dtype"), 1)
    thread = read_string(reader, tag, "a thread")
    type_ = I32 if dtype is None else read_dtype(reader, dtype)
    reader.location = reader.at(call)
    result = reader.emit(EnvThreadOp(reader.fresh(name), thread, type_))
    result.name_hint = hint(name)
    return result


@construct.definition("T.launch_thread")
def define_thread(reader: Reader, name: str, call: Call) -> SSAValue:
    """`tx = T.launch_thread("threadIdx.x", 32)`, or of a variable that T.env_thread made."""
    thread_node, extent_node = named_arguments(reader, call, ("thread", "extent"), 2)
    assert thread_node is not None and extent_node is not None
    env: SSAValue | None = None
    if is_string(thread_node):
        thread = read_string(reader, thread_node, "a thread")
    else:
        env = scalar(reader, thread_node)
        if not isinstance(env.owner, EnvThreadOp | LaunchThreadOp):
            reader.fail(thread_node, "T.launch_thread takes a thread's name or a variable of T.env_thread")
        thread = env.owner.thread.data
        name = env.owner.var_name.data
    extent = expr(reader, extent_node)
    if env is not None and isinstance(extent, Const):
        extent = reader.cast(extent, env.type)
    reader.location = reader.at(call)
    given = reader.value(extent)
    result = reader.emit(LaunchThreadOp(reader.fresh(name) if env is None else name, thread, given, env))
    result.name_hint = hint(name)
    if env is not None and isinstance(thread_node, Token):
        reader.define(str(thread_node), result)
    return result


@construct.statement("T.launch_thread")
def read_launch(reader: Reader, call: Call) -> None:
    """`T.launch_thread(tx, 32)` of an env_thread's variable."""
    define_thread(reader, "", call)


@construct.statement("T.attr")
def read_attr(reader: Reader, call: Call) -> None:
    """`T.attr(node, "key", value)`."""
    node, key, value = named_arguments(reader, call, ("node", "attr_key", "value"), 3)
    assert node is not None and value is not None
    subject = string_or_scalar(reader, node)
    text = read_string(reader, key, "the key of T.attr")
    given = string_or_scalar(reader, value)
    reader.ops.append(
        AttrOp.create(operands=(subject, given), properties={"key": StringAttr(text)}, location=reader.at(call))
    )


@construct.statement("T.func_attr")
def read_func_attr(reader: Reader, call: Call) -> None:
    """`T.func_attr({…})`."""
    if len(call.arguments) != 1 or call.keywords:
        reader.fail(call, "T.func_attr takes one dictionary")
    for key, value in read_dictionary(reader, call.arguments[0]).data.items():
        if key in reader.func_attrs:
            reader.fail(call, f"the attribute '{key}' is given twice")
        reader.func_attrs[key] = value


@construct.statement("T.evaluate")
def read_evaluate(reader: Reader, call: Call) -> None:
    """`T.evaluate(x)`."""
    if len(call.arguments) != 1 or call.keywords:
        reader.fail(call, "T.evaluate takes one value")
    inner = call.arguments[0]
    if isinstance(inner, Call) and isinstance(inner.function, Token) and not inner.function.startswith("T."):
        expression(reader, inner)
        return
    evaluate_node(reader, inner, call)
