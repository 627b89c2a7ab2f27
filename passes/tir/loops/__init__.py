"""Passes on TIR's loops: partition, unrolling, hoisting, and whether the iterations of a loop depend on each other."""
