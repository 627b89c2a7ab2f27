"""Passes on TIR's scalars: simplification, narrower dtypes, common subexpressions, dead stores."""
