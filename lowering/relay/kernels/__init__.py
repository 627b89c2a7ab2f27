"""Lowers Primitive functions, Relay's kernels, to TE; finds their constant arguments and sizes."""
