"""Lowers TE to TIR.

`create_prim_func` makes a block for each tensor; `schedule` and `emit` make the loops that a schedule asks for.
"""
