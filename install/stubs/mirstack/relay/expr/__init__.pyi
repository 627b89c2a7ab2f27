"""Relay's expressions in Python, with TVM's names and arguments: nodes of a graph that do not change.

A node that is used twice is one value, computed once. `export` makes ops of a graph, `restore` a graph of ops.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Call as Call
from mirstack.api.relay.expr import Constant as Constant
from mirstack.api.relay.expr import Expr as Expr
from mirstack.api.relay.expr import Function as Function
from mirstack.api.relay.expr import GlobalVar as GlobalVar
from mirstack.api.relay.expr import If as If
from mirstack.api.relay.expr import Let as Let
from mirstack.api.relay.expr import RefCreate as RefCreate
from mirstack.api.relay.expr import RefRead as RefRead
from mirstack.api.relay.expr import RefWrite as RefWrite
from mirstack.api.relay.expr import RelayExpr as RelayExpr
from mirstack.api.relay.expr import Tuple as Tuple
from mirstack.api.relay.expr import TupleGetItem as TupleGetItem
from mirstack.api.relay.expr import TupleWrapper as TupleWrapper
from mirstack.api.relay.expr import Var as Var
from mirstack.api.relay.expr import as_expr as as_expr
from mirstack.api.relay.expr import bind as bind
from mirstack.api.relay.expr import const as const
from mirstack.api.relay.expr import var as var
from mirstack.api.relay.ty import FuncType as FuncType
