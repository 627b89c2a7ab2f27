"""Builds nested lets and branches statement by statement, by the names of `tvm.relay.scope_builder`.

sb = relay.ScopeBuilder()
with sb.if_scope(cond):
    one = sb.let("one", relay.const(1.0))
    sb.ret(one)
with sb.else_scope():
    sb.ret(x)
sb.get()    →    if (cond) { let %one = 1f; %one } else { %x }

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.scope_builder import ScopeBuilder as ScopeBuilder
from mirstack.api.relay.scope_builder import WithScope as WithScope
