"""Loops, branches and scopes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from collections.abc import Sequence as Sequence_
from contextlib import contextmanager

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.tir.buffer import (
    NO_ATTRS,
)
from ...dialects.tir.expr import VarOp, YieldOp
from ...dialects.tir.operators import Const
from ...dialects.tir.stmt import (
    AssertOp,
    ForOp,
    IfOp,
    ScopeOp,
    WhileOp,
)
from ...dialects.tir.types import I1, I32, element_of
from ...support.diagnostics import MirError
from ...support.text import counted
from ..python.tree import Call, Expr, For, If, Sequence, Stmt, Token, While, With
from .blocks import called
from .definitions import Definitions
from .expressions import hint
from .linear import literal_int

_LOOPS = {
    "range": "serial", "T.serial": "serial", "T.parallel": "parallel", "T.vectorized": "vectorized", "T.unroll": "unrolled",
    "T.unrolled": "unrolled", "T.thread_binding": "thread_binding",
}  # fmt: skip
_SCOPES = frozenset(["T.attr", "T.realize", "T.ProducerRealize", "T.prefetch"])


class Control(Definitions):
    """Reads statements that have a body."""

    @abstractmethod
    def expression(self, node: Expr) -> None:
        """Reads an expression that stands as a statement."""

    def for_loop(self, statement: For) -> None:
        """`for i in range(n):` and its kinds; `for i, j in T.grid(m, n):`."""
        call = statement.iterable
        targets = statement.target.items if isinstance(statement.target, Sequence) else [statement.target]
        names = [t for t in targets if isinstance(t, Token) and t.type == "NAME" and "." not in t]
        with self.recovering():
            if len(names) != len(targets):
                self.fail(statement.target, "a loop variable is a name")
            function = called(call)
            if not isinstance(call, Call) or (function not in _LOOPS and function != "T.grid"):
                self.fail(
                    call,
                    "this is no loop",
                    "a loop is over range(n), T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid(m, n)",
                )
            if function == "T.grid":
                self.grid(statement, names, call)
                return
            if len(names) != 1:
                self.fail(statement.target, f"{function} gives one loop variable", "several come from T.grid(m, n)")
            self.simple_loop(statement, names[0], call, _LOOPS[function])
            return
        # The header is wrong: its body is still read, for its errors.
        self.read_in_vain(statement.body, names)

    def read_in_vain(self, body: list[Stmt], names: Sequence_[Token] = ()) -> None:
        """Reads statements whose header is wrong, for the errors in them; the names are of loop variables."""
        block = Block(arg_types=[I32] * len(names))
        with self.inside(block):
            for name, arg in zip(names, block.args, strict=True):
                self.bind(name, arg)
            self.statements(body)

    def grid(self, statement: For, names: list[Token], call: Call) -> None:
        """Nested serial loops."""
        if call.keywords or len(call.arguments) != len(names):
            self.fail(
                call, f"T.grid has {counted(len(call.arguments), 'extent')} for {counted(len(names), 'loop variable')}"
            )
        outer = self.ops
        try:
            loops: list[tuple[ForOp, list[Operation]]] = []
            for name, node in zip(names, call.arguments, strict=True):
                # As in loops written one by one, an extent is evaluated in the loop around; it cannot name its variable.
                if isinstance(node, Sequence) and len(node.items) == 2:
                    low, extent = self.range_of(node.items[0], node.items[1])
                else:
                    extent = self.scalar(node)
                    low = self.value(Const(0, extent.type))
                loop = self.loop(statement.token, name, low, extent, "serial", None, NO_ATTRS)
                self.ops = []
                loops.append((loop, self.ops))
            with self.local():
                for name, (loop, _) in zip(names, loops, strict=True):
                    self.bind_loop(name, loop)
                self.statements(statement.body)
            for loop, ops in loops:
                loop.body.block.add_ops(ops)
        finally:
            self.ops = outer

    def loop(
        self,
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
            self.fail(name, f"loop '{name}' runs over integers, not {self.describe(extent)}")
        block = Block(arg_types=(extent.type,))
        properties: dict[str, Attribute] = {
            "var_name": StringAttr(str(name)),
            "kind": StringAttr(kind),
            "annotations": annotations,
        }
        if thread is not None:
            properties["thread"] = StringAttr(thread)
        # A loop over a variable that is declared outside, to which an attribute there refers.
        var = self.names.get(name)
        operands = (low, extent)
        if isinstance(var, SSAValue) and isinstance(var.owner, VarOp) and var.type == extent.type:
            operands = (low, extent, var)
        op = ForOp.create(operands=operands, properties=properties, regions=[Region(block)], location=self.at(token))
        self.ops.append(op)
        return op

    def bind_loop(self, name: Token, op: ForOp) -> None:
        """Makes a loop's variable visible."""
        arg = op.body.block.args[0]
        if op.var is None:
            op.properties["var_name"] = StringAttr(self.bind(name, arg))
            return
        arg.name_hint = hint(name)
        self.define(name, arg)
        self.shown[arg] = self.shown.get(op.var, str(name))
        op.properties["var_name"] = StringAttr(self.shown[arg])

    def simple_loop(self, statement: For, name: Token, call: Call, kind: str) -> None:
        """A single loop of any kind."""
        arguments = list(call.arguments)
        thread: str | None = None
        annotations = NO_ATTRS
        for keyword in call.keywords:
            if keyword.name == "annotations":
                annotations = self.annotations(keyword.value)
            elif keyword.name == "thread" and kind == "thread_binding":
                thread = self.string(keyword.value, "a thread")
            elif keyword.name == "stop":
                arguments.append(keyword.value)
            elif keyword.name == "start":
                arguments.insert(0, keyword.value)
            else:
                self.fail(keyword.name, f"{call.function} has no argument '{keyword.name}'")
        if kind == "thread_binding":
            if thread is None and arguments and self.is_string(arguments[-1]):
                thread = self.string(arguments.pop(), "a thread")
            if thread is None:
                self.fail(call, "T.thread_binding needs a thread", 'write T.thread_binding(32, thread="threadIdx.x")')
        if len(arguments) == 3 and literal_int(arguments[2]) == 1:
            arguments.pop()
        if not 1 <= len(arguments) <= 2:
            self.fail(
                call,
                f"{call.function} takes an extent, or a start and a stop",
                "a step other than 1 is written in the body: i * step",
            )
        if len(arguments) == 2:
            low, extent = self.range_of(arguments[0], arguments[1])
        else:
            extent = self.scalar(arguments[0])
            self.location = self.at(call)
            low = self.value(Const(0, extent.type))
        loop = self.loop(statement.token, name, low, extent, kind, thread, annotations)
        with self.inside(loop.body.block):
            self.bind_loop(name, loop)
            self.statements(statement.body)

    def if_statement(self, statement: If) -> None:
        """`if condition: … else: …`."""
        try:
            condition = self.condition(statement.condition, "the condition of 'if'")
        except MirError:
            self.read_in_vain(statement.body)
            self.read_in_vain(statement.orelse)
            raise
        op = IfOp.create(
            operands=(condition,),
            regions=[Region(Block()), Region(Block()) if statement.orelse else Region()],
            location=self.at(statement.token),
        )
        self.ops.append(op)
        with self.inside(op.then_region.block):
            self.statements(statement.body)
        if statement.orelse:
            with self.inside(op.else_region.block):
                self.statements(statement.orelse)

    def while_loop(self, statement: While) -> None:
        """`while condition: …`."""
        condition, body = Block(), Block()
        with self.inside(condition):
            try:
                value = self.condition(statement.condition, "the condition of 'while'")
            except MirError:
                self.read_in_vain(statement.body)
                raise
            self.ops.append(YieldOp.create(operands=(value,), location=self.at(statement.token)))
        op = WhileOp.create(regions=[Region(condition), Region(body)], location=self.at(statement.token))
        self.ops.append(op)
        with self.inside(body):
            self.statements(statement.body)

    def assertion(self, at: Expr, condition: Expr, message: Expr | None) -> None:
        """`assert condition, "message"`."""
        value = self.condition(condition, "the condition of 'assert'")
        text = "" if message is None else self.string(message, "the message of 'assert'")
        self.ops.append(
            AssertOp.create(operands=(value,), properties={"message": StringAttr(text)}, location=self.at(at))
        )

    def with_statement(self, statement: With, last: bool) -> None:
        """`with T.block(…):`, `with T.init():`, and scopes: `with T.allocate(…) as p:`, `with T.attr(…):`."""
        first = statement.items[0][0]
        function = called(first)
        if function in ("T.block", "T.init"):
            target = statement.items[0][1]
            if len(statement.items) > 1 or target is not None:
                self.fail(
                    target or first,
                    f"{function} stands alone and has no 'as'",
                    "axes are bound inside: vi = T.axis.spatial(8, i)",
                )
            assert isinstance(first, Call)
            if function == "T.block":
                self.block(first, statement)
            else:
                self.init(statement)
            return
        with self.scope(statement.token, last):
            for item, target in statement.items:
                with self.recovering():
                    self.scope_item(item, target)
                    continue
                if isinstance(target, Token):
                    self.poisoned.add(str(target))
            self.statements(statement.body)

    @contextmanager
    def scope(self, token: Token, last: bool) -> Generator[None]:
        """A scope; one that ends with the region around it needs no op."""
        if last:
            with self.local():
                yield
            return
        block = Block()
        op = ScopeOp.create(regions=[Region(block)], location=self.at(token))
        self.ops.append(op)
        with self.inside(block):
            yield

    def scope_item(self, item: Expr, target: Expr | None) -> None:
        """One of a with's items."""
        if not isinstance(item, Call) or not isinstance(item.function, Token):
            self.fail(
                item,
                "this opens no scope",
                "with is for T.block, T.init, T.attr, T.allocate, T.decl_buffer, T.launch_thread, T.LetStmt, T.realize",
            )
        if item.function == "T.LetStmt":
            self.let_statement(item, target)
        elif target is not None:
            if not isinstance(target, Token) or target.type != "NAME":
                self.fail(target, "'as' gives one name")
            made = self.definition(str(target), item)
            if made is None:
                self.fail(item, f"{item.function} gives nothing to name")
            self.define(str(target), made)
        elif item.function == "T.Assert":
            condition, message = self.named_arguments(item, ("condition", "message"), 2)
            assert condition is not None
            self.assertion(item, condition, message)
        elif item.function in _SCOPES or item.function == "T.launch_thread":
            self.expression(item)
        else:
            self.fail(item, f"{item.function} opens no scope")

    def let_statement(self, call: Call, target: Expr | None) -> None:
        """`with T.LetStmt(value, type) as x:`, `with T.LetStmt(value, var=x):`."""
        value_node, type_node, var_node = self.named_arguments(call, ("value", "type_annotation", "var"), 1)
        assert value_node is not None
        value = self.expr(value_node)
        type_ = None if type_node is None else self.named_type(type_node)
        name = target if target is not None else var_node
        if not isinstance(name, Token) or name.type != "NAME":
            self.fail(call, "T.LetStmt names its value", "write with T.LetStmt(value) as x:")
        var = None
        if var_node is not None:
            var = self.scalar(var_node)
            type_ = var.type
        self.let(name, value, type_, var)
