"""Passes that make vectors of TIR's loops: vectorization, reductions in lanes, tiles transposed in registers."""
