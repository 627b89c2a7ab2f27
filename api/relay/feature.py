"""Finds which kinds of expressions a program holds, by TVM's names: `detect_feature(expr)`."""

from __future__ import annotations

from enum import IntEnum

from ...support.public_names import public_names
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.op import Op
from .adt import Constructor, Match
from .expr import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    RelayExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from .graph import LEAVES, binders, free_vars, parts, post_order


class Feature(IntEnum):
    """The kinds of expressions.

    `fGraph` is a value that is used twice, `fLetRec` a let that refers to itself.
    """

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_KINDS: dict[type[Node], Feature] = {
    Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    Constant: Feature.fConstant,
    Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    Op: Feature.fOp,
    Call: Feature.fCall,
    Let: Feature.fLet,
    If: Feature.fIf,
    RefCreate: Feature.fRefCreate,
    RefRead: Feature.fRefRead,
    RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}


def detect_feature(a: RelayExpr | IRModule, b: RelayExpr | IRModule | None = None) -> set[Feature]:
    """Returns the kinds of expressions in an expression, or in all functions of a module.

    With two arguments one is an expression and one a module; what the module's functions hold counts, too.
    """
    found: set[Feature] = set()
    for each in (a, b):
        if isinstance(each, IRModule):
            for function in each.relay_functions.values():
                found |= _features(function)
        elif each is not None:
            found |= _features(each)
    return found


def _features(root: RelayExpr) -> set[Feature]:
    found: set[Feature] = set()
    used: set[Node] = set()
    for node in post_order(root):
        found.add(_KINDS[type(node)])
        if binders(node):
            found.add(Feature.fVar)
        if isinstance(node, Call) and isinstance(node.op, Op):
            found.add(Feature.fOp)
        if isinstance(node, Let) and isinstance(node.value, Function) and node.var in free_vars(node.value):
            found.add(Feature.fLetRec)
        for part in parts(node):
            if not isinstance(part, LEAVES):
                if part in used:
                    found.add(Feature.fGraph)
                used.add(part)
    return found


__all__ = ["Feature", "detect_feature"]


__dir__ = public_names(__name__)
