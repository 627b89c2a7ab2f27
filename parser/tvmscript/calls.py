"""Calls: intrinsics, functions of the file, and the functions behind `T.` that make other ops than `tir.call`."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import (
    IntegerType,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, SSAValue

from ...dialects.tir.arithmetic import AddOp, FloorDivOp, SubOp
from ...dialects.tir.buffer import BufferOp, LoadOp, buffer_name
from ...dialects.tir.expr import CallOp, ConstOp
from ...dialects.tir.intrinsics import BINARY_MATH, BITWISE, DTYPE_FIRST, DTYPE_LAST, KNOWN, intrinsic_arity
from ...dialects.tir.operators import Const, Value
from ...dialects.tir.scalar_ops import BINARY_ROWS, INTRINSICS
from ...dialects.tir.types import (
    I32,
    BufferType,
    StringType,
    element_of,
    lanes_of,
    type_to_dtype,
    with_lanes,
)
from ...support.text import counted, nearest
from ..python.tree import Call, Expr, Keyword, Member, Token
from ..python.tree import Sequence as Items
from .constructs import READERS, Constructs

# Functions that make the node as it stands, folding nothing.
_NODES = {row.node: op for op, row in BINARY_ROWS.items()}
# Functions that match dtypes but, in their printed form, fold nothing.
_MATCHING = {name: op for op, row in BINARY_ROWS.items() for name in row.matching}
_FOLDING = {name: op for op, row in BINARY_ROWS.items() for name in row.folding}
# What else stands behind `T.`, for suggestions.
_OTHERS = (
    "Assert", "Buffer", "LetStmt", "ProducerRealize", "alloc_buffer", "allocate", "allocate_const", "attr", "axis.opaque",
    "axis.reduce", "axis.remap", "axis.scan", "axis.spatial", "bfloat16", "block", "block_attr", "bool", "decl_buffer",
    "env_thread", "evaluate", "float16", "float32", "float64", "func_attr", "grid", "handle", "init", "int16", "int32", "int64",
    "int8", "launch_thread", "match_buffer", "parallel", "prefetch", "prim_func", "reads", "realize", "serial",
    "thread_binding", "uint16", "uint32", "uint64", "uint8", "unroll", "vectorized", "where", "writes",
)  # fmt: skip
_INTEGER_IDENTITIES = frozenset(row.name for row in INTRINSICS.values() if row.numpy_integer == "identity")


_TYPED_BY_ARGUMENTS = frozenset(
    {"if_then_else", "all", "any", "abs", "ceildiv", *_MATCHING, *_FOLDING, *(KNOWN - DTYPE_FIRST - DTYPE_LAST)}
)
"""What takes a dtype in TVM that says nothing new."""


class Calls(Constructs):
    """Reads calls."""

    def call(self, node: Call) -> Value:
        """A call of something behind `T.`, of a function of the file, or of a method."""
        name = node.function
        if type(name) is not Token:
            if isinstance(name, Member):
                return self.method(name.base, name.name[1:], node)
            self.fail(node, "this cannot be called")
        if not name.startswith("T."):
            return self.function_call(node, name)
        short = name[2:]
        stated = next((k for k in node.keywords if k.name == "dtype"), None)
        if stated is not None and short in _TYPED_BY_ARGUMENTS:
            return self.of_stated_type(node, stated)
        reader = READERS.get(short)
        if reader is not None:
            return reader(self, node)
        if short in _NODES:
            self.check_count(node, 2)
            return self.node_of_constants(_NODES[short], node)
        if short in _MATCHING:
            self.check_count(node, 2)
            return self.node(_MATCHING[short], *self.pair(node.arguments[0], node.arguments[1], node))
        if short in _FOLDING:
            self.check_count(node, 2)
            start = len(self.ops)
            return self.folding(_FOLDING[short], *self.pair(node.arguments[0], node.arguments[1], node), start)
        type_ = self.named_type(name)
        if type_ is not None:
            return self.typed(node, type_)
        return self.intrinsic_call(node, short)

    def of_stated_type(self, node: Call, stated: Keyword) -> Value:
        """`T.exp(x, dtype="float32")`, as TVM's older scripts have it: the dtype that follows from the arguments, checked."""
        value = self.call(Call(node.function, node.arguments, [k for k in node.keywords if k is not stated]))
        type_ = self.dtype(stated.value)
        if value.type != type_:
            self.fail(
                stated.name,
                f"{node.function} of these arguments is {type_to_dtype(value.type)}, not {type_to_dtype(type_)}",
                'leave dtype= out, and convert the result: .astype("…")',
            )
        return value

    def typed(self, node: Call, type_: Attribute) -> Value:
        """`T.float32(x)`: a constant of that dtype, or a cast."""
        if not node.arguments:
            self.fail(node, f"{node.function}() makes a variable", f"give it a name: n = {node.function}()")
        if len(node.arguments) != 1:
            self.fail(node, f"{node.function} takes one value")
        const = self.typed_literal(type_, node.arguments[0])
        if const is not None:
            return const
        value = self.number_of(node.arguments[0])
        self.location = self.at(node)
        return self.cast(value, type_)

    def function_call(self, node: Call, name: Token) -> Value:
        """`Module.f(x)` or `f(x)`: a call of another function of the file."""
        result = self.call_op(node, name)
        if result is None:
            self.fail(node, f"'{name}' returns nothing", "write the call as a statement of its own")
        return result

    def call_op(self, node: Call, name: Token) -> SSAValue | None:
        """A call of another function; None when it returns nothing."""
        callee = self.functions.callees.get(name)
        if callee is None:
            base, _, attribute = name.rpartition(".")
            if base in self.names:
                return self.value(self.method(Token("NAME", base, name.start), attribute, node))
            if name in self.names:
                self.fail(name, f"'{name}' is no function")
            near = nearest(name, [*self.functions.callees, *(f"T.{k}" for k in KNOWN)])
            notes = [f"did you mean '{near}'?"] if near else []
            self.fail(name, f"there is no function '{name}'", *notes, "intrinsics are written with 'T.' before them")
        if node.keywords:
            self.fail(node.keywords[0].name, "arguments of a function are given by position")
        arguments: list[SSAValue] = []
        for argument in node.arguments:
            value = self.scalar(argument)
            arguments.append(self.buffer_data(value) if isinstance(value.type, BufferType) else value)
        self.location = self.at(name)
        op = CallOp.create(
            operands=arguments,
            properties={"intrinsic": StringAttr("call"), "callee": SymbolRefAttr(callee.symbol)},
            result_types=() if callee.result is None else (callee.result,),
        )
        op.location = self.location
        self.ops.append(op)
        return op.results[0] if op.results else None

    def method(self, base: Expr, name: str, node: Call) -> Value:
        """`x.astype("float32")`, `A.vload([i], predicate=p)`."""
        if name == "vload":
            return self.masked_load(base, node)
        if name == "astype" and len(node.arguments) == 1:
            value = self.number_of(base)
            self.location = self.at(node)
            type_ = with_lanes(self.dtype(node.arguments[0]), lanes_of(value.type))
            return self.cast(value, type_)
        if name == "access_ptr":
            return self.access_ptr(self.buffer(base), node)
        self.fail(
            node, f"there is no method '{name}' here", "there are x.astype, and a buffer's vload, vstore and access_ptr"
        )

    def access_ptr(self, buffer: SSAValue, node: Call) -> Value:
        """`A.access_ptr("r", offset=4, extent=8)`: `T.tvm_access_ptr(T.type_annotation("float32"), A.data, 4, 8, 1)`.

        Without `extent`, what is left of the buffer behind the offset.
        """
        names = ("access_mask", "ptr_type", "content_lanes", "offset", "extent")
        mask_node, _, lanes_node, offset_node, extent_node = self.named_arguments(node, names, 1)
        assert mask_node is not None and isinstance(buffer.type, BufferType)
        mask = self.access_mask(mask_node)
        lanes = 1 if lanes_node is None else self.integer(lanes_node, "content_lanes")
        if lanes < 1:
            self.fail(lanes_node or node, f"content_lanes is at least 1, not {lanes}")
        dtype = buffer.type.dtype if lanes == 1 else with_lanes(buffer.type.dtype, lanes)
        self.location = self.at(node)
        type_node = self.intrinsic("type_annotation", [], dtype)
        data = self.buffer_data(buffer)
        position = len(self.ops)
        offset = Const(0, I32) if offset_node is None else self.number_of(offset_node)
        self.location = self.at(node)
        if extent_node is not None:
            extent = self.number_of(extent_node)
        else:
            size = self.size_in_memory(buffer)
            if size is None:
                self.fail(node, f"the size of '{buffer_name(buffer)}' is not known here", "write extent=")
            extent = self.folding(SubOp, Const(size, offset.type), offset, position)
        if lanes > 1:
            extent = self.folding(FloorDivOp, extent, Const(lanes, extent.type), position)
        owner = buffer.owner
        if isinstance(owner, BufferOp) and owner.elem_offset is not None:
            offset = self.folding(AddOp, owner.elem_offset, offset, position)
        arguments = [self.value(offset), self.value(extent), self.value(Const(mask, I32))]
        return self.intrinsic("tvm_access_ptr", [type_node, data, *arguments])

    def size_in_memory(self, buffer: SSAValue) -> int | None:
        """How many elements a buffer spans, strides counted; None where that is known at run time only."""
        assert isinstance(buffer.type, BufferType)
        owner, shape = buffer.owner, buffer.type.static_shape
        strides = owner.stride_values() if isinstance(owner, BufferOp) else None
        if shape is None or not strides:
            return None if shape is None else math.prod(shape)
        return strides[0] * shape[0] if isinstance(strides[0], int) else None

    def access_mask(self, node: Expr) -> int:
        """`"r"`, `"w"`, `"rw"`, or TVM's number: 1 for reading, 2 for writing, 3 for both."""
        if not self.is_string(node):
            return self.integer(node, "an access mask")
        text = self.string(node, "an access mask")
        masks = {"r": 1, "w": 2, "rw": 3, "wr": 3}
        if text not in masks:
            self.fail(node, f"'{text}' is not an access mask", 'it is "r", "w" or "rw"')
        return masks[text]

    def masked_load(self, base: Expr, node: Call) -> Value:
        """`A.vload([T.Ramp(0, 1, 4)], predicate=p)`: lanes where p is false are not loaded."""
        indices_node, _, predicate_node = self.named_arguments(node, ("indices", "dtype", "predicate"), 1)
        buffer = self.buffer(base)
        items = indices_node.items if isinstance(indices_node, Items) else [indices_node]
        indices = [self.access_index(item) for item in items if item is not None]
        self.check_rank(buffer, len(indices), node)
        predicate = None if predicate_node is None else self.scalar(predicate_node)
        self.location = self.at(node)
        return self.emit(LoadOp(buffer, indices, predicate))

    def intrinsic_call(self, node: Call, name: str) -> Value:
        """`T.exp(x)`, `T.call_extern("float32", "f", x)` and their like."""
        if name not in KNOWN and not name.startswith("tir."):
            near = nearest(name, [*KNOWN, *READERS, *_MATCHING, *_FOLDING, *_NODES, *_OTHERS])
            self.fail(
                node,
                f"T has no '{name}'",
                *([f"did you mean 'T.{near}'?"] if near else []),
                'an operator of TVM that is not listed is called T.call_intrin("float32", "tir.name", …)',
            )
        positional = list(node.arguments)
        type_: Attribute | None = None
        for keyword in node.keywords:
            if keyword.name != "dtype" or name not in DTYPE_FIRST | DTYPE_LAST:
                self.fail(keyword.name, f"T.{name} has no argument '{keyword.name}'")
            type_ = self.dtype(keyword.value)
        if type_ is None and (name in DTYPE_FIRST or name in DTYPE_LAST):
            last = name in DTYPE_LAST
            if not positional or not self.is_string(positional[-1 if last else 0]):
                self.fail(
                    node,
                    f"T.{name} takes a dtype as its {'last' if last else 'first'} argument",
                    'write it like "float32"',
                )
            type_ = self.dtype(positional.pop(-1 if last else 0))
        if name == "call_intrin":
            if not positional:
                self.fail(node, "T.call_intrin takes a dtype, a name and arguments")
            name = self.string(positional.pop(0), "the name of an intrinsic").removeprefix("tir.")
        arity = intrinsic_arity(name)
        if arity is not None and len(positional) != arity:
            self.fail(node, f"T.{name} takes {counted(arity, 'argument')}, not {len(positional)}")
        if name in BINARY_MATH or name in BITWISE:
            arguments = self.two_arguments(node, positional[0], positional[1])
        else:
            arguments = [self.call_argument(a) for a in positional]
        self.location = self.at(node)
        if (
            name in _INTEGER_IDENTITIES
            and len(arguments) == 1
            and isinstance(element_of(arguments[0].type), IntegerType)
        ):
            return arguments[0]
        return self.intrinsic(name, arguments, type_)

    def two_arguments(self, node: Call, first: Expr, second: Expr) -> list[SSAValue]:
        """The arguments of a function of two numbers, in their common dtype."""
        a = self.expr(first)
        position = len(self.ops)
        b = self.expr(second)
        self.location = self.at(node)
        if a.type != b.type:
            a, b = self.matched(a, b, position)
        with self.before(position):
            x = self.value(a)
        return [x, self.value(b)]

    def call_argument(self, node: Expr) -> SSAValue:
        """An argument of an intrinsic: a value, a string, or a buffer, which stands for its data."""
        if self.is_string(node):
            self.location = self.at(node)
            attr = StringAttr(self.string(node, ""))
            return self.emit(ConstOp.create(properties={"value": attr}, result_types=(StringType(),)))
        value = self.scalar(node)
        return self.buffer_data(value) if isinstance(value.type, BufferType) else value
