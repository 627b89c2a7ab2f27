"""Operators that make, move and reshape tensors; those whose shape is an argument."""
