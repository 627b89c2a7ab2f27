"""Expressions: from the syntax tree to ops, with TVM's dtype matching and constant folding."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ...dialects.tir.arithmetic import DivOp, NeOp, SubOp
from ...dialects.tir.buffer import BufferGetOp, LoadOp, accessed_type, buffer_name
from ...dialects.tir.expr import RampOp
from ...dialects.tir.operators import Const, Value, fold, is_float
from ...dialects.tir.scalar_ops import BINARY_ROWS, INTRINSICS
from ...dialects.tir.types import I1, I32, BufferType, HandleType, element_of, type_to_dtype
from ...support.diagnostics import MirError
from ...support.text import counted, nearest, with_article
from ..python.tree import (
    Binary,
    Call,
    Conditional,
    Expr,
    Index,
    Lambda,
    Mapping,
    Member,
    Sequence,
    Slice,
    Token,
    Unary,
)
from .literals import literal_const, named_type, read_number
from .reader import Reader, describe, segments
from .registry import reads_expression
from .slice_extent import difference, literal_int

_OPERATORS = {row.symbol: op for op, row in BINARY_ROWS.items() if row.symbol not in ("", "/")}
_BIT_OPERATORS = {row.symbol: row.name for row in INTRINSICS.values() if row.symbol and row.arity == 2}
_KNOWN_OPERATORS = frozenset(["/", *_OPERATORS, *_BIT_OPERATORS])


def scalar(reader: Reader, node: Expr) -> SSAValue:
    """The SSA value of an expression."""
    value = expr(reader, node)
    if type(value) is Const:
        reader.location = reader.at(node)
    return reader.value(value)


def expr(reader: Reader, node: Expr) -> Value:
    """The value of an expression, which may still be a constant. Raises MirError where it has none."""
    return reads_expression[type(node)](reader, node)


@reads_expression(Sequence, Mapping, Lambda, Slice, Conditional)
def refuse_value(reader: Reader, node: Sequence | Mapping | Lambda | Slice | Conditional) -> Value:
    """Refuses a node that is only valid as the argument of certain constructs."""
    match node:
        case Lambda():
            reader.fail(node, "a lambda stands only in T.comm_reducer")
        case Slice():
            reader.fail(node, "a slice stands only in an index")
        case Sequence() if not node.items:
            reader.fail(None, "'()' is not a value")
        case _:
            reader.fail(node, "a value is expected here, not a list, tuple or dictionary")


@reads_expression(Member)
def read_field(reader: Reader, node: Member) -> Value:
    """Reads `x.data` where x is not a name."""
    return read_member(reader, node.base, node.name[1:], node)


@reads_expression(Token)
def read_atom(reader: Reader, token: Token) -> Value:
    """A name, a number, True or False."""
    if token.type == "NUMBER":
        number = read_number(reader, token)
        if isinstance(number.value, int) and number.value >= 1 << 63:
            reader.fail(token, f"{number.value} does not fit into int64", "an unsigned one is written T.uint64(…)")
        return number
    if token.type == "STRING":
        reader.fail(token, "a string is not a value here", "strings stand among a call's arguments and in annotations")
    entry = reader.names.get(token)
    if entry is not None:
        return entry
    return unknown_name(reader, token)


def unknown_name(reader: Reader, token: Token) -> Value:
    """Reads a name that is not a variable: a field of a buffer, or a constant. Raises MirError otherwise."""
    if token == "True" or token == "False":
        return Const(int(token == "True"), I1)
    base, dot, name = token.rpartition(".")
    if dot and base in reader.names:
        return read_member(reader, Token("NAME", base, token.start), name, token)
    if token.startswith("T."):
        reader.fail(token, f"'{token}' is a function", f"call it: {token}(…)")
    if token in reader.poisoned or base in reader.poisoned:
        raise MirError(())
    near = nearest(token, reader.names)
    reader.fail(
        token, f"'{token}' is not defined", f"did you mean '{near}'?" if near else what_is_defined(reader, token)
    )


def what_is_defined(reader: Reader, name: str) -> str:
    """Returns a note for an undefined name: the integers in scope, and how a symbolic size is declared.

    The integers are the last four loop variables, axes and parameters.
    """
    integers = [
        known
        for known, value in reader.names.items()
        if isinstance(value, BlockArgument) and isinstance(value.type, IntegerType)
    ]
    size = f"a symbolic size is declared with {name} = T.int32()"
    return f"integers in scope: {', '.join(integers[-4:])}; {size}" if integers else size


def read_member(reader: Reader, base: Expr, name: str, node: Expr) -> Value:
    """`A.data`, `A.elem_offset`; `A.shape` and `A.strides` need an index."""
    buffer = expr(reader, base)
    if isinstance(buffer, Const) or not isinstance(buffer.type, BufferType):
        reader.fail(node, f"only a buffer has '.{name}'")
    reader.location = reader.at(node)
    if name == "data":
        return reader.buffer_data(buffer)
    if name == "elem_offset":
        return reader.emit(BufferGetOp(buffer, "elem_offset", I32))
    if name in ("shape", "strides"):
        reader.fail(node, f"'{name}' is one number for each dimension", f"write {buffer_name(buffer)}.{name}[0]")
    reader.fail(node, f"a buffer has no '{name}'", "it has data, elem_offset, shape[i] and strides[i]")


def number_of(reader: Reader, node: Expr) -> Value:
    """The value of an operand: anything but a buffer."""
    value = expr(reader, node)
    if isinstance(value.type, BufferType):
        name = f"'{node}'" if type(node) is Token else "this"
        access = f"{node if type(node) is Token else 'A'}[{', '.join('ijklmn'[: value.type.rank]) or '()'}]"
        reader.fail(node, f"{name} is a buffer, not a number", f"index it, as in {access}")
    return value


@reads_expression(Binary)
def read_binary(reader: Reader, node: Binary) -> Value:
    """`a op b`."""
    start = len(reader.ops)
    a = number_of(reader, node.left)
    position = len(reader.ops)
    b = number_of(reader, node.right)
    reader.location = reader.at(node.op)
    if a.type != b.type and node.op in _KNOWN_OPERATORS:
        a, b = reader.matched(a, b, position)
    op = _OPERATORS.get(node.op)
    if op is not None:
        return reader.folding(op, a, b, start)
    if node.op == "/":
        if not is_float(a.type) and not is_float(b.type):
            raise reader.error(
                "'/' on integers may mean two things",
                "write a // b (rounds down) or T.Div(a, b) (rounds toward zero)",
            )
        return reader.folding(DivOp, a, b, start)
    if node.op in _BIT_OPERATORS:
        folded = fold(_BIT_OPERATORS[node.op], a, b) if a.type == b.type else None
        if folded is not None:
            return folded
        with reader.before(position):
            x = reader.value(a)
        return reader.intrinsic(_BIT_OPERATORS[node.op], [x, reader.value(b)])
    if node.op == "**":
        raise reader.error("TVMScript has no '**'", "write T.pow(a, b) for floats, or a product")
    raise reader.error(f"TVMScript has no '{node.op}' between scalars")


def read_pair(reader: Reader, left: Expr, right: Expr, where: Expr) -> tuple[Value, Value]:
    """Two operands in their common dtype; the location is then that of `where`."""
    a = number_of(reader, left)
    position = len(reader.ops)
    b = number_of(reader, right)
    reader.location = reader.at(where)
    return (a, b) if a.type == b.type else reader.matched(a, b, position)


@reads_expression(Unary)
def read_unary(reader: Reader, node: Unary) -> Value:
    """`-x`, `not x`, `~x`, `+x`."""
    if node.op == "*":
        reader.fail(node, "'*' before a value takes a list apart, and TVMScript has no lists of values")
    # The least int64 is the negative of a number that fits no int64.
    value = (literal_const(reader, node.operand) if node.op == "-" else None) or number_of(reader, node.operand)
    reader.location = reader.at(node.op)
    if node.op == "-":
        return reader.negate(value)
    if node.op == "not":
        return reader.logical_not(value)
    return reader.intrinsic("bitwise_not", [reader.value(value)]) if node.op == "~" else value


@reads_expression(Index)
def read_load(reader: Reader, node: Index) -> Value:
    """`A[i, j]`, or `A.strides[0]`."""
    base = node.base
    if type(base) is Token and base not in reader.names and base.endswith((".shape", ".strides")):
        return extent_of(reader, node, base)
    buffer = read_buffer(reader, base)
    indices = [access_index(reader, item) for item in node.items]
    check_rank(reader, buffer, len(indices), node)
    reader.location = reader.at(node)
    assert isinstance(buffer.type, BufferType)
    type_ = buffer.type.dtype
    for i in indices:
        if i.type is not I32 and isinstance(i.type, VectorType):
            type_ = accessed_type(buffer.type, [i.type for i in indices])
            break
    return reader.emit(
        LoadOp.create(
            operands=(buffer, *indices),
            result_types=(type_,),
            properties={"operandSegmentSizes": segments(1, len(indices), 0)},
        )
    )


def extent_of(reader: Reader, node: Index, base: Token) -> Value:
    """`A.shape[0]`, `A.strides[0]`."""
    name, _, field = base.rpartition(".")
    buffer = read_buffer(reader, Token("NAME", name, base.start))
    assert isinstance(buffer.type, BufferType)
    dim = literal_int(node.items[0]) if len(node.items) == 1 else None
    if dim is None or not 0 <= dim < buffer.type.rank:
        reader.fail(node, f"'{field}' of '{name}' is indexed with one dimension, 0 to {buffer.type.rank - 1}")
    reader.location = reader.at(base)
    return reader.emit(BufferGetOp(buffer, field, dim_type(buffer.type, dim), dim))


def dim_type(type: BufferType, dim: int) -> Attribute:
    """Returns the dtype of an extent or stride: that of the number in the buffer's type, otherwise int32."""
    size = type.shape.data[dim]
    return getattr(size, "type", I32)


def read_buffer(reader: Reader, node: Expr) -> SSAValue:
    """Returns the buffer that an expression names."""
    value = expr(reader, node)
    if isinstance(value, SSAValue) and isinstance(value.type, BufferType):
        return value
    name = node if type(node) is Token else "this"
    if isinstance(value.type, HandleType):
        reader.fail(
            node,
            f"'{name}' is a handle, which cannot be indexed",
            f"make a buffer of it: T.match_buffer({name}, …) of a parameter, T.decl_buffer(…, data={name}) of an allocation",
        )
    reader.fail(node, f"'{name}' is {with_article(type_to_dtype(value.type))}, not a buffer")


def check_rank(reader: Reader, buffer: SSAValue, count: int, node: Expr) -> None:
    """Refuses an access with another number of indices than the buffer has dimensions."""
    assert isinstance(buffer.type, BufferType)
    if count != buffer.type.rank:
        reader.fail(
            node,
            f"'{buffer_name(buffer)}' has {counted(buffer.type.rank, 'dimension')}, but {count} {'index is' if count == 1 else 'indices are'} given",
        )


def access_index(reader: Reader, item: Expr) -> SSAValue:
    """One index of a load or store; a slice is a vector of indices."""
    if type(item) is Slice:
        return read_slice(reader, item)
    value = scalar(reader, item)
    if value.type is I32:
        return value
    if not isinstance(element_of(value.type), IntegerType) or value.type == I1:
        reader.fail(item, f"an index is an integer, not {describe(value)}")
    return value


def read_slice(reader: Reader, item: Slice) -> SSAValue:
    """`start:stop:step` as indices of a load or store."""
    start: Expr = item.start if item.start is not None else Token("NUMBER", "0")
    if item.stop is None:
        reader.fail(item, "a slice in a load or store says where it ends", "write A[i:i + 4]")
    distance = difference(start, item.stop)
    step = 1 if item.step is None else literal_int(item.step)
    base = scalar(reader, start)
    if step is None or step == 0:
        reader.fail(item.step, "the step of a slice in a load or store is an integer constant")
    reader.location = reader.at(item)
    scale = None if isinstance(distance, int) or distance is None else scalable_lanes(distance)
    if scale is not None:
        return reader.emit(RampOp(base, reader.value(Const(step, base.type)), scale // abs(step), True))
    if not isinstance(distance, int):
        reader.fail(
            item,
            "how many elements this slice takes is not known",
            "write it as start:start + lanes with a constant",
        )
    lanes = -(-distance // step)
    if lanes < 1:
        reader.fail(item, f"this slice takes {counted(lanes, 'element')}", "it takes at least one")
    if lanes == 1:
        return base
    return reader.emit(RampOp(base, reader.value(Const(step, base.type)), lanes))


def scalable_lanes(node: Expr) -> int | None:
    """n where the node is `T.vscale() * n` (or `T.vscale()`)."""
    if isinstance(node, Call) and node.function == "T.vscale":
        return 1
    if isinstance(node, Binary) and node.op == "*":
        for side, other in ((node.left, node.right), (node.right, node.left)):
            count = literal_int(other)
            if isinstance(side, Call) and side.function == "T.vscale" and count is not None:
                return count
    if isinstance(node, Call) and node.function == "T.Mul" and len(node.arguments) == 2:
        return scalable_lanes(Binary(Token("OPERATOR", "*"), node.arguments[0], node.arguments[1]))
    return None


def read_lanes(reader: Reader, node: Expr) -> tuple[int, bool]:
    """The number of lanes that T.Ramp and T.Broadcast are given, and whether it is a multiple of vscale."""
    count = literal_int(node)
    if count is not None:
        if count < 1:
            reader.fail(node, f"a vector has at least one lane, not {count}")
        return count, False
    scale = scalable_lanes(node)
    if scale is None:
        reader.fail(node, "the number of lanes is an integer constant, or T.vscale() times one")
    return scale, True


def read_condition(reader: Reader, node: Expr, what: str) -> SSAValue:
    """A bool; an integer is compared with zero, as Python does."""
    reader.location = reader.at(node)
    value = reader.value(number_of(reader, node))
    if isinstance(value.type, IntegerType) and value.type != I1:
        reader.location = reader.at(node)
        return reader.value(reader.binary(NeOp, value, Const(0, value.type)))
    if value.type != I1:
        reader.fail(node, f"{what} must be bool, not {describe(value)}", "compare with '!= 0'")
    return value


def range_of(reader: Reader, start: Expr, stop: Expr, type_: Attribute | None = None) -> tuple[SSAValue, SSAValue]:
    """The start and the extent of `start … stop`, in one dtype (`type_` for constants, where given)."""
    distance = difference(start, stop)
    low = expr(reader, start)
    low_at, position = reader.location, len(reader.ops)
    if isinstance(distance, int):
        high: Value = Const(distance, element_of(constant_type(reader, stop, low.type)))
    elif distance is not None:
        high = expr(reader, distance)
    else:
        end = expr(reader, stop)
        reader.location = reader.at(stop)
        if low.type != end.type:
            low, end = reader.matched(low, end, position)
        # One value for both, so that the printer finds `stop` again.
        with reader.before(position):
            low = reader.value(low)
        high = reader.binary(SubOp, end, low)
    reader.location = low_at if type(start) is not Token else reader.at(start)
    plain = isinstance(low, Const) and isinstance(high, Const) and low.type == high.type == I32
    if plain and type_ is not None and type_ != I32:
        low, high = reader.cast(low, type_), reader.cast(high, type_)
    if low.type != high.type:
        low, high = reader.matched(low, high, position)
    return reader.value(low), reader.value(high)


def constant_type(reader: Reader, node: Expr, other: Attribute) -> Attribute:
    """Returns the dtype of a constant extent: its literal's if stated, otherwise that of the start."""
    if isinstance(node, Call) and literal_int(node) is not None:
        return named_type(reader, node.function) or other
    return other
