"""Passes on TIR's blocks: initial values of reductions, matched regions, blocks made of their bodies."""
