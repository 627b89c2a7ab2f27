"""Operators that read or write at computed places: gather, scatter, selection, sparse tensors."""
