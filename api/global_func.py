"""Registers functions of Python by name for the whole process, `mirstack.register_func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..support.arguments import check
from ..support.diagnostics import Diagnostic, MirValueError
from ..support.text import did_you_mean

Function = Callable[..., Any]

_FUNCTIONS: dict[str, Function] = {}


def register_func(func_name: str | Function, f: Function | None = None, override: bool = False) -> Any:
    """Registers a function of Python under a name; without `f`, decorates one.

    Raises MirValueError where the name is taken, unless `override`.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    check(func_name, "func_name", "the name of a function", str)

    def register(function: Function) -> Function:
        check(function, "f", "a function", type(register), type, Callable)  # type: ignore[arg-type]
        if func_name in _FUNCTIONS and not override:
            message = f"there is a function '{func_name}' already"
            raise MirValueError(Diagnostic(message).with_note("override=True replaces it"))
        _FUNCTIONS[func_name] = function
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """Returns the function of a name; None with `allow_missing`. Raises MirValueError where there is none."""
    found = _FUNCTIONS.get(name)
    if found is None and not allow_missing:
        hint = did_you_mean(name, _FUNCTIONS)
        message = f"there is no function '{name}'{hint}"
        raise MirValueError(Diagnostic(message).with_note("mirstack.register_func registers one of Python"))
    return found


def list_global_func_names() -> list[str]:
    """Returns the names of all functions."""
    return sorted(_FUNCTIONS)


def remove_global_func(name: str) -> None:
    """Removes the function of a name, if there is one."""
    _FUNCTIONS.pop(name, None)


__all__ = ["get_global_func", "list_global_func_names", "register_func", "remove_global_func"]
