"""Relay's kernels: Primitive functions as TE functions, and what is known of their arguments and sizes."""
