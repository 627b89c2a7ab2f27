"""Shared parts of operators: relations, meanings, computes, result sizes, layouts, gradients."""
