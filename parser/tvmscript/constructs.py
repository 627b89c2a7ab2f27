"""What stands behind `T.` and makes other ops than calls: casts, choices, vectors, reducers, lets, limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.tir.arithmetic import AndOp, BinaryOp, NotOp, OrOp, SubOp
from ...dialects.tir.expr import BroadcastOp, CastOp, CommReducerOp, IfThenElseOp, LetOp, RampOp, ShuffleOp, YieldOp
from ...dialects.tir.operators import Const, Value, is_float
from ...dialects.tir.stmt import IterVarOp, TargetOp
from ...dialects.tir.types import (
    I32,
    ReducerType,
    element_of,
    is_unsigned,
    lanes_of,
    type_to_dtype,
    with_lanes,
)
from ...support.text import counted, did_you_mean
from ..python.tree import Binary, Call, Expr, Lambda, Mapping, Token, Unary
from ..python.tree import Sequence as Items
from .expressions import Expressions, hint
from .linear import difference, literal_int


class Constructs(Expressions):
    """Reads the functions of TVMScript that are no intrinsics."""

    def check_count(self, node: Call, count: int) -> None:
        """Refuses another number of arguments."""
        if len(node.arguments) != count or node.keywords:
            given = len(node.arguments) + len(node.keywords)
            self.fail(node, f"{node.function} takes {counted(count, 'argument')}, not {given}")

    def arguments(self, node: Call, count: int) -> list[Value]:
        """The values of a call's arguments, of which there are `count`. The location is then the call's."""
        self.check_count(node, count)
        values = [self.expr(a) for a in node.arguments]
        self.location = self.at(node)
        return values

    def named_arguments(self, node: Call, names: Sequence[str], required: int) -> list[Expr | None]:
        """A call's arguments in the order of `names`, positional or by keyword; None for those not given."""
        found: list[Expr | None] = [None] * len(names)
        if len(node.arguments) > len(names):
            self.fail(
                node.arguments[len(names)],
                f"{node.function} takes at most {counted(len(names), 'argument')}: {', '.join(names)}",
            )
        found[: len(node.arguments)] = node.arguments
        for keyword in node.keywords:
            if keyword.name not in names:
                self.fail(
                    keyword.name,
                    f"{node.function} has no argument '{keyword.name}'{did_you_mean(keyword.name, names)}",
                    f"it has {', '.join(names)}",
                )
            place = names.index(keyword.name)
            if found[place] is not None:
                self.fail(keyword.name, f"'{keyword.name}' is given twice")
            found[place] = keyword.value
        for name, value in zip(names[:required], found, strict=False):
            if value is None:
                self.fail(node, f"{node.function} needs the argument '{name}'")
        return found

    def node_of_constants(self, op: type[BinaryOp], node: Call) -> SSAValue:
        """A node that does not fold; a constant takes the dtype of the other side."""
        a = self.expr(node.arguments[0])
        position = len(self.ops)
        b = self.expr(node.arguments[1])
        self.location = self.at(node)
        if a.type != b.type and (isinstance(a, Const) or isinstance(b, Const)):
            a, b = self.matched(a, b, position)
        return self.node(op, a, b)

    def read_cast(self, node: Call) -> Value:
        """`T.Cast("float32", x)`, never folded."""
        type_node, value_node = self.named_arguments(node, ("dtype", "value"), 2)
        assert value_node is not None
        type_ = self.dtype(type_node)
        value = self.value(self.number_of(value_node))
        self.location = self.at(node)
        return self.emit(CastOp.create(operands=(value,), result_types=(type_,)))

    def read_folding_cast(self, node: Call) -> Value:
        """`T.cast(x, "float32")`: `x.astype("float32")`."""
        value_node, type_node = self.named_arguments(node, ("value", "dtype"), 2)
        assert value_node is not None and type_node is not None
        value = self.number_of(value_node)
        self.location = self.at(node)
        return self.cast(value, with_lanes(self.dtype(type_node), lanes_of(value.type)))

    def read_not(self, node: Call) -> Value:
        """`T.Not(x)`, never folded."""
        (value,) = self.arguments(node, 1)
        operand = self.value(value)
        return self.emit(NotOp(operand))

    def read_select(self, node: Call) -> Value:
        """`T.Select(condition, a, b)`."""
        names = ("condition", "true_value", "false_value")
        condition_node, true_node, false_node = self.named_arguments(node, names, 3)
        assert condition_node is not None and true_node is not None and false_node is not None
        condition = self.number_of(condition_node)
        return self.select(condition, *self.pair(true_node, false_node, node))

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
            then_type, else_type = self.common_types(then_value.type, else_value.type)
            then_value = self.cast_in(then_ops, then_value, then_type)
            else_value = self.cast_in(else_ops, else_value, else_type)
        regions = [self.yielding(then_ops, then_value), self.yielding(else_ops, else_value)]
        type_ = then_value.type
        return self.emit(IfThenElseOp(condition, regions[0], regions[1], type_))

    def side(self, node: Expr) -> tuple[Value, list[Operation]]:
        """An expression in a list of ops of its own."""
        outer = self.detached()
        try:
            with self.local():
                value = self.expr(node)
            return value, self.ops
        finally:
            self.ops = outer

    def cast_in(self, ops: list[Operation], value: Value, type_: Attribute) -> Value:
        """`value` cast to a type, the cast behind `ops`."""
        outer, self.ops = self.ops, ops
        try:
            return self.cast(value, type_)
        finally:
            self.ops = outer

    def yielding(self, ops: list[Operation], value: Value) -> Region:
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
        base, stride = self.pair(base_node, stride_node, node)
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
        start = len(self.ops)
        result = self.expr(node.arguments[0])
        for argument in node.arguments[1:]:
            value = self.expr(argument)
            self.location = self.at(node)
            result = self.folding(op, result, value, start)
        return result

    def read_ceildiv(self, node: Call) -> Value:
        """`T.ceildiv(a, b)`: `(a + b - 1) // b`."""
        self.check_count(node, 2)
        a, b = node.arguments
        at = self.token_at(node)
        summed = Binary(Token("OPERATOR", "+", at), a, b)
        less = Binary(Token("OPERATOR", "-", at), summed, Token("NUMBER", "1", at))
        return self.expr(Binary(Token("OPERATOR", "//", at), less, b))

    def read_abs(self, node: Call) -> Value:
        """`T.abs(x)`: an intrinsic of floats, the choice `T.Select(x >= 0, x, -x)` of integers; x itself where it has no sign."""
        self.check_count(node, 1)
        value, made = self.side(node.arguments[0])
        if is_float(value.type):
            self.ops += made
            self.location = self.at(node)
            return self.intrinsic("fabs", [self.value(value)])
        if is_unsigned(value.type):
            self.ops += made
            return value
        for op in reversed(made):
            op.erase()
        at = self.token_at(node)
        positive = Binary(Token("OPERATOR", ">=", at), node.arguments[0], Token("NUMBER", "0", at))
        negative = Unary(Token("PREFIX", "-", at), node.arguments[0])
        return self.read_select(Call(Token("NAME", "T.Select", at), [positive, node.arguments[0], negative], []))

    def token_at(self, node: Call) -> int:
        """Where a call stands, for what it is spelled out to."""
        return node.function.start if isinstance(node.function, Token) else -1

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
                f"a reducer of {counted(len(identities), 'value')} has a lambda of {counted(2 * len(identities), 'parameter')}, not {len(function.parameters)}",
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
        return self.emit(CommReducerOp(identities, Region(block), ReducerType(), names))

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
        low_at, position = self.location, len(self.ops)
        if isinstance(distance, int):
            high: Value = Const(distance, element_of(self.constant_type(stop, low.type)))
        elif distance is not None:
            high = self.expr(distance)
        else:
            end = self.expr(stop)
            self.location = self.at(stop)
            if low.type != end.type:
                low, end = self.matched(low, end, position)
            # One value for both, so that the printer finds `stop` again.
            with self.before(position):
                low = self.value(low)
            high = self.binary(SubOp, end, low)
        self.location = low_at if type(start) is not Token else self.at(start)
        plain = isinstance(low, Const) and isinstance(high, Const) and low.type == high.type == I32
        if plain and type_ is not None and type_ != I32:
            low, high = self.cast(low, type_), self.cast(high, type_)
        if low.type != high.type:
            low, high = self.matched(low, high, position)
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


READERS: dict[str, Callable[[Constructs, Call], Value]] = {
    "Cast": Constructs.read_cast,
    "cast": Constructs.read_folding_cast,
    "Not": Constructs.read_not,
    "Select": Constructs.read_select,
    "if_then_else": Constructs.read_if_then_else,
    "Ramp": Constructs.read_ramp,
    "ramp": Constructs.read_ramp,
    "Broadcast": Constructs.read_broadcast,
    "broadcast": Constructs.read_broadcast,
    "Shuffle": Constructs.read_shuffle,
    "all": Constructs.read_all,
    "any": Constructs.read_any,
    "ceildiv": Constructs.read_ceildiv,
    "abs": Constructs.read_abs,
    "max_value": Constructs.read_limit,
    "min_value": Constructs.read_limit,
    "infinity": Constructs.read_limit,
    "Let": Constructs.read_let,
    "comm_reducer": Constructs.read_comm_reducer,
    "iter_var": Constructs.read_iter_var,
    "target": Constructs.read_target,
}
