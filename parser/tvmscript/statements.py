"""Statements and functions: from the syntax tree to `tir.prim_func`."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, NoneType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ...dialects.tir.buffer import (
    BufferRegionOp,
    MatchBufferOp,
    StoreOp,
)
from ...dialects.tir.expr import CallOp, ConstOp, VarOp
from ...dialects.tir.stmt import (
    AttrOp,
    EvaluateOp,
    PrefetchOp,
    PrimFuncOp,
    RealizeOp,
)
from ...dialects.tir.types import HandleType, StringType
from ...support.diagnostics import MirError
from ..python.tree import (
    Annotated,
    Assert,
    Assign,
    Augmented,
    Binary,
    Call,
    Expr,
    Expression,
    For,
    Function,
    If,
    Index,
    Return,
    Sequence,
    Stmt,
    Token,
    While,
    With,
)
from .blocks import called, contains_block, has_axes
from .buffers import BufferSpec
from .control import Control
from .definitions import RESERVED
from .expressions import hint
from .inline_matches import inline_simple_matches
from .scope import Callee


class FunctionReader(Control):
    """Reads one prim_func."""

    func_attrs: dict[str, Attribute]
    func_depth: int = 0

    def function(self, tree: Function, callee: Callee) -> PrimFuncOp:
        """The function; errors in it are reported."""
        self.func_attrs = {}
        block = Block()
        self.location = at = self.at(tree.name)
        names: list[str] = []
        with self.inside(block):
            declared: list[tuple[Token, BufferSpec]] = []
            self.parameters(tree, block, names, declared)
            for name, _ in declared:
                self.hand_over(name, block, names)
            names = [self.fresh(n) for n in names]
            self.shown.update(zip(block.args, names, strict=True))
            for name, spec in declared:
                handle = self.names[name]
                assert isinstance(handle, SSAValue)
                self.location = self.at(name)
                self.define(name, self.make_buffer(MatchBufferOp, str(name), spec, handle))
            self.statements(self.function_body(tree.body))
        ret_type = NoneType() if callee.result is None else callee.result
        attrs = self.func_attrs
        if attrs.get("global_symbol") == StringAttr(tree.name):
            del attrs["global_symbol"]
        private = self.is_private(tree)
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(callee.symbol),
            "param_names": ArrayAttr([StringAttr(n) for n in names]),
            "attrs": DictionaryAttr(attrs),
            "ret_type": ret_type,
        }
        if private:
            properties["sym_visibility"] = StringAttr("private")
        op = PrimFuncOp.create(properties=properties, regions=[Region(block)], location=at)
        inline_simple_matches(op)
        return op

    def is_private(self, tree: Function) -> bool:
        """Whether the decorator says `private=True`."""
        for decorator in tree.decorators:
            if isinstance(decorator, Call):
                for keyword in decorator.keywords:
                    if keyword.name == "private":
                        return keyword.value == "True"
                    if keyword.name != "check_well_formed":
                        self.context.error(
                            self.at(keyword.name),
                            f"T.prim_func has no argument '{keyword.name}'",
                            "it has private=True",
                        )
        return False

    def parameters(
        self, tree: Function, block: Block, names: list[str], declared: list[tuple[Token, BufferSpec]]
    ) -> None:
        """Parameters become the block's arguments; a buffer that is not simple is a handle, to be matched afterwards."""
        later: list[tuple[int, Token, Expr]] = []
        for parameter in tree.parameters:
            name, annotation = parameter.name, parameter.annotation
            with self.recovering():
                if name in names or name in RESERVED:
                    self.fail(
                        name,
                        f"'{name}' cannot be a parameter"
                        if name in RESERVED
                        else f"two parameters are called '{name}'",
                    )
                if annotation is None:
                    self.fail(
                        name,
                        f"parameter '{name}' has no type",
                        'write a: T.Buffer((8,), "float32"), n: T.int32 or a: T.handle',
                    )
                type_ = self.named_type(annotation)
                if type_ is None and not (
                    isinstance(annotation, Index | Call)
                    and str(annotation.base if isinstance(annotation, Index) else annotation.function)
                    in ("T.Buffer", "T.match_buffer", "T.buffer_decl")
                ):
                    self.fail(
                        annotation,
                        f"parameter '{name}' has an unknown type",
                        "it is a T.Buffer, T.handle, or a dtype like T.int32",
                    )
                arg = block.insert_arg(type_ or HandleType.get(), len(block.args))
                names.append(str(name))
                arg.name_hint = hint(name)
                arg.location = self.at(name)
                self.define(name, arg)
                if type_ is None:
                    later.append((len(names) - 1, name, annotation))
        # Shapes may name any scalar parameter, those behind the buffer too.
        for place, name, annotation in later:
            with self.recovering(), self.poisoning(str(name)):
                spec = self.annotation(annotation)
                assert spec is not None
                if spec.simple():
                    arg = Rewriter.replace_value_with_new_type(block.args[place], spec.type())
                    assert isinstance(arg, BlockArgument)
                    arg.name_hint = hint(name)
                    arg.location = self.at(name)
                    self.names[name] = arg
                else:
                    declared.append((name, spec))

    def hand_over(self, name: Token, block: Block, names: list[str]) -> None:
        """A buffer parameter with a symbolic shape gives its name to the buffer matched at the head of the function."""
        place = names.index(str(name))
        handle = f"{name}_handle"
        while handle in names:
            handle += "_"
        names[place] = handle
        block.args[place].name_hint = hint(handle)

    def function_body(self, body: list[Stmt]) -> list[Stmt]:
        """The statements, without an explicit root block where the function itself stands for it."""
        last = body[-1] if body else None
        if not (isinstance(last, With) and len(last.items) == 1 and called(last.items[0][0]) == "T.block"):
            return body
        call = last.items[0][0]
        assert isinstance(call, Call)
        named_root = len(call.arguments) == 1 and call.arguments[0] in ('"root"', "'root'")
        if not named_root or has_axes(last.body):
            return body
        inner = [s for s in last.body if not _is_empty_regions(s)]
        heads = [called(s.value) for s in inner if isinstance(s, Expression)]
        if any(h in ("T.reads", "T.writes", "T.where", "T.block_attr") for h in heads):
            return body
        matched = any(isinstance(s, Assign) and called(s.value) == "T.match_buffer" for s in inner)
        if matched or any(isinstance(s, With) and called(s.items[0][0]) == "T.init" for s in inner):
            return body
        if any(isinstance(s, Assign) and called(s.value) == "T.alloc_buffer" for s in inner):
            return body[:-1] + inner
        single = inner[0] if len(inner) == 1 else None
        single_block = isinstance(single, With) and called(single.items[0][0]) == "T.block"
        if single_block:
            assert isinstance(single, With)
            return body[:-1] + inner if has_axes(single.body) else body
        return body[:-1] + inner if contains_block(inner) else body

    # Statements

    def statements(self, body: list[Stmt]) -> None:
        """Reads statements into the current region; after an error, the next one."""
        last = len(body) - 1
        for number, statement in enumerate(body):
            mark = len(self.ops)
            try:
                self.statement(statement, number == last)
            except (MirError, VerifyException) as error:
                self.context.report(error, self.location)
                self.poison(statement)
                del self.ops[mark:]

    def poison(self, statement: Stmt) -> None:
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
            for name in self.items(target, "names"):
                if isinstance(name, Token) and name not in self.names:
                    self.poisoned.add(str(name))

    def statement(self, statement: Stmt, last: bool) -> None:
        """Reads one statement; `last` says that nothing follows it in its region."""
        match statement:
            case Assign():
                self.assign(statement)
            case For():
                self.for_loop(statement)
            case With():
                self.with_statement(statement, last)
            case Expression():
                self.expression(statement.value)
            case Annotated():
                self.annotated(statement)
            case If():
                self.if_statement(statement)
            case Assert():
                self.assertion(statement.token, statement.condition, statement.message)
            case While():
                self.while_loop(statement)
            case Return():
                self.return_statement(statement)
            case Augmented():
                self.augmented(statement)
            case Function():
                raise AssertionError("the lexer refuses it")

    def assign(self, statement: Assign) -> None:
        """`A[i] = x`, `x = …`, `a, b = …`."""
        target, value = statement.target, statement.value
        if isinstance(target, Index):
            self.store(target, self.expr(value), statement.token)
        elif isinstance(target, Sequence):
            values = value.items if isinstance(value, Sequence) else None
            if values is None or len(values) != len(target.items):
                if called(value).startswith("T.axis."):
                    self.fail(value, "axes are bound in a block", 'write them under with T.block("name"):')
                self.fail(target, f"{len(target.items)} names need as many values", "write them on lines of their own")
            for part, item in zip(target.items, values, strict=True):
                self.assign(Assign(part, statement.token, item))
        elif isinstance(target, Token) and target.type == "NAME":
            self.assign_name(target, value)
        else:
            self.fail(target, "this cannot be assigned to", "assign to a name, or to an element of a buffer, A[i]")

    def annotated(self, statement: Annotated) -> None:
        """`x: T.int32 = value`."""
        name = statement.target
        if not isinstance(name, Token) or name.type != "NAME":
            self.fail(name, "only a name is declared with a type")
        type_ = self.named_type(statement.annotation)
        if type_ is None:
            self.fail(statement.annotation, "a type is expected here", "write x: T.int32 = …")
        if statement.value is None:
            self.location = self.at(name)
            self.define(str(name), self.emit(VarOp(self.fresh(name), type_)))
            return
        self.let(name, self.expr(statement.value), type_)

    def augmented(self, statement: Augmented) -> None:
        """`A[i] += x`."""
        if not isinstance(statement.target, Index):
            self.fail(statement.target, "a name is bound once", "only an element of a buffer is updated: A[i] += x")
        op = Token("OPERATOR", statement.token[:-1], statement.token.start)
        self.store(statement.target, self.expr(Binary(op, statement.target, statement.value)), statement.token)

    # Control flow

    def return_statement(self, statement: Return) -> None:
        """`return x`: `T.ret(x)`, evaluated."""
        if statement.value is None or statement.value == "None":
            self.fail(
                statement.token, "'return' gives a value", "a function without a result ends with its last statement"
            )
        value = self.value(self.number_of(statement.value))
        self.location = self.at(statement.token)
        self.evaluate(self.intrinsic("ret", [value]))

    def evaluate(self, value: SSAValue) -> None:
        """`T.evaluate(value)`, at the current location."""
        self.ops.append(EvaluateOp.create(operands=(value,), location=self.location))

    # Scopes

    # Expressions as statements

    def expression(self, node: Expr) -> None:
        """A call for its effect; a docstring; a value, evaluated."""
        if self.is_string(node):
            return
        if isinstance(node, Call) and isinstance(node.function, Token):
            name = node.function
            reader = _STATEMENTS.get(str(name))
            if reader is not None:
                reader(self, node)
                return
            if name.endswith(".vstore"):
                self.masked_store(Token("NAME", name[: -len(".vstore")], name.start), node)
                return
            if not name.startswith("T."):
                value = self.call_op(node, name)
                if value is not None:
                    self.evaluate(value)
                return
        value = self.value(self.number_of(node))
        self.location = self.at(node)
        if isinstance(value.type, NoneType):
            self.drop_result(value)
            return
        self.evaluate(value)

    def masked_store(self, base: Token, node: Call) -> None:
        """`A.vstore([T.Ramp(0, 1, 4)], value, predicate=p)`: lanes where p is false are not stored."""
        names = ("indices", "value", "predicate")
        indices_node, value_node, predicate_node = self.named_arguments(node, names, 2)
        assert value_node is not None
        value = self.expr(value_node)
        self.store(Index(base, self.items(indices_node, "the indices")), value, base)
        if predicate_node is not None:
            made = self.ops.pop()
            assert isinstance(made, StoreOp)
            predicate = self.scalar(predicate_node)
            self.ops.append(StoreOp(made.value, made.buffer, list(made.indices), predicate))
            self.ops[-1].location = made.location
            made.erase()

    def drop_result(self, value: SSAValue) -> None:
        """A void call has no result."""
        made = value.owner
        assert isinstance(made, CallOp)
        plain = CallOp.create(operands=made.operands, properties=made.properties, location=made.location)
        # It has just been made.
        self.ops.pop()
        made.erase()
        self.ops.append(plain)

    def read_evaluate(self, call: Call) -> None:
        """`T.evaluate(x)`."""
        if len(call.arguments) != 1 or call.keywords:
            self.fail(call, "T.evaluate takes one value")
        inner = call.arguments[0]
        if isinstance(inner, Call) and isinstance(inner.function, Token) and not inner.function.startswith("T."):
            self.expression(inner)
            return
        value = self.value(self.number_of(inner))
        self.location = self.at(call)
        if isinstance(value.type, NoneType):
            self.drop_result(value)
            return
        self.evaluate(value)

    def read_func_attr(self, call: Call) -> None:
        """`T.func_attr({…})`."""
        if len(call.arguments) != 1 or call.keywords:
            self.fail(call, "T.func_attr takes one dictionary")
        for key, value in self.dictionary(call.arguments[0]).data.items():
            if key in self.func_attrs:
                self.fail(call, f"the attribute '{key}' is given twice")
            self.func_attrs[key] = value

    def read_misplaced(self, call: Call) -> None:
        """What belongs into a block's head."""
        self.fail(call, f"{call.function} belongs directly into a block", 'write it under with T.block("name"):')

    def read_attr(self, call: Call) -> None:
        """`T.attr(node, "key", value)`."""
        node, key, value = self.named_arguments(call, ("node", "attr_key", "value"), 3)
        assert node is not None and value is not None
        subject = self.attr_operand(node)
        text = self.string(key, "the key of T.attr")
        given = self.attr_operand(value)
        self.ops.append(
            AttrOp.create(operands=(subject, given), properties={"key": StringAttr(text)}, location=self.at(call))
        )

    def attr_operand(self, node: Expr) -> SSAValue:
        """A string or any value."""
        if self.is_string(node):
            self.location = self.at(node)
            attr = StringAttr(self.string(node, ""))
            return self.emit(ConstOp.create(properties={"value": attr}, result_types=(StringType(),)))
        return self.scalar(node)

    def read_realize(self, call: Call) -> None:
        """`T.realize(A[0:16], "global")`, `T.ProducerRealize(A[0:16], condition)`."""
        producer = call.function == "T.ProducerRealize"
        names = ("region", "condition", "storage_scope") if producer else ("region", "storage_scope", "condition")
        region_node, second, third = self.named_arguments(call, names, 1)
        assert region_node is not None
        scope, condition = (third, second) if producer else (second, third)
        region = self.region(region_node)
        guard = None if condition is None else self.condition(condition, "the condition of a realize")
        text = None if scope is None else self.string(scope, "a storage scope")
        self.location = self.at(call)
        op = RealizeOp(region, text, guard, producer=producer)
        op.location = self.location
        self.ops.append(op)

    def read_prefetch(self, call: Call) -> None:
        """`T.prefetch(A, [T.Range(0, 16)])`."""
        buffer_node, bounds = self.named_arguments(call, ("buffer", "bounds"), 2)
        assert buffer_node is not None
        buffer = self.buffer(buffer_node)
        mins: list[SSAValue] = []
        extents: list[SSAValue] = []
        for bound in self.items(bounds, "the bounds of T.prefetch"):
            ends = bound.arguments if isinstance(bound, Call) else self.items(bound, "a bound")
            if len(ends) != 2:
                self.fail(bound, "a bound is a pair (start, stop)")
            low, extent = self.range_of(ends[0], ends[1])
            mins.append(low)
            extents.append(extent)
        self.check_rank(buffer, len(mins), call)
        self.location = self.at(call)
        region = self.emit(BufferRegionOp(buffer, mins, extents))
        self.ops.append(PrefetchOp.create(operands=(region,), location=self.location))

    def read_launch(self, call: Call) -> None:
        """`T.launch_thread(tx, 32)` of an env_thread's variable."""
        self.define_thread("", call)

    def read_store(self, call: Call) -> None:
        """`T.buffer_store(A, value, [i, j])`."""
        buffer, value, indices = self.named_arguments(call, ("buffer", "value", "indices"), 3)
        assert buffer is not None and value is not None
        token = call.function
        assert isinstance(token, Token)
        self.store(Index(buffer, self.items(indices, "the indices")), self.expr(value), token)


def _is_empty_regions(statement: Stmt) -> bool:
    """`T.reads()` or `T.writes()`, naming nothing."""
    if not isinstance(statement, Expression) or called(statement.value) not in ("T.reads", "T.writes"):
        return False
    arguments = statement.value.arguments if isinstance(statement.value, Call) else []
    return all(isinstance(a, Sequence) and not a.items for a in arguments)


_STATEMENTS: dict[str, Callable[[FunctionReader, Call], None]] = {
    "T.evaluate": FunctionReader.read_evaluate,
    "T.func_attr": FunctionReader.read_func_attr,
    "T.reads": FunctionReader.regions_op,
    "T.writes": FunctionReader.regions_op,
    "T.where": FunctionReader.read_misplaced,
    "T.block_attr": FunctionReader.read_misplaced,
    "T.attr": FunctionReader.read_attr,
    "T.realize": FunctionReader.read_realize,
    "T.ProducerRealize": FunctionReader.read_realize,
    "T.prefetch": FunctionReader.read_prefetch,
    "T.launch_thread": FunctionReader.read_launch,
    "T.buffer_store": FunctionReader.read_store,
}
