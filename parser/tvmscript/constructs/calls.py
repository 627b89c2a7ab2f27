"""Calls: constructs by name, intrinsics, functions of the file, methods of values and buffers."""

from __future__ import annotations

import math
from functools import partial

from xdsl.dialects.builtin import IntegerType, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from ....dialects.tir.arithmetic import AddOp, BinaryOp, FloorDivOp, SubOp
from ....dialects.tir.buffer import BufferOp, LoadOp, buffer_name
from ....dialects.tir.expr import CallOp, ConstOp
from ....dialects.tir.intrinsics import BINARY_MATH, BITWISE, DTYPE_FIRST, DTYPE_LAST, KNOWN, intrinsic_arity
from ....dialects.tir.operators import Const, Value
from ....dialects.tir.scalar_ops import BINARY_ROWS, INTRINSICS
from ....dialects.tir.types import (
    I32,
    USUAL_DTYPES,
    BufferType,
    StringType,
    element_of,
    lanes_of,
    type_to_dtype,
    with_lanes,
)
from ....support.diagnostics import MirError
from ....support.text import counted, nearest
from ...python.literals import is_string
from ...python.tree import Call, Captured, Expr, Keyword, Member, Sequence, Token
from ..arguments import check_count, named_arguments
from ..expressions import access_index, check_rank, expr, number_of, read_buffer, read_pair, scalar
from ..literals import named_type, read_dtype, read_integer, read_string
from ..reader import Reader
from ..registry import construct, reads_expression
from .types import typed

# Functions that make the node as it stands, folding nothing.
_NODES = {row.node: op for op, row in BINARY_ROWS.items()}
# Functions that match dtypes but, in their printed form, fold nothing.
_MATCHING = {name: op for op, row in BINARY_ROWS.items() for name in row.matching}
_FOLDING = {name: op for op, row in BINARY_ROWS.items() for name in row.folding}
_INTEGER_IDENTITIES = frozenset(row.name for row in INTRINSICS.values() if row.numpy_integer == "identity")
# What takes a dtype in TVM that says nothing new.
_TYPED_BY_ARGUMENTS = frozenset(
    {"if_then_else", "all", "any", "abs", "ceildiv", *_MATCHING, *_FOLDING, *(KNOWN - DTYPE_FIRST - DTYPE_LAST)}
)


@reads_expression(Call)
def read_call(reader: Reader, node: Call) -> Value:
    """Reads a call of `T.name`, of a function of the file, or of a method."""
    name = node.function
    if type(name) is not Token:
        if isinstance(name, Captured):
            from ..python_values import python_call

            return python_call(reader, node)
        if isinstance(name, Member):
            return read_method(reader, name.base, name.name[1:], node)
        reader.fail(node, "this cannot be called")
    if not name.startswith("T."):
        return function_call(reader, node, name)
    short = name[2:]
    stated = next((k for k in node.keywords if k.name == "dtype"), None)
    if stated is not None and short in _TYPED_BY_ARGUMENTS:
        return of_stated_type(reader, node, stated)
    read = construct.value.get(name)
    if read is not None:
        return read(reader, node)
    type_ = named_type(reader, name)
    if type_ is not None:
        return typed(reader, node, type_)
    return intrinsic_call(reader, node, short)


def of_stated_type(reader: Reader, node: Call, stated: Keyword) -> Value:
    """Reads `T.exp(x, dtype="float32")`, a form of older TVM scripts.

    The dtype must be the one that follows from the arguments.
    """
    value = read_call(reader, Call(node.function, node.arguments, [k for k in node.keywords if k is not stated]))
    type_ = read_dtype(reader, stated.value)
    if value.type != type_:
        reader.fail(
            stated.name,
            f"{node.function} of these arguments is {type_to_dtype(value.type)}, not {type_to_dtype(type_)}",
            'leave dtype= out, and convert the result: .astype("…")',
        )
    return value


def read_node(op: type[BinaryOp], reader: Reader, node: Call) -> Value:
    """`T.Add(a, b)`: a node that does not fold; a constant takes the dtype of the other side."""
    check_count(reader, node, 2)
    a = expr(reader, node.arguments[0])
    position = len(reader.ops)
    b = expr(reader, node.arguments[1])
    reader.location = reader.at(node)
    if a.type != b.type and (isinstance(a, Const) or isinstance(b, Const)):
        a, b = reader.matched(a, b, position)
    return reader.node(op, a, b)


def read_matching(op: type[BinaryOp], reader: Reader, node: Call) -> Value:
    """`T.max(a, b)`: in the common dtype of both, not folded."""
    check_count(reader, node, 2)
    return reader.node(op, *read_pair(reader, node.arguments[0], node.arguments[1], node))


def read_folding(op: type[BinaryOp], reader: Reader, node: Call) -> Value:
    """`T.floordiv(a, b)`: as the operator `a // b`."""
    check_count(reader, node, 2)
    start = len(reader.ops)
    return reader.folding(op, *read_pair(reader, node.arguments[0], node.arguments[1], node), start)


for _read, _table in ((read_node, _NODES), (read_matching, _MATCHING), (read_folding, _FOLDING)):
    for _name, _op in _table.items():
        construct.value(f"T.{_name}")(partial(_read, _op))


def function_call(reader: Reader, node: Call, name: Token) -> Value:
    """`Module.f(x)` or `f(x)`: a call of another function of the file."""
    result = call_op(reader, node, name)
    if result is None:
        reader.fail(node, f"'{name}' returns nothing", "write the call as a statement of its own")
    return result


def call_op(reader: Reader, node: Call, name: Token) -> SSAValue | None:
    """A call of another function; None when it returns nothing."""
    callee = reader.functions.callees.get(name)
    if callee is None:
        base, _, attribute = name.rpartition(".")
        if base in reader.names:
            return reader.value(read_method(reader, Token("NAME", base, name.start), attribute, node))
        if name in reader.names:
            reader.fail(name, f"'{name}' is not a function")
        if attribute in reader.context.failed:
            raise MirError(())
        near = nearest(name, [*reader.functions.callees, *(f"T.{k}" for k in KNOWN)])
        notes = [f"did you mean '{near}'?"] if near else []
        reader.fail(name, f"there is no function '{name}'", *notes, "intrinsics are written with 'T.' before them")
    if node.keywords:
        reader.fail(node.keywords[0].name, "arguments of a function are given by position")
    arguments: list[SSAValue] = []
    for argument in node.arguments:
        value = scalar(reader, argument)
        arguments.append(reader.buffer_data(value) if isinstance(value.type, BufferType) else value)
    reader.location = reader.at(name)
    op = CallOp.create(
        operands=arguments,
        properties={"intrinsic": StringAttr("call"), "callee": SymbolRefAttr(callee.symbol)},
        result_types=() if callee.result is None else (callee.result,),
    )
    op.location = reader.location
    reader.ops.append(op)
    return op.results[0] if op.results else None


def read_method(reader: Reader, base: Expr, name: str, node: Call) -> Value:
    """`x.astype("float32")`, `A.vload([i], predicate=p)`."""
    if name == "vload":
        return masked_load(reader, base, node)
    if name == "astype" and len(node.arguments) == 1:
        value = number_of(reader, base)
        reader.location = reader.at(node)
        type_ = with_lanes(read_dtype(reader, node.arguments[0]), lanes_of(value.type))
        return reader.cast(value, type_)
    if name == "access_ptr":
        return access_ptr(reader, read_buffer(reader, base), node)
    reader.fail(
        node, f"there is no method '{name}' here", "there are x.astype, and a buffer's vload, vstore and access_ptr"
    )


def access_ptr(reader: Reader, buffer: SSAValue, node: Call) -> Value:
    """Reads `A.access_ptr("r", offset=4, extent=8)`.

    It is `T.tvm_access_ptr(T.type_annotation("float32"), A.data, 4, 8, 1)`. Without `extent`, the pointer covers the buffer after
    the offset.
    """
    names = ("access_mask", "ptr_type", "content_lanes", "offset", "extent")
    mask_node, _, lanes_node, offset_node, extent_node = named_arguments(reader, node, names, 1)
    assert mask_node is not None and isinstance(buffer.type, BufferType)
    mask = access_mask(reader, mask_node)
    lanes = 1 if lanes_node is None else read_integer(reader, lanes_node, "content_lanes")
    if lanes < 1:
        reader.fail(lanes_node or node, f"content_lanes is at least 1, not {lanes}")
    dtype = buffer.type.dtype if lanes == 1 else with_lanes(buffer.type.dtype, lanes)
    reader.location = reader.at(node)
    type_node = reader.intrinsic("type_annotation", [], dtype)
    data = reader.buffer_data(buffer)
    position = len(reader.ops)
    offset = Const(0, I32) if offset_node is None else number_of(reader, offset_node)
    reader.location = reader.at(node)
    if extent_node is not None:
        extent = number_of(reader, extent_node)
    else:
        size = size_in_memory(buffer)
        if size is None:
            reader.fail(node, f"the size of '{buffer_name(buffer)}' is not known here", "write extent=")
        extent = reader.folding(SubOp, Const(size, offset.type), offset, position)
    if lanes > 1:
        extent = reader.folding(FloorDivOp, extent, Const(lanes, extent.type), position)
    owner = buffer.owner
    if isinstance(owner, BufferOp) and owner.elem_offset is not None:
        offset = reader.folding(AddOp, owner.elem_offset, offset, position)
    arguments = [reader.value(offset), reader.value(extent), reader.value(Const(mask, I32))]
    return reader.intrinsic("tvm_access_ptr", [type_node, data, *arguments])


def size_in_memory(buffer: SSAValue) -> int | None:
    """Returns how many elements a buffer spans, strides counted; None if only known at run time."""
    assert isinstance(buffer.type, BufferType)
    owner, shape = buffer.owner, buffer.type.static_shape
    strides = owner.stride_values() if isinstance(owner, BufferOp) else None
    if shape is None or not strides:
        return None if shape is None else math.prod(shape)
    return strides[0] * shape[0] if isinstance(strides[0], int) else None


def access_mask(reader: Reader, node: Expr) -> int:
    """`"r"`, `"w"`, `"rw"`, or TVM's number: 1 for reading, 2 for writing, 3 for both."""
    if not is_string(node):
        return read_integer(reader, node, "an access mask")
    text = read_string(reader, node, "an access mask")
    masks = {"r": 1, "w": 2, "rw": 3, "wr": 3}
    if text not in masks:
        reader.fail(node, f"'{text}' is not an access mask", 'it is "r", "w" or "rw"')
    return masks[text]


def masked_load(reader: Reader, base: Expr, node: Call) -> Value:
    """`A.vload([T.Ramp(0, 1, 4)], predicate=p)`: lanes where p is false are not loaded."""
    indices_node, _, predicate_node = named_arguments(reader, node, ("indices", "dtype", "predicate"), 1)
    buffer = read_buffer(reader, base)
    items = indices_node.items if isinstance(indices_node, Sequence) else [indices_node]
    indices = [access_index(reader, item) for item in items if item is not None]
    check_rank(reader, buffer, len(indices), node)
    predicate = None if predicate_node is None else scalar(reader, predicate_node)
    reader.location = reader.at(node)
    return reader.emit(LoadOp(buffer, indices, predicate))


def intrinsic_call(reader: Reader, node: Call, name: str) -> Value:
    """`T.exp(x)`, `T.call_extern("float32", "f", x)` and their like."""
    if name not in KNOWN and not name.startswith("tir."):
        near = nearest(name, {*KNOWN, *construct.names(), *USUAL_DTYPES})
        reader.fail(
            node,
            f"T has no '{name}'",
            *([f"did you mean 'T.{near}'?"] if near else []),
            'an operator of TVM that is not listed is called T.call_intrin("float32", "tir.name", …)',
        )
    positional = list(node.arguments)
    type_: Attribute | None = None
    for keyword in node.keywords:
        if keyword.name != "dtype" or name not in DTYPE_FIRST | DTYPE_LAST:
            reader.fail(keyword.name, f"T.{name} has no argument '{keyword.name}'")
        type_ = read_dtype(reader, keyword.value)
    if type_ is None and (name in DTYPE_FIRST or name in DTYPE_LAST):
        last = name in DTYPE_LAST
        if not positional or not is_string(positional[-1 if last else 0]):
            reader.fail(
                node,
                f"T.{name} takes a dtype as its {'last' if last else 'first'} argument",
                'write it like "float32"',
            )
        type_ = read_dtype(reader, positional.pop(-1 if last else 0))
    if name == "call_intrin":
        if not positional:
            reader.fail(node, "T.call_intrin takes a dtype, a name and arguments")
        name = read_string(reader, positional.pop(0), "the name of an intrinsic").removeprefix("tir.")
    arity = intrinsic_arity(name)
    if arity is not None and len(positional) != arity:
        reader.fail(node, f"T.{name} takes {counted(arity, 'argument')}, not {len(positional)}")
    if name in BINARY_MATH or name in BITWISE:
        arguments = two_arguments(reader, node, positional[0], positional[1])
    else:
        arguments = [call_argument(reader, a) for a in positional]
    reader.location = reader.at(node)
    if name in _INTEGER_IDENTITIES and len(arguments) == 1 and isinstance(element_of(arguments[0].type), IntegerType):
        return arguments[0]
    return reader.intrinsic(name, arguments, type_)


def two_arguments(reader: Reader, node: Call, first: Expr, second: Expr) -> list[SSAValue]:
    """The arguments of a function of two numbers, in their common dtype."""
    a = expr(reader, first)
    position = len(reader.ops)
    b = expr(reader, second)
    reader.location = reader.at(node)
    if a.type != b.type:
        a, b = reader.matched(a, b, position)
    with reader.before(position):
        x = reader.value(a)
    return [x, reader.value(b)]


def string_or_scalar(reader: Reader, node: Expr) -> SSAValue:
    """A string or any value; `T.llvm_lookup_intrinsic_id("llvm.fma")` is the name."""
    if isinstance(node, Call) and node.function == "T.llvm_lookup_intrinsic_id" and len(node.arguments) == 1:
        node = node.arguments[0]
    if not is_string(node):
        return scalar(reader, node)
    reader.location = reader.at(node)
    attr = StringAttr(read_string(reader, node, ""))
    return reader.emit(ConstOp.create(properties={"value": attr}, result_types=(StringType(),)))


def call_argument(reader: Reader, node: Expr) -> SSAValue:
    """Reads an argument of an intrinsic: a value, a string, or a buffer, which means its data."""
    value = string_or_scalar(reader, node)
    return reader.buffer_data(value) if isinstance(value.type, BufferType) else value
