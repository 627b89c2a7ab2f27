"""Exports functions of JAX: constants apart, parameters named by their places in the arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ...support.diagnostics import Diagnostic, MirError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class ExportedFunction:
    """A function of JAX, `program` its `jax.export.Exported`.

    The first arguments of `program` are `constants`, arrays that the function uses without taking them; the others, called `names`, are
    the leaves of its own arguments.
    """

    name: str
    program: Any
    constants: Sequence[NDArray[Any]]
    names: Sequence[str]


@cache
def require_jax() -> Any:
    """Returns the module `jax`. Raises MirError where it is not installed."""
    try:
        import jax

        for part in ("export", "extend.core", "extend.mlir"):
            import_module(f"jax.{part}")
    except ImportError:
        raise MirError(
            Diagnostic("the package jax is not installed").with_note("pip install 'mirstack[jax]' installs it")
        ) from None
    return jax


def exported(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ExportedFunction:
    """Exports a function for the arguments, arrays or `jax.ShapeDtypeStruct`.

    Raises TypeError for anything but a function and an `Exported`.
    """
    jax = require_jax()
    if isinstance(function, jax.export.Exported):
        if args or kwargs:
            raise TypeError("an exported function has its arguments already; give it alone")
        names = _names(jax, function.in_tree, None)
        return ExportedFunction(str(function.fun_name), function, (), names)
    if not callable(function):
        raise TypeError(f"from_jax takes a function or a jax.export.Exported, not {type(function).__name__}")
    name = re.sub(r"\W", "", getattr(function, "__name__", type(function).__name__)) or "function"
    leaves, tree = jax.tree_util.tree_flatten((tuple(args), dict(kwargs)))

    def flat(*values: Any) -> Any:
        given, named = jax.tree_util.tree_unflatten(tree, values)
        return function(*given, **named)

    # As constants of the traced function, arrays keep their memory; exported with it they would be copied and printed.
    closed = jax.make_jaxpr(flat)(*leaves)
    hoisted = [place for place, each in enumerate(closed.consts) if isinstance(each.dtype, np.dtype)]
    kept = list(closed.consts)

    def call(constants: Sequence[Any], values: Sequence[Any]) -> Any:
        for place, each in zip(hoisted, constants, strict=True):
            kept[place] = each
        return jax.extend.core.jaxpr_as_fun(closed.replace(consts=list(kept)))(*values)

    call.__name__ = call.__qualname__ = name
    constants = [np.asarray(closed.consts[place]) for place in hoisted]
    structs = [jax.ShapeDtypeStruct(np.shape(each), each.dtype) for each in constants]
    program = jax.export.export(jax.jit(call), platforms=["cpu"])(structs, leaves)
    return ExportedFunction(name, program, constants, _names(jax, tree, function))


def _names(jax: Any, tree: Any, function: Callable[..., Any] | None) -> list[str]:
    """Returns a name for each leaf: the parameter's and the keys to the leaf, `params.conv1.w`."""
    places = jax.tree_util.tree_unflatten(tree, list(range(tree.num_leaves)))
    found: list[str] = []
    for path, _ in jax.tree_util.tree_flatten_with_path(places)[0]:
        name = _name(path, function)
        count, unique = 1, name
        while unique in found:
            count += 1
            unique = f"{name}_{count}"
        found.append(unique)
    return found


def _name(path: Sequence[Any], function: Callable[..., Any] | None) -> str:
    """Returns the name of a leaf by its path in the pair of a function's arguments by place and by name."""
    kind, first, *keys = path
    top = _parameter(function, first.idx) if kind.idx == 0 else _key(first)
    name = ".".join(re.sub(r"\W", "_", part) for part in (top, *map(_key, keys)) if part)
    return name if re.match(r"[A-Za-z_]", name) else f"arg{name}"


def _parameter(function: Callable[..., Any] | None, place: int) -> str:
    """Returns the name of a function's parameter by its place; the place of one that has none."""
    try:
        given = list(inspect.signature(function).parameters.values()) if function is not None else []
    except (TypeError, ValueError):
        given = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [each.name for each in given if each.kind in positional]
    return named[place] if place < len(named) else f"arg{place}"


def _key(key: Any) -> str:
    """Returns the text of a key in a path of JAX's: of a dictionary, a sequence or an object."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def dimension(size: Any) -> int | str | None:
    """Returns a size of JAX's: a number, a variable's name; None for an expression."""
    if isinstance(size, int | np.integer):
        return int(size)
    text = str(size)
    return text if text.isidentifier() else None
