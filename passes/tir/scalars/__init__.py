"""Passes on TIR's scalar expressions: simplification, narrower dtypes, common subexpressions, stores without effect."""
