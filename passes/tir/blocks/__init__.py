"""Passes on TIR's blocks: reductions' initial values, regions that are matched, and blocks replaced by their bodies."""
