"""A TE function is carried out here: its text is data for this evaluator, never for Python's.

Python's arithmetic, tuples, functions and lambdas are understood as far as TE programs use them; `te.…` calls build the
objects of `dialects.te`, which become ops at the end.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from ...dialects.te import extern as ext
from ...dialects.te import tensor as te
from ...dialects.te.builder import func as build_func
from ...dialects.te.ops import FuncOp
from ...dialects.te.schedule_interface import create_schedule
from ...dialects.te.schedule_ops import ScheduleOp
from ...dialects.tir import node as ex
from ...dialects.tir.node import current_location, fail
from ...dialects.tir.node import ir_builder as ib
from ...support.diagnostics import MirError, error_at
from ...support.locations import argument_place
from ...support.text import counted
from ..python import tree
from ..source import Source
from .calls import Calls
from .expressions import is_variable
from .names import Builtin, Range, globals_of_te
from .schedules import note_names, operations_of, taken_apart
from .scope import Returned, Scope, TextFunction, names_in
from .syntax import parameter_names

MOST_CALLS = 200_000
"""How many calls of the text's own functions one statement may make."""
MOST_DEPTH = 200
"""How deep they may nest."""


class Evaluator(Calls):
    """Carries out one `@te.func`."""

    def __init__(self, source: Source, scripts: Mapping[str, Builtin] | None = None, failed: Container[str] = ()):
        """`scripts` are the hybrid scripts that the text may call, `failed` items whose errors are reported."""
        super().__init__(source)
        self.scripts = scripts or {}
        self.failed = failed
        self.calls = 0
        self.depth = 0
        # After `run`: the names of the function, and the operations of the tensors that it returns and computes.
        self.scope: Mapping[str, Any] = {}
        self.outputs: list[te.Operation] = []

    def run_schedule(self, function: tree.Function, targets: Mapping[str, Evaluator]) -> ScheduleOp:
        """Returns the op of an item `@te.schedule(f)`; `targets` are the TE functions by name.

        Raises MirError as `run`.
        """
        target = self._target(function)
        evaluator = targets.get(target)
        if evaluator is None and target in self.failed:
            raise MirError(())
        with self.at(function.decorators[0]):
            if evaluator is None:
                raise fail(
                    f"there is no TE function '{target}' to schedule",
                    *([f"there are {', '.join(targets)}"] if targets else ["it stands in the same file: @te.func"]),
                )
        with self.at(function):
            params, rest = self._parameters(function)
            if len(params) != 1 or rest:
                raise fail(
                    f"schedule '{function.name}' has {counted(len(params), 'parameter')}",
                    "it takes one, the schedule: def name(s): …",
                )
            schedule = create_schedule(evaluator.outputs)
        scope = Scope(evaluator.scope, {params[0]: schedule})
        try:
            self._run(function.body, scope)
        except Returned as returned:
            if returned.value is not None and returned.value is not schedule:
                with self.at(function):
                    raise fail(
                        f"schedule '{function.name}' returns something", "it changes the schedule that it is given"
                    ) from None
        note_names(schedule, scope)
        op = schedule.as_op(operations_of(evaluator.definitions), str(function.name), target)
        op.location = self.source.location(function.token.start)
        return op

    def _target(self, function: tree.Function) -> str:
        decorator = function.decorators[0]
        if (
            len(function.decorators) == 1
            and isinstance(decorator, tree.Call)
            and len(decorator.arguments) == 1
            and not decorator.keywords
            and isinstance(decorator.arguments[0], tree.Token)
            and decorator.arguments[0].type == "NAME"
        ):
            return str(decorator.arguments[0])
        with self.at(decorator):
            raise fail("@te.schedule names the function that it schedules", "write @te.schedule(f) above def name(s):")

    def run(self, function: tree.Function) -> FuncOp:
        """The op of the function. Raises MirError for the first thing that is wrong in it."""
        private = self._decorator(function)
        with self.at(function):
            if function.parameters:
                raise fail(
                    f"function '{function.name}' has parameters",
                    "a TE function takes none: its inputs are te.placeholder and te.var, returned first: return [A, B]",
                )
        scope = Scope(Scope(globals_of_te(), self.scripts))
        try:
            self._run(function.body, scope)
        except Returned as returned:
            return self._function(function, returned.value, scope, private)
        with self.at(function):
            raise fail(
                f"function '{function.name}' returns nothing",
                "end it with return [inputs…, outputs…], as in return [A, B]",
            )

    def _decorator(self, function: tree.Function) -> bool:
        private = False
        for decorator in function.decorators:
            if isinstance(decorator, tree.Call):
                for name, value in ((k.name, k.value) for k in decorator.keywords):
                    if name != "private" or value not in ("True", "False"):
                        with self.at(decorator):
                            place = argument_place(current_location(), name)
                            raise error_at(place, f"@te.func takes no '{name}' here", "it takes private=True")
                    private = value == "True"
                if decorator.arguments:
                    with self.at(decorator):
                        raise fail("@te.func takes no positional argument")
        if len(function.decorators) > 1:
            with self.at(function.decorators[1]):
                raise fail("a TE function has the one decorator @te.func")
        return private

    def _function(self, function: tree.Function, returned: Any, scope: Mapping[str, Any], private: bool) -> FuncOp:
        end = function.body[-1] if function.body else function
        with self.at(end):
            schedule, returned = taken_apart(returned)
        listed = list(ex.items_of(returned) or (returned,))
        end = function.body[-1] if function.body else function
        with self.at(end):
            for value in listed:
                if not isinstance(value, (te.Tensor, ex.Var)):
                    raise fail(
                        f"a TE function returns its tensors and te.var scalars, not {ex.describe(value)}",
                        "end it with return [inputs…, outputs…], as in return [A, B]",
                    )
        for name, value in scope.items():
            if isinstance(value, (te.Tensor, ex.Var, ex.IterVar)):
                value.hint = name
        with self.at(end):
            op = build_func(str(function.name), listed, self.attrs, definitions=self.definitions, private=private)
            if schedule is not None:
                note_names(schedule, scope)
                last = op.body.block.last_op
                assert last is not None
                held = schedule.as_op(operations_of(self.definitions))
                held.location = op.location
                op.body.block.insert_op_before(held, last)
        self.scope = scope
        tensors = [value for value in listed if isinstance(value, te.Tensor)]
        self.outputs = list({id(t.op): t.op for t in tensors if not isinstance(t.op, te.PlaceholderOp)}.values())
        op.location = self.source.location(function.token.start)
        return op

    # Statements ------------------------------------------------------------------------------------------------------

    def _run(self, body: list[tree.Stmt], scope: dict[str, Any]) -> None:
        for statement in body:
            if not self.depth:
                self.calls = 0
            with self.at(statement):
                self._statement(statement, scope)

    def _statement(self, statement: tree.Stmt, scope: dict[str, Any]) -> None:
        match statement:
            case tree.Assign():
                value = self.value(statement.value, scope)
                for target in (statement.target, *statement.more):
                    self._assign(target, value, scope)
            case tree.Augmented():
                value = self._binary(
                    statement.token[:-1], self.value(statement.target, scope), self.value(statement.value, scope)
                )
                self._assign(statement.target, value, scope)
            case tree.Return():
                raise Returned(None if statement.value is None else self.value(statement.value, scope))
            case tree.Expression():
                if isinstance(statement.value, tree.Binary) and statement.value.op == "==":
                    from ..python.errors import refuse_comparison

                    refuse_comparison(statement.value, names_in(scope), self.refuse)
                value = self.value(statement.value, scope)
                if self.statements is not None and isinstance(value, ex.Expr):
                    self.statements.append(ext.Evaluated(value))
                elif self.statements is not None and isinstance(
                    value, (ext.Evaluated, ext.Store, ext.Loop, ext.Branch)
                ):
                    self.statements.append(value)
            case tree.Function():
                name = str(statement.name)
                scope[name] = TextFunction(self, name, *self._parameters(statement), statement.body, scope)
            case tree.With():
                self._with(statement, scope)
            case tree.For():
                self._for(statement, scope)
            case tree.If():
                self._if(statement, scope)
            case tree.Annotated():
                if statement.value is not None:
                    self._assign(statement.target, self.value(statement.value, scope), scope)
            case tree.While() | tree.Assert():
                raise AssertionError("the lexer refuses them")

    def _assign(self, target: tree.Expr, value: Any, scope: dict[str, Any]) -> None:
        with self.at(target):
            match target:
                case tree.Token() if is_variable(target):
                    scope[str(target)] = value
                case tree.Sequence():
                    parts = ex.items_of(value)
                    if parts is None:
                        raise fail(
                            f"{ex.describe(value)} cannot be taken apart into {counted(len(target.items), 'name')}"
                        )
                    if len(parts) != len(target.items):
                        raise fail(
                            f"{counted(len(parts), 'value')} cannot be assigned to {counted(len(target.items), 'name')}"
                        )
                    for item, part in zip(target.items, parts, strict=True):
                        self._assign(item, part, scope)
                case tree.Index():
                    base, indices = self.value(target.base, scope), self._indices(target, scope)
                    if isinstance(base, ib.BufferVar):
                        base[indices] = value
                    elif isinstance(base, ex.Buffer):
                        if self.statements is None:
                            raise fail(f"buffer '{base.name}' is written in the function of a te.extern only")
                        self.statements.append(ext.store(base, indices, value))
                    else:
                        raise fail(
                            f"an element of {ex.describe(base)} cannot be assigned",
                            "a tensor is described as a whole: B = te.compute(shape, lambda i: …)",
                        )
                case _:
                    raise fail("only names can be assigned here")

    def _with(self, statement: tree.With, scope: dict[str, Any]) -> None:
        with ExitStack() as stack:
            for item, target in statement.items:
                context = self.value(item, scope)
                if not isinstance(context, AbstractContextManager):
                    raise fail(f"'with' takes ib.for_range, ib.if_scope or ib.else_scope, not {ex.describe(context)}")
                value: Any = stack.enter_context(context)  # pyright: ignore[reportUnknownArgumentType]
                if target is not None:
                    self._assign(target, value, scope)
            self._run(statement.body, scope)

    def _nested(self, body: list[tree.Stmt], scope: dict[str, Any]) -> list[ext.Stmt]:
        outer, self.statements = self.statements, []
        try:
            self._run(body, scope)
            return self.statements
        finally:
            self.statements = outer

    def _for(self, statement: tree.For, scope: dict[str, Any]) -> None:
        iterable = self.value(statement.iterable, scope)
        if self.statements is None:
            raise fail(
                "a loop has no place among the definitions of a TE function",
                "a te.compute runs over its axes by itself; loops stand in the function of a te.extern",
            )
        if not isinstance(iterable, Range) or not is_variable(statement.target):
            raise fail("a loop of statements is 'for i in range(…)', T.serial, T.parallel, T.vectorized or T.unroll")
        begin, end = ex.match_types(ex.convert(iterable.begin), ex.convert(iterable.end), "range")
        name = str(statement.target)
        variable = ex.Var(name, end.dtype)
        body = self._nested(statement.body, Scope(scope, {name: variable}))
        self.statements.append(ext.loop(variable, begin, end, iterable.kind, body))

    def _if(self, statement: tree.If, scope: dict[str, Any]) -> None:
        condition = self.value(statement.condition, scope)
        if isinstance(condition, ex.Expr) and not isinstance(condition, ex.Const):
            if self.statements is None:
                raise fail(
                    "a condition on a value has no place among the definitions of a TE function",
                    "write te.if_then_else(condition, a, b) in the body of a te.compute",
                )
            if condition.dtype != "bool":
                raise fail(f"the condition of 'if' must be bool, not {condition.dtype}")
            then, orelse = self._nested(statement.body, scope), self._nested(statement.orelse, scope)
            self.statements.append(ext.Branch(condition, then, orelse))
        else:
            self._run(statement.body if self._truth(condition) else statement.orelse, scope)

    def _parameters(self, function: tree.Function) -> tuple[list[str], str | None]:
        return parameter_names([parameter.name for parameter in function.parameters], self.refuse)

    # Functions -------------------------------------------------------------------------------------------------------

    def call_function(self, function: TextFunction, arguments: Sequence[Any]) -> Any:
        """The value of a call of a function of the text."""
        count = len(function.params)
        if len(arguments) < count or (len(arguments) > count and function.rest is None):
            raise fail(f"'{function.name}' takes {counted(count, 'argument')}, but is called with {len(arguments)}")
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise fail(f"this statement makes more than {MOST_CALLS:,} calls of functions of the text")
        if self.depth >= MOST_DEPTH:
            raise fail(f"calls nest more than {MOST_DEPTH} deep: '{function.name}' calls itself without end")
        scope = Scope(function.scope, dict(zip(function.params, arguments, strict=False)))
        if function.rest is not None:
            scope[function.rest] = tuple(arguments[count:])
        self.depth += 1
        try:
            if not isinstance(function.body, list):
                return self.value(function.body, scope)
            self._run(function.body, scope)
        except Returned as returned:
            return returned.value
        finally:
            self.depth -= 1
        return None
