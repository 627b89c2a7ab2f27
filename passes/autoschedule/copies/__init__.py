"""Blocks that copy in another order: transposed, repeated, reflected, interleaved."""
