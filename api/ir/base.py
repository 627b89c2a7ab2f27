"""Base classes of nodes by TVM's names, and nodes that are made by name."""

from __future__ import annotations

from abc import ABCMeta
from enum import IntEnum
from typing import Any

from ...dialects.tir.node.expr import Expr
from ...support.arguments import check
from ..relay.expr import Function, RelayExpr
from .attrs import make_attrs
from .prim_func import PrimFunc


class CallingConv(IntEnum):
    """The ways of calling a function."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class BaseExpr(metaclass=ABCMeta):  # noqa: B024
    """The expressions of Relay and of TIR: `isinstance(x, ir.BaseExpr)`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class BaseFunc(BaseExpr):
    """The functions of Relay and of TIR."""


BaseExpr.register(RelayExpr)
BaseExpr.register(Expr)
BaseFunc.register(Function)
BaseFunc.register(PrimFunc)


def make_node(type_key: str, **kwargs: Any) -> Any:
    """Returns a node by TVM's name of its class: an `IntImm` and its like, or attributes.

        make_node("IntImm", dtype="int32", value=10)    make_node("DictAttrs", x=1)    make_node("relay.attrs.DenseAttrs", units=8)

    Raises MirValueError for a name that there is not, and AttributeError or TypeError for fields that do not fit.
    """
    from .json_nodes import node_classes

    check(type_key, "type_key", "the name of a class of nodes", str)
    word = type_key.removeprefix("relay.").removeprefix("tir.")
    for name in (f"tir.{word}", f"relay.{word}"):
        kind = node_classes().get(name)
        if kind is not None:
            return kind(**{key: value for key, value in kwargs.items() if key != "span"})
    return make_attrs(type_key, kwargs)
