"""Random TIR functions as text."""
