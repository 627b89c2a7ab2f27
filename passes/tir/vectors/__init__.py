"""Passes that vectorize TIR's loops: vectorization, reductions in lanes, transposed tiles."""
