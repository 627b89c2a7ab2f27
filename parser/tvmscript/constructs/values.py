"""Constructs that compute: choices, vectors, lets, reducers, iteration variables."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.tir.arithmetic import AndOp, BinaryOp, NotOp, OrOp
from ....dialects.tir.expr import BroadcastOp, CommReducerOp, IfThenElseOp, LetOp, RampOp, ShuffleOp, YieldOp
from ....dialects.tir.operators import Value, is_float
from ....dialects.tir.stmt import IterVarOp, TargetOp
from ....dialects.tir.types import ReducerType, element_of, is_unsigned, with_lanes
from ....support.text import counted
from ...python.literals import is_string
from ...python.tree import Binary, Call, Expr, Lambda, Mapping, Sequence, Token, Unary
from ..arguments import check_count, named_arguments, read_arguments
from ..expressions import expr, number_of, range_of, read_lanes, read_pair, scalar
from ..literals import read_attribute, read_integer, read_string
from ..reader import Reader, hint
from ..registry import construct


@construct.value("T.Not")
def read_not(reader: Reader, node: Call) -> Value:
    """`T.Not(x)`, never folded."""
    (value,) = read_arguments(reader, node, 1)
    operand = reader.value(value)
    return reader.emit(NotOp(operand))


@construct.value("T.Select")
def read_select(reader: Reader, node: Call) -> Value:
    """`T.Select(condition, a, b)`."""
    names = ("condition", "true_value", "false_value")
    condition_node, true_node, false_node = named_arguments(reader, node, names, 3)
    assert condition_node is not None and true_node is not None and false_node is not None
    condition = number_of(reader, condition_node)
    return reader.select(condition, *read_pair(reader, true_node, false_node, node))


@construct.value("T.if_then_else")
def read_if_then_else(reader: Reader, node: Call) -> Value:
    """`T.if_then_else(condition, a, b)`: each side in a region of its own."""
    condition_node, then_node, else_node, *_ = named_arguments(reader, node, ("cond", "t", "f"), 3)
    assert condition_node is not None and then_node is not None and else_node is not None
    condition = scalar(reader, condition_node)
    then_value, then_ops = side(reader, then_node)
    else_value, else_ops = side(reader, else_node)
    reader.location = reader.at(node)
    # Each side's cast to the common dtype belongs to that side.
    if then_value.type != else_value.type:
        then_type, else_type = reader.common_types(then_value.type, else_value.type)
        then_value = cast_in(reader, then_ops, then_value, then_type)
        else_value = cast_in(reader, else_ops, else_value, else_type)
    regions = [yielding(reader, then_ops, then_value), yielding(reader, else_ops, else_value)]
    type_ = then_value.type
    return reader.emit(IfThenElseOp(condition, regions[0], regions[1], type_))


def side(reader: Reader, node: Expr) -> tuple[Value, list[Operation]]:
    """An expression in a list of ops of its own."""
    outer = reader.detached()
    try:
        with reader.local():
            value = expr(reader, node)
        return value, reader.ops
    finally:
        reader.ops = outer


def cast_in(reader: Reader, ops: list[Operation], value: Value, type_: Attribute) -> Value:
    """Casts `value` to a type; the cast is appended to `ops`."""
    outer, reader.ops = reader.ops, ops
    try:
        return reader.cast(value, type_)
    finally:
        reader.ops = outer


def yielding(reader: Reader, ops: list[Operation], value: Value) -> Region:
    """A region of these ops that yields a value."""
    outer, reader.ops = reader.ops, ops
    try:
        reader.ops.append(YieldOp.create(operands=(reader.value(value),), location=reader.location))
    finally:
        reader.ops = outer
    block = Block()
    block.add_ops(ops)
    return Region(block)


@construct.value("T.Ramp", "T.ramp")
def read_ramp(reader: Reader, node: Call) -> Value:
    """`T.Ramp(base, stride, lanes)`."""
    base_node, stride_node, lanes_node = named_arguments(reader, node, ("base", "stride", "lanes"), 3)
    assert base_node is not None and stride_node is not None and lanes_node is not None
    base, stride = read_pair(reader, base_node, stride_node, node)
    return reader.emit(RampOp(reader.value(base), reader.value(stride), *read_lanes(reader, lanes_node)))


@construct.value("T.Broadcast", "T.broadcast")
def read_broadcast(reader: Reader, node: Call) -> Value:
    """`T.Broadcast(value, lanes)`."""
    value_node, lanes_node = named_arguments(reader, node, ("value", "lanes"), 2)
    assert value_node is not None and lanes_node is not None
    value = scalar(reader, value_node)
    reader.location = reader.at(node)
    return reader.emit(BroadcastOp(value, *read_lanes(reader, lanes_node)))


@construct.value("T.Shuffle")
def read_shuffle(reader: Reader, node: Call) -> Value:
    """`T.Shuffle([vectors], [indices])`."""
    vectors_node, indices_node = named_arguments(reader, node, ("vectors", "indices"), 2)
    if not isinstance(vectors_node, Sequence) or not isinstance(indices_node, Sequence) or not vectors_node.items:
        reader.fail(node, "T.Shuffle takes a list of vectors and a list of indices")
    vectors = [scalar(reader, v) for v in vectors_node.items]
    indices = [read_integer(reader, i, "an index of T.Shuffle") for i in indices_node.items]
    reader.location = reader.at(node)
    if not indices:
        raise reader.error("T.Shuffle takes at least one index")
    return reader.emit(
        ShuffleOp.create(
            operands=vectors,
            properties={"indices": ArrayAttr([IntAttr(i) for i in indices])},
            result_types=(with_lanes(element_of(vectors[0].type), len(indices)),),
        )
    )


def connective(op: type[BinaryOp], reader: Reader, node: Call) -> Value:
    """`T.all(a, b, …)`, `T.any(a, b, …)`."""
    if not node.arguments or node.keywords:
        reader.fail(node, f"{node.function} takes conditions")
    start = len(reader.ops)
    result = expr(reader, node.arguments[0])
    for argument in node.arguments[1:]:
        value = expr(reader, argument)
        reader.location = reader.at(node)
        result = reader.folding(op, result, value, start)
    return result


construct.value("T.all")(partial(connective, AndOp))
construct.value("T.any")(partial(connective, OrOp))


@construct.value("T.ceildiv")
def read_ceildiv(reader: Reader, node: Call) -> Value:
    """`T.ceildiv(a, b)`: `(a + b - 1) // b`."""
    check_count(reader, node, 2)
    a, b = node.arguments
    at = token_at(node)
    summed = Binary(Token("OPERATOR", "+", at), a, b)
    less = Binary(Token("OPERATOR", "-", at), summed, Token("NUMBER", "1", at))
    return expr(reader, Binary(Token("OPERATOR", "//", at), less, b))


@construct.value("T.abs")
def read_abs(reader: Reader, node: Call) -> Value:
    """Reads `T.abs(x)`.

    Of floats it is an intrinsic, of signed integers `T.Select(x >= 0, x, -x)`, of unsigned ones x itself.
    """
    check_count(reader, node, 1)
    value, made = side(reader, node.arguments[0])
    if is_float(value.type):
        reader.ops += made
        reader.location = reader.at(node)
        return reader.intrinsic("fabs", [reader.value(value)])
    if is_unsigned(value.type):
        reader.ops += made
        return value
    for op in reversed(made):
        op.erase()
    at = token_at(node)
    positive = Binary(Token("OPERATOR", ">=", at), node.arguments[0], Token("NUMBER", "0", at))
    negative = Unary(Token("PREFIX", "-", at), node.arguments[0])
    return read_select(reader, Call(Token("NAME", "T.Select", at), [positive, node.arguments[0], negative], []))


def token_at(node: Call) -> int:
    """Returns the offset of a call, for the nodes that replace it."""
    return node.function.start if isinstance(node.function, Token) else -1


@construct.value("T.Let")
def read_let(reader: Reader, node: Call) -> Value:
    """`T.Let(body, where={x: value})`."""
    body, where = named_arguments(reader, node, ("expr", "where"), 2)
    if body is None or not isinstance(where, Mapping):
        reader.fail(node, "T.Let takes an expression and where={name: value}")
    # The names end with the expression, the lets stay in the region.
    mark = reader.mark()
    try:
        for name, value_node in where.pairs:
            if type(name) is not Token or name.type != "NAME":
                reader.fail(name, "where= maps names to values")
            value = scalar(reader, value_node)
            reader.location = reader.at(name)
            let = reader.emit(LetOp(reader.fresh(name), value))
            let.name_hint = hint(name)
            reader.define(name, let)
        return expr(reader, body)
    finally:
        reader.restore(mark)


@construct.value("T.comm_reducer")
def read_comm_reducer(reader: Reader, node: Call) -> Value:
    """`T.comm_reducer(lambda x, y: x + y, [identity])`."""
    function, identities_node = named_arguments(reader, node, ("combiner", "identity"), 2)
    if not isinstance(function, Lambda) or not isinstance(identities_node, Sequence):
        reader.fail(node, "T.comm_reducer takes a lambda and a list of identities")
    identities = [scalar(reader, i) for i in identities_node.items]
    if len(function.parameters) != 2 * len(identities):
        reader.fail(
            function,
            f"a reducer of {counted(len(identities), 'value')} has a lambda of {counted(2 * len(identities), 'parameter')}, not {len(function.parameters)}",
        )
    block = Block(arg_types=[i.type for i in identities] * 2)
    body = function.body
    with reader.inside(block):
        names: list[str] = []
        for name, arg in zip(function.parameters, block.args, strict=True):
            arg.name_hint = hint(name)
            reader.define(name, arg)
            names.append(reader.fresh(name))
        results = [scalar(reader, r) for r in (body.items if isinstance(body, Sequence) else [body])]
        reader.ops.append(YieldOp.create(operands=results, location=reader.at(function)))
    reader.location = reader.at(node)
    return reader.emit(CommReducerOp(identities, Region(block), ReducerType(), names))


@construct.value("T.iter_var")
def read_iter_var(reader: Reader, node: Call) -> Value:
    """`T.iter_var(v, T.Range(0, n), "ThreadIndex", "threadIdx.x")`."""
    names = ("var", "dom", "iter_type", "thread_tag")
    var_node, dom, kind, tag = named_arguments(reader, node, names, 3)
    assert var_node is not None
    if is_string(var_node):
        reader.fail(var_node, "T.iter_var takes a variable", "declare it: i = T.int32()")
    var = scalar(reader, var_node)
    ends: list[SSAValue] = []
    if isinstance(dom, Call) and dom.function in ("T.Range", "I.Range", "Range") and len(dom.arguments) == 2:
        ends = list(range_of(reader, dom.arguments[0], dom.arguments[1], var.type))
    elif dom != "None":
        reader.fail(dom, "the domain of T.iter_var is a T.Range(start, stop), or None")
    iter_type = read_string(reader, kind, "the kind of T.iter_var")
    thread_tag = "" if tag is None else read_string(reader, tag, "the thread of T.iter_var")
    reader.location = reader.at(node)
    return reader.emit(IterVarOp(var, ends, iter_type, thread_tag))


@construct.value("T.target")
def read_target(reader: Reader, node: Call) -> Value:
    """`T.target({…})` as the node of an attribute."""
    (config_node,) = named_arguments(reader, node, ("config",), 1)
    assert config_node is not None
    config = read_attribute(reader, config_node)
    reader.location = reader.at(node)
    return reader.emit(TargetOp(config))


@construct.definition("T.meta_var")
def define_alias(reader: Reader, name: str, call: Call) -> SSAValue | None:
    """`x = T.meta_var(expression)`: another name for the expression."""
    (value,) = read_arguments(reader, call, 1)
    return reader.value(value)
