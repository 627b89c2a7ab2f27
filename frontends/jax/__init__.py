"""Imports functions of JAX, through the StableHLO that jax.export writes."""
