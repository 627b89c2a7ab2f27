"""Relay's functions as LLVM functions: control flow, calls of kernels, data types, closures."""
