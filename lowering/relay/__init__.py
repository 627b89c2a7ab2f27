"""Lowers Relay to native code.

Operators become TE functions (`kernels`), and the functions around them LLVM functions (`functions`) over an arena (`memory`).
"""
