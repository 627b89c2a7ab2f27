"""Lets and branches built statement by statement, and the refusals of `ScopeBuilder`."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack import IRModule, relay
from mirstack.support.diagnostics import MirError

X, C = relay.var("x", "float32"), relay.var("c", "bool")


def test_lets_and_branches() -> None:
    sb = relay.ScopeBuilder()
    doubled = sb.let("doubled", relay.add(X, X))
    with sb.if_scope(C):
        one = sb.let(("one", relay.TensorType((), "float32")), relay.const(1.0))
        sb.ret(relay.add(doubled, one))
    with sb.else_scope():
        sb.ret(doubled)
    function = relay.Function([X, C], sb.get())
    run: Any = relay.create_executor("debug", mod=IRModule.from_expr(function)).evaluate()
    assert run(3.0, True).numpy() == 7 and run(3.0, False).numpy() == 6
    # `get` may be called again.
    assert sb.get().var is doubled  # type: ignore[attr-defined]
    variable = relay.var("given")
    assert sb.let(variable, X) is variable


def test_types() -> None:
    sb = relay.ScopeBuilder()
    assert sb.type_of(X) == relay.TensorType((), "float32")
    found = sb.type_of(relay.add(X, X))
    assert isinstance(found, relay.ty.IncompleteType)
    sb.ret(X)
    assert sb.get().var.type_annotation is found  # type: ignore[attr-defined]


def test_refusals() -> None:
    sb = relay.ScopeBuilder()
    with pytest.raises(MirError, match="the builder has no value") as error:
        sb.get()
    assert error.value.diagnostics[0].notes[0].message == r"set it by sb.ret(value)"
    with pytest.raises(MirError, match="an else_scope follows an if_scope, and there is none"):
        sb.else_scope()
    with pytest.raises(MirError, match="get is called after the scopes have ended"), sb.if_scope(C):
        sb.get()
    sb = relay.ScopeBuilder()
    with pytest.raises(MirError, match="if_scope has no value"), sb.if_scope(C):
        pass
    sb = relay.ScopeBuilder()
    with sb.if_scope(C):
        sb.ret(X)
    with pytest.raises(MirError, match="the scope has a value already, so that a value cannot be its value"):
        sb.ret(X)
    with pytest.raises(MirError, match="the builder has no value") as error:
        sb.get()
    assert error.value.diagnostics[0].notes[0].message == "an if_scope needs its else_scope"
    with pytest.raises(MirError, match="so that an if cannot be its value"):
        sb.if_scope(C)
    with pytest.raises(MirError, match="let takes a variable, a name, or a name and a type, not 3 values"):
        sb.let(("x", None, 1), X)
    with pytest.raises(TypeError, match="let takes a variable, a name, or a name and a type, not 1"):
        sb.let(1, X)  # type: ignore[arg-type]
