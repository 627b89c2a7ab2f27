"""Visitors and mutators of types by a class of one's own."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack import relay
from mirstack.support.diagnostics import MirError

A, LIST = relay.TypeVar("A"), relay.GlobalTypeVar("List")
CONSTRUCTORS = [relay.Constructor("Cons", [A, LIST(A)], LIST), relay.Constructor("Nil", [], LIST)]
DATA = relay.TypeData(LIST, [A], CONSTRUCTORS)
SCALAR = relay.TensorType((), "int32")
TYPE = relay.FuncType([relay.TupleType([A, relay.ty.RefType(SCALAR)]), LIST(A)], relay.ty.IncompleteType(), [A])


class Widen(relay.TypeMutator):
    """Makes 64 bits of 32."""

    def visit_tensor_type(self, tt: relay.TensorType) -> Any:
        return relay.TensorType(tt.shape, tt.dtype.replace("32", "64"))


class Tensors(relay.TypeVisitor):
    """Collects tensors and names."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def visit_tensor_type(self, tt: relay.TensorType) -> None:
        self.seen.append(str(tt))

    def visit_global_type_var(self, gtv: relay.GlobalTypeVar) -> None:
        self.seen.append(str(gtv))


def test_mutator() -> None:
    assert str(Widen().visit(TYPE)) == "fn [A]((A, ref(int64)), List[A]) -> _"
    assert str(relay.TypeMutator().visit(TYPE)) == str(TYPE)
    changed = Widen().visit(relay.TypeData(LIST, [], [relay.Constructor("One", [SCALAR], LIST)]))
    assert repr(changed) == "type List { One(int64) }" and changed.header is LIST


def test_visitor() -> None:
    visitor = Tensors()
    visitor.visit(TYPE)
    visitor.visit(DATA)
    assert visitor.seen == ["int32", "List", "List", "List"]


def test_refusals() -> None:
    with pytest.raises(TypeError, match="TypeFunctor says nothing of such types: it needs a method visit_tensor_type"):
        relay.TypeFunctor[None]().visit(SCALAR)
    for each in (
        A,
        relay.ty.IncompleteType(),
        TYPE,
        relay.TupleType([]),
        relay.ty.RefType(SCALAR),
        LIST,
        LIST(A),
        DATA,
    ):
        with pytest.raises(TypeError, match="it needs a method visit_"):
            relay.TypeFunctor[None]().visit(each)
    with pytest.raises(MirError, match="a type is wanted, not 1"):
        relay.TypeMutator().visit(relay.const(1))
