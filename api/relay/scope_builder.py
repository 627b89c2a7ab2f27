"""Builds nested lets and branches statement by statement, by the names of `tvm.relay.scope_builder`.

sb = relay.ScopeBuilder()
with sb.if_scope(cond):
    one = sb.let("one", relay.const(1.0))
    sb.ret(one)
with sb.else_scope():
    sb.ret(x)
sb.get()    →    if (cond) { let %one = 1f; %one } else { %x }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from ...support.diagnostics import Diagnostic, MirError, MirValueError
from ...support.public_names import public_names
from ...support.text import counted
from .expr import If, Let, RelayExpr, Var, as_expr
from .expr import var as new_var
from .ty import IncompleteType, Type


class WithScope:
    """Calls a function when the block of a `with` ends without an exception."""

    def __init__(self, on_exit: Callable[[], None]):
        self._on_exit = on_exit

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._on_exit()


class ScopeBuilder:
    """Lets and branches in the order in which they are written; `get` returns them as one expression."""

    def __init__(self) -> None:
        self._bindings: list[list[tuple[Var, RelayExpr]]] = [[]]
        self._results: list[RelayExpr | None] = [None]
        self._waiting: list[tuple[RelayExpr, RelayExpr] | None] = [None]
        """Each scope's condition and first branch of an if that has no other branch yet."""

    def __repr__(self) -> str:
        return f"ScopeBuilder({counted(sum(map(len, self._bindings)), 'binding')})"

    def let(self, var: Var | str | Sequence[Any], value: RelayExpr) -> Var:
        """Binds a value, and returns its variable: `var` itself, or one of this name, or of a name and a type."""
        if isinstance(var, tuple | list):
            if len(var) not in (1, 2):
                message = f"let takes a variable, a name, or a name and a type, not {len(var)} values"
                raise MirValueError(Diagnostic(message))
            variable = new_var(*var)
        elif isinstance(var, str):
            variable = new_var(var)
        elif isinstance(var, Var):
            variable = var
        else:
            raise TypeError(f"let takes a variable, a name, or a name and a type, not {var!r}")
        self._bindings[-1].append((variable, as_expr(value)))
        return variable

    def if_scope(self, cond: RelayExpr) -> WithScope:
        """Returns the scope of a branch: `with sb.if_scope(cond): …`, after which there is an `else_scope`."""
        condition = as_expr(cond)
        self._refuse_two_results("an if")
        self._enter()

        def leave() -> None:
            self._waiting[-1] = (condition, self._leave("if_scope"))

        return WithScope(leave)

    def else_scope(self) -> WithScope:
        """Returns the scope of the other branch. Raises MirError where no `if_scope` has just ended."""
        first = self._waiting[-1]
        if first is None:
            note = "write `with sb.if_scope(cond):` before it"
            raise MirError(Diagnostic("an else_scope follows an if_scope, and there is none").with_note(note))
        self._waiting[-1] = None
        self._enter()

        def leave() -> None:
            self._results[-1] = If(*first, self._leave("else_scope"))

        return WithScope(leave)

    def type_of(self, expr: RelayExpr) -> Type:
        """Returns the type that a variable is annotated with; one to be found, for any other expression."""
        if isinstance(expr, Var) and expr.type_annotation is not None:
            return expr.type_annotation
        found = IncompleteType()
        self.let(Var("unify", found), expr)
        return found

    def ret(self, value: RelayExpr) -> None:
        """Sets the value of the scope. Raises MirError where it has one."""
        self._refuse_two_results("a value")
        self._results[-1] = as_expr(value)

    def get(self) -> RelayExpr:
        """Returns the whole expression. Raises MirError inside a scope, and where `ret` was not called."""
        if len(self._results) != 1:
            raise MirError(Diagnostic("get is called after the scopes have ended, not inside one"))
        return self._leave("the builder")

    def _refuse_two_results(self, what: str) -> None:
        if self._results[-1] is not None or self._waiting[-1] is not None:
            raise MirError(Diagnostic(f"the scope has a value already, so that {what} cannot be its value"))

    def _enter(self) -> None:
        self._bindings.append([])
        self._results.append(None)
        self._waiting.append(None)

    def _leave(self, what: str) -> RelayExpr:
        """Ends the innermost scope: its value inside its lets."""
        bindings, result, first = self._bindings.pop(), self._results.pop(), self._waiting.pop()
        if not self._results:  # `get` may be called again.
            self._bindings, self._results, self._waiting = [bindings], [result], [first]
        if result is None:
            note = "an if_scope needs its else_scope" if first is not None else "set it by sb.ret(value)"
            raise MirError(Diagnostic(f"{what} has no value").with_note(note))
        for variable, value in reversed(bindings):
            result = Let(variable, value, result)
        return result


__all__ = ["ScopeBuilder", "WithScope"]


__dir__ = public_names(__name__)
