"""The standard prelude, as `tvm.relay.prelude`: lists, options, trees, and functions on them.

    p = relay.prelude.Prelude(mod)
    p.sum(p.map(double, p.cons(relay.const(1), p.nil())))

Its text is `std/prelude.rly`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.prelude import Prelude as Prelude
