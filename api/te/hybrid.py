"""`te.hybrid.script`: tensors described by loops, in a subset of Python."""
