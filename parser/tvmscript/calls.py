"""Calls: intrinsics, functions of the file, and the functions behind `T.` that make other ops than `tir.call`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from ...dialects.tir.expr import (
    AddOp,
    AndOp,
    BinaryOp,
    BroadcastOp,
    CallOp,
    CastOp,
    CommReducerOp,
    ConstOp,
    DivOp,
    EqOp,
    FloorDivOp,
    FloorModOp,
    GeOp,
    GtOp,
    IfThenElseOp,
    LeOp,
    LetOp,
    LtOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NeOp,
    NotOp,
    OrOp,
    RampOp,
    ShuffleOp,
    SubOp,
    YieldOp,
)
from ...dialects.tir.intrinsics import BINARY_MATH, BITWISE, DTYPE_FIRST, DTYPE_LAST, KNOWN
from ...dialects.tir.operators import Const, Value, is_float
from ...dialects.tir.stmt import IterVarOp, TargetOp
from ...dialects.tir.types import (
    I32,
    BufferType,
    ReducerType,
    StringType,
    element_of,
    lanes_of,
    type_to_dtype,
    with_lanes,
)
from .expressions import Expressions, hint
from .linear import difference, literal_int
from .tree import Call, Expr, Lambda, Mapping, Member, Token
from .tree import Sequence as Items

# Functions that make the node as it stands, folding nothing.
_NODES: dict[str, type[BinaryOp]] = {
    "Add": AddOp, "Sub": SubOp, "Mul": MulOp, "Div": DivOp, "Mod": ModOp, "FloorDiv": FloorDivOp, "FloorMod": FloorModOp,
    "Min": MinOp, "Max": MaxOp, "EQ": EqOp, "NE": NeOp, "LT": LtOp, "LE": LeOp, "GT": GtOp, "GE": GeOp, "And": AndOp, "Or": OrOp,
}  # fmt: skip
# Functions that match dtypes but, in their printed form, fold nothing.
_MATCHING: dict[str, type[BinaryOp]] = {"min": MinOp, "max": MaxOp, "truncdiv": DivOp, "truncmod": ModOp, "div": DivOp}
_FOLDING: dict[str, type[BinaryOp]] = {
    "floordiv": FloorDivOp, "floormod": FloorModOp, "indexdiv": FloorDivOp, "indexmod": FloorModOp,
}  # fmt: skip
# What else stands behind `T.`, for suggestions.
_OTHERS = (
    "Assert", "Buffer", "LetStmt", "ProducerRealize", "alloc_buffer", "allocate", "allocate_const", "attr", "axis.opaque",
    "axis.reduce", "axis.remap", "axis.scan", "axis.spatial", "bfloat16", "block", "block_attr", "bool", "decl_buffer",
    "env_thread", "evaluate", "float16", "float32", "float64", "func_attr", "grid", "handle", "init", "int16", "int32", "int64",
    "int8", "launch_thread", "match_buffer", "parallel", "prefetch", "prim_func", "reads", "realize", "serial",
    "thread_binding", "uint16", "uint32", "uint64", "uint8", "unroll", "vectorized", "where", "writes",
)  # fmt: skip
_INTEGER_IDENTITIES = frozenset(["floor", "ceil", "round", "trunc", "nearbyint"])


class Calls(Expressions):
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
        reader = _READERS.get(short)
        if reader is not None:
            return reader(self, node)
        if short in _NODES:
            a, b = self.arguments(node, 2)
            return self.node_of_constants(_NODES[short], a, b)
        if short in _MATCHING:
            a, b = self.match(*self.arguments(node, 2))
            return self.node(_MATCHING[short], a, b)
        if short in _FOLDING:
            a, b = self.arguments(node, 2)
            return self.binary(_FOLDING[short], a, b)
        type_ = self.named_type(name)
        if type_ is not None:
            return self.typed(node, type_)
        return self.intrinsic_call(node, short)

    def arguments(self, node: Call, count: int) -> list[Value]:
        """The values of a call's arguments, of which there are `count`. The location is then the call's."""
        if len(node.arguments) != count or node.keywords:
            given = len(node.arguments) + len(node.keywords)
            self.fail(node, f"{node.function} takes {count} argument{'s' if count != 1 else ''}, not {given}")
        values = [self.expr(a) for a in node.arguments]
        self.location = self.at(node)
        return values

    def named_arguments(self, node: Call, names: Sequence[str], required: int) -> list[Expr | None]:
        """A call's arguments in the order of `names`, positional or by keyword; None for those not given."""
        found: list[Expr | None] = [None] * len(names)
        if len(node.arguments) > len(names):
            self.fail(
                node.arguments[len(names)], f"{node.function} takes at most {len(names)} arguments: {', '.join(names)}"
            )
        found[: len(node.arguments)] = node.arguments
        for keyword in node.keywords:
            if keyword.name not in names:
                self.fail(
                    keyword.name, f"{node.function} has no argument '{keyword.name}'", f"it has {', '.join(names)}"
                )
            place = names.index(keyword.name)
            if found[place] is not None:
                self.fail(keyword.name, f"'{keyword.name}' is given twice")
            found[place] = keyword.value
        for name, value in zip(names[:required], found, strict=False):
            if value is None:
                self.fail(node, f"{node.function} needs the argument '{name}'")
        return found

    def node_of_constants(self, op: type[BinaryOp], a: Value, b: Value) -> SSAValue:
        """A node that does not fold; a constant takes the dtype of the other side."""
        if a.type != b.type and (isinstance(a, Const) or isinstance(b, Const)):
            a, b = self.match(a, b)
        return self.node(op, a, b)

    def typed(self, node: Call, type_: Attribute) -> Value:
        """`T.float32(x)`: a constant of that dtype, or a cast."""
        if not node.arguments:
            self.fail(node, f"{node.function}() makes a variable", f"give it a name: n = {node.function}()")
        if len(node.arguments) != 1:
            self.fail(node, f"{node.function} takes one value")
        const = self.typed_literal(type_, node.arguments[0])
        if const is not None:
            return const
        value = self.expr(node.arguments[0])
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
            close = difflib.get_close_matches(name, [*self.functions.callees, *(f"T.{k}" for k in KNOWN)], n=1)
            notes = [f"did you mean '{close[0]}'?"] if close else []
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
        """`x.astype("float32")`."""
        if name == "astype" and len(node.arguments) == 1:
            value = self.expr(base)
            self.location = self.at(node)
            type_ = with_lanes(self.dtype(node.arguments[0]), lanes_of(value.type))
            return self.cast(value, type_)
        self.fail(node, f"there is no method '{name}' here")

    def intrinsic_call(self, node: Call, name: str) -> Value:
        """`T.exp(x)`, `T.call_extern("float32", "f", x)` and their like."""
        if name not in KNOWN and not name.startswith("tir."):
            close = difflib.get_close_matches(name, [*KNOWN, *_READERS, *_MATCHING, *_FOLDING, *_NODES, *_OTHERS], n=1)
            self.fail(
                node,
                f"T has no '{name}'",
                *([f"did you mean 'T.{close[0]}'?"] if close else []),
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
        arguments = [self.call_argument(a) for a in positional]
        self.location = self.at(node)
        if (name in BINARY_MATH or name in BITWISE) and len(arguments) == 2 and arguments[0].type != arguments[1].type:
            x, y = self.match(arguments[0], arguments[1])
            arguments = [self.value(x), self.value(y)]
        if (
            name in _INTEGER_IDENTITIES
            and len(arguments) == 1
            and isinstance(element_of(arguments[0].type), IntegerType)
        ):
            return arguments[0]
        return self.intrinsic(name, arguments, type_)

    def call_argument(self, node: Expr) -> SSAValue:
        """An argument of an intrinsic: a value, a string, or a buffer, which stands for its data."""
        if self.is_string(node):
            self.location = self.at(node)
            attr = StringAttr(self.string(node, ""))
            return self.emit(ConstOp.create(properties={"value": attr}, result_types=(StringType(),)))
        value = self.scalar(node)
        return self.buffer_data(value) if isinstance(value.type, BufferType) else value

    def read_cast(self, node: Call) -> Value:
        """`T.Cast("float32", x)`, never folded."""
        type_node, value_node = self.named_arguments(node, ("dtype", "value"), 2)
        assert value_node is not None
        type_ = self.dtype(type_node)
        value = self.scalar(value_node)
        self.location = self.at(node)
        return self.emit(CastOp.create(operands=(value,), result_types=(type_,)))

    def read_not(self, node: Call) -> Value:
        """`T.Not(x)`, never folded."""
        (value,) = self.arguments(node, 1)
        operand = self.value(value)
        return self.emit(NotOp(operand))

    def read_select(self, node: Call) -> Value:
        """`T.Select(condition, a, b)`."""
        names = ("condition", "true_value", "false_value")
        condition, a, b = (self.expr(n) for n in self.named_arguments(node, names, 3) if n is not None)
        self.location = self.at(node)
        return self.select(condition, a, b)

    def read_if_then_else(self, node: Call) -> Value:
        """`T.if_then_else(condition, a, b)`: each side in a region of its own."""
        condition_node, then_node, else_node, *_ = self.named_arguments(node, ("cond", "t", "f"), 3)
        assert condition_node is not None and then_node is not None and else_node is not None
        condition = self.scalar(condition_node)
        then_value, then_ops = self.side(then_node)
        else_value, else_ops = self.side(else_node)
        self.location = self.at(node)
        # Each side's cast to the common dtype belongs to that side.
        if then_value.type != else_value.type:
            outer = self.detached()
            matched = self.match(then_value, else_value)
            self.ops = outer
            common = matched[0].type
            then_value = self.cast_in(then_ops, then_value, common)
            else_value = self.cast_in(else_ops, else_value, common)
        regions = [self.yielding(then_ops, then_value), self.yielding(else_ops, else_value)]
        type_ = then_value.type
        return self.emit(IfThenElseOp(condition, regions[0], regions[1], type_))

    def side(self, node: Expr) -> tuple[Value, list]:
        """An expression in a list of ops of its own."""
        outer = self.detached()
        try:
            with self.local():
                value = self.expr(node)
            return value, self.ops
        finally:
            self.ops = outer

    def cast_in(self, ops: list, value: Value, type_: Attribute) -> Value:
        """`value` cast to a type, the cast behind `ops`."""
        outer, self.ops = self.ops, ops
        try:
            return self.cast(value, type_)
        finally:
            self.ops = outer

    def yielding(self, ops: list, value: Value) -> Region:
        """A region of these ops that yields a value."""
        outer, self.ops = self.ops, ops
        try:
            self.ops.append(YieldOp.create(operands=(self.value(value),), location=self.location))
        finally:
            self.ops = outer
        block = Block()
        block.add_ops(ops)
        return Region(block)

    def read_ramp(self, node: Call) -> Value:
        """`T.Ramp(base, stride, lanes)`."""
        base_node, stride_node, lanes_node = self.named_arguments(node, ("base", "stride", "lanes"), 3)
        assert base_node is not None and stride_node is not None and lanes_node is not None
        a, b = self.expr(base_node), self.expr(stride_node)
        self.location = self.at(node)
        base, stride = self.match(a, b)
        return self.emit(RampOp(self.value(base), self.value(stride), *self.lanes(lanes_node)))

    def read_broadcast(self, node: Call) -> Value:
        """`T.Broadcast(value, lanes)`."""
        value_node, lanes_node = self.named_arguments(node, ("value", "lanes"), 2)
        assert value_node is not None and lanes_node is not None
        value = self.scalar(value_node)
        self.location = self.at(node)
        return self.emit(BroadcastOp(value, *self.lanes(lanes_node)))

    def read_shuffle(self, node: Call) -> Value:
        """`T.Shuffle([vectors], [indices])`."""
        vectors_node, indices_node = self.named_arguments(node, ("vectors", "indices"), 2)
        if not isinstance(vectors_node, Items) or not isinstance(indices_node, Items) or not vectors_node.items:
            self.fail(node, "T.Shuffle takes a list of vectors and a list of indices")
        vectors = [self.scalar(v) for v in vectors_node.items]
        indices = [self.integer(i, "an index of T.Shuffle") for i in indices_node.items]
        self.location = self.at(node)
        if not indices:
            raise self.error("T.Shuffle takes at least one index")
        return self.emit(
            ShuffleOp.create(
                operands=vectors,
                properties={"indices": ArrayAttr([IntAttr(i) for i in indices])},
                result_types=(with_lanes(element_of(vectors[0].type), len(indices)),),
            )
        )

    def read_all(self, node: Call) -> Value:
        """`T.all(a, b, …)`."""
        return self.connective(node, AndOp)

    def read_any(self, node: Call) -> Value:
        """`T.any(a, b, …)`."""
        return self.connective(node, OrOp)

    def connective(self, node: Call, op: type[BinaryOp]) -> Value:
        if not node.arguments or node.keywords:
            self.fail(node, f"{node.function} takes conditions")
        values = [self.expr(a) for a in node.arguments]
        self.location = self.at(node)
        return self.fold_all(op, values)

    def read_ceildiv(self, node: Call) -> Value:
        """`T.ceildiv(a, b)`: `(a + b - 1) // b`."""
        a, b = self.match(*self.arguments(node, 2))
        summed = self.binary(SubOp, self.binary(AddOp, a, b), Const(1, b.type))
        return self.binary(FloorDivOp, summed, b)

    def read_abs(self, node: Call) -> Value:
        """`T.abs(x)`: an intrinsic of floats, a choice of integers."""
        (value,) = self.arguments(node, 1)
        operand = self.value(value)
        if is_float(operand.type):
            return self.intrinsic("fabs", [operand])
        zero = Const(0, element_of(operand.type))
        return self.select(self.binary(GeOp, operand, zero), operand, self.negate(operand))

    def read_limit(self, node: Call) -> Value:
        """`T.max_value("int32")`, `T.min_value("float32")`, `T.infinity("float32")`: constants."""
        (type_node,) = self.named_arguments(node, ("dtype",), 1)
        type_ = self.dtype(type_node)
        try:
            return limit(str(node.function)[2:], type_)
        except KeyError:
            self.fail(node, f"{type_to_dtype(type_)} has no {str(node.function)[2:]}")

    def read_let(self, node: Call) -> Value:
        """`T.Let(body, where={x: value})`."""
        body, where = self.named_arguments(node, ("expr", "where"), 2)
        if body is None or not isinstance(where, Mapping):
            self.fail(node, "T.Let takes an expression and where={name: value}")
        # The names end with the expression, the lets stay in the region.
        mark = self.mark()
        try:
            for name, value_node in where.pairs:
                if type(name) is not Token or name.type != "NAME":
                    self.fail(name, "where= maps names to values")
                value = self.scalar(value_node)
                self.location = self.at(name)
                let = self.emit(LetOp(self.fresh(name), value))
                let.name_hint = hint(name)
                self.define(name, let)
            return self.expr(body)
        finally:
            self.restore(mark)

    def read_comm_reducer(self, node: Call) -> Value:
        """`T.comm_reducer(lambda x, y: x + y, [identity])`."""
        function, identities_node = self.named_arguments(node, ("combiner", "identity"), 2)
        if not isinstance(function, Lambda) or not isinstance(identities_node, Items):
            self.fail(node, "T.comm_reducer takes a lambda and a list of identities")
        identities = [self.scalar(i) for i in identities_node.items]
        if len(function.parameters) != 2 * len(identities):
            self.fail(
                function,
                f"a reducer of {len(identities)} value{'s' if len(identities) != 1 else ''} has a lambda of {2 * len(identities)} parameters, not {len(function.parameters)}",
            )
        block = Block(arg_types=[i.type for i in identities] * 2)
        body = function.body
        with self.inside(block):
            names: list[str] = []
            for name, arg in zip(function.parameters, block.args, strict=True):
                arg.name_hint = hint(name)
                self.define(name, arg)
                names.append(self.fresh(name))
            results = [self.scalar(r) for r in (body.items if isinstance(body, Items) else [body])]
            self.ops.append(YieldOp.create(operands=results, location=self.at(function)))
        self.location = self.at(node)
        op = CommReducerOp(identities, Region(block), ReducerType())
        op.attributes["arg_names"] = ArrayAttr([StringAttr(n) for n in names])
        return self.emit(op)

    def read_iter_var(self, node: Call) -> Value:
        """`T.iter_var(v, T.Range(0, n), "ThreadIndex", "threadIdx.x")`."""
        names = ("var", "dom", "iter_type", "thread_tag")
        var_node, dom, kind, tag = self.named_arguments(node, names, 3)
        assert var_node is not None
        if self.is_string(var_node):
            self.fail(var_node, "T.iter_var takes a variable", "declare it: i = T.int32()")
        var = self.scalar(var_node)
        ends: list[SSAValue] = []
        if isinstance(dom, Call) and dom.function in ("T.Range", "I.Range", "Range") and len(dom.arguments) == 2:
            ends = list(self.range_of(dom.arguments[0], dom.arguments[1], var.type))
        elif dom != "None":
            self.fail(dom, "the domain of T.iter_var is a T.Range(start, stop), or None")
        iter_type = self.string(kind, "the kind of T.iter_var")
        thread_tag = "" if tag is None else self.string(tag, "the thread of T.iter_var")
        self.location = self.at(node)
        return self.emit(IterVarOp(var, ends, iter_type, thread_tag))

    def range_of(self, start: Expr, stop: Expr, type_: Attribute | None = None) -> tuple[SSAValue, SSAValue]:
        """The start and the extent of `start … stop`, in one dtype (`type_` for constants, where given)."""
        distance = difference(start, stop)
        low = self.expr(start)
        low_at = self.location
        if isinstance(distance, int):
            high: Value = Const(distance, element_of(self.constant_type(stop, low.type)))
        elif distance is not None:
            high = self.expr(distance)
        else:
            end = self.expr(stop)
            self.location = self.at(stop)
            low, end = self.match(low, end)
            # One value for both, so that the printer finds `stop` again.
            low = self.value(low)
            high = self.binary(SubOp, end, low)
        self.location = low_at if type(start) is not Token else self.at(start)
        plain = isinstance(low, Const) and isinstance(high, Const) and low.type == high.type == I32
        if plain and type_ is not None and type_ != I32:
            low, high = self.cast(low, type_), self.cast(high, type_)
        low, high = self.match(low, high)
        return self.value(low), self.value(high)

    def constant_type(self, node: Expr, other: Attribute) -> Attribute:
        """The dtype of an extent that is known: what the literal says, else that of the start."""
        if isinstance(node, Call) and literal_int(node) is not None:
            return self.named_type(node.function) or other
        return other

    def read_target(self, node: Call) -> Value:
        """`T.target({…})` as the node of an attribute."""
        (config_node,) = self.named_arguments(node, ("config",), 1)
        assert config_node is not None
        config = self.attribute(config_node)
        self.location = self.at(node)
        return self.emit(TargetOp(config))


def limit(name: str, type_: Attribute) -> Const:
    """The least or greatest value, or infinity, of a dtype. Raises KeyError for one without."""
    if isinstance(type_, IntegerType):
        signed = type_to_dtype(type_).startswith("int")
        bits = type_.width.data
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        return Const({"min_value": low, "max_value": high}[name], type_)
    greatest = {
        "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308,
        "e4m3_float8": 448.0, "e5m2_float8": 57344.0,
    }[type_to_dtype(type_)]  # fmt: skip
    return Const({"min_value": -greatest, "max_value": greatest, "infinity": float("inf")}[name], type_)


_READERS: dict[str, Callable[[Calls, Call], Value]] = {
    "Cast": Calls.read_cast,
    "Not": Calls.read_not,
    "Select": Calls.read_select,
    "if_then_else": Calls.read_if_then_else,
    "Ramp": Calls.read_ramp,
    "ramp": Calls.read_ramp,
    "Broadcast": Calls.read_broadcast,
    "broadcast": Calls.read_broadcast,
    "Shuffle": Calls.read_shuffle,
    "all": Calls.read_all,
    "any": Calls.read_any,
    "ceildiv": Calls.read_ceildiv,
    "abs": Calls.read_abs,
    "max_value": Calls.read_limit,
    "min_value": Calls.read_limit,
    "infinity": Calls.read_limit,
    "Let": Calls.read_let,
    "comm_reducer": Calls.read_comm_reducer,
    "iter_var": Calls.read_iter_var,
    "target": Calls.read_target,
}
