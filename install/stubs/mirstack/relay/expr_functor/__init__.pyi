"""Walks over expressions by a class of the user: `ExprVisitor` visits, `ExprMutator` rebuilds.

The methods are TVM's: `visit_call`, `visit_var`, …, each of which decides whether `visit` goes on into the node's parts. They
call each other as deep as the program is; the first `visit` therefore runs in a deep stack.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr_functor import ExprFunctor as ExprFunctor
from mirstack.api.relay.expr_functor import ExprMutator as ExprMutator
from mirstack.api.relay.expr_functor import ExprVisitor as ExprVisitor
from mirstack.api.relay.expr_functor import MixedModeMutator as MixedModeMutator
from mirstack.api.relay.expr_functor import MixedModeVisitor as MixedModeVisitor
from mirstack.api.relay.expr_functor import R as R
from mirstack.api.relay.expr_functor import post_order_visit as post_order_visit
