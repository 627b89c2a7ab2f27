"""Names in sight, and the functions that a text defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ...dialects.tir.node import fail, items_of
from ...support.text import counted
from ..python import tree


class Caller(Protocol):
    """Carries out functions of the text."""

    def call_function(self, function: TextFunction, arguments: Sequence[Any]) -> Any:
        """The value of a call."""
        ...


class Scope(dict[str, Any]):
    """Names of one function, and those of the function around it as far as they are not its own."""

    def __init__(self, outer: Mapping[str, Any], own: Mapping[str, Any] | None = None):
        super().__init__(own or {})
        self.outer = outer

    def __missing__(self, name: str) -> Any:
        return self.outer[name]


def names_in(scope: Mapping[str, Any]) -> list[str]:
    """Returns the names that are visible in a scope."""
    names = list(scope)
    while isinstance(scope, Scope):
        scope = scope.outer
        names += scope
    return names


class TextFunction:
    """A function or lambda of the text."""

    def __init__(
        self,
        evaluator: Caller,
        name: str,
        params: Sequence[str],
        rest: str | None,
        body: tree.Expr | list[tree.Stmt],
        scope: Mapping[str, Any],
    ):
        self.evaluator, self.name, self.params, self.rest, self.body, self.scope = (
            evaluator,
            name,
            params,
            rest,
            body,
            scope,
        )

    def __call__(self, *arguments: Any) -> Any:
        return self.evaluator.call_function(self, arguments)

    def axis_names(self, ndim: int, varargs_names: Any) -> list[str]:
        """The names of a compute's axes, as TVM takes them from the function."""
        names = list(self.params)
        if self.rest is not None:
            more = ndim - len(names)
            if varargs_names is not None:
                given = items_of(varargs_names) or ()
                if len(given) != more or not all(isinstance(n, str) for n in given):
                    raise fail(
                        f"varargs_names must be {counted(more, 'name')} here, one for each axis that *{self.rest} takes"
                    )
                names += given
            else:
                names += [f"i{i}" for i in range(more)]
        if len(names) != ndim:
            raise fail(
                f"the function of a compute has {counted(len(self.params), 'parameter')}, but the shape has {counted(ndim, 'dimension')}"
            )
        return names


class Returned(Exception):
    """A return statement is carried out."""

    def __init__(self, value: Any):
        super().__init__()
        self.value = value
