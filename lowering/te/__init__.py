"""TE to TIR: each tensor a loop nest with a block, as TVM's `te.create_prim_func` makes it."""

from .create_prim_func import create_prim_func

__all__ = ["create_prim_func"]
