"""Hybrid script: tensors described by loops.

    @te.hybrid.script
    def f(a, b):
        c = output_tensor(a.shape, "float32")
        for i in range(a.shape[0]):
            c[i] = a[i] + b[i]
        return c

A call of such a function creates one operation, as te.extern does; its body is read as data, like that of a TE function. A name
that is assigned once, to a value that no store can change, names that value; any other name is a variable in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ...dialects.te import extern as ext
from ...dialects.te import tensor as te
from ...dialects.tir import node as ex
from ...dialects.tir.node import fail
from ...support.text import counted
from ..python import tree
from ..source import Source
from .evaluate import Evaluator
from .expressions import is_variable
from .names import Builtin, globals_of_te
from .scope import Returned, Scope

MOST_UNROLLED = 4096
"""The largest number of iterations that `const_range` may unroll."""

_FUNCTIONS = (
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "power", "popcount", "round", "floor", "ceil", "erf", "abs", "likely",
    "if_then_else", "floordiv", "floormod", "truncdiv", "truncmod", "max_value", "min_value",
)  # fmt: skip


class Variable:
    """A scalar in memory."""

    def __init__(self, buffer: ex.Buffer):
        self.buffer = buffer

    def load(self) -> ex.Expr:
        """Returns the variable's value."""
        return self.buffer[(0,)]


class HybridFunction:
    """A hybrid script: called with tensors (and numbers), it returns the tensors of its `output_tensor`s."""

    def __init__(self, source: Source, function: tree.Function, captured: Mapping[str, Any] | None = None):
        self.source = source
        self.function = function
        self.captured = captured or {}
        self.__name__ = str(function.name)

    def __call__(self, *args: Any) -> Any:
        """Raises MirError for what is wrong in the script, or with the arguments."""
        function = self.function
        plain = [p for p in function.parameters if p.name.type != "STAR"]
        if len(args) != len(plain) or len(plain) < len(function.parameters):
            raise fail(
                f"hybrid script '{function.name}' takes {counted(len(plain), 'argument')}, but is called with {len(args)}"
            )
        return HybridEvaluator(self.source, self.captured).carry_out(function, args)


class HybridEvaluator(Evaluator):
    """Carries out one call of a hybrid script."""

    def __init__(self, source: Source, captured: Mapping[str, Any]):
        super().__init__(source)
        self.captured = captured
        self.results: list[ex.Buffer] = []
        self.assigned: dict[str, int] = {}

    def carry_out(self, function: tree.Function, args: Sequence[Any]) -> Any:
        """The tensors that a call makes."""
        own: dict[str, Any] = {}
        tensors: list[te.Tensor] = []
        buffers: list[ex.Buffer] = []
        for name, value in zip(self._parameters(function)[0], args, strict=True):
            if isinstance(value, te.Tensor):
                buffer = ex.Buffer(value.name, value.dims, value.dtype)
                tensors.append(value)
                buffers.append(buffer)
                own[name] = buffer
            elif isinstance(value, (int, float, str, tuple, list)):
                own[name] = value
            else:
                raise fail(
                    f"'{name}' of hybrid script '{function.name}' is {ex.describe(value)}",
                    "give tensors and Python numbers",
                )
        self.assigned = _assignments(function.body)
        own |= {
            "output_tensor": Builtin("output_tensor", self._output_tensor),
            "allocate": Builtin("allocate", self._allocate),
        }
        scope = Scope(Scope(hybrid_globals(), self.captured), own)
        self.statements = []
        returned: Any = None
        try:
            self._run(function.body, scope)
        except Returned as reached:
            returned = reached.value
        body, self.statements = self.statements, None
        given = ex.items_of(returned)
        listed = list((returned,) if given is None else given)
        with self.at(function):
            if not listed or any(not any(r is b for b in self.results) for r in listed):
                raise fail(
                    f"hybrid script '{function.name}' does not return its output tensors",
                    "end it with return c, for c = output_tensor(shape, dtype)",
                )
            if len({id(r) for r in listed}) != len(self.results) or len(listed) != len(self.results):
                raise fail(
                    f"hybrid script '{function.name}' makes {counted(len(self.results), 'output tensor')}, but returns {len(listed)}",
                    "return each once",
                )
        outputs: tuple[ex.Buffer, ...] = tuple(listed)
        for place, buffer in enumerate(outputs):
            buffer.name = str(function.name) if len(outputs) == 1 else f"{function.name}_v{place}"
        op = ext.ExternOp(str(function.name), tuple(tensors), tuple(buffers), outputs, "", None)
        op.body = body
        made = op.set_outputs([(b.dims, b.dtype) for b in outputs])
        return made[0] if len(made) == 1 else made

    # Memory ----------------------------------------------------------------------------------------------------------

    def _output_tensor(self, shape: Any, dtype: Any) -> ex.Buffer:
        buffer = ex.Buffer("output", te.dims_of(shape), te.checked_dtype(dtype, "an output tensor"))
        self.results.append(buffer)
        return buffer

    def _allocate(self, shape: Any, dtype: Any, scope: str = "global") -> ex.Buffer:
        buffer = ex.Buffer("local", te.dims_of(shape), te.checked_dtype(dtype, "allocated memory"))
        if not isinstance(scope, str) or not scope:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise fail(f"the storage scope of allocate is a string, not {ex.describe(scope)}")
        assert self.statements is not None
        self.statements.append(ext.Temporary(buffer, scope))
        return buffer

    # Statements ------------------------------------------------------------------------------------------------------

    def _assign(self, target: tree.Expr, value: Any, scope: dict[str, Any]) -> None:
        if not is_variable(target):
            super()._assign(target, value, scope)
            return
        name = str(target)
        with self.at(target):
            try:
                held = scope[name]
            except KeyError:
                held = None
            if isinstance(held, Variable):
                self._store(held, name, value)
            elif isinstance(value, ex.Buffer):
                if value.name in ("local", "output"):
                    value.name = name
                scope[name] = value
            elif isinstance(value, (ex.Expr, int, float)) and self._is_variable(name, value):
                scope[name] = self._variable(name, ex.convert(value))
            else:
                scope[name] = value

    def _is_variable(self, name: str, value: ex.ExprLike) -> bool:
        return self.assigned.get(name, 0) > 1 or (isinstance(value, ex.Expr) and _loads(value))

    def _variable(self, name: str, value: ex.Expr) -> Variable:
        buffer = ex.Buffer(name, (ex.IntImm("int32", 1),), value.dtype)
        assert self.statements is not None
        self.statements += [ext.Temporary(buffer, "local"), ext.store(buffer, (0,), value)]
        return Variable(buffer)

    def _store(self, variable: Variable, name: str, value: Any) -> None:
        if not isinstance(value, (ex.Expr, int, float)):
            raise fail(f"'{name}' is a variable of dtype {variable.buffer.dtype}; it cannot be {ex.describe(value)}")
        assert self.statements is not None
        self.statements.append(ext.store(variable.buffer, (0,), value))

    def _for(self, statement: tree.For, scope: dict[str, Any]) -> None:
        iterable = self.value(statement.iterable, scope)
        if isinstance(iterable, range):
            if not is_variable(statement.target):
                raise fail("a loop has one variable")
            for number in iterable:
                self._run(statement.body, Scope(scope, {str(statement.target): number}))
            return
        super()._for(statement, scope)

    def _if(self, statement: tree.If, scope: dict[str, Any]) -> None:
        # What is first assigned in a branch ends with it.
        super()._if(statement, Scope(scope))

    # Expressions -----------------------------------------------------------------------------------------------------

    def value(self, node: tree.Expr, scope: Mapping[str, Any]) -> Any:
        found = self._hybrid_value(node, scope)
        return found.load() if isinstance(found, Variable) else found

    def _hybrid_value(self, node: tree.Expr, scope: Mapping[str, Any]) -> Any:
        match node:
            case tree.Binary() if node.op in ("and", "or"):
                self.refuse_chain(node)
                left, right = self.value(node.left, scope), self.value(node.right, scope)
                if isinstance(left, ex.Expr) or isinstance(right, ex.Expr):
                    with self.at(node):
                        return (ex.logical_or if node.op == "or" else ex.logical_and)(left, right)
            case tree.Unary() if node.op == "not":
                operand = self.value(node.operand, scope)
                if isinstance(operand, ex.Expr):
                    with self.at(node):
                        return ex.logical_not(operand)
            case tree.Conditional():
                condition = self.value(node.condition, scope)
                if isinstance(condition, ex.Expr) and not isinstance(condition, ex.Const):
                    sides = self.value(node.then, scope), self.value(node.orelse, scope)
                    with self.at(node):
                        return ex.if_then_else(condition, *sides)
            case _:
                pass
        return super().value(node, scope)


def _loads(root: ex.Expr) -> bool:
    """Returns whether the value depends on memory."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, ex.BufferLoad):
            return True
        pending += node.args
        if isinstance(node, ex.Choice):
            pending += [node.then_value, node.else_value]
    return False


def _assignments(body: Sequence[tree.Stmt]) -> dict[str, int]:
    """Counts the assignments of each name; one in a loop counts more than once."""
    counts: dict[str, int] = {}

    def visit(statements: Sequence[tree.Stmt], times: int) -> None:
        for statement in statements:
            match statement:
                case tree.Assign():
                    for target in (statement.target, *statement.more):
                        for name in target.items if isinstance(target, tree.Sequence) else (target,):
                            if is_variable(name):
                                counts[str(name)] = counts.get(str(name), 0) + 1
                case tree.Augmented():
                    if is_variable(statement.target):
                        counts[str(statement.target)] = counts.get(str(statement.target), 0) + 2
                case tree.For() | tree.With():
                    visit(statement.body, times + 1)
                case tree.If():
                    visit(statement.body, times)
                    visit(statement.orelse, times)
                case _:
                    pass

    visit(body, 1)
    return counts


def _const_range(*bounds: Any) -> range:
    if not 1 <= len(bounds) <= 2 or not all(isinstance(b, int) for b in bounds):
        raise fail("const_range takes Python numbers: its iterations are written out")
    made = range(*bounds)
    if len(made) > MOST_UNROLLED:
        raise fail(
            f"const_range writes out {len(made)} iterations; {MOST_UNROLLED} is the most", "write range for a loop"
        )
    return made


def _bind(*_: Any) -> Any:
    raise fail(
        "a loop of hybrid script is bound to no thread", "schedule computes for threads: s[B].bind(axis, thread)"
    )


def _convert(dtype: str) -> Callable[[Any], ex.Expr]:
    def convert(value: Any) -> ex.Expr:
        return ex.const(value, dtype) if isinstance(value, (int, float)) else ex.cast(dtype, ex.convert(value))

    return convert


@cache
def hybrid_globals() -> dict[str, Any]:
    """The names that every hybrid script sees."""
    names = dict(globals_of_te())
    space = names["te"].members
    names |= {name: space[name] for name in _FUNCTIONS}
    for name, kind in (
        ("serial", "serial"),
        ("parallel", "parallel"),
        ("vectorize", "vectorized"),
        ("unroll", "unrolled"),
    ):
        names[name] = space["vectorized" if kind == "vectorized" else name]
    names |= {dtype: Builtin(dtype, _convert(dtype)) for dtype in (*ex.INT_LIMITS, *ex.FLOAT_LIMITS) if dtype != "bool"}
    names |= {
        "const_range": Builtin("const_range", _const_range),
        "bind": Builtin("bind", _bind),
        "ceil_div": space["ceildiv"],
        "max": space["maximum"],
        "min": space["minimum"],
    }
    return names
