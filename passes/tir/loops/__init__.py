"""Passes on TIR's loops: partition, unrolling, hoisting, and dependences between iterations."""
