"""Expressions: from the syntax tree to ops, with TVM's dtype matching and constant folding."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerType,
    StringAttr,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ...dialects.tir.arithmetic import BinaryOp, DivOp
from ...dialects.tir.buffer import BufferGetOp, LoadOp, accessed_type, buffer_name
from ...dialects.tir.expr import CallOp, LetOp, RampOp
from ...dialects.tir.intrinsics import intrinsic_type
from ...dialects.tir.operators import Const, Value, fold, is_float
from ...dialects.tir.scalar_ops import BINARY_ROWS, INTRINSICS
from ...dialects.tir.types import (
    I1,
    I32,
    BufferType,
    HandleType,
    element_of,
    type_to_dtype,
)
from ...support.diagnostics import MirError
from ...support.text import counted, nearest, with_article
from ..python.tree import Binary, Call, Expr, Index, Lambda, Member, Slice, Token, Unary
from ..python.tree import Sequence as Items
from .linear import difference, literal_int
from .literals import Literals

_OPERATORS = {row.symbol: op for op, row in BINARY_ROWS.items() if row.symbol not in ("", "/")}
_BIT_OPERATORS = {row.symbol: row.name for row in INTRINSICS.values() if row.symbol and row.arity == 2}
_KNOWN_OPERATORS = frozenset(["/", *_OPERATORS, *_BIT_OPERATORS])


@cache
def segments(*sizes: int) -> DenseArrayBase:
    """The `operandSegmentSizes` of an op."""
    return DenseArrayBase.from_list(i32, sizes)


class Expressions(Literals, ABC):
    """Reads expressions. `expr` gives a value that may still be a constant; `scalar` makes it an op's result."""

    def scalar(self, node: Expr) -> SSAValue:
        """The SSA value of an expression."""
        value = self.expr(node)
        if type(value) is Const:
            self.location = self.at(node)
        return self.value(value)

    def expr(self, node: Expr) -> Value:
        """The value of an expression. Raises MirError where it has none."""
        match node:
            case Token():
                return self.atom(node)
            case Binary():
                return self.binary_node(node)
            case Index():
                return self.index(node)
            case Call():
                return self.call(node)
            case Unary():
                return self.unary(node)
            case Member():
                return self.member(node.base, node.name[1:], node)
            case Lambda():
                self.fail(node, "a lambda stands only in T.comm_reducer")
            case Slice():
                self.fail(node, "a slice stands only in an index")
            case Items() if not node.items:
                self.fail(None, "'()' is no value")
            case _:
                self.fail(node, "a value is expected here, not a list, tuple or dictionary")

    def atom(self, token: Token) -> Value:
        """A name, a number, True or False."""
        if token.type == "NUMBER":
            number = self.number(token)
            if isinstance(number.value, int) and number.value >= 1 << 63:
                self.fail(token, f"{number.value} does not fit into int64", "an unsigned one is written T.uint64(…)")
            return number
        if token.type == "STRING":
            self.fail(token, "a string is no value here", "strings stand among a call's arguments and in annotations")
        entry = self.names.get(token)
        if entry is not None:
            return entry
        return self.unknown_name(token)

    def unknown_name(self, token: Token) -> Value:
        """A dotted name that is no variable: a field of a buffer; or a constant."""
        if token == "True" or token == "False":
            return Const(int(token == "True"), I1)
        base, dot, name = token.rpartition(".")
        if dot and base in self.names:
            return self.member(Token("NAME", base, token.start), name, token)
        if token.startswith("T."):
            self.fail(token, f"'{token}' is a function", f"call it: {token}(…)")
        if token in self.poisoned or base in self.poisoned:
            raise MirError(())
        near = nearest(token, self.names)
        self.fail(
            token, f"'{token}' is not defined", f"did you mean '{near}'?" if near else self.what_is_defined(token)
        )

    def what_is_defined(self, name: str) -> str:
        """The integers that may be meant by a name that none has: loop variables, axes and parameters, the last ones; or a size to declare."""
        integers = [
            known
            for known, value in self.names.items()
            if isinstance(value, BlockArgument) and isinstance(value.type, IntegerType)
        ]
        size = f"a symbolic size is declared with {name} = T.int32()"
        return f"integers in scope: {', '.join(integers[-4:])}; {size}" if integers else size

    def member(self, base: Expr, name: str, node: Expr) -> Value:
        """`A.data`, `A.elem_offset`; `A.shape` and `A.strides` need an index."""
        buffer = self.expr(base)
        if isinstance(buffer, Const) or not isinstance(buffer.type, BufferType):
            self.fail(node, f"only a buffer has '.{name}'")
        self.location = self.at(node)
        if name == "data":
            return self.buffer_data(buffer)
        if name == "elem_offset":
            return self.emit(BufferGetOp(buffer, "elem_offset", I32))
        if name in ("shape", "strides"):
            self.fail(node, f"'{name}' is one number for each dimension", f"write {buffer_name(buffer)}.{name}[0]")
        self.fail(node, f"a buffer has no '{name}'", "it has data, elem_offset, shape[i] and strides[i]")

    def buffer_data(self, buffer: SSAValue) -> SSAValue:
        """`A.data`, at the current location."""
        assert isinstance(buffer.type, BufferType)
        return self.emit(BufferGetOp(buffer, "data", HandleType.get(buffer.type.dtype, buffer.type.scope.data)))

    def number_of(self, node: Expr) -> Value:
        """The value of an operand: anything but a buffer."""
        value = self.expr(node)
        if isinstance(value.type, BufferType):
            name = f"'{node}'" if type(node) is Token else "this"
            access = f"{node if type(node) is Token else 'A'}[{', '.join('ijklmn'[: value.type.rank]) or '()'}]"
            self.fail(node, f"{name} is a buffer, not a number", f"index it, as in {access}")
        return value

    # Operators

    def binary_node(self, node: Binary) -> Value:
        """`a op b`."""
        start = len(self.ops)
        a = self.number_of(node.left)
        position = len(self.ops)
        b = self.number_of(node.right)
        self.location = self.at(node.op)
        if a.type != b.type and node.op in _KNOWN_OPERATORS:
            a, b = self.matched(a, b, position)
        op = _OPERATORS.get(node.op)
        if op is not None:
            return self.folding(op, a, b, start)
        if node.op == "/":
            if not is_float(a.type) and not is_float(b.type):
                raise self.error(
                    "'/' on integers may mean two things",
                    "write a // b (rounds down) or T.Div(a, b) (rounds toward zero)",
                )
            return self.folding(DivOp, a, b, start)
        if node.op in _BIT_OPERATORS:
            folded = fold(_BIT_OPERATORS[node.op], a, b) if a.type == b.type else None
            if folded is not None:
                return folded
            with self.before(position):
                x = self.value(a)
            return self.intrinsic(_BIT_OPERATORS[node.op], [x, self.value(b)])
        if node.op == "**":
            raise self.error("TVMScript has no '**'", "write T.pow(a, b) for floats, or a product")
        raise self.error(f"TVMScript has no '{node.op}' between scalars")

    def folding(self, op: type[BinaryOp], a: Value, b: Value, start: int) -> Value:
        """`binary`; what folding leaves unused of the operands, whose ops begin at `start`, is removed."""
        count = len(self.ops)
        result = self.binary(op, a, b)
        if len(self.ops) == count:
            kept: list[Operation] = []
            for made in reversed(self.ops[start:]):
                if any(r.first_use is not None or r is result for r in made.results) or isinstance(made, LetOp):
                    kept.append(made)
                else:
                    made.erase()
            self.ops[start:] = reversed(kept)
        return result

    def matched(self, a: Value, b: Value, position: int) -> tuple[Value, Value]:
        """`match`, with what is made of `a` before the op at `position`, as if it stood in the text."""
        first, second = self.common_types(a.type, b.type)
        with self.before(position):
            a = self.cast(a, first)
        return a, self.cast(b, second)

    def pair(self, left: Expr, right: Expr, where: Expr) -> tuple[Value, Value]:
        """Two operands in their common dtype; the location is then that of `where`."""
        a = self.number_of(left)
        position = len(self.ops)
        b = self.number_of(right)
        self.location = self.at(where)
        return (a, b) if a.type == b.type else self.matched(a, b, position)

    def unary(self, node: Unary) -> Value:
        """`-x`, `not x`, `~x`, `+x`."""
        if node.op == "*":
            self.fail(node, "'*' before a value takes a list apart, and TVMScript has no lists of values")
        # The least int64 is the negative of a number that fits no int64.
        value = (self.literal(node.operand) if node.op == "-" else None) or self.number_of(node.operand)
        self.location = self.at(node.op)
        if node.op == "-":
            return self.negate(value)
        if node.op == "not":
            return self.logical_not(value)
        return self.intrinsic("bitwise_not", [self.value(value)]) if node.op == "~" else value

    # Loads

    def index(self, node: Index) -> Value:
        """`A[i, j]`, or `A.strides[0]`."""
        base = node.base
        if type(base) is Token and base not in self.names and base.endswith((".shape", ".strides")):
            return self.extent_of(node, base)
        buffer = self.buffer(base)
        indices = [self.access_index(item) for item in node.items]
        self.check_rank(buffer, len(indices), node)
        self.location = self.at(node)
        assert isinstance(buffer.type, BufferType)
        type_ = buffer.type.dtype
        for i in indices:
            if i.type is not I32 and isinstance(i.type, VectorType):
                type_ = accessed_type(buffer.type, [i.type for i in indices])
                break
        return self.emit(
            LoadOp.create(
                operands=(buffer, *indices),
                result_types=(type_,),
                properties={"operandSegmentSizes": segments(1, len(indices), 0)},
            )
        )

    def extent_of(self, node: Index, base: Token) -> Value:
        """`A.shape[0]`, `A.strides[0]`."""
        name, _, field = base.rpartition(".")
        buffer = self.buffer(Token("NAME", name, base.start))
        assert isinstance(buffer.type, BufferType)
        dim = literal_int(node.items[0]) if len(node.items) == 1 else None
        if dim is None or not 0 <= dim < buffer.type.rank:
            self.fail(node, f"'{field}' of '{name}' is indexed with one dimension, 0 to {buffer.type.rank - 1}")
        self.location = self.at(base)
        return self.emit(BufferGetOp(buffer, field, self.dim_type(buffer.type, dim), dim))

    def dim_type(self, type: BufferType, dim: int) -> Attribute:
        """The dtype of an extent or stride: that of the number in the buffer's type, else int32."""
        size = type.shape.data[dim]
        return getattr(size, "type", I32)

    def buffer(self, node: Expr) -> SSAValue:
        """The buffer that a name stands for."""
        value = self.expr(node)
        if isinstance(value, SSAValue) and isinstance(value.type, BufferType):
            return value
        name = node if type(node) is Token else "this"
        if isinstance(value.type, HandleType):
            self.fail(
                node,
                f"'{name}' is a handle, which cannot be indexed",
                f"make a buffer of it: T.match_buffer({name}, …) of a parameter, T.decl_buffer(…, data={name}) of an allocation",
            )
        self.fail(node, f"'{name}' is {with_article(type_to_dtype(value.type))}, not a buffer")

    def check_rank(self, buffer: SSAValue, count: int, node: Expr) -> None:
        """Refuses an access with another number of indices than the buffer has dimensions."""
        assert isinstance(buffer.type, BufferType)
        if count != buffer.type.rank:
            self.fail(
                node,
                f"'{buffer_name(buffer)}' has {counted(buffer.type.rank, 'dimension')}, but {count} {'index is' if count == 1 else 'indices are'} given",
            )

    def access_index(self, item: Expr) -> SSAValue:
        """One index of a load or store; a slice is a vector of indices."""
        if type(item) is Slice:
            return self.ramp(item)
        value = self.scalar(item)
        if value.type is I32:
            return value
        if not isinstance(element_of(value.type), IntegerType) or value.type == I1:
            self.fail(item, f"an index is an integer, not {self.describe(value)}")
        return value

    def describe(self, value: Value) -> str:
        """A value's type in words."""
        if not isinstance(value, Const) and isinstance(value.type, BufferType):
            return f"the buffer '{buffer_name(value)}'"
        return type_to_dtype(value.type)

    def ramp(self, item: Slice) -> SSAValue:
        """`start:stop:step` as indices of a load or store."""
        start: Expr = item.start if item.start is not None else Token("NUMBER", "0")
        if item.stop is None:
            self.fail(item, "a slice in a load or store says where it ends", "write A[i:i + 4]")
        distance = difference(start, item.stop)
        step = 1 if item.step is None else literal_int(item.step)
        base = self.scalar(start)
        if step is None or step == 0:
            self.fail(item.step, "the step of a slice in a load or store is an integer constant")
        self.location = self.at(item)
        scale = None if isinstance(distance, int) or distance is None else self.scalable_lanes(distance)
        if scale is not None:
            return self.emit(RampOp(base, self.value(Const(step, base.type)), scale // abs(step), True))
        if not isinstance(distance, int):
            self.fail(
                item,
                "how many elements this slice takes is not known",
                "write it as start:start + lanes with a constant",
            )
        lanes = -(-distance // step)
        if lanes < 1:
            self.fail(item, f"this slice takes {counted(lanes, 'element')}", "it takes at least one")
        if lanes == 1:
            return base
        return self.emit(RampOp(base, self.value(Const(step, base.type)), lanes))

    def scalable_lanes(self, node: Expr) -> int | None:
        """n where the node is `T.vscale() * n` (or `T.vscale()`)."""
        if isinstance(node, Call) and node.function == "T.vscale":
            return 1
        if isinstance(node, Binary) and node.op == "*":
            for side, other in ((node.left, node.right), (node.right, node.left)):
                count = literal_int(other)
                if isinstance(side, Call) and side.function == "T.vscale" and count is not None:
                    return count
        if isinstance(node, Call) and node.function == "T.Mul" and len(node.arguments) == 2:
            return self.scalable_lanes(Binary(Token("OPERATOR", "*"), node.arguments[0], node.arguments[1]))
        return None

    def lanes(self, node: Expr) -> tuple[int, bool]:
        """The number of lanes that T.Ramp and T.Broadcast are given, and whether it is a multiple of vscale."""
        count = literal_int(node)
        if count is not None:
            if count < 1:
                self.fail(node, f"a vector has at least one lane, not {count}")
            return count, False
        scale = self.scalable_lanes(node)
        if scale is None:
            self.fail(node, "the number of lanes is an integer constant, or T.vscale() times one")
        return scale, True

    def intrinsic(self, name: str, arguments: Sequence[SSAValue], type_: Attribute | None = None) -> SSAValue:
        """A call of an intrinsic, of the dtype that the table gives if none is given. Void calls give int32 here, unused."""
        if type_ is None:
            type_ = intrinsic_type(name, [a.type for a in arguments])
        return self.emit(
            CallOp.create(operands=arguments, properties={"intrinsic": StringAttr(name)}, result_types=(type_,))
        )

    @abstractmethod
    def call(self, node: Call) -> Value:
        """A call's value."""


def hint(name: str) -> str | None:
    """A name as an SSA name hint, or None for one that cannot be.

    Without trailing numbers: MLIR's printer adds such, and would give `x` with a number and `x_1` one name.
    """
    name = _NUMBERED.sub("", name)
    return name if SSAValue.is_valid_name(name) else None


_NUMBERED = re.compile(r"(_\d+)+$")
