"""Uses of every Relay operator: random attributes and arguments, numpy references, programs of them."""
