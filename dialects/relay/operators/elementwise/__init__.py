"""Operators element by element, of one tensor or several that are broadcast, and reductions."""
